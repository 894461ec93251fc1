"""Progress lines."""

from transduce.cli import progress
from transduce.history import HistoryRow


def test_no_time_left_is_estimated_too_early():
    row = HistoryRow(1, 0.01, 0.4, 12, 1e-3, 2.0)
    assert "left" not in progress.describe(row, 0.04, 2.0)
    assert "about 38 s left" in progress.describe(row, 0.05, 2.0)


def test_first_fit_is_named_and_counts_as_one_more_restart():
    shown = progress.Progress(n_restarts=2, n_stages=3)
    fractions = []
    for restart in (-1, 0, 1):
        for stage in (1, 2, 3):
            row = HistoryRow(stage, 0.01, 0.4, 12, 1e-3, restart=restart)
            shown.show_round(row)
            fractions.append(shown.fraction_done())
            name = ("first fit", "restart 1", "restart 2")[restart + 1]
            assert progress.describe(row, 0.5, 2.0).startswith(f"{name}, ")
    assert fractions == [done / 9 for done in range(1, 10)]
