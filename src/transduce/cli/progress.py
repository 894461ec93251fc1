"""Progress on standard error: a live line on a terminal, plain lines elsewhere, nothing with --quiet."""

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.features.encode import EncodingStatus
    from transduce.history import HistoryRow

SECONDS_BETWEEN_LINES = 2.0
N_HIDDEN = 5
"""Fits that a fifth of the labels is hidden from each, to estimate class sizes and accuracy."""
SOFT_HIDDEN_COST = 0.5
"""Time of such a fit compared with the mean of the paper's annealing and the restarts with soft labels."""
MIN_FRACTION = 0.05
"""No estimate of the time left before this fraction of the work is done."""


class Progress(AbstractContextManager["Progress"]):
    """Messages and progress for a person; a context manager, so that the live line is always removed.

    Set `n_restarts` before the fit: how many there are may depend on the rows.
    """

    def __init__(
        self, *, quiet: bool = False, n_restarts: int = 1, n_stages: int = 10, n_soft_stages: int | None = None
    ) -> None:
        self.quiet = quiet
        self.n_restarts = n_restarts
        self.n_stages, self.n_soft_stages = n_stages, n_soft_stages or n_stages
        self.start = self.last_line = time.perf_counter()
        self.stage_of_restart: dict[int, int] = {}
        self.live: Any = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Progress":
        """Progress of a command with these options."""
        from transduce.solvers.schedule import N_STAGES

        return cls(quiet=options["quiet"], n_soft_stages=N_STAGES + 1)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the live line."""
        if self.live is not None:
            self.live.stop()
            self.live = None

    def say(self, *lines: str) -> None:
        """Print each of these lines, with unprintable characters escaped."""
        from transduce.cli.formats.errors import printable

        for line in () if self.quiet else map(printable, lines):
            if self.live is not None:
                self.live.console.print(line, markup=False, highlight=False)
            else:
                print(line, file=sys.stderr, flush=True)

    def show_round(self, row: "HistoryRow") -> None:
        """Show a row of the history: at once on a terminal, every few seconds elsewhere."""
        if self.quiet:
            return
        self.stage_of_restart[row.restart] = max(self.stage_of_restart.get(row.restart, 0), row.stage)
        now = time.perf_counter()
        fraction = self.fraction_done()
        self._show_line(describe(row, fraction, now - self.start), fraction, now)

    def show_encoding(self, status: "EncodingStatus") -> None:
        """Show how many texts are encoded; the clock of the fit starts when all are."""
        now = time.perf_counter()
        if status.n_done == 0:
            self.start = now
        elif not self.quiet:
            self._show_line(describe_encoding(status, now - self.start), status.fraction, now)
        if status.n_done == status.n_texts:
            self.close()
            self.start = now

    def fraction_done(self) -> float:
        """Fraction of the stages of all restarts, and of the fits with hidden labels before them, that are done."""
        stages, hidden_cost = self.stage_of_restart, SOFT_HIDDEN_COST if self.n_restarts > 1 else 1.0
        latest, started = min(stages, default=0), max(stages, default=-1) >= 0
        n_hidden = 0 if latest >= 0 else -latest if started else max(N_HIDDEN, -latest)
        done = sum(self._fraction_of(restart) for restart in stages if restart >= 0)
        if n_hidden:  # they run one after another
            done += hidden_cost * (-latest if started else -latest - 1 + self._fraction_of(latest))
        return done / (hidden_cost * n_hidden + self.n_restarts)

    def _fraction_of(self, restart: int) -> float:
        n_stages = self.n_soft_stages if restart > 0 else self.n_stages
        return min(self.stage_of_restart[restart] / n_stages, 1.0)

    def _show_line(self, line: str, fraction: float, now: float) -> None:
        """Show a line at once on a terminal, every few seconds elsewhere."""
        if sys.stderr.isatty():
            self._show(line, fraction)
        elif now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(line, file=sys.stderr, flush=True)

    def _show(self, line: str, fraction: float) -> None:
        if self.live is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(bar_width=24), TextColumn("{task.description}", markup=False))
            self.live = Bar(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8)
            self.live.add_task("", total=1.0)
            self.live.start()
        self.live.update(self.live.task_ids[0], completed=fraction, description=line)


def describe(row: "HistoryRow", done: float, elapsed: float) -> str:
    """One line about a row of the history.

    >>> from transduce.history import HistoryRow
    >>> describe(HistoryRow(3, 0.01, 0.4, 1200, 1e-3, 2.0), 0.25, 2.0)
    'restart 1, stage 3, objective 0.4000, 1 200 labels changed, 2 s, about 6 s left'
    """
    restart = f"{row.restart_name} of {N_HIDDEN}" if row.restart < 0 else row.restart_name
    changed = f"{row.n_moved:,} labels changed".replace(",", " ")
    return f"{restart}, stage {row.stage}, objective {row.objective:.4f}, {changed}, {_times(elapsed, done)}"


def describe_encoding(status: "EncodingStatus", elapsed: float) -> str:
    """One line about the texts that are encoded.

    >>> from transduce.features.encode import EncodingStatus
    >>> describe_encoding(EncodingStatus(1200, 22500, 0.1), 12.0)
    'encoded 1 200 of 22 500 texts, 12 s, about 108 s left'
    """
    counts = f"{status.n_done:,} of {status.n_texts:,}".replace(",", " ")
    return f"encoded {counts} texts, {_times(elapsed, status.fraction)}"


def _times(elapsed: float, done: float) -> str:
    left = f", about {elapsed * (1 - done) / done:.0f} s left" if MIN_FRACTION <= done < 1 else ""
    return f"{elapsed:.0f} s{left}"
