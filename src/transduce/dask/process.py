"""What the process of a worker does otherwise while a fit lasts.

It leaves Ctrl-C to the driver, has one BLAS thread, and keeps freed memory. (Workers are started so that this goes back
to the system at once; then each array that a fit makes again and again is given new pages, which costs as much as a
pass over it.)
"""

import ctypes
import os
import signal
import sys
import threading
from contextlib import ExitStack
from typing import Any

from transduce.threads import one_blas_thread

TRIM, MAP = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
OPTIONS = {TRIM: -1, MAP: -3}
"""Settings of the allocator by the names they have in the environment, and as it knows them (malloc.h)."""
OWN = 1 << 17
"""Bytes that the allocator takes for each of them where nothing else is set."""
KEPT = 1 << 30
"""Freed bytes that are kept, and size of an array from which on it is given pages of its own."""

_handlers: list[Any] = []
_limits: list[ExitStack] = []


def begin(dask_worker: Any) -> None:
    """A fit begins. A worker that a nanny looks after may share the terminal of the driver."""
    if getattr(dask_worker, "nanny", None) and _is_main_thread() and not _handlers:
        _handlers.append(signal.signal(signal.SIGINT, signal.SIG_IGN))
    if not _limits:  # to look for the libraries takes milliseconds, as much as a short visit
        _limits.append(ExitStack())
        _limits[0].enter_context(one_blas_thread())
    _set(dict.fromkeys(OPTIONS, KEPT))


def end() -> None:
    """The last fit has ended; freed memory goes back to the system."""
    if _handlers and _is_main_thread():
        signal.signal(signal.SIGINT, _handlers.pop())
    if _limits:
        _limits.pop().close()
    if _set({name: int(os.environ.get(name, OWN)) for name in OPTIONS}):
        ctypes.CDLL(None).malloc_trim(0)


def _set(sizes: dict[str, int]) -> bool:
    """Change settings of the allocator, if it is one that has them, and was started with one of them set.

    Otherwise it finds good ones by itself, until they are set.
    """
    if not sys.platform.startswith("linux") or TRIM not in os.environ:
        return False
    library = ctypes.CDLL(None)
    if not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        return False
    for name, size in sizes.items():
        library.mallopt(OPTIONS[name], size)
    return True


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
