"""The fraction of a fit that is done, on recorded fits of data that its constants do not come from."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.history import HistoryRow
from transduce.solvers.plan import FitPlan

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "fit-histories.json").read_text())
"""Rounds of fits: number of the restart, stage, whether a label changed, and milliseconds since the start; `total` is
the time of the fit. Process time for one thread, wall-clock time for two. Restarts, stages and times are differences to
the previous round."""

NEARLY_DONE = 0.85
"""The last round may be that of a restart that stops because it cannot win, which the plan does not know."""


def rounds_of(fit):
    """History rows of a recorded fit, and the fraction of its time at which each of them came."""
    restarts, stages, times = (np.cumsum(fit[name]) for name in ("restart", "stage", "ms"))
    columns = zip(stages.tolist(), fit["moved"], restarts.tolist(), strict=True)
    return [HistoryRow(stage, 1.0, 0.5, moved, 0.0, restart=k) for stage, moved, k in columns], times / fit["total"]


def plan_of(fit):
    return FitPlan.create(fit["n_unlabeled"], fit["n_classes"], "auto", fit["is_dense"], fit["n_threads"])


def fractions_of(plan, rows):
    found = []
    for row in rows:
        plan.add(row)
        found.append(plan.fraction)
    return np.array(found)


@pytest.mark.parametrize("fit", RECORDED, ids=lambda fit: fit["name"])
def test_the_time_of_a_recorded_fit_is_known_to_a_factor_of_two_after_a_tenth(fit):
    rows, times = rounds_of(fit)
    fractions = fractions_of(plan_of(fit), rows)
    assert np.all(np.diff(fractions) >= 0)
    assert NEARLY_DONE < fractions[-1] <= 1.0
    late = times >= 0.1
    predicted = times[late] / fractions[late]  # total time, relative to the true one
    assert 0.5 <= predicted.min() <= predicted.max() <= 2.0


def small_problem(is_dense, n_rows=200):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(3, 20))
    y = np.arange(n_rows) % 3
    X = centers[y] + rng.normal(size=(n_rows, 20))
    return X if is_dense else sparse.csr_matrix(X), np.where(np.arange(n_rows) < 30, y, -1)


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("prior", ["estimate", (56, 57, 57)])
@pytest.mark.parametrize("annealing", ["auto", None, (0.1, 1.0)])
def test_every_fit_begins_near_0_and_ends_near_1(is_dense, prior, annealing):
    X, y = small_problem(is_dense)
    plan, fractions = FitPlan.create(170, 3, annealing, is_dense), []

    def record(row):
        plan.add(row)
        fractions.append(plan.fraction)

    TransductiveClassifier(class_prior=prior, annealing=annealing, random_state=0, verbose=record).fit(X, y)
    assert fractions[0] <= 0.1
    assert fractions == sorted(fractions)
    assert NEARLY_DONE < fractions[-1] <= 1.0


def test_the_last_part_with_all_rows_is_counted(monkeypatch):
    monkeypatch.setattr("transduce.solvers.annealing.SAMPLE_ROWS", 50)
    monkeypatch.setattr("transduce.solvers.annealing.SAMPLE_ROWS_PER_CLASS", 1)
    X, y = small_problem(is_dense=False)
    rows, plan = [], FitPlan.create(170, 3)
    TransductiveClassifier(random_state=0, verbose=rows.append).fit(X, y)
    fractions = fractions_of(plan, rows)
    assert rows[-1].restart == 3
    before = fractions[[row.restart for row in rows].index(3) - 1]
    assert 0.5 < before < 0.97
    assert fractions[-1] == 1.0


@pytest.mark.parametrize("restart", [-3, 0, 1, 2])
def test_a_resumed_fit_counts_only_what_is_left(restart):
    rows, _ = rounds_of(RECORDED[0])
    first = next(i for i, row in enumerate(rows) if row.restart == restart and row.stage == 6)
    whole, rest = (fractions_of(plan_of(RECORDED[0]), part) for part in (rows, rows[first:]))
    assert rest[0] < min(0.1, whole[first])
    assert NEARLY_DONE < rest[-1] <= 1.0


def test_threads_leave_the_fractions_of_one_group_alone():
    row = HistoryRow(5, 1.0, 0.5, 1, 0.0, restart=0)
    fractions = [fractions_of(FitPlan.create(10_000, 20, n_threads=n), [row])[0] for n in (1, 2, 16)]
    assert fractions == pytest.approx(fractions[:1] * 3, rel=0.05)


def test_hidden_labels_take_less_of_the_time_with_more_threads_than_restarts():
    rows = [HistoryRow(0, 1.0, 0.5, 1, 0.0, restart=k) for k in (-1, 0)]
    few, many = (fractions_of(FitPlan.create(10_000, 20, n_threads=n), rows)[-1] for n in (1, 16))
    assert many < few
