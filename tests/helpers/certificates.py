"""What must hold for the solution of any label step, and for an optimal one."""

import numpy as np
import pytest

from helpers.problems import Instance
from transduce.label_step import LabelSolution, Status

TOLERANCE = 1e-9


def check_answer(problem: Instance, answer: LabelSolution) -> None:
    """What holds for any label step: counts met, an honest cost, a valid bound, and the gap between them."""
    n, k = problem.costs.shape
    tally = np.bincount(answer.labels, minlength=k)
    assert answer.labels.shape == (n,)
    assert np.all(tally >= problem.low), problem.name
    assert np.all(tally <= problem.high), problem.name
    slack = TOLERANCE * (problem.scale + n * np.ptp(answer.prices))
    assert answer.cost == pytest.approx(problem.costs[np.arange(n), answer.labels].sum(), abs=slack)
    assert np.all(np.isfinite(answer.prices))
    assert answer.dual_value == pytest.approx(dual_value(problem, answer.prices), abs=slack)
    assert answer.gap == pytest.approx(answer.cost - answer.dual_value, abs=slack)
    assert answer.gap >= -slack


def dual_value(problem: Instance, prices: np.ndarray) -> float:
    counts = np.where(prices > 0, problem.low, problem.high)
    return float(counts @ prices + (problem.costs - prices).min(axis=1).sum())


def check_optimal(problem: Instance, answer: LabelSolution, cost: float) -> None:
    """The oracle's cost, and complementary slackness: each row on a cheapest label, each price earned by its count."""
    check_answer(problem, answer)
    assert answer.cost == pytest.approx(cost, abs=TOLERANCE * problem.scale), problem.name
    assert answer.gap <= TOLERANCE * (problem.scale + len(problem.costs) * np.ptp(answer.prices)), problem.name
    assert answer.status is Status.OPTIMAL, problem.name
    n = len(problem.costs)
    tolerance = TOLERANCE * max(np.abs(problem.costs[np.isfinite(problem.costs)]).max(initial=0), np.ptp(answer.prices))
    reduced = problem.costs - answer.prices
    assert np.all(reduced[np.arange(n), answer.labels] <= reduced.min(axis=1) + tolerance), problem.name
    if not np.array_equal(problem.low, problem.high):
        tally = np.bincount(answer.labels, minlength=problem.low.size)
        assert np.all(answer.prices[tally > problem.low] <= tolerance), problem.name
        assert np.all(answer.prices[tally < problem.high] >= -tolerance), problem.name
