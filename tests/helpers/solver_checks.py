"""Properties that every result of a solver has, interrupted or not."""

from itertools import groupby, pairwise

import numpy as np
import pytest

from helpers.solver_problems import N_LABELED, AlternationRun, AnnealingRun, known_labels
from transduce.solvers.alternating import THRESHOLD


def by_stage(result) -> list:
    return [list(rows) for _, rows in groupby(result.history, key=lambda row: row.stage)]


def check_result(run: AlternationRun, result, seed: int = 0) -> None:
    """What holds for every run, interrupted or not."""
    problem, weights = run.problem, run.settings.weights
    for rows in by_stage(result):
        for before, after in pairwise(rows):
            assert after.objective <= before.objective * (1 + THRESHOLD)
    assert [rows[0].stage for rows in by_stage(result)] == list(range(len(by_stage(result))))
    for row in result.history[1:]:
        assert row.unlabeled_weight == weights[row.stage - 1]
    assert all(a.seconds <= b.seconds for a, b in pairwise(result.history))
    last = result.history[-1]
    assert result.objective == last.objective
    true_objective = problem.objective(result.W, result.labels, problem.kappa(last.unlabeled_weight))
    assert last.objective == pytest.approx(true_objective, rel=1e-9)
    tally = np.bincount(result.labels[problem.n_labeled :], minlength=problem.n_classes)
    assert np.all(tally >= run.low)
    assert np.all(tally <= run.high)
    np.testing.assert_array_equal(result.labels[:N_LABELED], known_labels(seed)[:N_LABELED])


def true_objective(soft: AnnealingRun, result, weight: float = 1.0) -> float:
    problem = soft.alternation.problem
    return problem.objective(result.W, result.labels, problem.kappa(weight))


def check_labels(soft: AnnealingRun, result, seed: int = 0) -> None:
    """Counts are met and given labels stay."""
    tally = np.bincount(result.labels[N_LABELED:], minlength=4)
    assert np.all(tally >= soft.alternation.low)
    assert np.all(tally <= soft.alternation.high)
    np.testing.assert_array_equal(result.labels[:N_LABELED], known_labels(seed)[:N_LABELED])
