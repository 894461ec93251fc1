"""The schedule of dual sweeps: which rows a sweep visits, and when the objective J is computed.

J takes a product with all rows, so it is computed only once the rows' own estimates of their gaps add up to less than
the tolerance. Rows near their optimum are skipped in most sweeps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from transduce.arrays import Array
from transduce.weight_step._kernels.row_order import copy_runs, large_gaps, sum_at

GAP_MARGIN = 0.7
"""Compute J once the estimated gap is below this fraction of the tolerated one."""
SMALL_SWEEP, SMALL_SWEEP_MARGIN = 0.1, 0.4
"""A sweep over this fraction of the rows costs less than J, so the estimate must be smaller by this factor after it."""
MAX_EARLY_CHECKS = 4
"""How many times in a step J may replace a full sweep; needing more would mean slow progress."""
FULL_SWEEP_EVERY = 8
"""One sweep in so many visits all rows, unless J, which also gives the gaps of all rows, was computed in between."""
CHECK_EVERY = 16
"""Compute J after so many sweeps in any case."""
MIN_GAP_FRACTION = 0.2
"""A sweep over a part of the rows pays if these hold at least this fraction of all gaps."""
RUN_LENGTH = 16
"""Neighbouring rows are visited in runs of this length, for cache locality; the runs are in random order."""

Report = TypeVar("Report", bound=Any)
"""Has attributes `objective` and `converged`."""
Sweeps: TypeAlias = tuple[int, float, float]
"""Sweeps without a computation of J: their number, the same in passes over all rows, and the estimated gap."""


class CheckRule(NamedTuple):
    """When to compute J, for a tolerated gap and after `n_checks` failed checks, the last at this estimated gap."""

    tolerated: float
    last: float = np.inf
    n_checks: int = 0

    def is_due(self, count: int, fraction: float, gap: float) -> bool:
        """Whether to compute J after sweep number `count`, which visited this fraction of the rows."""
        is_small = fraction <= SMALL_SWEEP
        enough = (SMALL_SWEEP_MARGIN * GAP_MARGIN if is_small else GAP_MARGIN) * self.tolerated
        if is_small and self.n_checks < MAX_EARLY_CHECKS and count % FULL_SWEEP_EVERY == FULL_SWEEP_EVERY - 1:
            return True  # in place of a full sweep
        return gap <= min(enough, 0.5 * self.last)


def run_sweeps(sweep: Callable[[int], tuple[float, float]], rule: CheckRule, max_sweeps: int) -> Sweeps:
    """Sweep until J is due; `sweep(count)` returns the fraction of the rows it visited, and the estimated gap."""
    n_passes = 0.0
    for count in range(1, max_sweeps + 1):
        fraction, gap = sweep(count)
        n_passes += fraction
        if rule.is_due(count, fraction, gap):
            break
    return count, n_passes, gap


def sweep_until_converged(
    max_sweeps: int,
    tol: float,
    objective: float,
    sweeps: Callable[[CheckRule, int], Sweeps],
    check: Callable[[float], Report],
) -> Report:
    """Alternate sweeps and checks until a check reports convergence, or `max_sweeps` have been done.

    `sweeps(rule, most)` sweeps until J is due, at most so many times; `check(n_passes)` computes J and the gaps of all
    rows. `objective` is a guess of J for the first check.
    """
    n_passes, n_left, rule = 0.0, max_sweeps, CheckRule(tol * objective)
    while True:
        n_sweeps, passes, gap = sweeps(rule, min(CHECK_EVERY, n_left))
        n_passes, n_left = n_passes + passes, n_left - n_sweeps
        report = check(n_passes)
        if report.converged or n_left <= 0:
            return report
        rule = CheckRule(tol * report.objective, gap, rule.n_checks + 1)


def sweep_order(gaps: Array, live: Array, rng: np.random.Generator, count: int) -> Array:
    """Return the rows of sweep number `count` since J was computed: all live ones, or those with large gaps."""
    if count % FULL_SWEEP_EVERY:
        large = np.empty_like(live)
        n_large = large_gaps(gaps, live, MIN_GAP_FRACTION, large)
        live = large[:n_large] if n_large else live
    order = np.empty_like(live)
    copy_runs(live, rng.permutation(-(-live.size // RUN_LENGTH)), RUN_LENGTH, order)
    return order


def total_gap(gaps: Array, live: Array) -> float:
    """Sum of the gaps (n,) of the live rows."""
    return float(sum_at(gaps, live))
