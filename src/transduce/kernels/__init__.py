"""Numba decorators for kernels: plain functions over arrays, compiled on first use and cached on disk.

Kernels change only the arguments that their docstrings name as outputs. Those that make arrays, as scratch space, are
`allocating` ones.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Kernel = TypeVar("Kernel", bound=Callable[..., object])

CAN_LEAVE_COUNTS = hasattr(DefaultOptions, "_nrt")
"""Whether this numba can compile functions that count no references; results are the same if it cannot."""
NO_NAN = frozenset({"nnan", "nsz"})
ANY_ORDER = NO_NAN | {"reassoc", "contract"}
"""What the compiler may assume: there is no NaN and no sign of zero; and sums may be added in any order."""


def kernel(function: Kernel) -> Kernel:
    """Compile a function that never sees NaN, which lets minima run in vector registers; infinities are respected.

    It makes no arrays. So references are not counted: threads that count those of the same array, at every view of a
    row and every call, would wait for each other.
    """
    return _compiled(function, NO_NAN, counts=False)


def reduction(function: Kernel) -> Kernel:
    """Compile a kernel whose sums may be added in any order, which lets them run in vector registers."""
    return _compiled(function, ANY_ORDER, counts=False)


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile a kernel that makes arrays."""
    return _compiled(function, NO_NAN, counts=True)


def allocating_reduction(function: Kernel) -> Kernel:
    """Compile a reduction that makes arrays."""
    return _compiled(function, ANY_ORDER, counts=True)


def _compiled(function: Kernel, fastmath: frozenset[str], counts: bool) -> Kernel:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
    if CAN_LEAVE_COUNTS:
        options["_nrt"] = counts
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache folder is writable
        return cast(Kernel, numba.njit(**options)(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a short function into the innermost loops of the kernels that call it."""
    return cast(Kernel, numba.njit(inline="always")(function))
