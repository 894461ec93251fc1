"""Rows in partitions as the exact label step sees them: what a partition does when it is asked, and what it reports.

At given prices a partition gives its rows their cheapest labels, and reports a tally of labels and a histogram of
margins (see `_kernels.ties`). On request it sends the costs of rows with small margins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from transduce.label_step._kernels.shortlists import offer_all
from transduce.label_step._kernels.ties import APART, TIED
from transduce.label_step.augmenting_paths import empty_lists
from transduce.label_step.certificate import LabelValue, label_values
from transduce.label_step.count_tree import CountTree, Imbalance
from transduce.label_step.partitions import Partition, Partitions
from transduce.label_step.row_blocks import CostRows, FloatArray, IntArray

GOLDEN_RATIO = 0.6180339887498949
"""Multiples of it modulo 1 are evenly spread at every scale, so that no period in the rows can bias a sample."""
RANGE_ROWS = 1000
"""About this many rows of a partition give the range of its costs."""
BIN_BITS, N_BINS = 49, 1 << 14
"""Bins of margins are the leading bits of their floats: eight bins for each power of two."""


class Prices(NamedTuple):
    """Prices (K,) of the classes, and tie prices (K,) for rows with several cheapest labels."""

    base: FloatArray
    tie: FloatArray


class Near(NamedTuple):
    """Selects rows that may move: without ties all below a margin, with ties the first `n_tied` (K,) of a class."""

    radius: float
    n_tied: IntArray

    def select(self, margins: FloatArray, labels: IntArray) -> tuple[IntArray, FloatArray]:
        """Return these rows, and the least tie margin (K,) that was left out in each class, +inf if none was."""
        depth = np.full(self.n_tied.size, np.inf)
        tied = np.flatnonzero(margins < APART)
        tied = tied[np.lexsort((margins[tied], labels[tied]))]
        ends = np.searchsorted(labels[tied], np.arange(self.n_tied.size + 1))
        is_cut = np.diff(ends) > self.n_tied
        depth[is_cut] = margins[tied[(ends[:-1] + self.n_tied)[is_cut]]] / TIED
        taken = np.arange(tied.size) - ends[labels[tied]] < self.n_tied[labels[tied]]
        others = np.flatnonzero((margins >= APART) & (margins < self.radius))
        return np.concatenate((others, tied[taken])), depth


class Summary(NamedTuple):
    """A partition at some prices: the range of its costs, the rows of each class, and its histogram of margins."""

    cost_range: tuple[float, float]
    tally: IntArray
    bins: IntArray
    counts: IntArray


class GatheredRows(NamedTuple):
    """Rows of a partition that were sent: their numbers, costs and labels; and what is known of all others."""

    rows: IntArray
    costs: FloatArray
    labels: IntArray
    others: Any

    @classmethod
    def joined(cls, parts: "Sequence[GatheredRows]", n_classes: int, others: Any = None) -> "GatheredRows":
        """All rows of some parts, or none."""
        no_rows = np.zeros(0, np.int64)
        arrays = zip((no_rows, np.zeros((0, n_classes)), no_rows), *(own[:3] for own in parts), strict=True)
        rows, costs, labels = (np.concatenate(some) for some in arrays)
        return cls(rows, costs, labels, others)


# ---- what a partition does


def count_rows(partition: Partition) -> int:
    """Number of rows."""
    return partition.n_rows


def keep_present_labels(partition: Partition) -> None:
    """Leave the present labels as the result."""
    partition.state["labels"] = partition.labels.copy()


def price_rows(partition: Partition, at: tuple[Prices, int]) -> Summary:
    """Store cheapest labels and margins at some prices; the second number is that of the partition's first row."""
    prices, first = at
    labels, margins = partition.cheapest(*prices, first)
    tally = np.bincount(margins.view(np.int64) >> BIN_BITS, minlength=N_BINS)
    partition.state.update(labels=labels, margins=margins)
    bins = np.flatnonzero(tally)
    return Summary(cost_range(partition), partition.tally(labels), bins, tally[bins])


def cost_range(rows: CostRows) -> tuple[float, float]:
    """The least and the greatest cost of some rows."""
    some = rows.take(np.arange(0, rows.n_rows, max(1, rows.n_rows // RANGE_ROWS)))
    some = some[some < np.inf]
    return float(some.min(initial=np.inf)), float(some.max(initial=-np.inf))


def sample_rows(partition: Partition, own: tuple[Near | None, float, float]) -> GatheredRows:
    """Send one in `stride` of the rows selected, evenly spread from a phase on, with their present labels.

    Of the others it tells the classes (K,) of all rows selected, and the least tie margin (K,) beyond them.
    """
    near, stride, phase = own
    tally, depth = np.zeros(partition.n_classes, np.int64), np.full(partition.n_classes, np.inf)
    selected = np.arange(partition.n_rows)
    if near is not None:
        selected, depth = near.select(partition.state["margins"], partition.state["labels"])
        tally = partition.tally(partition.state["labels"][selected])
    stratum = np.arange(int(selected.size / stride + phase))
    places = stride * (stratum + stratum * GOLDEN_RATIO % 1.0)
    rows = selected[np.minimum(places.astype(np.int64), selected.size - 1)]
    return GatheredRows(rows, partition.take(rows), partition.labels[rows], (tally, depth))


def near_rows(partition: Partition, prices: FloatArray, radius: float, length: int) -> GatheredRows:
    """Send new rows with margins below a radius; with a `length`, only the `length` cheapest moves of each pair.

    Moves of rows that were never sent cost at least the limits (K, K), prices aside.
    """
    labels, margins = partition.state["labels"], partition.state["margins"]
    near, limit = np.flatnonzero(margins < radius), radius + prices - prices[:, None]
    if length:
        lists = empty_lists(limit, length)
        for some, costs in partition.blocks(near):
            offer_all(costs, near[some], labels[near[some]], lists)
        near = np.unique(lists[1][np.arange(length) < lists[2][:, :, None]]).astype(np.int64)
    margins[near] = np.inf
    return GatheredRows(near, partition.take(near), labels[near], limit)


def evaluate(partition: Partition, own: tuple[FloatArray, IntArray, IntArray]) -> tuple[list[LabelValue], int]:
    """Write new labels of some rows, evaluate all new and any present labels, and count the rows that changed."""
    prices, rows, changed = own
    labels = partition.state["labels"]
    labels[rows] = changed
    partition.reset(labels=labels)
    both = np.stack((labels, partition.labels) if np.all(partition.labels >= 0) else (labels,))
    return label_values(partition, prices, both), int(np.count_nonzero(labels != partition.labels))


# ---- what is known of all partitions


@dataclass(frozen=True, eq=False)
class PricedRows:
    """All rows at some prices, as partitions report them."""

    tree: CountTree
    prices: Prices
    summaries: Sequence[Summary]

    @cached_property
    def tally(self) -> IntArray:
        """Rows of each class (K,)."""
        return sum((own.tally for own in self.summaries), np.zeros(self.tree.n_classes, np.int64))

    def imbalance(self) -> Imbalance:
        """How far the labels are from the bounds."""
        return self.tree.imbalance(self.tally, self.tree.potentials(self.prices.base))

    @cached_property
    def n_misplaced(self) -> int:
        """Number of rows that must move."""
        return self.imbalance().n_misplaced

    @cached_property
    def _cumulative(self) -> IntArray:
        """Rows up to each bin of margins."""
        tally = np.zeros(N_BINS, np.int64)
        for own in self.summaries:
            tally[own.bins] += own.counts
        return np.cumsum(tally)

    def n_below(self, radius: float) -> int:
        """Number of rows with a margin below a radius that ends a bin."""
        return int(self._cumulative[bin_of(radius) - 1])

    def radius(self, wanted: int) -> float:
        """The end of the bin with `wanted` rows without ties below it; +inf if there are not enough."""
        last = int(np.searchsorted(self._cumulative, self.n_below(APART) + wanted))
        return float(np.int64(min(last + 1, bin_of(np.inf)) << BIN_BITS).view(np.float64))

    def near(self, per_row: int) -> tuple[list[Near], int]:
        """Select about `per_row` rows for each that must move, in each partition; and return how many these are."""
        n_classes, n_tied = self.tree.n_classes, self.n_below(APART)
        radius = self.radius(min(per_row * self.n_misplaced, self.tree.n_rows // 2))
        tied = per_row // 2 * (np.abs(self.imbalance().excess[:n_classes]) + self.n_misplaced // n_classes + 1)
        fractions = [own.counts[own.bins < bin_of(APART)].sum() / max(n_tied, 1) for own in self.summaries]
        selected = [Near(radius, np.ceil(fraction * tied).astype(np.int64)) for fraction in fractions]
        return selected, self.n_below(radius) - n_tied + min(n_tied, int(tied.sum()))


@dataclass(eq=False)
class Search:
    """All partitions with their sizes, the counts to meet, and the number of rows gathered so far."""

    partitions: Partitions
    sizes: list[int]
    tree: CountTree
    n_gathered: int = 0

    @property
    def first(self) -> list[int]:
        """The number of the first row of each partition."""
        return [int(n) for n in np.cumsum([0, *self.sizes])[:-1]]

    def price(self, prices: Prices) -> PricedRows:
        """Price all rows."""
        summaries = self.partitions.each_with(price_rows, [(prices, first) for first in self.first])
        return PricedRows(self.tree, prices, summaries)


def bin_of(margin: float) -> int:
    """The bin of a margin."""
    return int(np.float64(margin).view(np.int64) >> BIN_BITS)
