"""Prices from a sample: first ones from some of all rows, better ones from some of those near enough to move."""

from collections.abc import Sequence

import numpy as np

from transduce.class_prior.bounds import Groups, apportion
from transduce.label_step._kernels.passes import shortest_moves
from transduce.label_step.exact import GOLDEN_RATIO, clear_sample, sample_groups, sampled_prices
from transduce.label_step.partitioned.partitions import FloatArray, IntArray
from transduce.label_step.partitioned.remote_calls import Prices, Reach, SomeRows, sample_rows
from transduce.label_step.partitioned.state import Search, Standing, added_up, all_of
from transduce.label_step.partitioned.tie_breaking import tie_costs
from transduce.label_step.problem import LabelProblem

SAMPLE_ROWS, SAMPLE_ROWS_OF_A_CLASS = 1 << 14, 16
"""A sample holds so many rows, or so many for each class if these are more."""
SAMPLE_REACH = 8
"""So many rows are near for each row that must move, when prices are made better."""
MANY_TIES = 4
"""Second prices are found if a sample has more rows with ties than so many times the classes."""
RELAXATIONS = 16
"""Ties that rounding has drawn apart are made exact again in so many passes at most."""


def prices_of_sample(search: Search, standing: Standing | None = None, wider: int = 1) -> Prices:
    """First prices, of a sample of all rows; or better ones, of the nearest rows, more if these were too few."""
    problem, nodes, n_classes = search.problem, search.problem.nodes, search.problem.n_classes
    if standing is None:
        prices, radius = Prices(np.zeros(n_classes), np.zeros(n_classes)), np.inf
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
        return Prices(first, np.zeros(n_classes))
    over = nodes.differences(nodes.potentials(first))
    low, high = np.where(over < 0, nodes.high, nodes.low), np.where(over > 0, nodes.low, nodes.high)
    sample = _in_proportion(problem, low, high, certain, ties)
    second = _cleared(sample, sample.nodes.potentials(prices.second))
    return Prices(first, _held(second, prices.second, depth))


def _draw(search: Search, reaches: Sequence[Reach | None], n_near: int, wider: int) -> SomeRows:
    """A sample of the rows within reach, about so many, numbered through all parts; and what is said of others."""
    n_classes = search.problem.n_classes
    share = max(n_near / (wider * max(SAMPLE_ROWS, SAMPLE_ROWS_OF_A_CLASS * n_classes)), 1.0)
    phases = (np.arange(len(reaches)) * GOLDEN_RATIO % 1.0).tolist()
    own = [(reach, share, phase) for reach, phase in zip(reaches, phases, strict=True)]
    some = [
        part._replace(rows=part.rows + number)
        for part, number in zip(search.parts.each_with(sample_rows, own), search.first, strict=True)
    ]
    rows, costs, labels = all_of(some, n_classes)
    search.n_gathered += rows.size
    tally = added_up([part.others[0] for part in some], n_classes)
    return SomeRows(rows, costs, labels, (tally, np.min([part.others[1] for part in some], axis=0, initial=np.inf)))


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
