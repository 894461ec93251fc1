"""The loop that runs every solver: it owns the history, the clock, interruption and checkpoints.

A solver is a sequence of stages, each a sequence of rounds. The loop runs the rounds, reports a history row for each,
saves a checkpoint after each stage, and stops at Ctrl-C:

    result = solver.start()
    solver.resume(slot, result)             a stage that was saved, if there is one
    for stage in solver.stages(result):
        for row in stage:                   one round each; the solver keeps `result` up to date
            report row
        solver.save(slot, result)
    solver.finish(result)
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint, CheckpointSlot


class FitContext(NamedTuple):
    """Random generators of the fit and of the first fit that estimates class sizes, progress callback, checkpoint."""

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
        """Generate the stages that remain, each an iterable that runs one round for each history row."""

    @abstractmethod
    def finish(self, result: FitResult) -> None:
        """Complete the result after the last round, or after the last one before an interruption."""

    def resume(self, slot: CheckpointSlot, result: FitResult) -> None:  # noqa: B027 -- not all have checkpoints
        """Continue after the stage in the slot, if there is one."""

    def save(self, slot: CheckpointSlot, result: FitResult) -> None:  # noqa: B027
        """Save the stage that was just completed."""


@dataclass
class Interruption:
    """Whether Ctrl-C was pressed."""

    happened: bool = False


@contextmanager
def catch_interrupt() -> Iterator[Interruption]:
    """Turn KeyboardInterrupt into a flag, for code whose caller has a result to keep."""
    interruption = Interruption()
    try:
        yield interruption
    except KeyboardInterrupt:
        interruption.happened = True


@dataclass(eq=False)
class Loop:
    """Runs the restarts of one fit, one after another or in threads; `on_round` is called with every history row."""

    on_round: Callable[[HistoryRow], None] = lambda row: None
    started: float = field(default_factory=time.perf_counter)
    histories: dict[int, list[HistoryRow]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, solver: Solver, slot: CheckpointSlot | None = None, restart: int = 0) -> FitResult:
        """Run a solver; if interrupted before it has any result, raise KeyboardInterrupt."""
        slot = CheckpointSlot() if slot is None else slot
        result, history = solver.start(), slot.reported
        self.histories[restart] = history
        with catch_interrupt() as interruption:
            solver.resume(slot, result)
            for stage in solver.stages(result):
                for row in stage:
                    self._report(replace(row, restart=restart), history)
                solver.save(slot, result)
        if interruption.happened:
            result.status = FitStatus.INTERRUPTED
            if not np.isfinite(result.objective):
                raise KeyboardInterrupt
        solver.finish(result)
        result.history = history
        return result

    def run_all(self, run_one: Callable[[int], None], n_restarts: int, n_threads: int) -> bool:
        """Call run_one(restart) for each restart, in this thread if there is one; return whether it was interrupted."""
        with catch_interrupt() as interruption:
            if n_threads == 1:
                for restart in range(n_restarts):
                    run_one(restart)
            else:
                self._in_threads(run_one, n_restarts, n_threads)
        return interruption.happened or self.stopped.is_set()

    def _in_threads(self, run_one: Callable[[int], None], n_restarts: int, n_threads: int) -> None:
        pool, all_started = ThreadPoolExecutor(n_threads), threading.Event()

        def run_when_all_started(restart: int) -> None:
            all_started.wait()  # Ctrl-C while the pool starts a thread would leave that thread running
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
            row = replace(row, seconds=self._seconds())
            history.append(row)
            if self.stopped.is_set():
                raise KeyboardInterrupt
            self.on_round(row)

    def _seconds(self) -> float:
        """Seconds since the start, continuing after the rounds of a checkpoint."""
        seconds = time.perf_counter() - self.started
        lag = max((rows[-1].seconds for rows in self.histories.values() if rows), default=0.0) - seconds
        if lag > 0.0:
            self.started -= lag
        return seconds + max(lag, 0.0)
