"""Labels and prices that meet all counts, for rows in memory: cheapest labels first, then shortest augmenting paths.

Only rows whose two best labels nearly tie can take part in paths (see `_kernels.paths`): those with a margin below a
trust radius, which grows until all counts are met. Prices are potentials of the nodes of the tree of counts.
"""

import numpy as np

from transduce.label_step._kernels.passes import choose_labels
from transduce.label_step._kernels.paths import CUT_OFF, DRIFTED, SETTLED, settle
from transduce.label_step._kernels.shortlists import Lists, join_all
from transduce.label_step.count_tree import Imbalance
from transduce.label_step.infeasible import allowed_moves, explain_infeasible
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem

REACH = 16
"""The first trust radius admits this many rows for each row that must move."""
QUANTILE_ROWS = 1 << 13
"""The trust radius is estimated from about this many rows."""
PATIENCE = 16
"""Rounds after which all rows take part; a sample gives up instead, since its prices are only a start."""
LISTED_FRACTION = 0.5
"""Moves are listed at first up to this fraction of the trust radius."""
LISTED_CELLS, SHORTEST_LIST, LONGEST_LIST = 640, 4, 32
"""Moves listed for a pair of classes: about LISTED_CELLS for a class in all, within these bounds."""
MAX_CELLS = 1 << 26
"""Moves listed in all; with very many classes, at least one for each pair."""


def meet_counts(
    problem: LabelProblem, potentials: FloatArray, labels: IntArray, is_sample: bool = False
) -> tuple[FloatArray, int, int]:
    """Find potentials, and labels (written in place), that meet every count. Returns potentials, moves and rounds.

    Labels given (≥ 0) are kept where they are as cheap as any. A sample may end with some counts unmet.
    """
    classes = slice(problem.n_classes)
    priced_at = potentials[classes]
    margins = cheapest_labels(problem, priced_at, labels)
    now = problem.tree.imbalance(problem.tally(labels), potentials)
    radius = _first_radius(margins, priced_at, REACH * now.n_misplaced + 16 * problem.n_classes)
    n_moves, n_rounds = 0, 1
    while now.n_misplaced:
        active = np.flatnonzero(margins < radius + np.ptp(now.potentials[classes] - priced_at))
        costs, moving = problem.take(active), labels[active]
        outcome, moved = augment_paths(now, costs, moving, radius)
        labels[active] = moving
        n_moves += moved
        if outcome == SETTLED or (is_sample and (n_rounds == PATIENCE or radius == np.inf)):
            break
        if outcome == CUT_OFF and radius == np.inf:
            raise explain_infeasible(now, problem.tally(labels), allowed_moves(problem, labels))
        radius = _next_radius(radius, outcome, n_rounds)
        n_rounds += 1
        del costs  # they are large, and the next ones are larger
    return now.potentials, n_moves, n_rounds


def n_misplaced(problem: LabelProblem, potentials: FloatArray) -> int:
    """Number of rows in the wrong class when each takes its cheapest label."""
    labels = np.full(problem.n_rows, -1, np.int64)
    cheapest_labels(problem, potentials[: problem.n_classes], labels)
    return problem.tree.imbalance(problem.tally(labels), potentials).n_misplaced


def cheapest_labels(problem: LabelProblem, prices: FloatArray, labels: IntArray) -> FloatArray:
    """Write the cheapest label of each row, keeping those given (≥ 0) on ties; return the margin to the next best."""
    margins, given = np.empty(problem.n_rows), labels.copy()

    def choose(rows: slice, costs: FloatArray) -> None:
        choose_labels(costs, prices, labels[rows], margins[rows], np.zeros(problem.n_classes, np.int64))

    problem.map_blocks(choose)
    tied = np.flatnonzero(margins <= 0.0)  # one after another, where most capacity is left by then
    labels[tied] = given[tied]
    capacity = problem.high - problem.tally(np.delete(labels, tied))
    if problem.belief is not None:
        believed = np.ceil(problem.belief.mean - problem.belief.offset).astype(np.int64)
        capacity = np.minimum(capacity, believed - problem.high + capacity)
    for some, costs in problem.blocks(tied):
        chosen = labels[tied[some]]
        choose_labels(costs, prices, chosen, np.empty(chosen.size), capacity)
        labels[tied[some]] = chosen
    return margins


def augment_paths(now: Imbalance, costs: FloatArray, labels: IntArray, radius: float) -> tuple[int, int]:
    """Move rows along shortest paths, within a trust radius; arrays change in place. Returns the outcome and moves."""
    (n_rows, n_classes), size = costs.shape, now.excess.size
    prices = now.potentials[:n_classes]
    length = int(np.clip(LISTED_CELLS // n_classes, SHORTEST_LIST, LONGEST_LIST))
    length = min(length, max(1, MAX_CELLS // n_classes**2))
    lists = empty_lists(LISTED_FRACTION * radius + prices - prices[:, None], length)
    members = (np.full(n_classes, -1, np.int32), np.empty(n_rows, np.int32), np.empty(n_rows, np.int32))
    join_all(costs, labels, (lists, members))
    search = (np.empty(size), np.empty(size, np.int32), np.empty(size, np.bool_), np.empty(size, np.int32))
    tree, belief = now.tree, now.tree.belief
    counts, strength = tree.low + now.flow, np.where(tree.believed, belief.strength, 0.0)
    known = belief._replace(strength=strength)
    marginal = np.column_stack((known.marginal(np.maximum(counts - 1, 0)), known.marginal(counts)))
    beliefs = (tree.low + belief.offset, belief.mean, strength, marginal)
    nodes = (tree.above, now.flow, tree.high - tree.low, now.excess, beliefs)
    return settle(costs, labels, now.potentials, nodes, radius, (lists, members), search)


def empty_lists(limit: FloatArray, length: int) -> Lists:
    """Lists of moves between every two classes, below limits (K, K), of at most `length` each."""
    shape = limit.shape
    rows, size = np.empty((*shape, length), np.int32), np.zeros(shape, np.int32)
    return np.empty((*shape, length)), rows, size, limit, limit.copy()


def _first_radius(margins: FloatArray, prices: FloatArray, wanted: int) -> float:
    """The margin that about `wanted` rows are below: at most half of those that have a choice, and at least some."""
    stride = max(1, margins.size // QUANTILE_ROWS)
    finite = margins[::stride]
    finite = finite[finite < np.inf]
    if finite.size == 0:
        return np.inf
    wanted = min(wanted // stride, finite.size // 2)
    radius = float(np.partition(finite, wanted)[wanted])
    rounding = 1e-9 * max(float(finite.max()), float(np.ptp(prices)))
    if radius <= rounding:  # ties: the least margin that is more than rounding tells how far apart prices can be
        distinct = finite[finite > rounding]
        radius = float(distinct.min()) if distinct.size else np.inf
    return radius


def _next_radius(radius: float, outcome: int, n_rounds: int) -> float:
    if n_rounds >= PATIENCE:
        return np.inf
    growth = 1.5 if outcome == DRIFTED else 2.0
    return float(radius * growth ** max(1, n_rounds - PATIENCE // 2))
