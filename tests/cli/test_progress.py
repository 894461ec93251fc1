"""Progress lines."""

import pytest

from transduce.cli import progress
from transduce.history import HistoryRow
from transduce.solvers.cross_fit import N_FOLDS


def test_no_time_left_is_estimated_too_early():
    row = HistoryRow(1, 0.01, 0.4, 12, 1e-3, 2.0)
    assert "left" not in progress.describe(row, 0.04, 2.0)
    assert "about 38 s left" in progress.describe(row, 0.05, 2.0)


def test_fits_with_hidden_labels_are_named_and_counted():
    shown = progress.Progress(n_restarts=1, n_stages=3)
    fractions = []
    for restart in (-1, -2, -3, -4, -5, 0):
        for stage in (1, 2, 3):
            row = HistoryRow(stage, 0.01, 0.4, 12, 1e-3, restart=restart)
            shown.show_round(row)
            fractions.append(shown.fraction_done())
            name = "restart 1" if restart == 0 else f"hidden labels {-restart} of 5"
            assert progress.describe(row, 0.5, 2.0).startswith(f"{name}, ")
    assert fractions == pytest.approx([done / 18 for done in range(1, 19)])


def test_no_hidden_labels_are_waited_for_once_restarts_begin():
    shown = progress.Progress(n_restarts=4, n_stages=3)
    for restart in (-1, -2, 0):
        shown.show_round(HistoryRow(3, 0.01, 0.4, 12, 1e-3, restart=restart))
    cost = 2 * progress.SOFT_HIDDEN_COST
    assert shown.fraction_done() == pytest.approx((cost + 1) / (cost + 4))


def test_fits_with_hidden_labels_are_as_many_as_the_library_runs():
    assert progress.N_HIDDEN == N_FOLDS


def test_stages_of_soft_labels_are_counted_apart():
    shown = progress.Progress(n_restarts=2, n_stages=10, n_soft_stages=30)
    shown.show_round(HistoryRow(10, 0.01, 0.4, 12, 1e-3, restart=0))
    shown.show_round(HistoryRow(15, 0.01, 0.4, 12, 1e-3, restart=1))
    assert shown.fraction_done() == pytest.approx(0.75)
