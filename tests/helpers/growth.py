"""Growth of the work of a function with its input, by the number of function calls: exact on any machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

QUADRATIC = 16.0
"""Ratio for four times the input where work is quadratic; linear work has 4."""


def growth(work: Callable[[Any], object], small: Any, large: Any) -> float:
    """Return the number of calls, of Python and C functions, for the large input over that for the small one."""
    return count_calls(work, large) / count_calls(work, small)


def count_calls(work: Callable[[Any], object], data: Any) -> int:
    """Count the calls of Python and C functions while the function runs."""
    n_calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(count)
    try:
        work(data)
    finally:
        sys.setprofile(previous)
    return n_calls
