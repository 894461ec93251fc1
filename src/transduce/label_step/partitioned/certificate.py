"""The answer of the exact label step over parts, with the gap that shows how far from the best it can be at most."""

from dataclasses import dataclass, replace

import numpy as np

from transduce.label_step.partitioned.partitions import FloatArray, IntArray
from transduce.label_step.partitioned.remote_calls import Value, certify_rows, keep_labels
from transduce.label_step.partitioned.state import Search, Summed, added_up
from transduce.label_step.solution import ROUNDING, Status, count_slack, normalise


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


def finish(
    search: Search, market: FloatArray, moved: list[tuple[IntArray, IntArray]], n_moves: int, n_rounds: int
) -> SpreadAnswer:
    """Write the labels and certify them; or the present ones, if they are just as good."""
    problem, n_classes = search.problem, search.problem.n_classes
    prices = normalise(problem, market[:n_classes] - market[-1])
    group_prices = problem.nodes.differences(market)[n_classes:]
    group_prices = np.zeros(problem.n_groups) if problem.exact_counts else group_prices
    told = search.parts.each_with(certify_rows, [(prices, *own) for own in moved])
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
            search.parts.each(keep_labels)
            found, gap, is_optimal, n_moves, n_moved = kept, kept_gap, True, 0, 0
    cost, status = float(found.sums[0]), Status.OPTIMAL if is_optimal else Status.ROUNDED
    return SpreadAnswer(
        prices, group_prices, cost, cost - gap, gap, n_moves, n_rounds, status, n_moved, search.n_gathered
    )


def _total(values: list[Value], n_classes: int) -> Value:
    return Value(added_up([value.sums for value in values], 3), added_up([value.tally for value in values], n_classes))


def _gap(problem: Summed, value: Value, prices: FloatArray, group_prices: FloatArray) -> tuple[float, bool]:
    """How far labels are from the optimum at most, and whether that is rounding, as in `certify`."""
    problem = replace(problem, sizes=value.tally)
    _, magnitude, distance = value.sums.tolist()
    gap = count_slack(problem, problem.classes, problem.nodes.multipliers(prices, group_prices)) + distance
    span = max(float(np.ptp(prices)), float(np.abs(group_prices).max(initial=0.0)))
    return gap, bool(gap <= ROUNDING * (magnitude + problem.n_rows * span))


def _meets(problem: Summed, tally: IntArray) -> bool:
    """Whether labels with this tally meet all counts."""
    sizes = problem.nodes.sums(tally)
    return bool(np.all((sizes >= problem.nodes.low) & (sizes <= problem.nodes.high)))
