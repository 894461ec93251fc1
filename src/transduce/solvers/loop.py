"""The loop that runs every solver: it owns the history, the clock, interruption and checkpoints.

A solver is a sequence of stages, each a sequence of rounds. The loop runs the rounds, reports a history row for each,
saves a checkpoint after each stage, and stops at Ctrl-C; see `Loop.run`.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint, CheckpointSlot


class FitContext(NamedTuple):
    """Random generators of the fit and of the fits that labels are hidden from, progress callback, checkpoint."""

    rng: np.random.Generator
    first_rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]
    checkpoint: Checkpoint


class Solver(ABC):
    """A method that the loop can run."""

    @abstractmethod
    def start(self) -> FitResult:
        """Return the result before the first round."""

    @abstractmethod
    def stages(self, result: FitResult) -> Iterator[Iterable[HistoryRow]]:
        """Generate the stages that remain, each an iterable that runs a round for each row and updates the result."""

    @abstractmethod
    def finish(self, result: FitResult) -> None:
        """Complete the result after the last round, or after the last one before an interruption."""

    def resume(self, slot: CheckpointSlot, result: FitResult) -> None:  # noqa: B027 -- not all have checkpoints
        """Continue after the stage in the slot, if there is one."""

    def save(self, slot: CheckpointSlot, result: FitResult) -> None:  # noqa: B027
        """Save the stage that was just completed."""


class CatchInterrupt(AbstractContextManager["CatchInterrupt"]):
    """Turn KeyboardInterrupt into a flag, for code whose caller has a result to keep."""

    happened = False

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        self.happened = isinstance(error, KeyboardInterrupt)
        return self.happened


@dataclass(eq=False)
class Loop:
    """Runs the restarts of one fit, one after another or in threads; `on_round` is called with every history row."""

    on_round: Callable[[HistoryRow], None] = lambda row: None
    started: float = field(default_factory=lambda: time.perf_counter())
    histories: dict[int, list[HistoryRow]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, solver: Solver, slot: CheckpointSlot | None = None, restart: int = 0) -> FitResult:
        """Run a solver; if interrupted before it has any result, raise KeyboardInterrupt."""
        slot = CheckpointSlot() if slot is None else slot
        result, history = solver.start(), slot.reported
        with self.lock:  # another restart may be reading them
            self.histories[restart] = history
        with CatchInterrupt() as interruption:
            solver.resume(slot, result)
            for stage in solver.stages(result):
                for row in stage:
                    self._report(replace(row, restart=restart), history)
                solver.save(slot, result)
        if interruption.happened:
            self.stopped.set()
            result.status = FitStatus.INTERRUPTED
            if not np.isfinite(result.objective):
                raise KeyboardInterrupt
        try:
            solver.finish(result)
        except Exception as error:
            if interruption.happened:  # so that nothing starts again after Ctrl-C, as a fit on a cluster may
                raise KeyboardInterrupt from error
            raise
        result.history = history
        return result

    def run_all(self, run_one: Callable[[int], None], n_restarts: int, n_threads: int) -> bool:
        """Run the restarts until one is interrupted, in this thread if n_threads is 1; return whether one was.

        The first restart always runs its first round, so that there is a result to keep.
        """
        with CatchInterrupt() as interruption:
            if n_threads == 1:
                for restart in range(n_restarts):
                    if restart == 0 or not self.stopped.is_set():
                        run_one(restart)
            else:
                self._in_threads(run_one, n_restarts, n_threads)
        return interruption.happened or self.stopped.is_set()

    def _in_threads(self, run_one: Callable[[int], None], n_restarts: int, n_threads: int) -> None:
        pool, all_started = ThreadPoolExecutor(n_threads), threading.Event()

        def run_when_all_started(restart: int) -> None:
            all_started.wait()  # Ctrl-C while the pool starts a thread would leave that thread running
            if restart == 0 or not self.stopped.is_set():
                run_one(restart)

        try:
            futures = [pool.submit(run_when_all_started, restart) for restart in range(n_restarts)]
            all_started.set()
            for future in futures:
                future.result()
        except BaseException:
            self.stopped.set()
            raise
        finally:
            all_started.set()
            pool.shutdown(cancel_futures=True)

    def _report(self, row: HistoryRow, history: list[HistoryRow]) -> None:
        """Add the time to a row, append it to the history and report it; stop if another restart was interrupted."""
        with self.lock:
            now = time.perf_counter()
            last = max((rows[-1].seconds for rows in self.histories.values() if rows), default=0.0)
            self.started = min(self.started, now - last)  # the clock continues after the rounds of a checkpoint
            row = replace(row, seconds=max(now - self.started, last))
            history.append(row)
            if self.stopped.is_set():
                raise KeyboardInterrupt
            self.on_round(row)
