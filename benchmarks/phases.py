"""Time of a fit by phase: weight steps, label steps, soft labels, scores, costs, and the rest."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

from transduce.design import Design
from transduce.label_step import METHODS
from transduce.label_step.entropic import Entropic, solve_at_entropy
from transduce.label_step.greedy import greedy_labels
from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin, costs_of
from transduce.solvers.loop import Loop, Turns
from transduce.weight_step import LBFGS, DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin

PHASES = ("weights", "labels", "soft labels", "scores", "costs", "rest")


class Phases:
    """Seconds of each phase, excluding nested phases; everything inside a weight step counts as weights."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._here = threading.local()
        self._lock = threading.Lock()

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            stack: list[list[Any]] = self._here.__dict__.setdefault("stack", [])
            inside = stack[-1][0] if stack and stack[-1][0] == "weights" else phase
            stack.append([inside, 0.0])
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - begin
                inner = stack.pop()[1]
                if stack:
                    stack[-1][1] += elapsed
                with self._lock:
                    self.seconds[inside] += elapsed - inner

        return run

    def watch(self) -> None:
        """Wrap methods with timers, and functions in every module of the package that imports them."""
        for kind in (DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin, LBFGS):
            for name in ("start", "retarget", "solve"):
                setattr(kind, name, self.timed("weights", getattr(kind, name)))
        for kind in {type(step) for step in METHODS.values()}:
            kind.solve = self.timed("labels", kind.solve)
        Entropic.solve = self.timed("soft labels", Entropic.solve)
        for kind in (LargeMargin, SquaredLargeMargin, MaxEnt, SmoothMargin):
            kind.label_costs = self.timed("costs", kind.label_costs)
        Design.scores = self.timed("scores", Design.scores)
        Loop.run, Loop.run_all = self.timed("rest", Loop.run), self.timed("wait", Loop.run_all)
        Turns.work = self.timed("rest", Turns.work)
        named = {
            solve_at_entropy: "soft labels",
            greedy_labels: "labels",
            costs_of: "costs",
        }
        for function, phase in named.items():
            self._replace(function, self.timed(phase, function))

    def _replace(self, old: Any, new: Any) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("transduce"):
                for member in [key for key, value in vars(module).items() if value is old]:
                    setattr(module, member, new)

    def fractions(self) -> list[float]:
        """Fraction of each phase in the time of all threads, excluding time spent waiting."""
        total = sum(self.seconds[phase] for phase in PHASES) or 1.0
        return [self.seconds[phase] / total for phase in PHASES]
