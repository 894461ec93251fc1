"""Greedy labels, steps 3 to 9 of Algorithm 1: the surest rows choose first, full classes close, the rest choose again.

Scores are read off the costs as their negatives: the row with the least cost is the surest. The labels always meet the
counts; where forbidden labels leave greedy rows without a class, the fewest possible rows are relabelled. With a belief
about the counts, the labels meet the whole numbers on both sides of the believed ones.

Over partitions of the rows the labels are the same. In each round every partition sorts its rows by the cost of their
favourite among the open classes, and a class takes the cheapest rows that want it, over all partitions. The last row
that it takes is found by asking all partitions, a few times, for some of their sorted costs between two bounds that
close in on it. Beyond the low counts, classes compete for the rows that no low count needs, up to one common bound.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.counts import count_bounds
from transduce.label_step._kernels.passes import allocate, best_open
from transduce.label_step.certificate import certify
from transduce.label_step.exact import Exact
from transduce.label_step.infeasible import InfeasibleError
from transduce.label_step.partition_search import count_rows
from transduce.label_step.partitions import Partition, Partitions
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.row_blocks import BoolArray, CostRows
from transduce.label_step.solution import LabelSolution, Status

Keys = NDArray[np.complex128]
"""Cost + 1j · row number: NumPy sorts complex numbers by their real parts first, so no two keys tie."""

RANKED_CELLS, FEWEST_RANKED, MOST_RANKED = 1 << 13, 16, 256
"""A partition reports the ranks of RANKED_CELLS keys in all, within these bounds for each class."""
CANDIDATES = 1 << 11
"""Number of keys that are tried at once as bound for all classes."""


@dataclass(frozen=True)
class Greedy:
    """Labels by the paper's initialisation: feasible, fast and not far from optimal.

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.5, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> Greedy().solve(problem).labels
    array([0, 1, 1])
    """

    takes_groups: ClassVar[bool] = False
    takes_beliefs: ClassVar[bool] = True

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Label from scratch; `prices` and `start` are ignored. See `LabelStep.solve`."""
        replace(problem, belief=None).refuse_groups("The greedy label step")
        return certify(problem, greedy_labels(problem), n_moves=0, n_rounds=1, otherwise=Status.GREEDY)


def greedy_labels(problem: LabelProblem) -> IntArray:
    """Labels that meet the counts, by greedy allocation and, where labels are forbidden, the least repair."""
    if problem.belief is not None:
        try:
            return greedy_labels(LabelProblem(problem.costs, *problem.bounds.without_belief(problem.n_rows)))
        except InfeasibleError:
            return Exact().solve(problem).labels
    labels = np.full(problem.n_rows, -1, np.int64)
    tally = np.zeros(problem.n_classes, np.int64)
    free = problem.n_rows - int(problem.low.sum())
    left = np.arange(problem.n_rows)
    while left.size:
        is_open = (tally < problem.low) | ((tally < problem.high) & (free > 0))
        costs, favourites = _favourites(problem, left, is_open)
        order = np.argsort(costs, kind="stable")
        free = allocate(left[order], favourites[order], problem.low, problem.high, tally, free, labels)
        placed = labels[left] >= 0
        if not placed.any():
            return Exact().solve(LabelProblem(_change_costs(problem, labels, 1.0), problem.low, problem.high)).labels
        left = left[~placed]
    return labels


def _favourites(costs: CostRows, rows: IntArray, is_open: BoolArray) -> tuple[FloatArray, IntArray]:
    """Cost and label of the cheapest open class of each row."""
    best, labels = np.empty(rows.size), np.empty(rows.size, np.int64)
    for some, block in costs.blocks(rows):
        best_open(block, is_open, best[some], labels[some])
    return best, labels


def _change_costs(rows: CostRows, labels: IntArray, change: float | np.float32) -> FloatArray:
    """Costs of a repair: 0 for the label of a row, `change` for others that are allowed, +inf for forbidden ones."""
    costs = np.where(np.asarray(rows.costs) < np.inf, change, type(change)(np.inf))
    kept = np.flatnonzero(labels >= 0)
    costs[kept, labels[kept]] = 0.0
    return costs


# ---- over partitions


def greedy_partitions(partitions: Partitions, bounds: Bounds) -> None:
    """Leave greedy labels that meet the counts in state["labels"] of every partition."""
    if bounds.belief is not None:
        n_rows = sum(partitions.each(count_rows))
        try:
            greedy_partitions(partitions, bounds.without_belief(n_rows))
        except InfeasibleError:
            Exact().solve_partitions(partitions, bounds)
        return
    try:
        if _allocate(partitions, bounds):
            return
        partitions.each(_use_change_costs)
        Exact().solve_partitions(partitions, bounds)
        partitions.each(_use_original_costs)
    except ValueError:
        partitions.each(_use_original_costs)
        partitions.each(Partition.reset)
        raise


def _allocate(partitions: Partitions, bounds: Bounds) -> bool:
    """Rounds of `greedy_labels`, until all rows have labels or none of those left finds a class: then False."""
    sizes = partitions.each(_begin)
    n_left, n_classes = sum(sizes), bounds.low.size
    low, high = count_bounds((bounds.low, bounds.high), n_left, n_classes)
    first = np.cumsum([0, *sizes])[:-1].tolist()
    tally, free = np.zeros(n_classes, np.int64), n_left - int(low.sum())
    last = np.full(n_classes, -np.inf, np.complex128)
    while True:
        is_open = (tally < low) | ((tally < high) & (free > 0))
        counts = partitions.each_with(_choose, [(last, is_open, number) for number in first])
        wanting, needed, capacity = sum(counts, np.zeros_like(tally)), np.maximum(low - tally, 0), high - tally
        n_taken = _n_taken(partitions, wanting, needed, capacity, free)
        if not n_taken.any():
            partitions.each(_keep_labels)
            return n_left == 0
        is_cut = n_taken < wanting
        cut = np.flatnonzero(is_cut & (n_taken > 0))
        last = np.where(is_cut, _last_keys(partitions, cut[:, None], n_taken[cut] - 1, 0 * wanting, wanting), np.inf)
        tally, free = tally + n_taken, free - int(np.maximum(n_taken - needed, 0).sum())
        n_left -= int(n_taken.sum())


def _n_taken(partitions: Partitions, wanting: IntArray, needed: IntArray, capacity: IntArray, free: int) -> IntArray:
    """How many of the rows that want it each class takes (K,)."""
    extra = np.clip(wanting - needed, 0, capacity - needed)
    if extra.sum() <= free:
        return np.asarray(np.minimum(wanting, needed + extra))
    if free == 0:
        return np.asarray(np.minimum(wanting, needed))
    bound = _last_keys(partitions, np.arange(needed.size)[None], np.array([free]), needed, capacity)[0]
    before = np.sum(partitions.each(_count_before, bound), axis=0)
    return np.asarray(np.maximum(np.minimum(wanting, needed), np.minimum(before, capacity)))


def _last_keys(partitions: Partitions, sets: IntArray, limits: IntArray, needed: IntArray, capacity: IntArray) -> Keys:
    """The largest key before which each set of classes takes no more than its limit of rows beyond what they need."""
    size = int(np.clip(RANKED_CELLS // needed.size, FEWEST_RANKED, MOST_RANKED))
    lower, upper = np.full((2, needed.size), -np.inf, np.complex128)
    upper[sets] = np.inf
    while len(sets):
        reports, is_open = partitions.each(_rank, lower, upper, size), np.zeros(len(sets), bool)
        for number, (classes, limit) in enumerate(zip(sets, limits, strict=True)):
            at = np.unique(np.concatenate([report.of(k)[0] for report in reports for k in classes]))
            n_between = [(report.before - report.up_to)[classes] for report in reports]
            is_open[number] = at.size > CANDIDATES or np.max(n_between) > size
            at = at[np.linspace(0, at.size - 1, min(at.size, CANDIDATES)).astype(np.int64)]
            ranks = [np.clip(_rank_bounds(reports, k, at), needed[k], capacity[k]) - needed[k] for k in classes]
            fewest, most = np.sum(ranks, axis=0)
            lower[classes] = np.append(lower[classes[0]], at[most <= limit])[-1]
            upper[classes] = np.append(at[fewest > limit], upper[classes[0]])[0] if is_open[number] else lower[classes]
        sets, limits = sets[is_open], limits[is_open]
    return lower


class _Ranks(NamedTuple):
    """Some sorted keys of each class between two bounds, and how many rows of the class are before each."""

    up_to: IntArray  # (K,) rows with keys up to the lower bound
    before: IntArray  # (K,) rows with keys before the upper bound
    ends: IntArray  # (K+1,) where the keys of each class begin and end
    keys: Keys
    ranks: IntArray

    def of(self, k: int) -> tuple[Keys, IntArray]:
        """Keys of one class, and the rows before each."""
        own = slice(self.ends[k], self.ends[k + 1])
        return self.keys[own], self.ranks[own]


def _rank_bounds(reports: list[_Ranks], k: int, at: Keys) -> IntArray:
    """Number of rows of class k before each of some keys: at least and at most (2, m)."""
    bounds = np.zeros((2, at.size), np.int64)
    for report in reports:
        keys, ranks = report.of(k)
        place = np.searchsorted(keys, at)
        bounds += np.append(report.up_to[k], ranks + 1)[place], np.append(ranks, report.before[k])[place]
    return bounds


# ---- what a partition does


def _begin(partition: Partition) -> int:
    partition.reset(labels=np.full(partition.n_rows, -1, np.int64), left=np.arange(partition.n_rows), keys=[], rows=[])
    return partition.n_rows


def _choose(partition: Partition, own: tuple[Keys, BoolArray, int]) -> IntArray:
    """Label rows up to the last keys (K,), sort the others by the key of their favourite, and count these (K,)."""
    (last, is_open, first), state = own, partition.state
    for k, (keys, rows) in enumerate(zip(state["keys"], state["rows"], strict=True)):
        state["labels"][rows[: np.searchsorted(keys, last[k], "right")]] = k
    left = state["left"] = state["left"][state["labels"][state["left"]] < 0]
    best, favourites = _favourites(partition, left, is_open)
    order = np.lexsort((best, favourites))
    ends = np.searchsorted(favourites[order], np.arange(partition.n_classes + 1))
    keys = np.empty(left.size, np.complex128)
    keys.real, keys.imag = best, first + left
    state["keys"] = [keys[order[a:b]] for a, b in pairwise(ends)]
    state["rows"] = [left[order[a:b]] for a, b in pairwise(ends)]
    return np.diff(ends)


def _rank(partition: Partition, lower: Keys, upper: Keys, size: int) -> _Ranks:
    """Report keys evenly spread between bounds (K,), no more than `size` a class."""
    lists = partition.state["keys"]
    up_to = np.array([np.searchsorted(keys, key, "right") for keys, key in zip(lists, lower, strict=True)])
    before = np.maximum([np.searchsorted(keys, key) for keys, key in zip(lists, upper, strict=True)], up_to)
    ranks = [np.linspace(a, b - 1, min(b - a, size)).astype(np.int64) for a, b in zip(up_to, before, strict=True)]
    keys = np.concatenate([keys[places] for keys, places in zip(lists, ranks, strict=True)])
    ends = np.cumsum([0, *(places.size for places in ranks)])
    return _Ranks(up_to, before, ends, keys, np.concatenate(ranks))


def _count_before(partition: Partition, bound: np.complex128) -> IntArray:
    """Number of rows of each class with a key before the bound (K,)."""
    return np.array([np.searchsorted(keys, bound) for keys in partition.state["keys"]])


def _keep_labels(partition: Partition) -> None:
    partition.reset(labels=partition.state["labels"])


def _use_change_costs(partition: Partition) -> None:
    partition.original = partition.costs, partition.labels
    partition.costs = _change_costs(partition, partition.state["labels"], np.float32(1.0))
    partition.labels = np.full(partition.n_rows, -1, np.int64)


def _use_original_costs(partition: Partition) -> None:
    if partition.original is not None:
        (partition.costs, partition.labels), partition.original = partition.original, None
