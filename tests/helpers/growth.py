"""How the work of a function grows with its input: a ratio of two runs, so that no machine is too slow for it."""

import time
from collections.abc import Callable
from typing import Any

QUADRATIC = 16.0
"""Ratio at four times the input where work is quadratic; linear work has 4."""


def growth(work: Callable[[Any], object], small: Any, large: Any) -> float:
    """CPU time of the large input over that of the small one, the better of two runs each."""
    return _seconds(work, large) / _seconds(work, small)


def _seconds(work: Callable[[Any], object], given: Any) -> float:
    best = float("inf")
    for _ in range(2):
        begin = time.process_time()
        work(given)
        best = min(best, time.process_time() - begin)
    return best
