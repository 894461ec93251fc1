"""The schedule of dual sweeps: when the objective is computed, and which rows are visited."""

from types import SimpleNamespace

import numpy as np
import pytest

from transduce.weight_step.sweep_schedule import (
    CHECK_EVERY,
    FULL_SWEEP_EVERY,
    MAX_EARLY_CHECKS,
    CheckRule,
    run_sweeps,
    sweep_order,
    sweep_until_converged,
)


@pytest.mark.parametrize(
    ("count", "fraction", "gap", "expected"),
    [
        (1, 1.0, 0.71, False),
        (1, 1.0, 0.69, True),
        (1, 0.05, 0.69, False),  # another small sweep is cheaper than J
        (1, 0.05, 0.27, True),
        (7, 0.05, 9.0, True),  # in place of a full sweep
        (7, 0.5, 9.0, False),
        (8, 0.05, 9.0, False),
    ],
)
def test_the_objective_is_computed_when_estimated_gaps_are_small(count, fraction, gap, expected):
    assert CheckRule(1.0).is_due(count, fraction, gap) is expected


def test_after_a_failed_check_the_estimate_must_halve_and_full_sweeps_return():
    rule = CheckRule(1.0, last=0.3, n_checks=1)
    assert not rule.is_due(1, 1.0, 0.2)
    assert rule.is_due(1, 1.0, 0.14)
    assert rule.is_due(7, 0.05, 9.0)
    assert not CheckRule(1.0, last=0.3, n_checks=MAX_EARLY_CHECKS).is_due(7, 0.05, 9.0)


@pytest.mark.parametrize("max_sweeps", [1, 5, 40])
def test_without_convergence_exactly_max_sweeps_are_done_with_checks_between(max_sweeps):
    counts, checks = [], []

    def sweeps(rule, most):
        return run_sweeps(lambda count: counts.append(count) or (0.5, 1e9), rule, most)

    def check(n_passes):
        checks.append(n_passes)
        return SimpleNamespace(objective=1.0, converged=False)

    sweep_until_converged(max_sweeps, 1e-3, 1.0, sweeps, check)
    assert len(counts) == max_sweeps
    assert checks[-1] == 0.5 * max_sweeps
    assert len(checks) == -(-max_sweeps // CHECK_EVERY)
    assert max(counts) <= CHECK_EVERY


def test_sweeps_visit_the_rows_with_large_or_unknown_gaps_and_all_rows_regularly():
    gaps, live = np.full(1000, 1e-3), np.arange(0, 1000, 2)
    gaps[100:140], gaps[500] = 1.0, np.inf
    expected = [*range(100, 140, 2), 500]
    for count in range(1, FULL_SWEEP_EVERY + 1):
        order = sweep_order(gaps, live, np.random.default_rng(count), count)
        assert sorted(order) == (live.tolist() if count == FULL_SWEEP_EVERY else expected)


def test_sweeps_visit_all_rows_where_no_row_stands_out():
    live = np.arange(1000)
    for gaps in (np.ones(1000), np.full(1000, np.inf)):
        order = sweep_order(gaps, live, np.random.default_rng(0), 1)
        assert sorted(order) == live.tolist()
        assert np.mean(np.diff(order) == 1) > 0.9  # in runs
        assert not np.array_equal(order, live)  # in random order
