"""Progress on standard error: a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from transduce.features.encode import EncodingStatus
    from transduce.history import HistoryRow

SECONDS_BETWEEN_LINES = 2.0
MAX_SECONDS = 120
"""More time left than this is stated in minutes."""
MIN_FRACTION = 0.1
"""No estimate of the time left before this fraction of the work is done."""


class Plan(Protocol):
    """How much of a fit is done, by its rounds."""

    fraction: float

    def add(self, row: "HistoryRow") -> None:
        """Count a round."""


class Progress(AbstractContextManager["Progress"]):
    """Messages and progress for a person; a context manager, so that the bar is always removed."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.start = self.last_line = time.perf_counter()
        self.plan: Plan | None = None
        self.live: Any = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Progress":
        """Progress of a command with these options."""
        return cls(quiet=options["quiet"])

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar."""
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

    def start_fit(self, plan: Plan) -> None:
        """Start the clock of a fit with this plan."""
        self.plan, self.start = plan, time.perf_counter()
        self._show("Learning", 0.0)

    def show_round(self, row: "HistoryRow") -> None:
        """Show how much of the fit is done after another round."""
        if self.plan is not None:
            self.plan.add(row)
            self._show("Learning", self.plan.fraction)

    def show_encoding(self, status: "EncodingStatus") -> None:
        """Show how many texts are encoded."""
        if status.n_done == 0:
            self.start = time.perf_counter()
        else:
            counts = f"{status.n_done:,} of {status.n_texts:,}".replace(",", " ")
            self._show(f"Encoding {counts} texts", status.fraction)
        if status.n_done == status.n_texts:
            self.close()

    def _show(self, what: str, fraction: float) -> None:
        """Show how much is done: at once on a terminal, every few seconds elsewhere."""
        now = time.perf_counter()
        done = describe(fraction, now - self.start)
        if self.quiet:
            return
        if sys.stderr.isatty():
            self._show_bar(what, fraction, done)
        elif now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(f"{what}: {done}", file=sys.stderr, flush=True)

    def _show_bar(self, what: str, fraction: float, done: str) -> None:
        if self.live is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            before, after = (
                TextColumn("{task.description}", markup=False),
                TextColumn("{task.fields[done]}", markup=False),
            )
            columns = before, BarColumn(bar_width=24), after
            self.live = Bar(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8)
            self.live.add_task(what, total=1.0, done=done)
            self.live.start()
        self.live.update(self.live.task_ids[0], completed=fraction, description=what, done=done)


def describe(fraction: float, elapsed: float) -> str:
    """Per cent done, and the time left after the first tenth.

    >>> describe(0.42, 10.0), describe(0.05, 10.0), describe(0.2, 600.0)
    ('42 %, about 14 s left', '5 %', '20 %, about 40 min left')
    """
    percent = f"{int(100 * fraction)} %"
    if not MIN_FRACTION <= fraction < 1:
        return percent
    left = elapsed * (1 - fraction) / fraction
    return f"{percent}, about {f'{left:.0f} s' if left < MAX_SECONDS else f'{left / 60:.0f} min'} left"
