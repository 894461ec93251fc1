"""Greedy labels over parts: the labels of `greedy_labels` on all rows in one, while no part sends more than ranks.

In every round each part sorts its rows by the cost of their favourite among the classes that are still open. A class
takes the cheapest rows that want it, over all parts. Where it stops is found by asking all parts, a few times, for some
of their costs with their ranks, between two bounds that close in on one cost. Rows of exactly that cost are taken in
the order of parts and rows. Beyond the low counts classes share the rows that no low count needs: there one bound, on
all classes at once, says which rows come first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Concatenate, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import count_bounds
from transduce.label_step._kernels.passes import best_open
from transduce.label_step.partitioned.exact import solve_spread
from transduce.label_step.partitioned.partitions import Answer, Arguments, FloatArray, IntArray, Part, Parts
from transduce.label_step.problem import LabelProblem

RANKED_CELLS, FEWEST_RANKED, MOST_RANKED = 1 << 13, 16, 256
"""A part tells the ranks of so many rows in all, within these bounds for each class."""
CANDIDATES = 1 << 11
"""So many costs at most are tried as bounds for all classes at once."""


def greedy_spread(parts: Parts, low: IntArray, high: IntArray) -> int:
    """Leave greedy labels that meet the counts in notes["labels"] of every part; returns how often parts were asked.

    >>> from transduce.label_step.partitioned.partitions import Here
    >>> costs, present = np.array([[0.0, 1.0], [0.5, 3.0], [2.0, 0.0]]), np.full(3, -1)
    >>> parts = Here([Part(costs[:1], present[:1]), Part(costs[1:], present[1:])])
    >>> greedy_spread(parts, np.array([1, 2]), np.array([1, 2]))
    7
    >>> parts.each(lambda part: part.notes["labels"])
    [array([0]), array([1, 1])]
    """
    counted = _Counted(parts)
    try:
        if not _allocate(counted, low, high):
            counted.each(_count_changes)
            solve_spread(_Changes(counted), low, high, None, None)
            counted.each(_take_changes)
    except ValueError:
        counted.each(_forget)
        raise
    return counted.n_trips


@dataclass(eq=False)
class _Counted:
    """Parts that count how often they are asked."""

    parts: Parts
    n_trips: int = 0

    def each(
        self,
        function: Callable[Concatenate[Part, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        self.n_trips += 1
        return self.parts.each(function, *args, **kwargs)

    def each_with(self, function: Callable[[Part, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        self.n_trips += 1
        return self.parts.each_with(function, own)


# ---- what goes to the parts, and what they answer


class _Ranks(NamedTuple):
    """Some sorted values of each class between two bounds, and how many rows of the class are below them.

    up_to, before (K,)    rows with values up to the lower bound, and before the upper one
    ends (K+1,)           where the values of each class begin and end
    values, least, most   values of all classes, the rows before each, and those up to it
    """

    up_to: IntArray
    before: IntArray
    ends: IntArray
    values: FloatArray
    least: IntArray
    most: IntArray

    def of(self, k: int) -> tuple[FloatArray, IntArray, IntArray]:
        """Values of one class, the rows before each, and those up to it."""
        own = slice(self.ends[k], self.ends[k + 1])
        return self.values[own], self.least[own], self.most[own]


class _Chosen(NamedTuple):
    """Rows that classes take: those with values below `cuts` (K,), and the first `n_equal` (K,) of those at them."""

    cuts: FloatArray
    n_equal: IntArray


def _forget(part: Part) -> None:
    part.notes.clear()


def _begin(part: Part) -> int:
    part.notes.update(labels=np.full(part.n_rows, -1, np.int64), left=np.arange(part.n_rows))
    return part.n_rows


def _choose(part: Part, own: tuple[_Chosen | None, NDArray[np.bool_]]) -> IntArray:
    """Label the rows that were chosen; sort the others by the cost of their favourite, and count these (K,)."""
    chosen, is_open = own
    notes = part.notes
    if chosen is not None:
        for k, (costs, rows) in enumerate(zip(notes["costs"], notes["rows"], strict=True)):
            notes["labels"][rows[: np.searchsorted(costs, chosen.cuts[k]) + chosen.n_equal[k]]] = k
    left = notes["left"] = notes["left"][notes["labels"][notes["left"]] < 0]
    best, favourites = _favourites(part, left, is_open)
    order = np.lexsort((best, favourites))
    ends = np.searchsorted(favourites[order], np.arange(part.n_classes + 1))
    notes["costs"] = [best[order[a:b]] for a, b in pairwise(ends)]
    notes["rows"] = [left[order[a:b]] for a, b in pairwise(ends)]
    return np.diff(ends)


def _favourites(part: Part, rows: IntArray, is_open: NDArray[np.bool_]) -> tuple[FloatArray, IntArray]:
    """Cost and label of the cheapest open class of each row."""
    none = np.zeros(part.n_classes, np.int64)
    problem, best, labels = LabelProblem(part.costs, none, none), np.empty(rows.size), np.empty(rows.size, np.int64)
    for begin in range(0, rows.size, problem.rows_per_block):
        block = slice(begin, begin + problem.rows_per_block)
        best_open(problem.take(rows[block]), is_open, best[block], labels[block])
    return best, labels


def _rank(part: Part, which: str, lower: FloatArray, upper: FloatArray, size: int) -> _Ranks:
    """Values of the sorted lists `which`, evenly spread between bounds (K,), no more than `size` a class."""
    lists = part.notes[which]
    up_to = np.array([np.searchsorted(values, low, "right") for values, low in zip(lists, lower, strict=True)])
    before = np.array([np.searchsorted(values, high) for values, high in zip(lists, upper, strict=True)])
    before = np.maximum(before, up_to)
    places = [np.linspace(a, b - 1, min(b - a, size)).astype(np.int64) for a, b in zip(up_to, before, strict=True)]
    given = [np.unique(values[place]) for values, place in zip(lists, places, strict=True)]
    return _Ranks(
        up_to,
        before,
        np.cumsum([0, *(values.size for values in given)]),
        np.concatenate(given),
        np.concatenate([np.searchsorted(all_, values) for all_, values in zip(lists, given, strict=True)]),
        np.concatenate([np.searchsorted(all_, values, "right") for all_, values in zip(lists, given, strict=True)]),
    )


def _count(part: Part, which: str, cuts: FloatArray) -> IntArray:
    """Rows of each class below its cut, and at it (2, K)."""
    pairs = list(zip(part.notes[which], cuts, strict=True))
    below = np.array([np.searchsorted(values, cut) for values, cut in pairs])
    return np.array([below, np.array([np.searchsorted(values, cut, "right") for values, cut in pairs]) - below])


def _note_places(part: Part, own: tuple[float, int]) -> None:
    """Note where rows of one cost are, class by class; the second number is that of the part's first row."""
    cost, first = own
    ends = [np.searchsorted(costs, cost, side) for side in ("left", "right") for costs in part.notes["costs"]]
    pairs = zip(part.notes["rows"], ends[: part.n_classes], ends[part.n_classes :], strict=True)
    part.notes["places"] = [first + rows[a:b].astype(np.float64) for rows, a, b in pairs]


# ---- who is chosen


def _allocate(parts: Parts, low: IntArray, high: IntArray) -> bool:
    """Rounds of `greedy_labels`, until all rows have labels or none of those left finds a place: then False."""
    sizes = parts.each(_begin)
    n_left, n_classes = sum(sizes), low.size
    low, high = count_bounds((low, high), n_left, n_classes)
    first = np.cumsum([0, *sizes])[:-1].tolist()
    tally, free = np.zeros(n_classes, np.int64), n_left - int(low.sum())
    chosen: Sequence[_Chosen | None] = [None] * len(sizes)
    while True:
        is_open = (tally < low) | ((tally < high) & (free > 0))
        told = parts.each_with(_choose, [(own, is_open) for own in chosen])
        wanting, need, room = sum(told, np.zeros_like(tally)), np.maximum(low - tally, 0), high - tally
        n_taken = _taken(parts, first, wanting, need, room, free)
        if not n_taken.any():
            parts.each(_keep_labels)
            return n_left == 0
        chosen = _shares(parts, len(sizes), n_taken, wanting)
        tally, free = tally + n_taken, free - int(np.maximum(n_taken - need, 0).sum())
        n_left -= int(n_taken.sum())


def _keep_labels(part: Part) -> None:
    for note in set(part.notes) - {"labels"}:
        del part.notes[note]


def _taken(parts: Parts, first: list[int], wanting: IntArray, need: IntArray, room: IntArray, free: int) -> IntArray:
    """How many of the rows that want it each class takes (K,)."""
    extra = np.clip(wanting - need, 0, room - need)
    if extra.sum() <= free:
        return np.asarray(np.minimum(wanting, need + extra))
    if free == 0:
        return np.asarray(np.minimum(wanting, need))
    nobody = np.zeros_like(need)
    cost = _common_bound(parts, "costs", nobody, need, room, free)
    below, equal = np.sum(parts.each(_count, "costs", np.full(need.size, cost)), axis=0)
    if equal.sum() > 1:
        parts.each_with(_note_places, [(cost, number) for number in first])
        place = _common_bound(parts, "places", below, need, room, free)
        below = below + np.sum(parts.each(_count, "places", np.full(need.size, place)), axis=0)[0]
    return np.asarray(np.maximum(np.minimum(wanting, need), np.minimum(below, room)))


def _common_bound(parts: Parts, which: str, base: IntArray, need: IntArray, room: IntArray, free: int) -> float:
    """The largest value before which classes take no more than `free` rows beyond what they need.

    base (K,)  rows that each class takes before any of these
    """
    n_classes, size, lower, upper = need.size, _ranked(need.size), -np.inf, np.inf
    while True:
        told = parts.each(_rank, which, np.full(n_classes, lower), np.full(n_classes, upper), size)
        at = np.unique(np.concatenate([ranks.values for ranks in told]))
        is_complete = at.size <= CANDIDATES and all(np.all(ranks.before - ranks.up_to <= size) for ranks in told)
        at = at[np.linspace(0, at.size - 1, min(at.size, CANDIDATES)).astype(np.int64)]
        ranks = np.array([_ranks_of(told, k, at) for k in range(n_classes)])
        fewest, most = np.clip((base - need)[:, None, None] + ranks, 0, (room - need)[:, None, None]).sum(axis=0)
        lower, upper = max(at[most <= free], default=lower), min(at[fewest > free], default=upper)
        if is_complete:
            return float(lower)


def _shares(parts: Parts, n_parts: int, n_taken: IntArray, wanting: IntArray) -> list[_Chosen]:
    """Which of its rows each part gives to classes that take so many (K,) of all that want them."""
    cuts = np.where(n_taken < wanting, _bounds(parts, np.where(n_taken < wanting, n_taken, 0)), np.inf)
    if not np.isfinite(cuts).any():
        return [_Chosen(cuts, np.zeros_like(n_taken))] * n_parts
    told = np.array(parts.each(_count, "costs", cuts))
    equal = told[:, 1]
    still = n_taken - told[:, 0].sum(axis=0) - (np.cumsum(equal, axis=0) - equal)
    return [_Chosen(cuts, own) for own in np.clip(still, 0, equal)]


def _bounds(parts: Parts, n_taken: IntArray) -> FloatArray:
    """The cost of the last row that each class takes, the cheapest first; −inf where it takes none."""
    size, is_open = _ranked(n_taken.size), n_taken > 0
    lower, upper = np.full(n_taken.size, -np.inf), np.where(is_open, np.inf, -np.inf)
    while is_open.any():
        told = parts.each(_rank, "costs", lower, upper, size)
        for k in np.flatnonzero(is_open).tolist():
            at = np.unique(np.concatenate([ranks.of(k)[0] for ranks in told]))
            fewest, most = _ranks_of(told, k, at)
            lower[k] = max(at[most < n_taken[k]], default=lower[k])
            upper[k] = min(at[fewest >= n_taken[k]], default=upper[k])
            is_open[k] = any(ranks.before[k] - ranks.up_to[k] > size for ranks in told)
        upper = np.where(is_open, upper, lower)
    return lower


def _ranked(n_classes: int) -> int:
    """How many values of each class a part tells the ranks of."""
    return int(np.clip(RANKED_CELLS // n_classes, FEWEST_RANKED, MOST_RANKED))


def _ranks_of(told: list[_Ranks], k: int, at: FloatArray) -> IntArray:
    """Rows of class k with values less than each of some, at least and at most (2, m)."""
    bounds = np.zeros((2, at.size), np.int64)
    for ranks in told:
        values, least, most = ranks.of(k)
        place = np.searchsorted(values, at)
        bounds += np.append(ranks.up_to[k], most)[place], np.append(least, ranks.before[k])[place]
    return bounds


# ---- the least repair


@dataclass(frozen=True, eq=False)
class _Changes:
    """The same parts, with costs of 1 for every change of a label."""

    parts: Parts

    def each(
        self,
        function: Callable[Concatenate[Part, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        return self.parts.each(_on_changes, function, args, kwargs)

    def each_with(self, function: Callable[[Part, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        return self.parts.each_with(_on_own_changes, [(function, mine) for mine in own])


def _count_changes(part: Part) -> None:
    """Note costs of 0 for the label of a row, and of 1 for others that are allowed."""
    labels = part.notes["labels"]
    changes = np.where(np.asarray(part.costs) < np.inf, np.float32(1.0), np.float32(np.inf))
    kept = np.flatnonzero(labels >= 0)
    changes[kept, labels[kept]] = 0.0
    part.notes["changes"] = Part(changes, np.full(part.n_rows, -1, np.int64))


def _on_changes(part: Part, function: Callable[..., Answer], args: Any, kwargs: Any) -> Answer:
    return function(part.notes["changes"], *args, **kwargs)


def _on_own_changes(part: Part, own: tuple[Callable[[Part, Any], Answer], Any]) -> Answer:
    function, mine = own
    return function(part.notes["changes"], mine)


def _take_changes(part: Part) -> None:
    part.notes["labels"] = part.notes.pop("changes").notes["labels"]
