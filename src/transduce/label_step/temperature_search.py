"""Prices of soft labels at a temperature, or at the temperature that gives a wanted entropy.

Where Newton's method fails, prices come down from higher temperatures, and then from the exact label step. Where T is
too small for floats to resolve, every row has the label of the exact step.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.dual_newton import DualNewton, Point
from transduce.label_step.row_blocks import FloatArray
from transduce.label_step.soft_partitions import SoftPartitions

COOLING = 0.25
"""Factor between temperatures on the way down."""
LOOSE_TOL = 0.05
"""Relative tolerance of the counts on the way down."""
BEYOND_FLOATS = 1e6
"""Costs larger than this many T leave too few digits for the entropy, if the counts cannot be met."""
HOTTEST = 1e3
"""Highest temperature tried, in units of the largest cost: no temperature makes up for forbidden labels."""
MAX_STEPS = 500
"""Maximum number of steps of one search for prices."""
MAX_TEMPERATURES = 12
"""Temperatures tried for one entropy."""


class SoftStatus(Enum):
    """How an entropic label step ended; the value is the sentence for the user."""

    CONVERGED = "The counts are met to the tolerance."
    AS_EXACT = (
        "The temperature is too small to differ from 0 in floating point: rows have the labels of the exact step."
    )
    STALLED = "The counts are met as well as rounding and max_steps allow; the residual says how well."


@dataclass(frozen=True, eq=False)
class SoftLabelSolution:
    """Distributions over labels that meet the counts, with their prices.

    Attributes
    ----------
    posterior : ndarray of shape (n, K)
        Distribution of each row; empty where distributions stay in their partitions, as state["posterior"].
    prices : ndarray of shape (K,)
        Prices of the classes, in the units of the costs.
    value : float
        Σ q costs + T Σ q log q.
    gap : float
        Value less its lower bound at the prices, never negative: what the residual counts are worth.
    entropy : float
        Mean of −Σ_k q_k log q_k over the rows.
    residual : float
        Largest violation of a count of a class or group, in rows.
    n_steps : int
        Steps of the search.
    status : SoftStatus
        How the search ended.
    group_prices : ndarray of shape (G,)
        Multiplier of each group's own bounds; empty without groups.
    temperature : float
        T.
    v : ndarray of shape (K,)
        q_ik ∝ exp(v_k − costs[i, k] / T), unless the labels are those of the exact step.
    """

    posterior: NDArray[Any]
    prices: FloatArray
    value: float
    gap: float
    entropy: float
    residual: float
    n_steps: int
    status: SoftStatus
    group_prices: FloatArray = field(default_factory=lambda: np.zeros(0))
    temperature: float = np.nan
    v: FloatArray = field(default_factory=lambda: np.zeros(0))


def solve_at(
    rows: SoftPartitions, T: float, prices: FloatArray | None, tol: float, max_steps: int = MAX_STEPS
) -> SoftLabelSolution:
    """Find prices at a temperature, starting from given ones; counts are met to `tol` relative to each."""
    if not rows.statistics.open_to_all:
        rows.solve_exactly()  # raises InfeasibleError
    search = DualNewton(rows.tree, T, rows)
    v = np.zeros(rows.tree.n_classes) if prices is None else np.array(prices, dtype=np.float64)
    point, n_steps, met = search.maximize(v / T, tol, max_steps)
    if not met:
        point, steps, met = _cool_down(search, tol, max_steps)
        n_steps += steps
    if met:
        return _solution(search, point, n_steps, SoftStatus.CONVERGED)
    exact = rows.solve_exactly()  # raises InfeasibleError if the counts cannot be met at all
    point, steps, met = search.maximize(exact.prices / T, tol, max_steps)
    n_steps += steps
    if not met and rows.statistics.largest > BEYOND_FLOATS * T:
        known = (exact.prices, exact.cost, exact.gap, 0.0, 0.0, n_steps, SoftStatus.AS_EXACT, exact.group_prices)
        return SoftLabelSolution(np.empty((0, point.v.size)), *known, T, point.v)
    return _solution(search, point, n_steps, SoftStatus.CONVERGED if met else SoftStatus.STALLED)


def solve_at_relative_entropy(
    rows: SoftPartitions, fraction: float, temperature: float | None, prices: FloatArray | None, tol: float
) -> SoftLabelSolution:
    """Find the temperature at which the mean entropy is a fraction of the greatest that the counts allow, to a tenth.

    The search starts at `temperature`, if there is one.
    """
    statistics, tree = rows.statistics, rows.tree
    wanted, spread = fraction * mean_entropy(tree.bounds.center(tree.n_rows)[None, :]), statistics.spread
    T = temperature or spread or 1.0
    coldest = 1e-3 * min(T, spread) if temperature else 1e-9 * spread
    lowest, highest, slope, last = 0.0, np.inf, 2.0, (0.0, 0.0)
    for attempt in range(MAX_TEMPERATURES):
        answer = solve_at(rows, T, prices, tol)
        prices, entropy = answer.prices, _entropy_of_untied(answer, rows)
        if spread == 0.0 or abs(entropy - wanted) <= 0.1 * wanted:
            break
        lowest, highest = (lowest, T) if entropy > wanted else (T, highest)
        here = (float(np.log(T)), float(np.log(max(entropy, 1e-12))))
        if attempt and here[0] != last[0]:
            slope = float(np.clip((here[1] - last[1]) / (here[0] - last[0]), 0.5, 6.0))
        last = here
        guess = T * float(np.exp(np.clip((np.log(max(wanted, 1e-12)) - here[1]) / slope, -2.0, 2.0)))
        if not lowest < guess < highest:
            guess = float(np.sqrt(lowest * highest))
        if not coldest < guess < HOTTEST * statistics.largest:
            break
        T = guess
    return answer


def mean_entropy(posterior: FloatArray) -> float:
    """Mean of −Σ_k q_k log q_k over the rows."""
    logs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    return float(-np.vdot(posterior, logs) / max(len(posterior), 1))


def _cool_down(search: DualNewton, tol: float, max_steps: int) -> tuple[Point, int, bool]:
    """Find prices through a sequence of falling temperatures: they are easy to find at high ones."""
    v, n_steps, T = np.zeros(search.tree.n_classes), 0, search.rows.statistics.spread
    while T > search.T:
        point, steps, _ = replace(search, T=T).maximize(v / T, LOOSE_TOL, max_steps)
        v, n_steps, T = T * point.v, n_steps + steps, T * COOLING
    point, steps, met = search.maximize(v / search.T, tol, max_steps)
    return point, n_steps + steps, met


def _entropy_of_untied(answer: SoftLabelSolution, rows: SoftPartitions) -> float:
    """Mean entropy of the rows that depend on the temperature: rows with equal costs do not."""
    statistics = rows.statistics
    if not 0 < statistics.n_tied < statistics.n_rows or not statistics.all_allowed or rows.tree.closed.any():
        return answer.entropy
    q = np.exp(answer.v - answer.v.max())
    same = 0.0 if answer.status is SoftStatus.AS_EXACT else mean_entropy(q[None, :] / q.sum())
    return (statistics.n_rows * answer.entropy - statistics.n_tied * same) / (statistics.n_rows - statistics.n_tied)


def _solution(search: DualNewton, point: Point, n_steps: int, status: SoftStatus) -> SoftLabelSolution:
    """Put the solution together; value and entropy follow from sums already computed."""
    tree, T = search.tree, search.T
    weighted_mass = float(np.dot(point.mass, point.u))
    return SoftLabelSolution(
        np.empty((0, tree.n_classes)),
        tree.normalized(T * point.v),
        T * (weighted_mass - point.sums.normalizer) + search.rows.statistics.least,
        T * max(0.0, -float(np.dot(search.deficit(point), point.u))),
        max(point.sums.entropy / max(tree.n_rows, 1), 0.0),
        float(np.abs(point.mass - np.clip(point.mass, tree.low, tree.high)).max(initial=0.0)),
        n_steps,
        status,
        T * point.u[tree.n_classes :] if tree.n_groups else tree.no_group_prices,
        T,
        point.v,
    )
