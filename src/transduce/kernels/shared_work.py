"""Work that threads share inside a kernel: each takes the next piece until none is left, and waits for the others.

All threads run the same kernel with the same array of counters. No thread waits for another one that has not started a
piece, so the work ends even if only one of them ever runs.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from transduce.kernels import Array, kernel

LINE = 8
"""Whole numbers in a cache line: each counter has a line of its own, so that threads at one do not slow others."""
PADDING = 32
"""Numbers after the scratch space of a thread, so that no two threads write to the same cache line."""
N_SPINS = 200
"""How often a thread looks whether the others are done before it lets other programs run."""
_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [builder.mul(args[1], ir.Constant(args[1].type, LINE))])


def _take_next(typing_context: Any, counters: Any, i: Any) -> Any:
    """Return counter i (int64), which is counters[LINE i], and add 1 to it, as one step for all threads."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _pointer(context, builder, signature, args), one, "seq_cst")

    return types.int64(counters, i), generate


def _look_at(typing_context: Any, counters: Any, i: Any) -> Any:
    """Return counter i (int64) as the other threads have left it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), "seq_cst", 8)

    return types.int64(counters, i), generate


def _let_others_run(typing_context: Any) -> Any:
    """Let other threads and programs use this core."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, function, _YIELD), [])  # type: ignore[no-untyped-call]

    return types.int32(), generate


take_next: Callable[[Array, int], int] = cast(Any, intrinsic(_take_next))
look_at: Callable[[Array, int], int] = cast(Any, intrinsic(_look_at))
let_others_run: Callable[[], int] = cast(Any, intrinsic(_let_others_run))


def new_counters(n: int) -> Array:
    """Counters of n things, at 0."""
    return np.zeros(LINE * n, np.int64)


@kernel
def wait_until(counters: Array, i: int, n: int) -> None:
    """Wait until counter i is n."""
    spins = 0
    while look_at(counters, i) < n:
        spins += 1
        if spins > N_SPINS:
            let_others_run()
