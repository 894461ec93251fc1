"""What goes to a part and what it answers: everything of the exact label step that runs where the rows are."""

from typing import Any, NamedTuple

import numpy as np

from transduce.kernels import kernel
from transduce.label_step._kernels.passes import add_label_values
from transduce.label_step._kernels.shortlists import Lists, offer
from transduce.label_step.exact import GOLDEN_RATIO
from transduce.label_step.partitioned.partitions import FloatArray, IntArray, Part
from transduce.label_step.partitioned.tie_breaking import APART, BIN_BITS, N_BINS, TIED, choose_near
from transduce.label_step.problem import LabelProblem

SOME_ROWS = 1000
"""About so many rows of a part tell of what size costs are."""


class Prices(NamedTuple):
    """First and second prices (K,) of the classes."""

    first: FloatArray
    second: FloatArray


class Reach(NamedTuple):
    """Rows that take part: without ties all nearer than a radius, with ties the nearest of each class, so many (K,)."""

    radius: float
    tied: IntArray

    def near(self, nearness: FloatArray, labels: IntArray) -> tuple[IntArray, FloatArray]:
        """Their numbers, and how near other rows with ties are in each class (K,), +inf where there are none."""
        depth = np.full(self.tied.size, np.inf)
        tied = np.flatnonzero(nearness < APART)
        tied = tied[np.lexsort((nearness[tied], labels[tied]))]
        ends = np.searchsorted(labels[tied], np.arange(self.tied.size + 1))
        is_cut = np.diff(ends) > self.tied
        depth[is_cut] = nearness[tied[(ends[:-1] + self.tied)[is_cut]]] / TIED
        taken = np.arange(tied.size) - ends[labels[tied]] < self.tied[labels[tied]]
        others = np.flatnonzero((nearness >= APART) & (nearness < self.radius))
        return np.concatenate((others, tied[taken])), depth


class Seen(NamedTuple):
    """A part at some prices: the ends of its costs, the rows of each class, and bins of nearness with their rows."""

    ends: tuple[float, float]
    tally: IntArray
    bins: IntArray
    counts: IntArray


class SomeRows(NamedTuple):
    """Some rows of a part: their numbers there, their costs and labels; and what there is to say of others."""

    rows: IntArray
    costs: FloatArray
    labels: IntArray
    others: Any

    @classmethod
    def nobody(cls, n_classes: int) -> "SomeRows":
        """No rows at all."""
        none = np.zeros(0, np.int64)
        return cls(none, np.zeros((0, n_classes)), none, np.zeros(n_classes, np.int64))

    def joined(self, new: "SomeRows") -> "SomeRows":
        """These rows and new ones."""
        rows, costs, labels = (np.concatenate(both) for both in zip(self[:3], new[:3], strict=True))
        return SomeRows(rows, costs, labels, new.others)


class Value(NamedTuple):
    """What labels cost, the sizes added up and the distance from the cheapest (3,), and the rows of each class (K,)."""

    sums: FloatArray
    tally: IntArray


def count_rows(part: Part) -> int:
    """Rows of a part."""
    return part.n_rows


def forget(part: Part) -> None:
    """Clear all notes."""
    part.notes.clear()


def keep_labels(part: Part) -> None:
    """Note the present labels as those found."""
    part.notes["labels"] = part.labels.copy()


def _problem(part: Part) -> LabelProblem:
    """The costs of a part, to be read in blocks; what counts they must meet is not known here."""
    none = np.zeros(part.n_classes, np.int64)
    return LabelProblem(part.costs, none, none)


def stand_at(part: Part, at: tuple[Prices, int]) -> Seen:
    """Note cheapest labels and nearness at these prices; the second number is that of the part's first row."""
    prices, first = at
    problem, labels, nearness = _problem(part), np.empty(part.n_rows, np.int64), np.empty(part.n_rows)
    span, tally = float(np.ptp(prices.first)), np.zeros(N_BINS, np.int64)
    for block, costs in problem.blocks():
        rows = np.arange(first + block.start, first + block.stop)
        choose_near(costs, *prices, span, rows, part.labels[block], labels[block], nearness[block])
        tally += np.bincount(nearness[block].view(np.int64) >> BIN_BITS, minlength=N_BINS)
    part.notes.update(labels=labels, nearness=nearness)
    bins = np.flatnonzero(tally)
    return Seen(_ends(problem), problem.tally(labels), bins, tally[bins])


def _ends(problem: LabelProblem) -> tuple[float, float]:
    """The least and the greatest cost of some rows."""
    some = problem.take(np.arange(0, problem.n_rows, max(1, problem.n_rows // SOME_ROWS)))
    some = some[some < np.inf]
    return (float(some.min()), float(some.max())) if some.size else (np.inf, -np.inf)


def sample_rows(part: Part, own: tuple[Reach | None, float, float]) -> SomeRows:
    """One in `share` of the rows within reach, evenly spread from a phase on, with their present labels.

    Of the others it tells the classes of all rows within reach (K,), and how near rows with ties beyond it are (K,).
    """
    reach, share, phase = own
    problem, tally, depth = _problem(part), np.zeros(part.n_classes, np.int64), np.full(part.n_classes, np.inf)
    near = np.arange(part.n_rows)
    if reach is not None:
        near, depth = reach.near(part.notes["nearness"], part.notes["labels"])
        tally = problem.tally(part.notes["labels"][near])
    stratum = np.arange(int(near.size / share + phase))
    places = share * (stratum + stratum * GOLDEN_RATIO % 1.0)
    rows = near[np.minimum(places.astype(np.int64), near.size - 1)]
    return SomeRows(rows, problem.take(rows), part.labels[rows], (tally, depth))


def near_rows(part: Part, prices: FloatArray, radius: float, length: int) -> SomeRows:
    """The rows nearer than a radius; if there is a `length`, the cheapest so many to move between every two classes.

    A row is given once only. Moves of rows that were never given cost no less than the limits (K, K), prices aside.
    """
    labels, nearness, problem = part.notes["labels"], part.notes["nearness"], _problem(part)
    near, limit = np.flatnonzero(nearness < radius), radius + prices - prices[:, None]
    if length:
        shape = (part.n_classes, part.n_classes)
        rows = np.empty((*shape, length), np.int32)
        lists = (np.empty((*shape, length)), rows, np.zeros(shape, np.int32), limit, limit.copy())
        for begin in range(0, near.size, problem.rows_per_block):
            some = near[begin : begin + problem.rows_per_block]
            offer_all(problem.take(some), some, labels[some], lists)
        near = np.unique(rows[np.arange(length) < lists[2][:, :, None]]).astype(np.int64)
    nearness[near] = np.inf
    return SomeRows(near, problem.take(near), labels[near], limit)


def certify_rows(part: Part, own: tuple[FloatArray, IntArray, IntArray]) -> tuple[Value, Value | None, int]:
    """Write labels of some rows, value all and the present ones at these prices, and forget the rest."""
    prices, rows, changed = own
    labels = part.notes["labels"]
    labels[rows] = changed
    part.notes.clear()
    part.notes["labels"] = labels
    problem, both = _problem(part), np.stack((labels, part.labels) if np.all(part.labels >= 0) else (labels,))
    sums = np.zeros((len(both), 3))
    for block, costs in problem.blocks():
        add_label_values(costs, prices, both[:, block], sums)
    new, *present = [Value(own, problem.tally(each)) for own, each in zip(sums, both, strict=True)]
    return new, present[0] if present else None, int(np.count_nonzero(labels != part.labels))


@kernel
def offer_all(costs: FloatArray, rows: IntArray, labels: IntArray, lists: Lists) -> None:
    """List the moves of rows that lie below the limits (see `shortlists`)."""
    limit = lists[3]
    for i in range(costs.shape[0]):
        a = labels[i]
        for b in range(costs.shape[1]):
            key = costs[i, b] - costs[i, a]
            if key < limit[a, b] and b != a:
                offer(a, b, rows[i], key, lists)
