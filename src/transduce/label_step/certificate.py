"""The certificate of a label step: the dual value of the prices bounds the cost of any labels from below.

    dual(v) = Σ_k (low_k v_k if v_k > 0 else high_k v_k) + Σ_i min_k (costs[i, k] − v_k)  ≤  optimum  ≤  cost

With a belief about the counts, low_k v_k or high_k v_k becomes the least f_k(n) + v_k n, and the cost includes f_k.

With groups of classes the first sum goes over classes and groups, each with its own multiplier u_j in place of v_k
(see `count_tree`). The gap, cost − dual, is summed from terms that are each 0 at the optimum.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transduce.label_step._kernels.passes import shortest_moves
from transduce.label_step.count_tree import CountTree
from transduce.label_step.problem import LabelProblem
from transduce.label_step.row_blocks import CostRows, FloatArray, IntArray
from transduce.label_step.solution import LabelSolution, Status, TracePoint

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""A gap below this fraction of the sizes that were added up is rounding, and the labels are reported as optimal."""
MAX_RELAXATIONS = 200


class LabelValue(NamedTuple):
    """Sums over labelled rows."""

    sums: FloatArray  # (3,) cost, absolute costs, and Σ_i distance from the cheapest label at the prices
    tally: IntArray  # (K,) rows of each class


class Certificate(NamedTuple):
    """The fields of a LabelSolution that do not depend on how it was found."""

    prices: FloatArray
    group_prices: FloatArray
    cost: float
    dual_value: float
    gap: float
    status: Status

    def check_finite(self) -> "Certificate":
        """Raise ValueError if the costs were too large to be summed."""
        if not np.isfinite(self.dual_value):
            raise ValueError("the sum of the costs overflows. Divide the costs by a constant.")
        return self


def label_values(rows: CostRows, prices: FloatArray, labelings: IntArray) -> list[LabelValue]:
    """Evaluate labelings (r, n) of the rows at prices (K,), in one pass over the costs."""
    sums = rows.label_sums(prices, labelings)
    return [LabelValue(own, rows.tally(labels)) for own, labels in zip(sums, labelings, strict=True)]


def certificate(
    tree: CountTree,
    values: Sequence[LabelValue],
    prices: FloatArray,
    group_prices: FloatArray,
    otherwise: Status = Status.ROUNDED,
) -> Certificate:
    """Bound the distance of labels from the optimum; `otherwise` is the status if the gap is more than rounding."""
    cost, magnitude, distance = sum((value.sums for value in values), np.zeros(3)).tolist()
    tally = sum((value.tally for value in values), np.zeros(tree.n_classes, np.int64))
    gap = tree.slack(tally, tree.multipliers(prices, group_prices)) + distance
    count_cost = tree.count_cost(tally)
    cost, magnitude = cost + count_cost, magnitude + abs(count_cost)
    span = max(float(np.ptp(prices)), float(np.abs(group_prices).max(initial=0.0)))
    is_rounding = gap <= ROUNDING * (magnitude + tree.n_rows * span) and np.isfinite(gap)
    status = Status.OPTIMAL if is_rounding and tree.is_met(tally) else otherwise
    return Certificate(prices, group_prices, cost, cost - gap, gap, status)


def certify(
    problem: LabelProblem,
    labels: IntArray,
    prices: tuple[FloatArray, FloatArray] | None = None,
    *,
    n_moves: int,
    n_rounds: int,
    otherwise: Status = Status.ROUNDED,
    trace: tuple[TracePoint, ...] = (),
) -> LabelSolution:
    """Put a solution together with its certificate at prices of classes and groups; the best for the labels if None."""
    tree = problem.tree
    prices = prices or (prices_of_labels(problem, labels), tree.no_group_prices)
    found = certificate(tree, label_values(problem, prices[0], labels[None]), *prices, otherwise).check_finite()
    return LabelSolution(labels, n_moves=n_moves, n_rounds=n_rounds, trace=trace, **found._asdict())


def prices_of_labels(problem: LabelProblem, labels: IntArray) -> FloatArray:
    """Prices of given labels: shortest distances on the graph of classes.

    The length of a → b is the least costs[i, b] − costs[i, a] of a row with label a. If v_b ≤ v_a + length(a, b),
    every label is cheapest for its row. Such v exist if no cycle is negative, that is, if labels are optimal. For other
    labels the relaxation is stopped early, and the prices give a bound instead of a proof.
    """
    n = problem.n_classes
    lengths = np.full((n + 1, n + 1), np.inf)
    for part, block in problem.blocks():
        shortest_moves(block, labels[part], lengths)
    tally, belief = problem.tally(labels), CountTree.create(problem.bounds._replace(groups=None), problem.n_rows).belief
    lengths[:n, n] = np.where(tally < problem.high, belief.marginal(tally), np.inf)
    lengths[n, :n] = np.where(tally > problem.low, -belief.marginal(np.maximum(tally - 1, 0)), np.inf)
    prices = relax(np.zeros(n + 1), lengths, min(n + 1, MAX_RELAXATIONS))
    return problem.tree.normalized(prices[:n] - prices[n])


def relax(prices: FloatArray, lengths: FloatArray, max_passes: int) -> FloatArray:
    """Lower prices until v_b ≤ v_a + lengths[a, b] for all a and b, in at most `max_passes` passes."""
    for _ in range(max_passes):
        relaxed = np.minimum(prices, (prices[:, None] + lengths).min(axis=0))
        if np.array_equal(relaxed, prices):
            break
        prices = relaxed
    return prices
