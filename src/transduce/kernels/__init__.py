"""The one decorator that compiles every kernel: plain functions over arrays, cached on disk, no Python objects inside.

A kernel never imports from the rest of the package, never allocates what its caller could hand it, and never modifies
an input that its header does not name as an output.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` on its first call and keep the machine code for later processes.

    Comparisons may be reordered as if NaN did not exist, which lets minima run in vector registers; infinities keep
    their meaning. NaN is refused at the door, before any kernel but the one that looks for it.

    >>> from transduce.label_step._kernels.passes import choose_labels
    >>> type(choose_labels).__name__
    'CPUDispatcher'
    """
    return _compiled(function, fastmath={"nnan", "nsz"})


def strict_kernel(function: Kernel) -> Kernel:
    """Compile like `kernel`, for the few functions that must see NaN.

    >>> import numpy as np
    >>> from transduce.label_step._kernels.passes import first_bad_row
    >>> first_bad_row(np.array([[0.0, 1.0], [np.nan, 1.0]]))
    (1, 1)
    """
    return _compiled(function, fastmath=False)


def _compiled(function: Kernel, fastmath: set[str] | bool) -> Kernel:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # nowhere to keep the machine code: neither the package nor the user's cache can be written
        return cast(Kernel, numba.njit(**options)(function))
