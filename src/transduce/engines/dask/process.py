"""What the process of a worker that a nanny looks after does otherwise while a fit lasts.

It leaves Ctrl-C to the driver, whose terminal it may share, and has one BLAS thread. And its allocator keeps freed
memory as those of other processes learn to do: a nanny starts workers so that all goes back to the system at once, and
then each array that a fit makes again and again is given new pages, which costs as much as a pass over it.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any

from transduce.parallel import one_blas_thread

TRIM, MAP = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
OPTIONS = {TRIM: -1, MAP: -3}
"""Settings of the allocator by the names they have in the environment, and as it knows them (malloc.h)."""
LEARNED = {TRIM: 1 << 26, MAP: 1 << 25}
"""What the allocator of glibc goes up to where it finds them by itself."""
FIRST = 1 << 17
"""What it begins with, for both."""
FULL, OFTEN = 0.6, 5.0
"""Share of a worker's memory from which on freed memory goes back after all, and seconds between two such times."""

_undo = contextlib.ExitStack()
_is_under_way = False
_eased = -OFTEN


def begin(dask_worker: Any) -> None:
    """A fit begins."""
    global _is_under_way
    if _is_under_way or not getattr(dask_worker, "nanny", None):
        return
    _is_under_way = True
    if threading.current_thread() is threading.main_thread():
        _undo.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
    _undo.enter_context(one_blas_thread())  # to look for the libraries takes milliseconds, as much as a short visit
    if TRIM in os.environ and set_allocator(LEARNED):
        _undo.callback(_give_back, {name: _number(os.environ.get(name)) for name in OPTIONS})


def ease(dask_worker: Any) -> None:
    """Give freed memory back where the worker, which is paused when it has too much, has not much left."""
    global _eased
    limit = getattr(getattr(dask_worker, "memory_manager", None), "memory_limit", None)
    if not _is_under_way or not limit or time.monotonic() - _eased < OFTEN:
        return
    if dask_worker.monitor.get_process_memory() > FULL * limit and set_allocator({}):
        _eased = time.monotonic()
        ctypes.CDLL(None).malloc_trim(0)


def end() -> None:
    """The last fit has ended."""
    global _is_under_way
    _undo.close()
    _is_under_way = False


def set_allocator(sizes: dict[str, int]) -> bool:
    """Change these settings of the allocator; says whether it is one that has them."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        return False
    return all(library.mallopt(OPTIONS[name], size) for name, size in sizes.items())


def _give_back(sizes: dict[str, int]) -> None:
    set_allocator(sizes)
    ctypes.CDLL(None).malloc_trim(0)


def _number(setting: str | None) -> int:
    return min(int(setting), 2**31 - 1) if setting and setting.isdecimal() else FIRST
