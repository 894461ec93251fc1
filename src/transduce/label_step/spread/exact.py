"""The exact label step over parts: optimal labels and prices, while all costs but those of a few rows stay in place.

Prices go out, and every part gives its rows their cheapest labels and notes how near the next label is. What comes back
is a tally of labels and one of nearness. While many rows stand in the wrong class, better prices are found on a sample
of the rows near enough to move; rows further off are certain, and are taken off the counts. The last rows are settled
as in `exact`, on the costs of the near rows alone. A bound on the moves of all other rows shows that none is missed.

    nearness of a row  =  gap between its two best labels, or where they tie  2⁻¹⁰⁰⁰ · gap of (h_ik − w_k)

Labels that tie within rounding are told apart by chance: h_ik is uniform in [0, 1), less 1 for the present label, and w
are second prices that share out masses of equal rows just as the first ones share out all others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.counts import Groups, apportion, count_bounds
from transduce.kernels import kernel
from transduce.label_step._kernels.passes import ONE_FOUND, label_value, shortest_moves
from transduce.label_step._kernels.paths import CUT_OFF, SETTLED, settle
from transduce.label_step._kernels.shortlists import Lists, offer
from transduce.label_step.assignment import ROUNDING, Status, count_slack, normalise
from transduce.label_step.exact import (
    GOLDEN_RATIO,
    LISTED_SHARE,
    clear_sample,
    imbalance,
    list_moves,
    sample_groups,
    sampled_prices,
)
from transduce.label_step.infeasible import _closure, _steps, explain_infeasible
from transduce.label_step.problem import LabelProblem
from transduce.label_step.spread.parts import FloatArray, IntArray, Part, Parts

SAMPLE_ROWS, SAMPLE_ROWS_OF_A_CLASS = 1 << 14, 16
"""A sample holds so many rows, or so many for each class if these are more."""
GATHER_ROWS = 1 << 15
"""Prices are made better by samples until no more than about so many rows are near enough to be settled."""
REACH, SAMPLE_REACH = 16, 8
"""So many rows are near for each row that must move, when rows are settled and when prices are made better."""
PROGRESS, PATIENCE = 0.75, 2
"""Better prices leave at most this share of the rows misplaced; after so many failures rows are settled as they are."""
WIDER = 4
"""Where too few rows were near, so many times more are."""
MANY_TIES = 4
"""Second prices are found if a sample has more rows with ties than so many times the classes."""
TIE = 8 * float(np.finfo(np.float64).eps)
"""Labels whose reduced costs differ by less than this share of the costs tie."""
TIED, APART = 2.0**-1000, 2.0**-960
"""Nearness of ties is scaled by the first; that of other rows is at least the second."""
RELAXATIONS = 16
"""Ties that rounding has drawn apart are made exact again in so many passes at most."""
BIN_BITS, N_BINS = 49, 1 << 14
"""Nearness is tallied by the leading bits of its floats: eight bins for each power of two."""
LARGEST_PRICE = 1e156
"""Prices beyond this are of no use to costs below 1e150."""
SOME_ROWS = 1000
"""About so many rows of a part tell of what size costs are."""


@dataclass(frozen=True, eq=False)
class SpreadAnswer:
    """What is known about labels that stay in their parts, as notes["labels"].

    prices        (K,) dual variables of the counts, as in `Assignment`
    group_prices  (G,) the part of them that is due to groups
    cost, dual_value, gap, n_moves, n_rounds, status  as in `Assignment`
    n_moved       rows whose label is not the one that they had
    n_gathered    rows whose costs have travelled
    """

    prices: FloatArray
    group_prices: FloatArray
    cost: float
    dual_value: float
    gap: float
    n_moves: int
    n_rounds: int
    status: Status
    n_moved: int
    n_gathered: int


def solve_spread(
    parts: Parts, low: IntArray, high: IntArray, groups: Groups | None, prices: FloatArray | None
) -> SpreadAnswer:
    """Leave optimal labels in notes["labels"] of every part; from `prices`, if there are any that help.

    A row keeps its present label where that is as good as any; neither costs nor labels of a part are modified.

    >>> from transduce.label_step.spread.parts import Here
    >>> costs, present = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), np.full(3, -1)
    >>> parts = Here([Part(costs[:1], present[:1]), Part(costs[1:], present[1:])])
    >>> answer = solve_spread(parts, np.array([1, 2]), np.array([1, 2]), None, None)
    >>> answer.cost, answer.gap, parts.each(lambda part: part.notes["labels"])
    (1.0, 0.0, [array([1]), array([0, 1])])
    """
    try:
        search, standing = _begin(parts, low, high, groups, prices)
        answer = _finish(search, *_settle(search, _refine(search, standing)))
    except ValueError:
        parts.each(_forget)
        raise
    if prices is not None and answer.status is not Status.OPTIMAL:
        again = solve_spread(parts, low, high, groups, None)
        return replace(again, n_gathered=again.n_gathered + answer.n_gathered)
    return answer


# ---- what goes to the parts, and what they answer


@kernel
def chance(row: int, k: int) -> float:
    """A number in [0, 1) that looks like chance, always the same for a row and a class."""
    mixed = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k + 1) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return float((mixed ^ (mixed >> np.uint64(33))) >> np.uint64(11)) * 2.0**-53


@kernel
def choose_near(
    costs: FloatArray,
    prices: FloatArray,
    second: FloatArray,
    span: float,
    rows: IntArray,
    present: IntArray,
    labels: IntArray,
    nearness: FloatArray,
) -> None:
    """Give each row the label of least costs[i, k] − prices[k], by second prices where labels tie, and its nearness.

    span             of the prices: with the costs, what rounding is measured against
    rows (n,)        numbers of the rows, for `chance`     present (n,)   the labels they have, or −1
    labels (n,)      out                                   nearness (n,)  out
    """
    n_classes = costs.shape[1]
    for i in range(costs.shape[0]):
        best = np.inf
        for k in range(n_classes):
            best = min(best, costs[i, k] - prices[k])
        runner_up = np.inf
        found = 0  # as in `choose_labels`
        for k in range(n_classes):
            reduced = costs[i, k] - prices[k]
            is_best = reduced <= best
            runner_up = min(runner_up, np.inf if is_best else reduced)
            found += ONE_FOUND + k if is_best else 0
        label = found & (ONE_FOUND - 1)
        if found >= 2 * ONE_FOUND:
            runner_up = best
            label = 0
            while costs[i, label] - prices[label] > best:
                label += 1
        slack = TIE * (abs(costs[i, label]) + span)
        gap = max(runner_up - best, APART)
        if runner_up - best <= slack:
            least, gap = np.inf, np.inf
            for k in range(n_classes):
                if costs[i, k] - prices[k] <= best + slack:
                    value = chance(rows[i], k) - second[k] - (1.0 if k == present[i] else 0.0)
                    if value < least:
                        gap = least - value
                        least = value
                        label = k
                    else:
                        gap = min(gap, value - least)
            gap *= TIED
        labels[i] = label
        nearness[i] = gap


@kernel
def tie_costs(
    costs: FloatArray, prices: FloatArray, span: float, rows: IntArray, present: IntArray, ties: FloatArray
) -> int:
    """Write the costs h (n, K) that second prices are found for, +inf but on best labels; count the rows with ties."""
    n_tied = 0
    for i in range(costs.shape[0]):
        best = 0
        for k in range(costs.shape[1]):
            if costs[i, k] - prices[k] < costs[i, best] - prices[best]:
                best = k
        limit = costs[i, best] - prices[best] + TIE * (abs(costs[i, best]) + span)
        n_best = 0
        for k in range(costs.shape[1]):
            ties[i, k] = np.inf
            if costs[i, k] - prices[k] <= limit:
                ties[i, k] = chance(rows[i], k) - (1.0 if k == present[i] else 0.0)
                n_best += 1
        n_tied += n_best > 1
    return n_tied


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


class _Prices(NamedTuple):
    """First and second prices (K,) of the classes."""

    first: FloatArray
    second: FloatArray


class _Reach(NamedTuple):
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


class _Seen(NamedTuple):
    """A part at some prices: the ends of its costs, the rows of each class, and bins of nearness with their rows."""

    ends: tuple[float, float]
    tally: IntArray
    bins: IntArray
    counts: IntArray


class _Some(NamedTuple):
    """Some rows of a part: their numbers there, their costs and labels; and what there is to say of others."""

    rows: IntArray
    costs: FloatArray
    labels: IntArray
    others: Any

    @classmethod
    def nobody(cls, n_classes: int) -> "_Some":
        """No rows at all."""
        none = np.zeros(0, np.int64)
        return cls(none, np.zeros((0, n_classes)), none, np.zeros(n_classes, np.int64))

    def joined(self, new: "_Some") -> "_Some":
        """These rows and new ones."""
        rows, costs, labels = (np.concatenate(both) for both in zip(self[:3], new[:3], strict=True))
        return _Some(rows, costs, labels, new.others)


class _Value(NamedTuple):
    """What labels cost, the sizes added up and the distance from the cheapest (3,), and the rows of each class (K,)."""

    sums: FloatArray
    tally: IntArray


def _n_rows(part: Part) -> int:
    return part.n_rows


def _forget(part: Part) -> None:
    part.notes.clear()


def _stay(part: Part) -> None:
    part.notes["labels"] = part.labels.copy()


def _problem(part: Part) -> LabelProblem:
    """The costs of a part, to be read in blocks; what counts they must meet is not known here."""
    none = np.zeros(part.n_classes, np.int64)
    return LabelProblem(part.costs, none, none)


def _stand(part: Part, at: tuple[_Prices, int]) -> _Seen:
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
    return _Seen(_ends(problem), problem.tally(labels), bins, tally[bins])


def _ends(problem: LabelProblem) -> tuple[float, float]:
    """The least and the greatest cost of some rows."""
    some = problem.take(np.arange(0, problem.n_rows, max(1, problem.n_rows // SOME_ROWS)))
    some = some[some < np.inf]
    return (float(some.min()), float(some.max())) if some.size else (np.inf, -np.inf)


def _sample(part: Part, own: tuple[_Reach | None, float, float]) -> _Some:
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
    return _Some(rows, problem.take(rows), part.labels[rows], (tally, depth))


def _near(part: Part, prices: FloatArray, radius: float, length: int) -> _Some:
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
    return _Some(near, problem.take(near), labels[near], limit)


def _certify(part: Part, own: tuple[FloatArray, IntArray, IntArray]) -> tuple[_Value, _Value | None, int]:
    """Write labels of some rows, value all and the present ones at these prices, and forget the rest."""
    prices, rows, changed = own
    labels = part.notes["labels"]
    labels[rows] = changed
    part.notes.clear()
    part.notes["labels"] = labels
    present = _value(part, prices, part.labels) if np.all(part.labels >= 0) else None
    return _value(part, prices, labels), present, int(np.count_nonzero(labels != part.labels))


def _value(part: Part, prices: FloatArray, labels: IntArray) -> _Value:
    problem, sums = _problem(part), np.zeros(3)
    for block, costs in problem.blocks():
        sums += label_value(costs, prices, labels[block])
    return _Value(sums, problem.tally(labels))


# ---- what is known of all parts


@dataclass(frozen=True, eq=False, kw_only=True)
class _Summed(LabelProblem):
    """A label problem known by its sums; row a of its costs (K, K) stands for all rows that have label a.

    rows   of all parts
    sizes  (K,) rows that have each label
    """

    rows: int
    sizes: IntArray

    @property
    def n_rows(self) -> int:
        return self.rows

    @property
    def classes(self) -> IntArray:
        """The labels of the rows that stand for others."""
        return np.arange(self.n_classes)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        yield slice(0, self.n_classes), self.costs

    def tally(self, labels: IntArray) -> IntArray:
        return self.sizes


@dataclass(frozen=True, eq=False)
class _Standing:
    """Where all rows stand at some prices: a problem with the sizes found, and what was seen in the parts."""

    problem: _Summed
    prices: _Prices
    seen: list[_Seen]

    @classmethod
    def create(cls, problem: _Summed, prices: _Prices, seen: list[_Seen]) -> "_Standing":
        """Add up what was seen."""
        return cls(replace(problem, sizes=_sum([part.tally for part in seen], problem.n_classes)), prices, seen)

    @cached_property
    def market(self) -> FloatArray:
        """Potentials of all nodes."""
        return self.problem.nodes.potentials(self.prices.first)

    @cached_property
    def excess(self) -> IntArray:
        """Rows too many in each node."""
        return imbalance(self.problem, self.problem.classes, self.market)[1]

    @property
    def misplaced(self) -> int:
        """Rows that must move."""
        return int(self.excess[self.excess > 0].sum())

    @cached_property
    def _up_to(self) -> IntArray:
        """Rows up to each bin of nearness."""
        tally = np.zeros(N_BINS, np.int64)
        for part in self.seen:
            tally[part.bins] += part.counts
        return np.cumsum(tally)

    def n_nearer(self, radius: float) -> int:
        """Rows nearer than a radius that ends a bin."""
        return int(self._up_to[_bin(radius) - 1])

    def radius(self, wanted: int) -> float:
        """It has so many rows without ties within it; +inf if there are not enough."""
        last = int(np.searchsorted(self._up_to, self.n_nearer(APART) + wanted))
        return float(np.int64(min(last + 1, _bin(np.inf)) << BIN_BITS).view(np.float64))

    def reach(self, per_row: int) -> tuple[list[_Reach], int]:
        """In each part, so many rows for each row that must move; and about how many that are in all."""
        n_classes, n_tied = self.problem.n_classes, self.n_nearer(APART)
        radius = self.radius(min(per_row * self.misplaced, self.problem.n_rows // 2))
        tied = per_row // 2 * (np.abs(self.excess[:n_classes]) + self.misplaced // n_classes + 1)
        shares = [part.counts[part.bins < _bin(APART)].sum() / max(n_tied, 1) for part in self.seen]
        reaches = [_Reach(radius, np.ceil(share * tied).astype(np.int64)) for share in shares]
        return reaches, self.n_nearer(radius) - n_tied + min(n_tied, int(tied.sum()))


@dataclass(eq=False)
class _Search:
    """All parts with their sizes, the problem that they add up to, and the rows gathered from them so far."""

    parts: Parts
    sizes: list[int]
    problem: _Summed
    n_gathered: int = 0

    @property
    def first(self) -> list[int]:
        """The number of the first row of each part."""
        return [int(end) - size for end, size in zip(np.cumsum(self.sizes), self.sizes, strict=True)]

    def stand(self, prices: _Prices) -> _Standing:
        """See where rows stand at these prices."""
        seen = self.parts.each_with(_stand, [(prices, first) for first in self.first])
        return _Standing.create(self.problem, prices, seen)


def _all_of(some: list[_Some], n_classes: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Rows, costs and labels of all parts."""
    rows, costs, labels = (
        np.concatenate(arrays) for arrays in list(zip(*[_Some.nobody(n_classes), *some], strict=True))[:3]
    )
    return rows, costs, labels


def _sum(arrays: list[NDArray[Any]], size: int) -> NDArray[Any]:
    """The sum of arrays of this size, none perhaps."""
    return np.sum(arrays, axis=0) if arrays else np.zeros(size, np.int64)


def _bin(nearness: float) -> int:
    return int(np.float64(nearness).view(np.int64) >> BIN_BITS)


# ---- first prices, and better ones


def _begin(
    parts: Parts, low: IntArray, high: IntArray, groups: Groups | None, prices: FloatArray | None
) -> tuple[_Search, _Standing]:
    """Rows at the prices given, if these are of the size of the costs and of any help; or else at those of a sample."""
    n_classes, seen = low.size, []
    if prices is not None and np.abs(prices).max() < LARGEST_PRICE:
        given = _Prices(np.asarray(prices, np.float64), np.zeros(n_classes))
        seen = parts.each(_stand, (given, 0))
    sizes = [int(part.tally.sum()) for part in seen] or parts.each(_n_rows)
    n_rows = sum(sizes)
    low, high = count_bounds((low, high), n_rows, n_classes)
    if groups is not None:
        groups.check(low, high, n_rows)
    moves, nobody = np.zeros((n_classes, n_classes)), np.zeros(n_classes, np.int64)
    search = _Search(parts, sizes, _Summed(moves, low, high, groups, rows=n_rows, sizes=nobody))
    if seen:
        standing = _Standing.create(search.problem, given, seen)
        span = max(part.ends[1] for part in seen) - min(part.ends[0] for part in seen)
        of_the_size = np.abs(given.first).max() <= 1e6 * span or not np.any(given.first)
        if of_the_size and 2 * REACH * standing.misplaced < n_rows + GATHER_ROWS:
            return search, standing
    return search, search.stand(_sampled(search))


def _refine(search: _Search, standing: _Standing) -> _Standing:
    """Better prices from samples of near rows, until few enough rows are misplaced to be settled."""
    n_failures = 0
    while REACH * standing.misplaced > GATHER_ROWS and n_failures < PATIENCE:
        better = search.stand(_sampled(search, standing, WIDER**n_failures))
        n_failures += better.misplaced > PROGRESS * standing.misplaced
        standing = better if better.misplaced < standing.misplaced else search.stand(standing.prices)
    return standing


def _sampled(search: _Search, standing: _Standing | None = None, wider: int = 1) -> _Prices:
    """First prices, of a sample of all rows; or better ones, of the nearest rows, more if these were too few."""
    problem, nodes, n_classes = search.problem, search.problem.nodes, search.problem.n_classes
    if standing is None:
        prices, radius = _Prices(np.zeros(n_classes), np.zeros(n_classes)), np.inf
        drawn = _draw(search, [None for _ in search.sizes], problem.n_rows, wider)
        certain, depth = np.zeros(n_classes, np.int64), np.full(n_classes, np.inf)
    else:
        prices, (reaches, n_near) = standing.prices, standing.reach(SAMPLE_REACH * wider)
        drawn = _draw(search, reaches, n_near, wider)
        certain, depth, radius = standing.problem.sizes - drawn.others[0], drawn.others[1], reaches[0].radius
    if not drawn.rows.size:
        return prices
    sample = _in_proportion(problem, nodes.low, nodes.high, certain, drawn.costs)
    market = sample.nodes.potentials(prices.first)
    market = sampled_prices(sample, market) if standing is None else market
    first = _held(_cleared(sample, market), prices.first, np.full(n_classes, radius))
    ties = np.empty_like(drawn.costs)
    if tie_costs(drawn.costs, first, float(np.ptp(first)), drawn.rows, drawn.labels, ties) <= MANY_TIES * n_classes:
        return _Prices(first, np.zeros(n_classes))
    over = nodes.differences(nodes.potentials(first))
    low, high = np.where(over < 0, nodes.high, nodes.low), np.where(over > 0, nodes.low, nodes.high)
    sample = _in_proportion(problem, low, high, certain, ties)
    second = _cleared(sample, sample.nodes.potentials(prices.second))
    return _Prices(first, _held(second, prices.second, depth))


def _draw(search: _Search, reaches: Sequence[_Reach | None], n_near: int, wider: int) -> _Some:
    """A sample of the rows within reach, about so many, numbered through all parts; and what is said of others."""
    n_classes = search.problem.n_classes
    share = max(n_near / (wider * max(SAMPLE_ROWS, SAMPLE_ROWS_OF_A_CLASS * n_classes)), 1.0)
    phases = (np.arange(len(reaches)) * GOLDEN_RATIO % 1.0).tolist()
    own = [(reach, share, phase) for reach, phase in zip(reaches, phases, strict=True)]
    some = [
        part._replace(rows=part.rows + number)
        for part, number in zip(search.parts.each_with(_sample, own), search.first, strict=True)
    ]
    rows, costs, labels = _all_of(some, n_classes)
    search.n_gathered += rows.size
    tally = _sum([part.others[0] for part in some], n_classes)
    return _Some(rows, costs, labels, (tally, np.min([part.others[1] for part in some], axis=0, initial=np.inf)))


def _in_proportion(
    problem: LabelProblem, low: IntArray, high: IntArray, certain: IntArray, costs: FloatArray
) -> LabelProblem:
    """The label problem of a sample: bounds (N,) less the rows of each class that are certain, in proportion."""
    n_sample, n_classes, nodes = len(costs), problem.n_classes, problem.nodes
    n_rows = problem.n_rows - int(certain.sum())
    held = nodes.sums(certain)
    low, high = np.maximum(low - held, 0), np.maximum(high - held, 0)
    groups = None
    if nodes.n_groups:
        groups = Groups(nodes.above, low[n_classes:], high[n_classes:])
    rest = LabelProblem(costs, low[:n_classes], high[:n_classes], groups)
    if rest.exact_counts:
        low = apportion(rest.low, n_sample)
        return LabelProblem(costs, low, low)
    share, is_fixed = n_rows / n_sample, rest.low == rest.high
    fixed = np.where(is_fixed, rest.low, 0)
    fixed = apportion(np.append(fixed, max(n_rows - fixed.sum(), 0)), n_sample)[:-1]
    low = np.where(is_fixed, fixed, rest.low // share).astype(np.int64)
    high = np.where(is_fixed, fixed, -(-rest.high // share)).astype(np.int64)
    if low.sum() > n_sample:
        low = apportion(low, n_sample)
    high = np.maximum(high, low)
    if high.sum() < n_sample:
        high = np.maximum(high, apportion(high + 1, n_sample))
    return LabelProblem(costs, low, high, sample_groups(rest, share, low, high))


def _cleared(sample: LabelProblem, market: FloatArray) -> FloatArray:
    """The prices of a sample, ties made exact again that rounding has drawn apart on the way."""
    market, labels = clear_sample(sample, market)
    prices: FloatArray = market[: sample.n_classes] - market[-1]
    lengths = np.full((sample.n_classes, sample.n_classes), np.inf)
    shortest_moves(sample.costs, labels, lengths)
    pinned = prices
    for _ in range(RELAXATIONS):
        relaxed = np.minimum(pinned, (pinned[:, None] + lengths).min(axis=0))
        if np.array_equal(relaxed, pinned):
            break
        pinned = relaxed
    return prices if np.max(prices - pinned) > 1e-9 * np.ptp(prices) else pinned


def _held(prices: FloatArray, before: FloatArray, radius: FloatArray) -> FloatArray:
    """Prices held within radii (K,) of those before, up to a constant: no row of the sample can tell what is beyond.

    The constant is the one by which the least is held back.
    """
    drift = prices - before
    ends = np.concatenate((drift - radius, drift + radius))
    ends = ends[np.isfinite(ends)]
    if ends.size == 0:
        return prices
    beyond = np.maximum(np.abs(drift - ends[:, None]) - radius, 0.0).sum(axis=1)
    middle = ends[np.argmin(beyond)]
    held = before + np.clip(drift, middle - radius, middle + radius)
    return np.where(np.abs(drift - middle) > radius, held, prices)


# ---- the last rows, and the certificate


def _settle(search: _Search, standing: _Standing) -> tuple[FloatArray, list[tuple[IntArray, IntArray]], int, int]:
    """Settle misplaced rows among those near. Returns market, rows with their labels in each part, moves and rounds."""
    problem, prices, n_classes = standing.problem, standing.prices.first, standing.problem.n_classes
    hand = [_Some.nobody(n_classes) for _ in search.sizes]
    market, n_moves, n_rounds = standing.market.copy(), 0, 1
    wanted, length = REACH * standing.misplaced + 16 * n_classes, 4 * GATHER_ROWS // (max(len(hand), 1) * n_classes**2)
    length = min(max(length, 2), standing.misplaced + 1)
    while standing.misplaced:
        radius = standing.radius(wanted)
        is_cut = standing.n_nearer(radius) - sum(part.rows.size for part in hand) > 2 * GATHER_ROWS
        more = search.parts.each(_near, prices, radius, length if is_cut else 0)
        hand = [old.joined(new) for old, new in zip(hand, more, strict=True)]
        _, costs, before = _all_of(hand, n_classes)
        labels, limit = before.copy(), np.min([part.others for part in hand], axis=0)
        market, (flow, excess) = standing.market.copy(), imbalance(problem, problem.classes, standing.market)
        lists, members = list_moves(costs, labels, prices, LISTED_SHARE * radius)
        above, spare = problem.nodes.above, problem.nodes.high - problem.nodes.low
        outcome, n_moves = settle(costs, labels, market, excess, above, flow, spare, radius, lists, members)
        if outcome == SETTLED and not (is_cut and length <= standing.misplaced and _undercut(market, limit)):
            ends = np.cumsum([part.rows.size for part in hand])[:-1]
            hand = [part._replace(labels=own) for part, own in zip(hand, np.split(labels, ends), strict=True)]
            break
        if outcome == CUT_OFF and radius == np.inf:
            sizes = problem.sizes + np.bincount(labels, minlength=n_classes) - np.bincount(before, minlength=n_classes)
            _refuse(replace(problem, sizes=sizes), costs, labels, limit, excess, flow)
        if outcome == SETTLED or radius == np.inf:
            length *= WIDER
        while outcome != SETTLED and standing.radius(wanted) == radius < np.inf:
            wanted *= WIDER
        n_rounds += 1
    search.n_gathered += sum(part.rows.size for part in hand)
    return market, [(part.rows, part.labels) for part in hand], n_moves, n_rounds


def _undercut(market: FloatArray, limit: FloatArray) -> bool:
    """Whether a row that was not gathered might be better off in another class."""
    prices = market[: len(limit)]
    slack = ROUNDING * (np.abs(limit) + np.ptp(prices))
    return bool(np.any((limit + prices[:, None] - prices < -slack)[limit < np.inf]))


def _refuse(
    problem: _Summed, costs: FloatArray, labels: IntArray, limit: FloatArray, excess: IntArray, flow: IntArray
) -> None:
    """Say why the counts cannot be met, unless rows that were not gathered could change that."""
    moves = np.where(limit < np.inf, 0.0, np.inf)
    np.minimum.at(moves, labels, np.where(costs < np.inf, 0.0, np.inf))
    problem = replace(problem, costs=moves)
    if not np.any(_closure(_steps(problem, problem.classes, flow), excess > 0) & (excess < 0)):
        raise explain_infeasible(problem, problem.classes, excess, flow)


def _finish(
    search: _Search, market: FloatArray, moved: list[tuple[IntArray, IntArray]], n_moves: int, n_rounds: int
) -> SpreadAnswer:
    """Write the labels and certify them; or the present ones, if they are just as good."""
    problem, n_classes = search.problem, search.problem.n_classes
    prices = normalise(problem, market[:n_classes] - market[-1])
    group_prices = problem.nodes.differences(market)[n_classes:]
    group_prices = np.zeros(problem.n_groups) if problem.exact_counts else group_prices
    told = search.parts.each_with(_certify, [(prices, *own) for own in moved])
    found = _total([new for new, _, _ in told], n_classes)
    gap, is_optimal = _gap(problem, found, prices, group_prices)
    if not np.isfinite(found.sums).all() or not np.isfinite(gap):
        raise ValueError(
            "costs must be small enough to be added up, but their sum overflows. Divide them by a constant."
        )
    n_moved = sum(n for _, _, n in told)
    present = [old for _, old, _ in told if old is not None]
    if n_moved and len(present) == len(told):
        kept = _total(present, n_classes)
        kept_gap, is_as_good = _gap(problem, kept, prices, group_prices)
        if is_as_good and np.isfinite(kept_gap) and _meets(problem, kept.tally):
            search.parts.each(_stay)
            found, gap, is_optimal, n_moves, n_moved = kept, kept_gap, True, 0, 0
    cost, status = float(found.sums[0]), Status.OPTIMAL if is_optimal else Status.ROUNDED
    return SpreadAnswer(
        prices, group_prices, cost, cost - gap, gap, n_moves, n_rounds, status, n_moved, search.n_gathered
    )


def _total(values: list[_Value], n_classes: int) -> _Value:
    return _Value(_sum([value.sums for value in values], 3), _sum([value.tally for value in values], n_classes))


def _gap(problem: _Summed, value: _Value, prices: FloatArray, group_prices: FloatArray) -> tuple[float, bool]:
    """How far labels are from the optimum at most, and whether that is rounding, as in `certify`."""
    problem = replace(problem, sizes=value.tally)
    _, magnitude, distance = value.sums.tolist()
    gap = count_slack(problem, problem.classes, problem.nodes.multipliers(prices, group_prices)) + distance
    span = max(float(np.ptp(prices)), float(np.abs(group_prices).max(initial=0.0)))
    return gap, bool(gap <= ROUNDING * (magnitude + problem.n_rows * span))


def _meets(problem: _Summed, tally: IntArray) -> bool:
    """Whether labels with this tally meet all counts."""
    sizes = problem.nodes.sums(tally)
    return bool(np.all((sizes >= problem.nodes.low) & (sizes <= problem.nodes.high)))
