"""The exact label step over parts: optimal labels and prices, while all costs but those of a few rows stay in place.

Prices go out, and every part gives its rows their cheapest labels and notes how near the next label is. What comes back
is a tally of labels and one of nearness. While many rows stand in the wrong class, better prices are found on a sample
of the rows near enough to move; rows further off are certain, and are taken off the counts. The last rows are settled
as in `exact`, on the costs of the near rows alone. A bound on the moves of all other rows shows that none is missed.

How near a row is, also where its labels tie, is said in `nearness`; what parts do when they are asked in `visits`.
"""

from dataclasses import replace

import numpy as np

from transduce.class_prior.bounds import Groups, count_bounds
from transduce.label_step._kernels.paths import CUT_OFF, SETTLED, settle
from transduce.label_step.exact import LISTED_SHARE, imbalance, list_moves
from transduce.label_step.infeasible import closure, explain_infeasible, steps
from transduce.label_step.partitioned.certificate import SpreadAnswer, finish
from transduce.label_step.partitioned.partitions import FloatArray, IntArray, Parts
from transduce.label_step.partitioned.remote_calls import Prices, SomeRows, count_rows, forget, near_rows, stand_at
from transduce.label_step.partitioned.samples import prices_of_sample
from transduce.label_step.partitioned.state import Search, Standing, Summed, all_of
from transduce.label_step.solution import ROUNDING, Status

GATHER_ROWS = 1 << 15
"""Prices are made better by samples until no more than about so many rows are near enough to be settled."""
REACH = 16
"""So many rows are near for each row that must move, when rows are settled."""
PROGRESS, PATIENCE = 0.75, 2
"""Better prices leave at most this share of the rows misplaced; after so many failures rows are settled as they are."""
WIDER = 4
"""Where too few rows were near, so many times more are."""
LARGEST_PRICE = 1e156
"""Prices beyond this are of no use to costs below 1e150."""


def solve_spread(
    parts: Parts, low: IntArray, high: IntArray, groups: Groups | None, prices: FloatArray | None
) -> SpreadAnswer:
    """Leave optimal labels in notes["labels"] of every part; from `prices`, if there are any that help.

    A row keeps its present label where that is as good as any; neither costs nor labels of a part are modified.

    >>> from transduce.label_step.partitioned.partitions import Here, Part
    >>> costs, present = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), np.full(3, -1)
    >>> parts = Here([Part(costs[:1], present[:1]), Part(costs[1:], present[1:])])
    >>> answer = solve_spread(parts, np.array([1, 2]), np.array([1, 2]), None, None)
    >>> answer.cost, answer.gap, parts.each(lambda part: part.notes["labels"])
    (1.0, 0.0, [array([1]), array([0, 1])])
    """
    try:
        search, standing = _begin(parts, low, high, groups, prices)
        answer = finish(search, *_settle(search, _refine(search, standing)))
    except ValueError:
        parts.each(forget)
        raise
    if prices is not None and answer.status is not Status.OPTIMAL:
        again = solve_spread(parts, low, high, groups, None)
        return replace(again, n_gathered=again.n_gathered + answer.n_gathered)
    return answer


def _begin(
    parts: Parts, low: IntArray, high: IntArray, groups: Groups | None, prices: FloatArray | None
) -> tuple[Search, Standing]:
    """Rows at the prices given, if these are of the size of the costs and of any help; or else at those of a sample."""
    n_classes, seen = low.size, []
    if prices is not None and np.abs(prices).max() < LARGEST_PRICE:
        given = Prices(np.asarray(prices, np.float64), np.zeros(n_classes))
        seen = parts.each(stand_at, (given, 0))
    sizes = [int(part.tally.sum()) for part in seen] or parts.each(count_rows)
    n_rows = sum(sizes)
    low, high = count_bounds((low, high), n_rows, n_classes)
    if groups is not None:
        groups.check(low, high, n_rows)
    moves, nobody = np.zeros((n_classes, n_classes)), np.zeros(n_classes, np.int64)
    search = Search(parts, sizes, Summed(moves, low, high, groups, rows=n_rows, sizes=nobody))
    if seen:
        standing = Standing.create(search.problem, given, seen)
        span = max(part.ends[1] for part in seen) - min(part.ends[0] for part in seen)
        of_the_size = np.abs(given.first).max() <= 1e6 * span or not np.any(given.first)
        if of_the_size and 2 * REACH * standing.misplaced < n_rows + GATHER_ROWS:
            return search, standing
    return search, search.stand(prices_of_sample(search))


def _refine(search: Search, standing: Standing) -> Standing:
    """Better prices from samples of near rows, until few enough rows are misplaced to be settled."""
    n_failures = 0
    while REACH * standing.misplaced > GATHER_ROWS and n_failures < PATIENCE:
        better = search.stand(prices_of_sample(search, standing, WIDER**n_failures))
        n_failures += better.misplaced > PROGRESS * standing.misplaced
        standing = better if better.misplaced < standing.misplaced else search.stand(standing.prices)
    return standing


def _settle(search: Search, standing: Standing) -> tuple[FloatArray, list[tuple[IntArray, IntArray]], int, int]:
    """Settle misplaced rows among those near. Returns market, rows with their labels in each part, moves and rounds."""
    problem, prices, n_classes = standing.problem, standing.prices.first, standing.problem.n_classes
    hand = [SomeRows.nobody(n_classes) for _ in search.sizes]
    market, n_moves, n_rounds = standing.market.copy(), 0, 1
    wanted, length = REACH * standing.misplaced + 16 * n_classes, 4 * GATHER_ROWS // (max(len(hand), 1) * n_classes**2)
    length = min(max(length, 2), standing.misplaced + 1)
    while standing.misplaced:
        radius = standing.radius(wanted)
        is_cut = standing.n_nearer(radius) - sum(part.rows.size for part in hand) > 2 * GATHER_ROWS
        more = search.parts.each(near_rows, prices, radius, length if is_cut else 0)
        hand = [old.joined(new) for old, new in zip(hand, more, strict=True)]
        _, costs, before = all_of(hand, n_classes)
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
    problem: Summed, costs: FloatArray, labels: IntArray, limit: FloatArray, excess: IntArray, flow: IntArray
) -> None:
    """Say why the counts cannot be met, unless rows that were not gathered could change that."""
    moves = np.where(limit < np.inf, 0.0, np.inf)
    np.minimum.at(moves, labels, np.where(costs < np.inf, 0.0, np.inf))
    problem = replace(problem, costs=moves)
    if not np.any(closure(steps(problem, problem.classes, flow), excess > 0) & (excess < 0)):
        raise explain_infeasible(problem, problem.classes, excess, flow)
