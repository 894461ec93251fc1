"""The fits that estimate or check class sizes: a first fit by Algorithm 1, and the supervised classifier."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.estimation import bounds_from_labels, bounds_from_posterior, bounds_from_supervised
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.resolve import ResolvedPrior
from transduce.engines.base import Engine, StepSettings
from transduce.history import FitResult, FitStatus
from transduce.label_step import METHODS
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.loop import CatchInterrupt, FitContext, Loop

FIRST_FIT = -1
"""Number of the restart in the history of a first fit."""


def solve_with_estimate(
    engine: Engine, prior: ResolvedPrior, settings: Settings, context: FitContext, solve: Callable[[Bounds], FitResult]
) -> tuple[FitResult, Bounds]:
    """Estimate class sizes with a first fit, then solve with them; if interrupted meanwhile, keep the first fit."""
    bounds, rng = _first_bounds(engine, prior, settings, context.first_rng), context.first_rng
    alternation, slot = _alternation(engine, bounds, settings, rng), context.checkpoint.slot("first fit")
    first = Loop(context.on_round).run(alternation, slot, FIRST_FIT)
    if first.status is not FitStatus.INTERRUPTED:
        with CatchInterrupt():
            proportions = engine.predicted_proportions(first.W)
            estimated = bounds_from_posterior(proportions, engine.n_unlabeled, engine.forbids)
            return solve(estimated), estimated
    first.status = FitStatus.INTERRUPTED
    return first, bounds


def _first_bounds(engine: Engine, prior: ResolvedPrior, settings: Settings, rng: np.random.Generator) -> Bounds:
    """Class sizes of the first fit: those of the labels, or of the supervised classifier if labels are balanced."""
    if are_balanced_by_design(prior.labeled_rows):
        return bounds_from_supervised(supervised_counts(engine, settings, rng), engine.forbids)
    return prior.bounds if engine.forbids else bounds_from_labels(prior.labeled_weight, engine.n_unlabeled)


def supervised_counts(engine: Engine, settings: Settings, rng: np.random.Generator) -> Array:
    """Count the unlabelled rows of each class (K,) as predicted by a classifier of the labelled rows alone."""
    none = np.zeros(engine.n_classes, np.int64)
    result = Loop().run(_alternation(engine, Bounds.exact(none), replace(settings, weights=()), rng))
    if result.status is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return engine.predicted_counts(result.W)


def _alternation(engine: Engine, bounds: Bounds, settings: Settings, rng: np.random.Generator) -> Alternation:
    steps = StepSettings(bounds, METHODS["exact"], 100 * settings.max_rounds)
    return Alternation(engine.new_restart(steps, rng), settings)
