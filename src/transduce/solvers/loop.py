"""The loop that runs every solver: it owns the history, the clock, interruption and checkpoints.

A solver is a sequence of stages, each a sequence of rounds. The loop runs the rounds, reports a history row for each,
saves a checkpoint after each stage, and stops at Ctrl-C; see `Loop.run`. Threads take turns at restarts (`Turns`).
"""

import inspect
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint, CheckpointSlot

Rounds: TypeAlias = Generator[HistoryRow, None, FitResult]
"""Rounds of a solver, one at a time; its result follows the last."""
Job: TypeAlias = Generator[Any, None, None]
"""Work that is done in pieces, one whenever it is asked for the next value."""


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


class Turns:
    """Jobs that threads take turns at: a free thread does a piece of the job that has had the least time so far.

    So threads have work until the last piece, whatever a job takes. Jobs begin in their order, and no more than one for
    each thread, and another one that waits, are begun and not ended.
    """

    def __init__(self, jobs: list[Job], n_threads: int, stopped: threading.Event) -> None:
        self.jobs, self.stopped, self.n_at_once = jobs, stopped, n_threads + (n_threads > 1)
        self.seconds: dict[int, float] = {}
        """Time that each job which has begun and not ended has had."""
        self._waiting: list[int] = []
        self._n_begun, self._lock = 0, threading.Lock()

    def work(self) -> None:
        """Do pieces until no job waits, or all are to stop."""
        while not self.stopped.is_set() and (number := self._next()) is not None:
            started = time.monotonic()
            try:
                next(self.jobs[number])
            except StopIteration:
                with self._lock:
                    del self.seconds[number]
            else:
                with self._lock:
                    self.seconds[number] += time.monotonic() - started
                    self._waiting.append(number)

    def _next(self) -> int | None:
        with self._lock:
            if self._n_begun < len(self.jobs) and len(self.seconds) < self.n_at_once:
                self.seconds[self._n_begun] = 0.0
                self._n_begun += 1
                return self._n_begun - 1
            if not self._waiting:
                return None
            number = min(self._waiting, key=lambda one: (self.seconds[one], one))
            self._waiting.remove(number)
            return number

    def interrupt(self) -> None:
        """Interrupt all jobs that have begun, while no thread is at work; the first one begins in any case."""
        for number, job in enumerate(self.jobs):
            with suppress(StopIteration, KeyboardInterrupt):
                if number in self.seconds:
                    job.throw(KeyboardInterrupt)
                elif number == 0 == self._n_begun:
                    next(job)


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
        rounds = self.rounds(solver, slot, restart)
        try:
            try:
                while True:
                    next(rounds)
            except KeyboardInterrupt:
                if inspect.getgeneratorstate(rounds) == inspect.GEN_CLOSED:  # the solver has no result
                    raise
                rounds.throw(KeyboardInterrupt)  # it came between two rounds
        except StopIteration as end:
            result: FitResult = end.value
        return result

    def rounds(self, solver: Solver, slot: CheckpointSlot | None = None, restart: int = 0) -> Rounds:
        """Generate the rounds of a solver; see `run`."""
        slot = CheckpointSlot() if slot is None else slot
        result, history = solver.start(), slot.reported
        with self.lock:  # another restart may be reading them
            self.histories[restart] = history
        with CatchInterrupt() as interruption:
            solver.resume(slot, result)
            for stage in solver.stages(result):
                for row in stage:
                    yield self._report(replace(row, restart=restart), history)
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

    def run_all(self, run_one: Callable[[int], Job], n_restarts: int, n_threads: int) -> bool:
        """Run the restarts until one is interrupted, in this thread if n_threads is 1; return whether one was.

        The first restart always runs its first round, so that there is a result to keep.
        """
        turns = Turns([run_one(restart) for restart in range(n_restarts)], n_threads, self.stopped)
        with CatchInterrupt() as interruption:
            if n_threads == 1:
                turns.work()
            else:
                self._in_threads(turns, n_threads)
        if interruption.happened or self.stopped.is_set():
            self.stopped.set()
            turns.interrupt()
            return True
        return False

    def _in_threads(self, turns: Turns, n_threads: int) -> None:
        pool, all_started = ThreadPoolExecutor(n_threads), threading.Event()

        def work_when_all_started(_: int) -> None:
            all_started.wait()  # Ctrl-C while the pool starts a thread would leave that thread running
            turns.work()

        try:
            futures = [pool.submit(work_when_all_started, number) for number in range(n_threads)]
            all_started.set()
            for future in futures:
                future.result()
        except BaseException:
            self.stopped.set()
            raise
        finally:
            all_started.set()
            pool.shutdown(cancel_futures=True)

    def _report(self, row: HistoryRow, history: list[HistoryRow]) -> HistoryRow:
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
        return row
