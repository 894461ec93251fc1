"""Soft labels at a temperature, or at an entropy, of rows that may be anywhere: prices are found, distributions follow.

Where a search for prices leads nowhere, they come down from higher temperatures, and then from the exact step. Where
T is too small for floats to tell, every row has the label of the exact step.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np

from transduce.class_prior.bounds import Bounds
from transduce.label_step.cost_statistics import CostStatistics
from transduce.label_step.dual_newton import Point, Rows, Search, closed_nodes
from transduce.label_step.problem import FloatArray, LabelProblem
from transduce.label_step.solution import normalise

COOLING = 0.25
"""Each temperature on the way down from far-off prices, as a share of the one before."""
LOOSE = 0.05
"""Share of the counts to which they are met there."""
BEYOND_FLOATS = 1e6
"""Costs of so many T leave too few digits for the entropy, if counts cannot be met."""
HOTTEST = 1e3
"""Temperature, in units of the largest cost, that is not gone beyond: what forbidden labels rule out is not there."""
MAX_STEPS = 500
"""Most steps of one search for prices."""
TRIES = 12
"""Temperatures tried for one entropy."""


class SoftStatus(Enum):
    """How an entropic label step ended; the value is the sentence for the user."""

    CONVERGED = "The counts are met to the tolerance."
    AS_EXACT = "The temperature is too small for floats to tell from 0: every row has the label of the exact step."
    STALLED = "The counts are met as well as rounding and max_steps allow; the residual says how well."


class Labelled(Protocol):
    """What is asked of the answer of an exact label step, wherever the labels are."""

    @property
    def prices(self) -> FloatArray:
        """(K,) of the classes."""
        ...

    @property
    def group_prices(self) -> FloatArray:
        """(G,) the part of them that is due to each group's own bounds."""
        ...

    @property
    def cost(self) -> float:
        """Of the labels."""
        ...

    @property
    def gap(self) -> float:
        """The cost less its lower bound."""
        ...


class TemperedRows(Rows, Protocol):
    """Rows that have an exact label step too."""

    def label(self) -> Labelled:
        """Give every row its label of least cost; says so if the counts cannot be met."""
        ...


@dataclass(frozen=True, eq=False)
class Tempered:
    """Prices at which distributions meet the counts, and what is known about these.

    temperature   T
    prices        (K,) of the classes, in the units of the costs
    value         Σ q costs + T Σ q log q
    gap           value less its lower bound at the prices: what the residual counts are worth, never negative
    entropy       mean of −Σ_k q_k log q_k over the rows
    residual      largest violation of a count of a class or group, in rows
    n_steps       steps of the searches
    status        how it ended
    group_prices  (G,) the part of the prices that is due to each group's own bounds; empty without groups
    v             (K,) q_ik ∝ exp(v_k − costs[i, k] / T); of no use where the labels are those of the exact step
    """

    temperature: float
    prices: FloatArray
    value: float
    gap: float
    entropy: float
    residual: float
    n_steps: int
    status: SoftStatus
    group_prices: FloatArray
    v: FloatArray


def temper(
    problem: LabelProblem, rows: TemperedRows, T: float, prices: FloatArray | None, tol: float, max_steps: int
) -> Tempered:
    """Prices at a temperature, from earlier ones, if there are any; counts are met to `tol` as a share of each."""
    if not rows.facts.open_to_all:
        rows.label()  # says that the counts cannot be met
    search = Search(problem, T, rows, closed_nodes(problem))
    v = np.zeros(problem.n_classes) if prices is None else np.array(prices, dtype=np.float64)
    point, n_steps, met = search.climb(v / T, tol, max_steps)
    if not met:
        point, steps, met = _cooled(search, tol, max_steps)
        n_steps += steps
    if met:
        return _tempered(search, point, n_steps, SoftStatus.CONVERGED)
    exact = rows.label()  # says so if the counts cannot be met at all
    point, steps, met = search.climb(exact.prices / T, tol, max_steps)
    n_steps += steps
    if not met and rows.facts.largest > BEYOND_FLOATS * T:
        ends = (0.0, 0.0, n_steps, SoftStatus.AS_EXACT)
        return Tempered(T, exact.prices, exact.cost, exact.gap, *ends, exact.group_prices, point.v)
    return _tempered(search, point, n_steps, SoftStatus.CONVERGED if met else SoftStatus.STALLED)


def temper_to_entropy(
    problem: LabelProblem,
    rows: TemperedRows,
    share: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float,
) -> Tempered:
    """Prices, and the temperature at which the mean entropy is a share of the greatest that the counts allow.

    It is met to a tenth. The search starts at `temperature`, if there is one.
    """
    wanted, spread = (
        share * mean_entropy(Bounds(problem.low, problem.high, problem.groups).center(problem.n_rows)[None, :]),
        rows.facts.spread,
    )
    T = temperature or spread or 1.0
    coldest = 1e-3 * min(T, spread) if temperature else 1e-9 * spread
    least, most, slope, last = 0.0, np.inf, 2.0, (0.0, 0.0)
    for attempt in range(TRIES):
        answer = temper(problem, rows, T, prices, tol, MAX_STEPS)
        prices, entropy = answer.prices, _of_untied(answer, problem, rows.facts)
        if spread == 0.0 or abs(entropy - wanted) <= 0.1 * wanted:
            break
        least, most = (least, T) if entropy > wanted else (T, most)
        here = (float(np.log(T)), float(np.log(max(entropy, 1e-12))))
        if attempt and here[0] != last[0]:
            slope = float(np.clip((here[1] - last[1]) / (here[0] - last[0]), 0.5, 6.0))
        last = here
        guess = T * float(np.exp(np.clip((np.log(max(wanted, 1e-12)) - here[1]) / slope, -2.0, 2.0)))
        if not least < guess < most:
            guess = float(np.sqrt(least * most))
        if not coldest < guess < HOTTEST * rows.facts.largest:
            break
        T = guess
    return answer


def mean_entropy(posterior: FloatArray) -> float:
    """Mean of −Σ_k q_k log q_k over the rows."""
    logs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    return float(-np.vdot(posterior, logs) / max(len(posterior), 1))


def _cooled(search: Search, tol: float, max_steps: int) -> tuple[Point, int, bool]:
    """Prices by way of higher temperatures, at which they are easy to find."""
    v, n_steps, T = np.zeros(search.problem.n_classes), 0, search.rows.facts.spread
    while T > search.T:
        point, steps, _ = replace(search, T=T).climb(v / T, LOOSE, max_steps)
        v, n_steps, T = T * point.v, n_steps + steps, T * COOLING
    point, steps, met = search.climb(v / search.T, tol, max_steps)
    return point, n_steps + steps, met


def _of_untied(answer: Tempered, problem: LabelProblem, facts: CostStatistics) -> float:
    """Mean entropy of the rows that a temperature can tell anything about: not of those with equal costs."""
    if not 0 < facts.n_tied < facts.n_rows or not facts.all_allowed or closed_nodes(problem).any():
        return answer.entropy
    q = np.exp(answer.v - answer.v.max())
    same = 0.0 if answer.status is SoftStatus.AS_EXACT else mean_entropy(q[None, :] / q.sum())
    return (facts.n_rows * answer.entropy - facts.n_tied * same) / (facts.n_rows - facts.n_tied)


def _tempered(search: Search, point: Point, n_steps: int, status: SoftStatus) -> Tempered:
    """The answer; value and entropy follow from sums already made."""
    problem, nodes, T = search.problem, search.nodes, search.T
    pull = float(np.dot(point.mass, point.u))
    return Tempered(
        T,
        normalise(problem, T * point.v),
        T * (pull - point.sums.normaliser) + search.rows.facts.least,
        T * max(0.0, -float(np.dot(search.lacking(point), point.u))),
        max(point.sums.entropy / max(problem.n_rows, 1), 0.0),
        float(np.abs(point.mass - np.clip(point.mass, nodes.low, nodes.high)).max(initial=0.0)),
        n_steps,
        status,
        T * point.u[problem.n_classes :] if nodes.n_groups else np.zeros(problem.n_groups),
        point.v,
    )
