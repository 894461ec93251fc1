"""Progress as people see it: a bar on a terminal, lines elsewhere, per cent and the time left."""

import io
import sys

import pytest

from transduce.cli import progress
from transduce.features.encode import EncodingStatus
from transduce.history import HistoryRow
from transduce.solvers.plan import FitPlan


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock whose seconds the test sets."""
    seconds = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: seconds[0])
    return seconds


def hidden_fit(k):
    """The first round and the last two of the fit with hidden labels k."""
    return [HistoryRow(stage, 1.0, 0.4, 0, 1e-3, restart=-k) for stage in (0, 9, 9)]


def learn(shown, clock):
    """Fits with hidden labels of ten seconds each."""
    shown.start_fit(FitPlan.create(1000, 5, "paper"))
    for k in range(1, 6):
        for row, seconds in zip(hidden_fit(k), (1.0, 8.0, 1.0), strict=True):
            clock[0] += seconds
            shown.show_round(row)


def test_no_time_left_is_estimated_before_a_tenth_is_done():
    assert progress.describe(0.09, 2.0) == "9 %"
    assert progress.describe(0.1, 2.0) == "10 %, about 18 s left"


def test_100_per_cent_is_the_end():
    assert progress.describe(0.999, 100.0) == "99 %, about 0 s left"
    assert progress.describe(1.0, 100.0) == "100 %"


def test_much_time_left_is_in_minutes():
    assert progress.describe(0.5, 119.0) == "50 %, about 119 s left"
    assert progress.describe(0.5, 120.0) == "50 %, about 2 min left"


def test_lines_have_per_cent_and_time_left_and_no_jargon(clock, capsys):
    learn(progress.Progress(), clock)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9  # not more than one in two seconds
    assert all(line.startswith("Learning: ") and line.endswith(" s left") for line in lines)
    for word in ("restart", "stage", "objective", "hidden", "round"):
        assert word not in "".join(lines)


def test_a_bar_is_shown_on_a_terminal_and_removed(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress.Progress() as shown:
        learn(shown, clock)
        (task,) = shown.live.tasks
        assert task.description == "Learning"
        assert task.completed == shown.plan.fraction > 0.5
        assert task.fields["done"].endswith(" s left")
    assert shown.live is None
    assert "Learning" in sys.stderr.getvalue()


def test_encoding_has_its_own_words_and_clock(clock, capsys):
    shown = progress.Progress()
    clock[0] = 50.0
    shown.show_encoding(EncodingStatus(0, 22_500, 0.0))
    clock[0] = 62.0
    shown.show_encoding(EncodingStatus(1200, 22_500, 0.1))
    assert capsys.readouterr().err == "Encoding 1 200 of 22 500 texts: 10 %, about 108 s left\n"


def test_the_clock_of_the_fit_starts_with_the_fit(clock, capsys):
    shown = progress.Progress()
    clock[0] = 1000.0
    learn(shown, clock)
    assert "min left" not in capsys.readouterr().err


def test_nothing_is_shown_with_quiet(clock, capsys):
    shown = progress.Progress(quiet=True)
    learn(shown, clock)
    shown.show_encoding(EncodingStatus(1200, 22_500, 0.1))
    assert capsys.readouterr().err == ""
