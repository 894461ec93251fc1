"""Hidden labels: fits by Algorithm 1 that each leave out a fifth of the labels, and what they predict for these.

They show how large the classes are (`class_prior.estimation`), how good the labels are, and how sure a score is.
Rows whose label is hidden take no part in a fit. Of very many unlabelled rows, a sample takes part.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.estimation import HiddenLabels
from transduce.engines.base import Engine, StepSettings
from transduce.engines.local import LocalEngine
from transduce.history import FitResult, FitStatus
from transduce.label_step import METHODS
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.loop import FitContext, Loop

N_FOLDS = 5
MAX_ROWS, MAX_CELLS = 20_000, 1 << 22
"""Unlabelled rows that take part, and their number times that of the classes."""
HIDDEN_FIT = -1
"""Number of the restart in the history of these fits."""


class CrossFit(NamedTuple):
    """Scores for labelled rows by classifiers that their labels were hidden from.

    labels      (l,) class of each labelled row
    fold        (l,) which fit the label was hidden from, or −1
    scores      (l, K) scores, with prices, of the classifier that the label was hidden from
    unlabeled   (f, n, K) scores of the unlabelled rows by each classifier
    last        result of the last fit
    """

    labels: Array
    fold: Array
    scores: Array
    unlabeled: Array
    last: FitResult

    @property
    def temperature(self) -> float:
        """Temperature at which probabilities softmax(scores / T) are most likely on hidden labels."""
        scores, labels = self.scores[self.fold >= 0], self.labels[self.fold >= 0]
        spread = float(np.std(scores)) or 1.0
        if not labels.size:
            return spread

        def loss(log_temperature: float) -> float:
            logs = log_softmax(scores / (spread * np.exp(log_temperature)), axis=1)
            return -float(logs[np.arange(labels.size), labels].mean())

        return spread * float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))

    def hidden_labels(self) -> HiddenLabels:
        """Return the predictions as probabilities."""
        T = self.temperature
        unlabeled = np.mean([softmax(scores / T, axis=1).mean(axis=0) for scores in self.unlabeled], axis=0)
        return HiddenLabels(
            self.labels, softmax(self.scores / T, axis=1), self.fold >= 0, unlabeled, self.unlabeled.shape[1]
        )


def cross_fit(data: Engine, bounds: Bounds, settings: Settings, context: FitContext) -> CrossFit | FitResult | None:
    """Fit with each part of the labels hidden; the result so far if interrupted, None if no label can be hidden."""
    max_rows = min(MAX_ROWS, max(MAX_CELLS // data.n_classes, 1000))
    engine: LocalEngine = data.sample(max_rows, context.first_rng)
    bounds = bounds.scaled(data.n_unlabeled, engine.n_unlabeled)
    n_labeled, n_classes = engine.problem.n_labeled, engine.n_classes
    labels = engine.labels[:n_labeled]
    fold = assign_folds(labels, context.first_rng)
    if fold.max(initial=-1) < 0:
        return None
    scores, unlabeled = np.zeros((n_labeled, n_classes)), []
    scale = getattr(engine.problem.loss, "price_scale", 0.0)
    for number in range(fold.max() + 1):
        one = hide_labels(engine, fold == number)
        steps = StepSettings(bounds, METHODS["exact"], 100 * settings.max_rounds)
        alternation = Alternation(one.new_restart(steps, context.first_rng), settings)
        slot = context.checkpoint.slot(f"hidden labels {number}")
        result = Loop(context.on_round).run(alternation, slot, HIDDEN_FIT - number)
        if result.status is FitStatus.INTERRUPTED:
            return result
        found = engine.problem.design.scores(result.W) + scale * result.prices
        scores[fold == number] = found[:n_labeled][fold == number]
        unlabeled.append(found[n_labeled:].astype(np.float32))
    return CrossFit(labels, fold, scores, np.array(unlabeled), result)


def assign_folds(labels: Array, rng: np.random.Generator) -> Array:
    """Divide the labels of each class evenly among the folds; the only label of a class is in none (−1).

    >>> fold = assign_folds(np.array([0, 0, 0, 1, 1, 2]), np.random.default_rng(0))
    >>> sorted(fold[:3].tolist()) == sorted(set(fold[:3].tolist())), int(fold[5])
    (True, -1)
    """
    fold, first = np.full(labels.size, -1), 0
    for k in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == k))
        if rows.size > 1:
            fold[rows] = (first + np.arange(rows.size)) % N_FOLDS
            first += rows.size
    used = np.unique(fold[fold >= 0])
    fold[fold >= 0] = np.searchsorted(used, fold[fold >= 0])
    return fold


def hide_labels(engine: LocalEngine, hidden: Array) -> LocalEngine:
    """The same rows, where those marked (l,) have no weight."""
    problem, weights = engine.problem, engine.problem.row_weights.copy()
    known = weights[: problem.n_labeled + problem.n_partial]
    known[: problem.n_labeled][hidden] = 0.0
    if known.sum() == 0.0:  # all others have a sample weight of 0
        return engine
    known /= known.sum()
    return replace(engine, problem=replace(problem, row_weights=weights))


def supervised_counts(engine: Engine, settings: Settings, rng: np.random.Generator) -> Array:
    """Count the unlabelled rows of each class (K,) as predicted by a classifier of the labelled rows alone."""
    none = np.zeros(engine.n_classes, np.int64)
    steps = StepSettings(Bounds.exact(none), METHODS["exact"], 100 * settings.max_rounds)
    result = Loop().run(Alternation(engine.new_restart(steps, rng), replace(settings, weights=())))
    if result.status is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return engine.predicted_counts(result.W)
