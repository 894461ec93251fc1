"""Rows in stretches of a fixed number, for one thread or many: what they give comes in their order, whoever made it."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import local
from types import TracebackType
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Result = TypeVar("Result")

BLOCK = 1 << 18
"""Cells worked on at a time: so few that they stay in the cache, so many that threads need Python rarely."""
STRETCH = 1 << 19
"""Cells that a thread is given at a time."""
LONGEST = 1 << 11
"""Rows up to which a stretch has one for each class, if there are many: sums of products are not worth it for less."""
AHEAD = 2
"""Stretches for each thread that may be under way, or done and waiting for those before them."""


class Threads:
    """Threads that work through stretches of rows; with one thread, or one stretch, there is but the caller's.

    >>> with Threads(2) as threads:
    ...     list(threads.each(lambda rows: rows.stop - rows.start, 600_000, 1))
    [524288, 75712]
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        self._own = local()

    def __enter__(self) -> "Threads":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def room(self, n_arrays: int, stretch: slice, n_classes: int) -> list[FloatArray]:
        """Arrays for the cells of the longest block of a stretch, not filled in; a thread gets the same ones again.

        New memory would have to be cleared by the system each time, for one thread after the other.
        """
        n_cells = n_classes * min(stretch.stop - stretch.start, _rows_per_block(n_classes))
        kept: list[FloatArray] = self._own.__dict__.setdefault("arrays", [])
        if len(kept) < n_arrays or kept[0].size < n_cells:
            kept[:] = [np.empty(n_cells) for _ in range(n_arrays)]
        return kept[:n_arrays]

    def each(self, function: Callable[[slice], Result], n_rows: int, n_classes: int) -> Iterator[Result]:
        """What the function makes of each stretch, in their order."""
        pieces = _stretches(n_rows, n_classes)
        if self.n_threads <= 1 or len(pieces) == 1:
            yield from map(function, pieces)
            return
        self._pool = self._pool or ThreadPoolExecutor(self.n_threads)
        under_way: deque[Future[Result]] = deque()
        for piece in pieces:
            if len(under_way) == AHEAD * self.n_threads:
                yield under_way.popleft().result()
            under_way.append(self._pool.submit(function, piece))
        while under_way:
            yield under_way.popleft().result()


def blocks(stretch: slice, n_classes: int) -> Iterator[slice]:
    """Cut a stretch into what is worked on at a time."""
    length = _rows_per_block(n_classes)
    for begin in range(stretch.start, stretch.stop, length):
        yield slice(begin, min(begin + length, stretch.stop))


def _rows_per_block(n_classes: int) -> int:
    return max(1, BLOCK // n_classes)


def _stretches(n_rows: int, n_classes: int) -> list[slice]:
    length = max(1, STRETCH // n_classes, min(n_classes, LONGEST))
    return [slice(begin, min(begin + length, n_rows)) for begin in range(0, n_rows, length)]
