"""The fits that estimate or check class sizes: a first fit by Algorithm 1, and the supervised classifier."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.engines.base import Engine, StepSettings
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import METHODS
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.loop import Loop

Array = NDArray[Any]

FIRST_FIT = -1
"""Number of the restart in the history of a first fit."""


def first_fit(
    engine: Engine,
    bounds: Bounds,
    settings: Settings,
    rng: np.random.Generator,
    on_round: Callable[[HistoryRow], None],
    slot: CheckpointSlot,
) -> FitResult:
    """Fit by Algorithm 1 with these class sizes."""
    return Loop(on_round).run(_alternation(engine, bounds, settings, rng), slot, FIRST_FIT)


def supervised_counts(engine: Engine, settings: Settings, rng: np.random.Generator) -> Array:
    """Count the unlabelled rows of each class (K,) as the supervised classifier predicts them.

    It has the loss and the alpha of the problem, and learns from the labelled rows alone.
    """
    none = np.zeros(engine.n_classes, np.int64)
    result = Loop().run(_alternation(engine, Bounds(none, none), replace(settings, weights=()), rng))
    if result.status is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return engine.predicted_counts(result.W)


def _alternation(engine: Engine, bounds: Bounds, settings: Settings, rng: np.random.Generator) -> Alternation:
    steps = StepSettings(bounds, METHODS["exact"], 100 * settings.max_rounds)
    return Alternation(engine.new_restart(steps, rng), settings)
