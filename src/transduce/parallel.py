"""Threads over blocks of rows, and a limit on BLAS threads while a fit runs.

Blocks have a fixed size and results come back in their order, so that nothing depends on the number of threads.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from transduce.arrays import FloatArray

Block = TypeVar("Block")
Result = TypeVar("Result")

BLOCKS_AHEAD = 2
"""Blocks per thread that may be running, or finished and waiting for earlier ones."""

_lock = threading.Lock()
_running_fits: list[Any] = []
"""For each fit the limit on BLAS threads, the same for all that overlap."""


class Threads:
    """A parallel-for over blocks of rows; with one thread, or one block, it runs in the caller's thread.

    >>> with Threads(2) as threads:
    ...     threads.each(lambda rows: rows.stop - rows.start, row_blocks(10, 4))
    [4, 4, 2]
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._executor: ThreadPoolExecutor | None = None
        self._local = threading.local()

    def __reduce__(self) -> tuple[type["Threads"], tuple[int]]:
        return Threads, (self.n_threads,)

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    @classmethod
    def of(cls, threads: "int | Threads") -> "Threads":
        """These threads, or new ones, of this number."""
        return threads if isinstance(threads, Threads) else cls(threads)

    def each(self, function: Callable[[Block], Result], blocks: Sequence[Block]) -> list[Result]:
        """Return the results of all blocks, in order.

        The caller's thread works too, and a thread takes the next block itself: handing over each block would take as
        long as many of them. After an error, in any thread, no block is begun, and those that are running end first.
        """
        n_threads = min(self.n_threads, len(blocks))
        if n_threads <= 1:
            return list(map(function, blocks))
        results: dict[int, Result] = {}
        left = deque(range(len(blocks)))

        def work() -> None:
            try:
                while (place := _taken(left)) is not None:
                    results[place] = function(blocks[place])
            finally:
                left.clear()

        executor, helpers = self._started(), list[Future[None]]()
        try:
            for _ in range(n_threads - 1):
                helpers.append(executor.submit(work))  # one after another, so that Ctrl-C between two finds the first
            work()
        finally:
            left.clear()
            begun = [helper for helper in helpers if not helper.cancel()]
            _wait_in_any_case(begun)
        for helper in begun:
            helper.result()
        return [results[place] for place in range(len(blocks))]

    def map(self, function: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[Result]:
        """Yield the result of each block, in order, with a bounded number of blocks in flight."""
        n_ahead = BLOCKS_AHEAD * self.n_threads
        if len(blocks) <= n_ahead:
            yield from self.each(function, blocks)
            return
        if self.n_threads <= 1:
            yield from map(function, blocks)
            return
        executor, in_flight = self._started(), deque[Future[Result]]()
        for block in blocks:
            if len(in_flight) == n_ahead:
                yield in_flight.popleft().result()
            in_flight.append(executor.submit(function, block))
        while in_flight:
            yield in_flight.popleft().result()

    def _started(self) -> ThreadPoolExecutor:
        self._executor = self._executor or ThreadPoolExecutor(self.n_threads)
        return self._executor

    def scratch(self, n_arrays: int, n_cells: int) -> list[FloatArray]:
        """Return uninitialised arrays of at least `n_cells`; each thread gets its own ones again and again.

        Fresh memory would be cleared by the operating system every time, for one thread after the other.
        """
        arrays: list[FloatArray] = self._local.__dict__.setdefault("arrays", [])
        if len(arrays) < n_arrays or arrays[0].size < n_cells:
            arrays[:] = [np.empty(n_cells) for _ in range(n_arrays)]
        return arrays[:n_arrays]


def _taken(places: deque[int]) -> int | None:
    """Take the next place in one step, so that no two threads get the same; None if there is none."""
    try:
        return places.popleft()
    except IndexError:
        return None


def _wait_in_any_case(futures: list[Future[None]]) -> None:
    """Wait until all have ended, even after Ctrl-C, which is raised then: they may be writing to arrays."""
    try:
        wait(futures)
    except KeyboardInterrupt:
        _wait_in_any_case(futures)
        raise


def row_blocks(n_rows: int, rows_per_block: int, start: int = 0) -> list[slice]:
    """Cut rows `start` to `n_rows` into blocks of a fixed number of rows."""
    return [slice(first, min(first + rows_per_block, n_rows)) for first in range(start, n_rows, rows_per_block)]


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads to use: every available core for None, and negative numbers count from the end."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n_jobs = -1 if n_jobs is None else n_jobs
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last of overlapping fits ends: the products here are too small for more."""
    with _lock:
        limit = _running_fits[0] if _running_fits else threadpool_limits(1, user_api="blas")
        _running_fits.append(limit)
    try:
        yield
    finally:
        with _lock:
            _running_fits.pop()
            if not _running_fits:
                limit.restore_original_limits()
