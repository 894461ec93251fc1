"""Numba decorators for kernels: plain functions over arrays, compiled on first use and cached on disk.

Kernels allocate only scratch space, and change only the arguments that their docstrings name as outputs.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile a function that never sees NaN, which lets minima run in vector registers; infinities are respected."""
    return _compiled(function, {"nnan", "nsz"})


def reduction(function: Kernel) -> Kernel:
    """Compile a kernel whose sums may be added in any order, which lets them run in vector registers."""
    return _compiled(function, {"nnan", "nsz", "reassoc", "contract"})


def _compiled(function: Kernel, fastmath: set[str]) -> Kernel:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache folder is writable
        return cast(Kernel, numba.njit(**options)(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a short function into the innermost loops of the kernels that call it."""
    return cast(Kernel, numba.njit(inline="always")(function))
