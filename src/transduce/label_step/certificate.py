"""The certificate of a label step: the dual value of the prices bounds the cost of any labels from below.

    dual(v) = Σ_k (low_k v_k if v_k > 0 else high_k v_k) + Σ_i min_k (costs[i, k] − v_k)  ≤  optimum  ≤  cost

With groups of classes the first sum goes over classes and groups, each with its own multiplier u_j in place of v_k
(see `count_tree`). The gap, cost − dual, is summed from terms that are each 0 at the optimum. Rows enter through sums
alone, so they may be in one place or in many.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transduce.label_step._kernels.passes import add_label_values
from transduce.label_step.count_tree import CountTree
from transduce.label_step.problem import LabelProblem
from transduce.label_step.row_blocks import CostRows, FloatArray, IntArray
from transduce.label_step.solution import LabelSolution, Status, TracePoint

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""A gap below this fraction of the sizes that were added up is rounding, and the labels are reported as optimal."""


class LabelValue(NamedTuple):
    """Sums over labelled rows.

    sums   (3,) cost, sum of absolute costs, and Σ_i distance from the cheapest label at the prices
    tally  (K,) rows of each class
    """

    sums: FloatArray
    tally: IntArray

    @classmethod
    def total(cls, values: "Sequence[LabelValue]", n_classes: int) -> "LabelValue":
        """The sum over partitions."""
        sums, tally = np.zeros(3), np.zeros(n_classes, np.int64)
        for value in values:
            sums, tally = sums + value.sums, tally + value.tally
        return cls(sums, tally)


class Gap(NamedTuple):
    """Cost, cost − dual value, and whether that is no more than rounding."""

    cost: float
    gap: float
    is_rounding: bool


def label_values(rows: CostRows, prices: FloatArray, labelings: IntArray) -> list[LabelValue]:
    """Evaluate labelings (r, n) of the rows at prices (K,), in one pass over the costs."""
    sums = np.zeros((len(labelings), 3))
    for block, costs in rows.blocks():
        add_label_values(costs, prices, labelings[:, block], sums)
    return [LabelValue(own, rows.tally(labels)) for own, labels in zip(sums, labelings, strict=True)]


def duality_gap(tree: CountTree, value: LabelValue, prices: FloatArray, group_prices: FloatArray) -> Gap:
    """Bound the distance of labels from the optimum."""
    cost, magnitude, distance = value.sums.tolist()
    gap = tree.slack(value.tally, tree.multipliers(prices, group_prices)) + distance
    span = max(float(np.ptp(prices)), float(np.abs(group_prices).max(initial=0.0)))
    return Gap(cost, gap, bool(gap <= ROUNDING * (magnitude + tree.n_rows * span)))


def check_finite(gap: Gap) -> None:
    """Raise ValueError if the costs were too large to be summed."""
    if not np.isfinite(gap.cost) or not np.isfinite(gap.gap):
        raise ValueError("the sum of the costs overflows. Divide the costs by a constant.")


def class_and_group_prices(tree: CountTree, potentials: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split the potentials (N+1,) of all nodes into prices (K,) of classes and multipliers (G,) of groups."""
    prices = np.asarray(potentials[: tree.n_classes] - potentials[-1])
    return prices, tree.no_group_prices if tree.exact else tree.differences(potentials)[tree.n_classes :]


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
    """Put a solution together with its certificate; `otherwise` is the status if the gap is more than rounding."""
    tree = problem.tree
    prices, group_prices = tree.normalized(prices), tree.no_group_prices if group_prices is None else group_prices
    found = duality_gap(tree, label_values(problem, prices, labels[None])[0], prices, group_prices)
    check_finite(found)
    status = Status.OPTIMAL if found.is_rounding else otherwise
    known = (found.cost, found.cost - found.gap, found.gap, n_moves, n_rounds, status, trace)
    return LabelSolution(labels, prices, *known, group_prices)
