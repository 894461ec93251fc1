"""The exact label step: optimal labels and the prices that prove it, in a few passes over the costs.

Rows take the label that is cheapest at the current prices. Good first prices come from a sample of the rows, solved in
the same way, sample within sample. The few rows that then stand in the wrong class are settled by shortest augmenting
paths on the graph of classes, in which only rows whose two best labels nearly tie can take part. Nothing in the answer
rests on the sample: every row is priced at the end, and the gap is computed from all of them.

Prices are held for every node of the tree of counts (see `nodes`): classes, groups of them, and all rows, the last.
What users see is the price of a class less that of all rows; and that of a group less that of the node above it.
"""

from dataclasses import dataclass

import numpy as np

from transduce.class_prior.bounds import Groups, apportion
from transduce.label_step._kernels.passes import choose_labels
from transduce.label_step._kernels.paths import CUT_OFF, DRIFTED, SETTLED, settle
from transduce.label_step._kernels.shortlists import Lists, Members, join_all
from transduce.label_step.infeasible import explain_infeasible
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.solution import LabelSolution, Status, certify

SAMPLE_SHARE = 8
"""A sample holds one row in so many."""
SAMPLE_FROM = 1000
"""Problems with fewer rows start from the given prices."""
WORTH_SAMPLING = 2
"""A sample is solved if more rows stand in the wrong class than so many times those it would leave there."""
GOLDEN_RATIO = 0.6180339887498949
"""Multiples of it modulo 1 spread evenly at every scale: a sample that no period in the rows can fool."""
REACH = 16
"""The first trust radius lets in so many rows for each row that must move."""
QUANTILE_ROWS = 1 << 13
"""About so many rows tell what radius lets in how many."""
PATIENCE = 16
"""Rounds after which all rows take part; a sample gives up instead, its prices being only a start."""
LISTED_SHARE = 0.5
"""Moves are listed at first up to this share of the trust radius."""
LISTED_CELLS, SHORTEST_LIST, LONGEST_LIST = 640, 4, 32
"""Moves kept for two classes: about so many for a class in all, within these bounds for each other class."""
MOST_CELLS = 1 << 26
"""Moves kept in all, however many classes there are; one for two classes in any case."""


@dataclass(frozen=True)
class Exact:
    """Optimal labels by prices and shortest augmenting paths.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> answer = Exact().solve(problem)
    >>> answer.labels, answer.cost, answer.gap
    (array([1, 0, 1]), 1.0, 0.0)
    """

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Solve from `prices`, if there are any; a row keeps its label in `start` where that is as good as any."""
        labels = np.full(problem.n_rows, -1, np.int64) if start is None else start.copy()
        if prices is not None and not _of_the_size_of(problem, prices):
            prices = None
        market = problem.nodes.potentials(np.zeros(problem.n_classes) if prices is None else prices)
        if prices is None or _far_off(problem, market):
            market = sampled_prices(problem, np.zeros_like(market))
        market, n_moves, n_rounds = _clear(problem, market, labels, is_sample=False)
        seen = (market[: problem.n_classes] - market[-1], problem.nodes.differences(market)[problem.n_classes :])
        answer = certify(problem, labels, *seen, n_moves=n_moves, n_rounds=n_rounds)
        if prices is not None and answer.status is not Status.OPTIMAL:
            return self.solve(problem, None, start)  # what rounding left behind on the way from far-off prices
        if start is not None and not np.array_equal(start, labels):
            stayed = certify(problem, start.copy(), *seen, n_moves=0, n_rounds=n_rounds)
            if stayed.status is Status.OPTIMAL:
                return stayed
        return answer


def sampled_prices(problem: LabelProblem, market: FloatArray) -> FloatArray:
    """Solve a sample of the rows, unless its counts are nearly met at these prices as they are."""
    if problem.n_rows < SAMPLE_FROM:
        return market
    sample = _sample(problem, SAMPLE_SHARE)
    if SAMPLE_SHARE * _misplaced(sample, market) < WORTH_SAMPLING * _left_by_sampling(problem):
        return market
    return clear_sample(sample, sampled_prices(sample, market))[0]


def clear_sample(sample: LabelProblem, market: FloatArray) -> tuple[FloatArray, IntArray]:
    """Prices at which the counts of a sample are met, or nearly, and its labels."""
    labels = np.full(sample.n_rows, -1, np.int64)
    return _clear(sample, market, labels, is_sample=True)[0], labels


def _of_the_size_of(problem: LabelProblem, prices: FloatArray) -> bool:
    """Whether prices can matter beside the costs without drowning them in rounding, by a look at some rows."""
    some = problem.take(np.arange(0, problem.n_rows, max(1, problem.n_rows // 1000)))
    span = np.ptp(some[some < np.inf]) if some.size else 0.0
    return bool(np.abs(prices).max() <= 1e6 * span) or not np.any(prices)


def _far_off(problem: LabelProblem, market: FloatArray) -> bool:
    """Whether a thin sample says that these prices are no help at all."""
    if problem.n_rows < SAMPLE_FROM:
        return False
    share = min(SAMPLE_SHARE**2, max(1, 4 * problem.n_rows // SAMPLE_FROM))
    return share * _misplaced(_sample(problem, share), market) > 12 * _left_by_sampling(problem)


def _misplaced(problem: LabelProblem, market: FloatArray) -> int:
    """Rows that stand in the wrong class when each takes its cheapest label."""
    labels = np.full(problem.n_rows, -1, np.int64)
    _take_cheapest(problem, market[: problem.n_classes], labels)
    _, excess = imbalance(problem, labels, market)
    return int(excess[excess > 0].sum())


def _left_by_sampling(problem: LabelProblem) -> float:
    """Rows that will stand in the wrong class at a sample's prices: the deviation of a count, times the classes."""
    return float(np.sqrt(0.25 * SAMPLE_SHARE * problem.n_rows * problem.n_classes))


def _sample(problem: LabelProblem, share: int) -> LabelProblem:
    """One row in `share`, with counts in proportion."""
    stratum = np.arange(problem.n_rows // share)
    rows = share * stratum + (share * (stratum * GOLDEN_RATIO % 1.0)).astype(np.int64)
    if problem.exact_counts:
        low = high = apportion(problem.low, rows.size)
    else:
        is_fixed = problem.low == problem.high
        fixed = np.where(is_fixed, problem.low, 0)
        fixed = apportion(np.append(fixed, problem.n_rows - fixed.sum()), rows.size)[:-1]
        low = np.where(is_fixed, fixed, problem.low // share)
        high = np.where(is_fixed, fixed, -(-problem.high // share))
    return LabelProblem(problem.take(rows), low, high, sample_groups(problem, share, low, high))


def sample_groups(problem: LabelProblem, share: float, low: IntArray, high: IntArray) -> Groups | None:
    """Bounds of groups in proportion, no tighter than their parts allow; the sample may still not meet them all."""
    if problem.groups is None or problem.exact_counts:
        return None
    groups, n_classes = problem.groups, problem.n_classes
    least = np.concatenate((low, groups.low // share, [0]))
    most = np.concatenate((high, -(-groups.high // share), [0]))
    below = np.zeros((2, least.size), np.int64)
    for j, above in enumerate(groups.above.tolist()):
        if j >= n_classes:
            least[j], most[j] = min(least[j], below[1, j]), max(most[j], below[0, j])
            below[:, j] = max(least[j], below[0, j]), min(most[j], below[1, j])
        else:
            below[:, j] = low[j], high[j]
        below[:, above] += below[:, j]
    return Groups(groups.above, least[n_classes:-1], most[n_classes:-1])


def _clear(problem: LabelProblem, market: FloatArray, labels: IntArray, is_sample: bool) -> tuple[FloatArray, int, int]:
    """Find prices, and labels (written in place), at which every count is met. Returns prices, moves and rounds."""
    classes, nodes = slice(problem.n_classes), problem.nodes
    priced_at = market[classes]
    gaps = _take_cheapest(problem, priced_at, labels)
    flow, excess = imbalance(problem, labels, market)
    misplaced = int(excess[excess > 0].sum())
    radius = _first_radius(gaps, priced_at, REACH * misplaced + 16 * problem.n_classes)
    market = market.copy()
    n_moves, n_rounds = 0, 1
    while np.any(excess > 0):
        active = np.flatnonzero(gaps < radius + np.ptp(market[classes] - priced_at))
        costs, moving = problem.take(active), labels[active]
        lists, members = list_moves(costs, moving, market[classes], LISTED_SHARE * radius)
        outcome, moved = settle(
            costs, moving, market, excess, nodes.above, flow, nodes.high - nodes.low, radius, lists, members
        )
        labels[active] = moving
        n_moves += moved
        if outcome == SETTLED or (is_sample and (n_rounds == PATIENCE or radius == np.inf)):
            break
        if outcome == CUT_OFF and radius == np.inf:
            raise explain_infeasible(problem, labels, excess, flow)
        radius = _next_radius(radius, outcome, n_rounds)
        n_rounds += 1
        del costs, lists, members  # they are large, and the next are larger
    return market, n_moves, n_rounds


def _take_cheapest(problem: LabelProblem, prices: FloatArray, labels: IntArray) -> FloatArray:
    """Write the cheapest label of each row, keeping those given (≥ 0) on ties; return the gap to the next best."""
    gaps = np.empty(problem.n_rows)
    room = problem.high.copy()
    for part, block in problem.blocks():
        choose_labels(block, prices, labels[part], gaps[part], room)
    return gaps


def imbalance(problem: LabelProblem, labels: IntArray, market: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows of each node beyond its low count, as its price over that of the node above asks, and every excess."""
    nodes, n_classes = problem.nodes, problem.n_classes
    over, spare = nodes.differences(market), nodes.high - nodes.low
    beyond = problem.tally(labels) - nodes.low[:n_classes]
    flow = np.where(over > 0, 0, spare)
    flow[:n_classes] = np.where(over[:n_classes] == 0, np.clip(beyond, 0, spare[:n_classes]), flow[:n_classes])
    excess = beyond - flow[:n_classes]
    if nodes.n_groups == 0:
        return flow, np.append(excess, -excess.sum())
    excess = np.concatenate((excess, -nodes.low[n_classes:], [-problem.n_rows]))
    np.add.at(excess, nodes.above[:n_classes], (nodes.low + flow)[:n_classes])
    for g in range(n_classes, nodes.above.size):
        if over[g] == 0:
            flow[g] = min(max(excess[g], 0), spare[g])
        excess[g] -= flow[g]
        excess[nodes.above[g]] += nodes.low[g] + flow[g]
    return flow, excess


def list_moves(costs: FloatArray, labels: IntArray, prices: FloatArray, near: float) -> tuple[Lists, Members]:
    """Short lists of the moves between classes whose reduced cost at these prices is below `near`."""
    n_rows, n_classes = costs.shape
    length = int(np.clip(LISTED_CELLS // n_classes, SHORTEST_LIST, LONGEST_LIST))
    length = min(length, max(1, MOST_CELLS // n_classes**2))
    shape = (n_classes, n_classes)
    limit = near + prices - prices[:, None]
    lists = (
        np.empty((*shape, length)),
        np.empty((*shape, length), np.int32),
        np.zeros(shape, np.int32),
        limit,
        limit.copy(),
    )
    members = (np.full(n_classes, -1, np.int32), np.empty(n_rows, np.int32), np.empty(n_rows, np.int32))
    join_all(costs, labels, lists, members)
    return lists, members


def _first_radius(gaps: FloatArray, prices: FloatArray, wanted: int) -> float:
    """The gap below which lie about `wanted` rows, at most half of those that have a choice, and some in any case."""
    stride = max(1, gaps.size // QUANTILE_ROWS)
    open_gaps = gaps[::stride]
    open_gaps = open_gaps[open_gaps < np.inf]
    if open_gaps.size == 0:
        return np.inf
    wanted = min(wanted // stride, open_gaps.size // 2)
    radius = float(np.partition(open_gaps, wanted)[wanted])
    rounding = 1e-9 * max(float(open_gaps.max()), float(np.ptp(prices)))
    if radius <= rounding:  # ties: the least gap that is more than rounding tells how far apart prices can be
        distinct = open_gaps[open_gaps > rounding]
        radius = float(distinct.min()) if distinct.size else np.inf
    return radius


def _next_radius(radius: float, outcome: int, n_rounds: int) -> float:
    if n_rounds >= PATIENCE:
        return np.inf
    growth = 1.5 if outcome == DRIFTED else 2.0
    return float(radius * growth ** max(1, n_rounds - PATIENCE // 2))
