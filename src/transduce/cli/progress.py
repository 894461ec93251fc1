"""What a person sees while it works, on standard error: a live line, plain lines if it is no terminal, or nothing."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from transduce.history import HistoryRow

SECONDS_BETWEEN_LINES = 2.0
"""How often a plain line tells of the rounds."""
LEAST_DONE = 0.05
"""Before so much is done, the time left is anybody's guess."""


class Listener(Protocol):
    """Who hears of the work."""

    def say(self, sentence: str) -> None:
        """Tell a finished step or an assumption."""

    def round(self, row: "HistoryRow") -> None:
        """Tell a round of the fit."""


class Progress:
    """A listener for a person; a context manager, so that a live line is always taken away again."""

    def __init__(self, *, quiet: bool = False, n_restarts: int = 1, n_stages: int = 10) -> None:
        self.quiet = quiet
        self.n_restarts = n_restarts
        self.n_stages = n_stages
        self.begin = time.perf_counter()
        self.told = self.begin
        self.stage_of_way: dict[int, int] = {}
        self.live: Any = None
        self.task: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the live line away."""
        if self.live is not None:
            self.live.stop()
            self.live = None

    def say(self, sentence: str) -> None:
        """Tell a finished step or an assumption, on a line of its own."""
        if self.quiet:
            return
        if self.live is not None:
            self.live.console.print(sentence, markup=False, highlight=False)
        else:
            print(sentence, file=sys.stderr, flush=True)

    def round(self, row: "HistoryRow") -> None:
        """Tell a round of the fit: at once on a terminal, now and then elsewhere."""
        if self.quiet:
            return
        self.stage_of_way[row.restart] = max(self.stage_of_way.get(row.restart, 0), row.stage)
        line = describe(row, self.share_done(), time.perf_counter() - self.begin)
        if sys.stderr.isatty():
            self._show(line)
        elif time.perf_counter() - self.told >= SECONDS_BETWEEN_LINES:
            self.told = time.perf_counter()
            print(line, file=sys.stderr, flush=True)

    def share_done(self) -> float:
        """Share of all stages of all ways that are behind us."""
        behind = sum(min(stage, self.n_stages) for stage in self.stage_of_way.values())
        return behind / (self.n_stages * self.n_restarts)

    def _show(self, line: str) -> None:
        if self.live is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(bar_width=24), TextColumn("{task.description}", markup=False))
            self.live = Bar(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8)
            self.task = self.live.add_task("", total=1.0)
            self.live.start()
        self.live.update(self.task, completed=self.share_done(), description=line)


def describe(row: "HistoryRow", done: float, elapsed: float) -> str:
    """One line on a round.

    >>> from transduce.history import HistoryRow
    >>> describe(HistoryRow(3, 0.01, 0.4, 1200, 1e-3, 2.0), 0.25, 2.0)
    'stage 3, objective 0.4000, 1 200 labels moved, 2 s, about 6 s left'
    """
    restart = f"restart {row.restart + 1}, " if row.restart else ""
    left = f", about {elapsed * (1 - done) / done:.0f} s left" if LEAST_DONE <= done < 1 else ""
    moved = f"{row.n_moved:,}".replace(",", " ")
    return f"{restart}stage {row.stage}, objective {row.objective:.4f}, {moved} labels moved, {elapsed:.0f} s{left}"
