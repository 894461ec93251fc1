"""Types of arrays in signatures, and arrays of objects."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def object_array(items: list[Any]) -> Array:
    """Return an array (n,) of these objects, even if they are sequences."""
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values
