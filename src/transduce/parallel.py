"""One BLAS thread while any fit runs: its threads wait for one another on products as small as ours."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

_lock = threading.Lock()
_fits: list[Any] = []
"""Fits that run now; the first of them set the limit, and the last to leave takes it away."""
_limits: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last of overlapping fits is over.

    >>> with one_blas_thread():
    ...     pass
    """
    with _lock:
        if not _fits:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _fits.append(None)
    try:
        yield
    finally:
        with _lock:
            _fits.pop()
            if not _fits:
                _limits.pop().restore_original_limits()
