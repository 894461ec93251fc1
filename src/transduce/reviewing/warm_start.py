"""TransductiveClassifier that continues from an earlier fit with fewer labels.

A fit from nothing hides labels five times and anneals. If classes and rows are those of an earlier fit, its weights are
close to the new ones: label all rows by them, and continue with Algorithm 1 at the final weight of the unlabelled rows.
Class sizes and calibration stay as the last fit from nothing has estimated them.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.proportions import SizeEstimate
from transduce.class_prior.resolve import ResolvedPrior
from transduce.engines.base import StepSettings
from transduce.engines.common import Calibration
from transduce.estimators import TransductiveClassifier
from transduce.history import FitResult
from transduce.label_step import METHODS
from transduce.problem import evidence_costs
from transduce.solvers.annealing import COOLED_TOL, Refinement
from transduce.solvers.first_labels import evidence_of, recalibrate
from transduce.solvers.loop import FitContext, Loop


class Start(NamedTuple):
    """What a fit leaves for the next: classes, weights with a row for each feature, prices, sizes and calibration."""

    classes: tuple[str, ...]
    W: Array
    prices: Array
    sizes: SizeEstimate
    calibration: Calibration


class WarmClassifier(TransductiveClassifier):
    """Classifier that can start from an earlier fit: set `start` before `fit`, and read `next_start` after it."""

    start: Start | None = None

    @property
    def next_start(self) -> Start | None:
        """Where the next fit can start; None if class sizes could not be estimated."""
        if self._sizes is None:
            return None
        return Start(tuple(self.classes_.tolist()), self._weights, self.prices_, self._sizes, self.calibration_)

    def _can_continue(self) -> bool:
        return self.start is not None and self.start.classes == tuple(self.classes_.tolist())

    def _solve_prior(self, engine: Any, prior: ResolvedPrior, context: FitContext) -> tuple[FitResult, Bounds]:
        if not self._can_continue() or self.start is None or not engine.n_unlabeled:
            found = super()._solve_prior(engine, prior, context)
            self._sizes = self._data_estimate if self._data_estimate is not None else self.size_estimate_
            return found
        self._hidden, self._data_estimate, self._contradicted = None, None, False
        self.calibration_, self._sizes = self.start.calibration, self.start.sizes
        self.size_estimate_ = prior.combine(self._sizes)
        bounds = prior.bounds(self._sizes)
        return self._continue(engine, bounds, context, self.start), bounds

    def _continue(self, engine: Any, bounds: Bounds, context: FitContext, start: Start) -> FitResult:
        """Run Algorithm 1 at the final weight from the weights of an earlier fit."""
        place = engine.in_original_order(np.arange(start.W.shape[0], dtype=np.float64)[:, None])[:, 0].astype(np.int64)
        W = np.empty_like(start.W)
        W[place] = start.W
        engine = _weigh_evidence(engine, W, start.prices, context.rng)
        steps = StepSettings(bounds, METHODS["exact"], 100 * int(self.max_iter))
        settings = self._settings(None, float(self.unlabeled_weight))
        settings = replace(settings, early_tol=max(COOLED_TOL, settings.tol))
        solver = Refinement(
            engine.new_restart(steps, context.rng), settings, sample_fit=FitResult(start.prices, W=W, objective=0.0)
        )
        result = Loop(context.on_round).run(solver)
        if evidence_of(engine) is not None:
            result.evidence = evidence_costs(engine.problem, float(self.unlabeled_weight))
        return result

    def _set_model(self, result: FitResult, W: Array, bounds: Bounds, constant: float) -> None:
        super()._set_model(result, W, bounds, constant)
        self._weights = W


def _weigh_evidence(engine: Any, W: Array, prices: Array, rng: np.random.Generator) -> Any:
    """Weigh scores by the labels of the earlier fit, as a fit from nothing does; guesses are judged already."""
    evidence = evidence_of(engine)
    if evidence is None or evidence.is_judged:
        return engine
    labels, n_labeled = engine.labels.copy(), engine.problem.n_labeled
    labels[n_labeled:] = (engine.problem.design.scores(W)[n_labeled:] + prices).argmax(axis=1)
    return recalibrate(engine, engine, labels, rng.spawn(1)[0])
