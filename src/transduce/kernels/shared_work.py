"""Work that threads share inside a kernel: each takes the next piece until none is left, and waits for the others.

All threads run the same kernel with the same array of counters. No thread waits for another one that has not started a
piece, so the work ends even if only one of them ever runs.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from transduce.kernels import Array, kernel

N_SPINS = 200
"""How often a thread looks whether the others are done before it lets other programs run."""
_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


def _take_next(typing_context: Any, counters: Any, i: Any) -> Any:
    """Return counters[i] (int64) and add 1 to it, as one step for all threads."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _pointer(context, builder, signature, args), one, "seq_cst")

    return types.int64(counters, i), generate


def _look_at(typing_context: Any, counters: Any, i: Any) -> Any:
    """Return counters[i] (int64) as the other threads have left it."""

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


@kernel
def wait_until(counters: Array, i: int, n: int) -> None:
    """Wait until counters[i] is n."""
    spins = 0
    while look_at(counters, i) < n:
        spins += 1
        if spins > N_SPINS:
            let_others_run()
