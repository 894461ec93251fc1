"""Good prices from a sample of the rows, solved by the label step itself: in memory, or drawn from partitions."""

from dataclasses import replace

import numpy as np

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.class_prior.rounding import apportion
from transduce.label_step._kernels.passes import shortest_moves
from transduce.label_step._kernels.ties import tie_costs
from transduce.label_step.augmenting_paths import meet_counts, n_misplaced
from transduce.label_step.certificate import relax
from transduce.label_step.partition_search import (
    GOLDEN_RATIO,
    GatheredRows,
    Near,
    PricedRows,
    Prices,
    Search,
    sample_rows,
)
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem

STRIDE, SAMPLE_FROM = 8, 1000
"""A sample of rows in memory has one in this many; problems with fewer rows are solved without a sample."""
WORTH_SAMPLING = 2
"""A sample is solved if this many times more rows are misplaced than its prices would leave."""
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLASS = 1 << 14, 16
"""Rows of a sample drawn from partitions: this many, or this many for each class if these are more."""
SAMPLE_REACH = 8
"""Rows that such a sample is drawn from, for each row that must move, when prices are improved."""
MANY_TIES, RELAXATIONS = 4, 16
"""Rows with ties per class from which on a sample gets tie prices; passes that undo the rounding of ties."""


def prices_from_sample(problem: LabelProblem, potentials: FloatArray) -> FloatArray:
    """Potentials that nearly meet the counts: those of a sample, unless the given ones do already."""
    if problem.n_rows < SAMPLE_FROM:
        return potentials
    sample = _sample(problem, STRIDE)
    if STRIDE * n_misplaced(sample, potentials) < WORTH_SAMPLING * _misplaced_after_sampling(problem):
        return potentials
    return _solve_sample(sample, prices_from_sample(sample, potentials))[0]


def are_far_off(problem: LabelProblem, potentials: FloatArray) -> bool:
    """Whether a thin sample shows that these potentials are no help."""
    if problem.n_rows < SAMPLE_FROM:
        return False
    stride = min(STRIDE**2, max(1, 4 * problem.n_rows // SAMPLE_FROM))
    return stride * n_misplaced(_sample(problem, stride), potentials) > 12 * _misplaced_after_sampling(problem)


def _misplaced_after_sampling(problem: LabelProblem) -> float:
    """Expected number of misplaced rows at a sample's prices: the deviation of a count, times the classes."""
    return float(np.sqrt(0.25 * STRIDE * problem.n_rows * problem.n_classes))


def _solve_sample(sample: LabelProblem, potentials: FloatArray) -> tuple[FloatArray, IntArray]:
    """Potentials at which a sample meets its counts, or nearly, and its labels."""
    labels = np.full(sample.n_rows, -1, np.int64)
    return meet_counts(sample, potentials, labels, is_sample=True)[0], labels


def _sample(problem: LabelProblem, stride: int) -> LabelProblem:
    """One row in `stride`, with bounds in proportion."""
    stratum = np.arange(problem.n_rows // stride)
    rows = stride * stratum + (stride * (stratum * GOLDEN_RATIO % 1.0)).astype(np.int64)
    return _scaled(problem.take(rows), problem.tree.bounds, problem.n_rows, stride)


def _scaled(costs: FloatArray, bounds: Bounds, n_rows: int, stride: float) -> LabelProblem:
    """The label problem of a sample, one in `stride` of `n_rows` rows: bounds in proportion that it can meet."""
    (low, high, groups, belief), n_sample = bounds, len(costs)
    belief = None if belief is None else belief.scaled(1.0 / stride)
    if np.array_equal(low, high):
        counts = apportion(low, n_sample)
        return LabelProblem(costs, counts, counts)
    is_fixed = low == high
    fixed = np.where(is_fixed, low, 0)
    fixed = apportion(np.append(fixed, max(n_rows - fixed.sum(), 0)), n_sample)[:-1]
    low = np.where(is_fixed, fixed, low // stride).astype(np.int64)
    high = np.where(is_fixed, fixed, -(-high // stride)).astype(np.int64)
    if low.sum() > n_sample:
        low = apportion(low, n_sample)
    high = np.maximum(high, low)
    if high.sum() < n_sample:
        high = np.maximum(high, apportion(high + 1, n_sample))
    groups = None if groups is None else _scaled_groups(groups, stride, low, high)
    return LabelProblem(costs, low, high, groups, belief)


def _scaled_groups(groups: Groups, stride: float, low: IntArray, high: IntArray) -> Groups:
    """Bounds of groups in proportion, no tighter than their parts allow; the sample may still not meet them all."""
    n_classes = low.size
    least = np.concatenate((low, groups.low // stride, [0]))
    most = np.concatenate((high, -(-groups.high // stride), [0]))
    below = np.zeros((2, least.size), np.int64)
    below[:, :n_classes] = low, high
    for j, above in enumerate(groups.above.tolist()):
        if j >= n_classes:
            least[j], most[j] = min(least[j], below[1, j]), max(most[j], below[0, j])
            below[:, j] = max(least[j], below[0, j]), min(most[j], below[1, j])
        below[:, above] += below[:, j]
    return Groups(groups.above, least[n_classes:-1], most[n_classes:-1])


# ---- over partitions


def prices_from_partitions(search: Search, priced: PricedRows | None = None, wider: int = 1) -> Prices:
    """First prices from a sample of all rows; or better ones from `wider` times the rows with small margins."""
    tree, n_classes = search.tree, search.tree.n_classes
    if priced is None:
        prices, radius = Prices(np.zeros(n_classes), np.zeros(n_classes)), np.inf
        drawn = _draw(search, [None for _ in search.sizes], tree.n_rows, wider)
        certain, depth = np.zeros(n_classes, np.int64), np.full(n_classes, np.inf)
    else:
        prices, (near, n_near) = priced.prices, priced.near(SAMPLE_REACH * wider)
        drawn = _draw(search, near, n_near, wider)
        certain, depth, radius = priced.tally - drawn.others[0], drawn.others[1], near[0].radius
    if not drawn.rows.size:
        return prices
    sample = _uncertain(search, tree.low, tree.high, certain, drawn.costs)
    potentials = sample.tree.potentials(prices.base)
    potentials = prices_from_sample(sample, potentials) if priced is None else potentials
    base = _clipped(_sample_prices(sample, potentials), prices.base, np.full(n_classes, radius))
    ties = np.empty_like(drawn.costs)
    if tie_costs(drawn.costs, base, drawn.rows, drawn.labels, ties) <= MANY_TIES * n_classes:
        return Prices(base, np.zeros(n_classes))
    low, high = tree.best_counts(tree.differences(tree.potentials(base)))
    sample = replace(_uncertain(search, low, high, certain, ties), belief=None)  # of these counts all are as good
    tie = _sample_prices(sample, sample.tree.potentials(prices.tie))
    return Prices(base, _clipped(tie, prices.tie, depth))


def _draw(search: Search, near: list[Near] | list[None], n_near: int, wider: int) -> GatheredRows:
    """A sample of the rows selected, numbered through all partitions; and what is known of the others."""
    n_classes = search.tree.n_classes
    stride = max(n_near / (wider * max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLASS * n_classes)), 1.0)
    phases = (np.arange(len(near)) * GOLDEN_RATIO % 1.0).tolist()
    drawn = search.partitions.each_with(sample_rows, [(own, stride, p) for own, p in zip(near, phases, strict=True)])
    drawn = [own._replace(rows=own.rows + first) for own, first in zip(drawn, search.first, strict=True)]
    tally = sum((own.others[0] for own in drawn), np.zeros(n_classes, np.int64))
    depth = np.min([own.others[1] for own in drawn], axis=0, initial=np.inf)
    sample = GatheredRows.joined(drawn, n_classes, (tally, depth))
    search.n_gathered += sample.rows.size
    return sample


def _uncertain(search: Search, low: IntArray, high: IntArray, certain: IntArray, costs: FloatArray) -> LabelProblem:
    """The label problem of a sample: bounds (N,) less the rows of each class (K,) that are certain, in proportion."""
    tree, K = search.tree, search.tree.n_classes
    n_rows, certain_sums = tree.n_rows - int(certain.sum()), tree.sums(certain)
    low, high = np.maximum(low - certain_sums, 0), np.maximum(high - certain_sums, 0)
    groups = Groups(tree.above, low[K:], high[K:]) if tree.n_groups else None
    belief = tree.bounds.belief
    belief = None if belief is None else belief._replace(offset=belief.offset + certain)
    return _scaled(costs, Bounds(low[:K], high[:K], groups, belief), n_rows, n_rows / len(costs))


def _sample_prices(sample: LabelProblem, potentials: FloatArray) -> FloatArray:
    """The prices of a sample, with ties made exact again that rounding has drawn apart."""
    potentials, labels = _solve_sample(sample, potentials)
    prices: FloatArray = potentials[: sample.n_classes] - potentials[-1]
    lengths = np.full((sample.n_classes, sample.n_classes), np.inf)
    shortest_moves(sample.costs, labels, lengths)
    pinned = relax(prices, lengths, RELAXATIONS)
    return prices if np.max(prices - pinned) > 1e-9 * np.ptp(prices) else pinned


def _clipped(prices: FloatArray, before: FloatArray, radius: FloatArray) -> FloatArray:
    """Prices clipped to radii (K,) around those before, up to the constant at which the least is cut off."""
    drift = prices - before
    ends = np.concatenate((drift - radius, drift + radius))
    ends = ends[np.isfinite(ends)]
    if ends.size == 0:
        return prices
    beyond = np.maximum(np.abs(drift - ends[:, None]) - radius, 0.0).sum(axis=1)
    middle = ends[np.argmin(beyond)]
    clipped = before + np.clip(drift, middle - radius, middle + radius)
    return np.where(np.abs(drift - middle) > radius, clipped, prices)
