"""What a label step answers: labels with their prices, and a certificate of how far from the optimum they can be.

    dual(v) = Σ_k (low_k v_k if v_k > 0 else high_k v_k) + Σ_i min_k (costs[i, k] − v_k)  ≤  optimum  ≤  cost

With groups of classes the first sum goes over classes and groups, each with its own multiplier u_j instead of v_k, and
v_k is their sum on the way up (see `nodes`). The gap, cost − dual, is summed from terms that are each 0 at the optimum.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from transduce.label_step._kernels.passes import add_label_values
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""A gap below this share of the sizes that were added up is rounding, and the labels are reported as optimal."""


class Status(Enum):
    """How a label step ended; the value is the sentence for the user."""

    OPTIMAL = "The labels are optimal: their cost equals the dual value of the prices."
    SWITCHED_OUT = "No single switch of two rows lowers the cost; the gap bounds the distance from the optimum."
    ROUNDS_SPENT = "The rounds of switching allowed were spent; more may lower the cost further."
    ONE_SWITCH = "The best switch was made; more may lower the cost further."
    GREEDY = "The labels meet the counts and were chosen greedily; the gap bounds the distance from the optimum."
    ROUNDED = "The labels are optimal but for rounding, which the gap bounds; costs of very different size meet in it."
    OUT_OF_TIME = "The time limit came before the optimum; raise max_seconds, or use method='exact'."


@dataclass(frozen=True)
class TracePoint:
    """Where a solver stood: seconds since its start, steps made, cost so far."""

    seconds: float
    n_steps: int
    cost: float


@dataclass(frozen=True, eq=False)
class LabelSolution:
    """Labels that meet the counts, and what is known about them.

    labels        (n,) class of each row
    prices        (K,) what a class pays its rows to come, negative where it keeps them away: the dual variables of the
                  counts, those of groups that the class is in included
    cost          Σ costs[i, labels[i]]
    dual_value    a lower bound on the cost of any labels that meet the counts
    gap           cost − dual_value, never negative
    n_moves       moves of a row from one class to another that the search made
    n_rounds      searches made (exact), rounds that switched rows (switching), or pivots (simplex)
    status        how it ended
    trace         cost against time, where a solver keeps it
    group_prices  (G,) the part of the prices that is due to each group's own bounds; empty without groups
    """

    labels: IntArray
    prices: FloatArray
    cost: float
    dual_value: float
    gap: float
    n_moves: int
    n_rounds: int
    status: Status
    trace: tuple[TracePoint, ...] = ()
    group_prices: FloatArray = field(default_factory=lambda: np.zeros(0))


def certify(
    problem: LabelProblem,
    labels: IntArray,
    prices: FloatArray,
    group_prices: FloatArray | None = None,
    *,
    n_moves: int,
    n_rounds: int,
    otherwise: Status = Status.ROUNDED,
    trace: tuple[TracePoint, ...] = (),
) -> LabelSolution:
    """Put the answer together with its certificate; `otherwise` is the status when the gap is more than rounding."""
    prices = normalise(problem, prices)
    group_prices = np.zeros(problem.n_groups) if group_prices is None or problem.exact_counts else group_prices
    sums = np.zeros((1, 3))
    for part, block in problem.blocks():
        add_label_values(block, prices, labels[None, part], sums)
    cost, scale, distance = sums[0].tolist()
    gap = count_slack(problem, labels, problem.nodes.multipliers(prices, group_prices)) + distance
    if not np.isfinite(cost) or not np.isfinite(gap):
        raise ValueError(
            "costs must be small enough to be added up, but their sum overflows. Divide them by a constant."
        )
    span = max(float(np.ptp(prices)), float(np.abs(group_prices).max(initial=0.0)))
    optimal = gap <= ROUNDING * (scale + problem.n_rows * span)
    status = Status.OPTIMAL if optimal else otherwise
    return LabelSolution(labels, prices, cost, cost - gap, gap, n_moves, n_rounds, status, trace, group_prices)


def count_slack(problem: LabelProblem, labels: IntArray, multipliers: FloatArray) -> float:
    """Sum what the counts lose against the bound that their multiplier points to: 0 when each is earned."""
    nodes = problem.nodes
    bound = np.where(multipliers > 0, nodes.low, nodes.high)
    return float(np.dot(nodes.sums(problem.tally(labels)) - bound, multipliers))


def normalise(problem: LabelProblem, prices: FloatArray) -> FloatArray:
    """With exact counts prices are free up to a constant: let them average to 0 over the rows."""
    if not problem.exact_counts or problem.n_rows == 0:
        return prices.copy()
    return np.asarray(prices - np.dot(problem.low, prices) / problem.n_rows)
