"""Progress lines."""

from transduce.cli import progress
from transduce.history import HistoryRow


def test_no_time_left_is_estimated_too_early():
    row = HistoryRow(1, 0.01, 0.4, 12, 1e-3, 2.0)
    assert "left" not in progress.describe(row, 0.04, 2.0)
    assert "about 38 s left" in progress.describe(row, 0.05, 2.0)
