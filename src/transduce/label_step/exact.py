"""The exact label step: optimal labels and the prices that prove it, in a few passes over the costs.

Good prices come from a sample of the rows, solved in the same way (see `sampling`). Every row takes its cheapest label
at these prices, and the few rows that are then in the wrong class move along shortest augmenting paths on the graph of
classes (see `augmenting_paths`). Nothing in the answer rests on the sample: the gap is computed from all rows.

Over partitions of the rows, prices go out, and a tally of labels and a histogram of margins come back (see
`partition_search`). Better prices come from samples of the rows with small margins. The paths use the costs of these
rows alone, and a bound on the moves of all other rows shows that none is missed.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.counts import count_bounds
from transduce.label_step._kernels.paths import CUT_OFF, SETTLED
from transduce.label_step.augmenting_paths import REACH, augment_paths, meet_counts
from transduce.label_step.certificate import ROUNDING, certificate, certify
from transduce.label_step.count_tree import CountTree
from transduce.label_step.infeasible import can_move_more, explain_infeasible
from transduce.label_step.partition_search import (
    GatheredRows,
    PricedRows,
    Prices,
    Search,
    cost_range,
    count_rows,
    evaluate,
    keep_present_labels,
    near_rows,
    price_rows,
)
from transduce.label_step.partitions import Partition, Partitions
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.sampling import are_far_off, prices_from_partitions, prices_from_sample
from transduce.label_step.solution import LabelSolution, PartitionedSolution, Status

GATHER_ROWS = 1 << 15
"""Prices are improved on samples until about this many rows, or fewer, can take part in the paths."""
PROGRESS, PATIENCE = 0.75, 2
"""Better prices leave at most this fraction of the rows misplaced; after PATIENCE failures the paths begin anyway."""
WIDER = 4
"""Factor by which more rows take part where there were too few."""
LARGEST_PRICE = 1e156
"""Larger prices are useless for costs below 1e150."""


@dataclass(frozen=True)
class Exact:
    """Optimal labels by prices and shortest augmenting paths.

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> answer = Exact().solve(problem)
    >>> answer.labels, answer.cost, answer.gap
    (array([1, 0, 1]), 1.0, 0.0)
    """

    takes_beliefs: ClassVar[bool] = True

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Find optimal labels; a row keeps its label in `start` where that is as good as any. See `LabelStep.solve`."""
        labels = np.full(problem.n_rows, -1, np.int64) if start is None else start.copy()
        if prices is not None and not _are_comparable(prices, [cost_range(problem)]):
            prices = None
        potentials = problem.tree.potentials(np.zeros(problem.n_classes) if prices is None else prices)
        if prices is None or are_far_off(problem, potentials):
            potentials = prices_from_sample(problem, np.zeros_like(potentials))
        potentials, n_moves, n_rounds = meet_counts(problem, potentials, labels)
        found = problem.tree.prices_at(potentials)
        answer = certify(problem, labels, found, n_moves=n_moves, n_rounds=n_rounds)
        if prices is not None and answer.status is not Status.OPTIMAL:
            return self.solve(problem, None, start)  # rounding errors that come from poor prices
        if start is not None and not np.array_equal(start, labels):
            stayed = certify(problem, start.copy(), found, n_moves=0, n_rounds=n_rounds)
            if stayed.status is Status.OPTIMAL:
                return stayed
        return answer

    def solve_partitions(
        self, partitions: Partitions, bounds: Bounds, prices: FloatArray | None = None
    ) -> PartitionedSolution:
        """Leave optimal labels, the present ones where they are as good, in state["labels"] of every partition.

        Parameters
        ----------
        partitions : Partitions
            Costs of the rows, in partitions that may be on other machines.
        bounds : Bounds
            Bounds on the class counts.
        prices : ndarray of shape (K,), default=None
            Prices of an earlier solution, to start from.

        Returns
        -------
        PartitionedSolution

        Examples
        --------
        >>> from transduce.label_step.partitions import LocalPartitions
        >>> costs, present = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), np.full(3, -1)
        >>> rows = LocalPartitions([Partition(costs[:1], present[:1]), Partition(costs[1:], present[1:])])
        >>> answer = Exact().solve_partitions(rows, Bounds(np.array([1, 2]), np.array([1, 2])))
        >>> answer.cost, answer.gap, rows.each(lambda partition: partition.state["labels"])
        (1.0, 0.0, [array([1]), array([0, 1])])
        """
        try:
            search, priced = _begin(partitions, bounds, prices)
            answer = _certify(search, *_meet_counts(search, _refine(search, priced)))
        except ValueError:
            partitions.each(Partition.reset)
            raise
        if prices is not None and answer.status is not Status.OPTIMAL:
            again = self.solve_partitions(partitions, bounds)
            return replace(again, n_gathered=again.n_gathered + answer.n_gathered)
        return answer


def _are_comparable(prices: FloatArray, cost_ranges: list[tuple[float, float]]) -> bool:
    """Whether prices are of the size of the costs: larger ones would drown the costs."""
    lowest, highest = zip(*cost_ranges, strict=True)
    return bool(np.abs(prices).max() <= 1e6 * (max(highest) - min(lowest))) or not np.any(prices)


# ---- over partitions


def _begin(partitions: Partitions, bounds: Bounds, prices: FloatArray | None) -> tuple[Search, PricedRows]:
    """Price all rows: at the given prices, if these are of the size of the costs and help, or at those of a sample."""
    n_classes, summaries = bounds.low.size, []
    if prices is not None and np.abs(prices).max() < LARGEST_PRICE:
        given = Prices(np.asarray(prices, np.float64), np.zeros(n_classes))
        summaries = partitions.each(price_rows, (given, 0))
    sizes = [int(summary.tally.sum()) for summary in summaries] or partitions.each(count_rows)
    n_rows = sum(sizes)
    low, high = count_bounds((bounds.low, bounds.high), n_rows, n_classes)
    if bounds.groups is not None:
        bounds.groups.check(low, high, n_rows)
    search = Search(partitions, sizes, CountTree.create(bounds._replace(low=low, high=high), n_rows))
    if summaries:
        priced = PricedRows(search.tree, given, summaries)
        is_comparable = _are_comparable(given.base, [own.cost_range for own in summaries])
        if is_comparable and 2 * REACH * priced.n_misplaced < n_rows + GATHER_ROWS:
            return search, priced
    return search, search.price(prices_from_partitions(search))


def _refine(search: Search, priced: PricedRows) -> PricedRows:
    """Improve prices on samples of rows with small margins, until few enough rows are misplaced."""
    n_failures = 0
    while REACH * priced.n_misplaced > GATHER_ROWS and n_failures < PATIENCE:
        better = search.price(prices_from_partitions(search, priced, WIDER**n_failures))
        n_failures += better.n_misplaced > PROGRESS * priced.n_misplaced
        priced = better if better.n_misplaced < priced.n_misplaced else search.price(priced.prices)
    return priced


def _meet_counts(search: Search, priced: PricedRows) -> tuple[FloatArray, list[GatheredRows], int, int]:
    """Move misplaced rows along augmenting paths. Returns potentials, the rows that took part, moves and rounds."""
    now, n_classes, misplaced = priced.imbalance(), search.tree.n_classes, priced.n_misplaced
    gathered = [GatheredRows.joined((), n_classes) for _ in search.sizes]
    n_moves, n_rounds, wanted = 0, 1, REACH * misplaced + 16 * n_classes
    length = min(max(4 * GATHER_ROWS // (max(len(gathered), 1) * n_classes**2), 2), misplaced + 1)
    while misplaced:
        radius = priced.radius(wanted)
        is_cut = priced.n_below(radius) - sum(own.rows.size for own in gathered) > 2 * GATHER_ROWS
        more = search.partitions.each(near_rows, priced.prices.base, radius, length if is_cut else 0)
        both = zip(gathered, more, strict=True)
        gathered = [GatheredRows.joined((old, new), n_classes, new.others) for old, new in both]
        _, costs, before, _ = GatheredRows.joined(gathered, n_classes)
        labels, limit, now = before.copy(), np.min([own.others for own in gathered], axis=0), priced.imbalance()
        outcome, n_moves = augment_paths(now, costs, labels, radius)
        if outcome == SETTLED and not (is_cut and length <= misplaced and _is_undercut(now.potentials, limit)):
            ends = np.cumsum([own.rows.size for own in gathered])[:-1]
            gathered = [own._replace(labels=new) for own, new in zip(gathered, np.split(labels, ends), strict=True)]
            break
        if outcome == CUT_OFF and radius == np.inf:
            allowed = limit < np.inf
            np.logical_or.at(allowed, labels, costs < np.inf)
            if not can_move_more(now, allowed):
                moved = np.bincount(labels, minlength=n_classes) - np.bincount(before, minlength=n_classes)
                raise explain_infeasible(now, priced.tally + moved, allowed)
        if outcome == SETTLED or radius == np.inf:
            length *= WIDER
        while outcome != SETTLED and priced.radius(wanted) == radius < np.inf:
            wanted *= WIDER
        n_rounds += 1
    search.n_gathered += sum(own.rows.size for own in gathered)
    return now.potentials, gathered, n_moves, n_rounds


def _is_undercut(potentials: FloatArray, limit: FloatArray) -> bool:
    """Whether a row that was not gathered might be better off in another class."""
    prices = potentials[: len(limit)]
    slack = ROUNDING * (np.abs(limit) + np.ptp(prices))
    return bool(np.any((limit + prices[:, None] - prices < -slack)[limit < np.inf]))


def _certify(
    search: Search, potentials: FloatArray, gathered: list[GatheredRows], n_moves: int, n_rounds: int
) -> PartitionedSolution:
    """Write the labels and certify them; or keep the present ones, if they are just as good."""
    prices = search.tree.prices_at(potentials)
    evaluated = search.partitions.each_with(evaluate, [(prices[0], own.rows, own.labels) for own in gathered])
    found = certificate(search.tree, [values[0] for values, _ in evaluated], *prices).check_finite()
    n_changed = sum(changed for _, changed in evaluated)
    if n_changed and all(len(values) == 2 for values, _ in evaluated):
        stayed = certificate(search.tree, [values[1] for values, _ in evaluated], *prices)
        if stayed.status is Status.OPTIMAL:
            search.partitions.each(keep_present_labels)
            found, n_moves, n_changed = stayed, 0, 0
    counted = {"n_moves": n_moves, "n_rounds": n_rounds, "n_changed": n_changed, "n_gathered": search.n_gathered}
    return PartitionedSolution(np.zeros(0, np.int64), **(found._asdict() | counted))
