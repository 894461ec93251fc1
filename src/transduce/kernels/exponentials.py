"""Exponentials and logarithms that loops over classes compute in vector registers, unlike calls of the C library."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from transduce.kernels import inlined

LN2, LOG2_E = float(np.log(2.0)), float(1.0 / np.log(2.0))
LARGEST = 700.0
"""Arguments of `exp` are cut at this, and at minus this."""
N_BITS, ROOT_HALF = np.int64(52), np.float64(np.sqrt(0.5)).view(np.int64)
"""Bits of the fraction of a number of 64 bits, and the bits of √½."""


def _bits_of(typing_context: Any, x: Any) -> Any:
    """Return the bits of x (float64) as int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _float_of(typing_context: Any, bits: Any) -> Any:
    """Return the float64 that has these bits (int64)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


bits_of: Callable[[Any], Any] = cast(Any, intrinsic(_bits_of))
float_of: Callable[[Any], float] = cast(Any, intrinsic(_float_of))


@inlined
def exp(x: float) -> float:
    """eˣ to eleven digits, for any x in [−700, 700]; the ends of this range stand for what is beyond.

    With n the nearest integer to x / log 2 and r the rest, this is the series of eʳ times 2ⁿ, where n is added to the
    exponent.
    """
    x = min(max(np.float64(x), -LARGEST), LARGEST)
    n = np.rint(x * LOG2_E)
    r = x - n * LN2
    series = 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    return float_of(bits_of(series) + (np.int64(np.int32(n)) << N_BITS))


@inlined
def log(x: float) -> float:
    """Natural logarithm to ten digits, for any x > 0 that is not subnormal.

    With x = 2ᵉ m and m in [√½, √2), this is e log 2 + 2 artanh f for f = (m − 1) / (m + 1).
    """
    bits = bits_of(np.float64(x))
    e = (bits - ROOT_HALF) >> N_BITS
    m = float_of(bits - (e << N_BITS))
    f = (m - 1.0) / (m + 1.0)
    g = f * f
    series = 1.0 / 11.0
    series = series * g + 1.0 / 9.0
    series = series * g + 1.0 / 7.0
    series = series * g + 1.0 / 5.0
    series = series * g + 1.0 / 3.0
    return float(np.float64(np.int32(e)) * LN2 + 2.0 * (f + series * g * f))
