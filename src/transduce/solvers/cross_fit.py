"""Hidden labels: fits by Algorithm 1 that each leave out a fifth of the labels, and what they predict for these.

They show how large the classes are (`class_prior.estimation`), how good the labels are, and how sure a score is.
Rows whose label is hidden are unlabelled rows of the fit. Of very many unlabelled rows, a sample takes part.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.estimation import HiddenLabels
from transduce.engines.base import Engine, StepSettings
from transduce.engines.common import Calibration
from transduce.engines.local import LocalEngine
from transduce.history import FitResult, FitStatus
from transduce.label_step import METHODS
from transduce.problem import TrainingProblem
from transduce.solvers.alternating import Alternation, Settings, Supervised
from transduce.solvers.loop import FitContext, Job, Loop

N_FOLDS = 5
MAX_ROWS, MAX_CELLS = 20_000, 1 << 22
"""Unlabelled rows that take part, and their number times that of the classes."""
HIDDEN_TOL = 3e-2
"""Relative accuracy of the last weight steps: more of it changes neither class sizes nor macro F on average."""
LOG_TEMPERATURES, TEMPERATURE_PRIOR = (-4.0, 4.0), 10.0
"""Range of log T, and the cost of its square in units of the log-likelihood: with few labels T stays near 1."""
SMOOTHINGS, SMOOTHING_PRIOR = np.linspace(0.01, 0.3, 30), (3.0, 27.0)
"""Values of the smoothing to choose from, and a prior: as if 3 of 30 more labels were in a wrong cluster."""
HIDDEN_FIT = -1
"""Number of the restart in the history of these fits."""


class CrossFit(NamedTuple):
    """Scores for labelled rows by classifiers that their labels were hidden from.

    labels      (l,) class of each labelled row
    fold        (l,) which fit the label was hidden from, or −1
    scores      (l, K) scores, with prices, of the classifier that the label was hidden from
    unlabeled   (f, n, K) scores of the unlabelled rows by each classifier
    loss        loss of the fits, whose posterior turns scores into probabilities
    """

    labels: Array
    fold: Array
    scores: Array
    unlabeled: Array
    loss: Any

    @property
    def was_hidden(self) -> Array:
        """Whether each label was hidden from a fit (l,)."""
        return np.asarray(self.fold >= 0)

    def calibration(self) -> Calibration:
        """Temperature and smoothing at which hidden labels are most likely."""
        scores, labels = self.scores[self.was_hidden], self.labels[self.was_hidden]

        def losses(log_temperature: float) -> Array:
            """Minus the log-likelihood with each smoothing."""
            probabilities = Calibration(float(np.exp(log_temperature))).probabilities(self.loss, scores)
            chosen = probabilities[np.arange(labels.size), labels][:, None].astype(np.float64)
            logs = np.log((1.0 - SMOOTHINGS) * chosen + SMOOTHINGS / scores.shape[1]).sum(axis=0)
            logs += SMOOTHING_PRIOR[0] * np.log(SMOOTHINGS) + SMOOTHING_PRIOR[1] * np.log(1.0 - SMOOTHINGS)
            return np.asarray(TEMPERATURE_PRIOR * log_temperature**2 - logs)

        best = minimize_scalar(lambda t: losses(t).min(), bounds=LOG_TEMPERATURES, method="bounded").x
        return Calibration(float(np.exp(best)), float(SMOOTHINGS[losses(best).argmin()]))

    def log_likelihood(self, calibration: Calibration) -> float:
        """Mean logarithm of the probabilities of the hidden labels."""
        scores, labels = self.scores[self.was_hidden], self.labels[self.was_hidden]
        probabilities = calibration.probabilities(self.loss, scores)[np.arange(labels.size), labels]
        return float(np.log(probabilities, dtype=np.float64).mean())

    def hidden_labels(self, calibration: Calibration) -> HiddenLabels:
        """Return the predictions as probabilities."""
        unlabeled, confidence = np.zeros(self.unlabeled.shape[2]), 0.0
        for scores in self.unlabeled:
            probabilities = calibration.probabilities(self.loss, scores)
            unlabeled += probabilities.mean(axis=0, dtype=np.float64) / len(self.unlabeled)
            confidence += float(probabilities.max(axis=1).mean()) / len(self.unlabeled)
        predicted = calibration.probabilities(self.loss, self.scores)
        return HiddenLabels(self.labels, predicted, self.was_hidden, unlabeled, self.unlabeled.shape[1], confidence)


def cross_fit(data: Engine, bounds: Bounds, settings: Settings, context: FitContext) -> CrossFit | FitResult | None:
    """Fit with each part of the labels hidden; None if no label can be hidden, or there is nothing to label.

    If interrupted, return the result of the fit that got furthest; or raise KeyboardInterrupt if it has a sample of
    the rows, or rows of a cluster.
    """
    if not data.n_unlabeled:
        return None
    engine = draw_sample(data, context.first_rng)
    bounds = bounds.scaled(data.n_unlabeled, engine.n_unlabeled)
    n_labeled = engine.problem.n_labeled
    labels = engine.labels[:n_labeled]
    fold, live = np.full(n_labeled, -1), engine.problem.row_weights[:n_labeled] > 0
    fold[live] = assign_folds(labels[live], context.first_rng)
    if fold.max(initial=-1) < 0:
        return None
    tol, is_sample = max(settings.tol, HIDDEN_TOL), engine is not data
    settings = replace(settings, tol=tol, early_tol=max(settings.early_tol, tol))
    rngs = context.first_rng.spawn(fold.max() + 1)  # so that each fit can be resumed alone, and run in any order
    n_threads, engine = engine.split_threads(len(rngs))
    loop, results, positions = Loop(context.on_round), dict[int, FitResult](), dict[int, Array]()

    def fit(number: int) -> Job:
        one, positions[number] = hide_labels(engine, fold == number)
        own = bounds.scaled(engine.n_unlabeled, one.n_unlabeled)
        steps = StepSettings(own, METHODS["exact"], 100 * settings.max_rounds)
        restart = one.new_restart(steps, rngs[number])
        solver = Alternation(restart, settings) if settings.weights else Supervised(restart, settings.tol)
        slot = context.checkpoint.slot(f"hidden labels {number}")
        results[number] = yield from loop.rounds(solver, slot, HIDDEN_FIT - number)

    if loop.run_all(fit, len(rngs), n_threads):
        if is_sample or not results:  # there are no labels for all rows
            raise KeyboardInterrupt
        number = max(results, key=lambda one: len(loop.histories[HIDDEN_FIT - one]))
        return _interrupted(results[number], labels, positions[number], loop)
    return _scored(engine, results, fold)


def _interrupted(result: FitResult, labels: Array, position: Array, loop: Loop) -> FitResult:
    """The result of a fit that some labels (l,) were hidden from, in the order of all rows, with the rounds of all."""
    history = sorted((row for rows in loop.histories.values() for row in rows), key=lambda row: row.seconds)
    labels = np.concatenate((labels, result.labels[position[labels.size :]]))
    return replace(result, status=FitStatus.INTERRUPTED, history=history, labels=labels)


def _scored(engine: LocalEngine, results: dict[int, FitResult], fold: Array) -> CrossFit:
    """Scores of all rows by the classifiers that each fold (l,) was hidden from."""
    n_labeled, loss = fold.size, engine.problem.loss
    scale, unlabeled = getattr(loss, "price_scale", 0.0), []
    scores = np.zeros((n_labeled, engine.n_classes))
    for number, result in sorted(results.items()):
        found = engine.problem.design.scores(result.W) + scale * result.prices
        scores[fold == number] = found[:n_labeled][fold == number]
        unlabeled.append(found[n_labeled:].astype(np.float32))
    return CrossFit(engine.labels[:n_labeled], fold, scores, np.array(unlabeled), loss)


def draw_sample(data: Engine, rng: np.random.Generator) -> LocalEngine:
    """All labelled rows, and as many of the others as take part in fits that estimate class sizes."""
    engine: LocalEngine = data.sample(max_hidden_fit_rows(data.n_classes), rng).in_memory()
    return engine


def max_hidden_fit_rows(n_classes: int) -> int:
    """Most unlabelled rows that take part."""
    return min(MAX_ROWS, max(MAX_CELLS // n_classes, 1000))


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


def hide_labels(engine: LocalEngine, hidden: Array) -> tuple[LocalEngine, Array]:
    """The same rows with some labels (l,) hidden, and the position of each row in the engine that is returned."""
    problem, n_labeled, n_rows = engine.problem, engine.problem.n_labeled, engine.problem.n_rows
    partial = np.arange(n_labeled, n_labeled + problem.n_partial)
    rest = np.arange(n_labeled + problem.n_partial, n_rows)
    order = np.concatenate((np.flatnonzero(~hidden), partial, np.flatnonzero(hidden), rest))
    forbidden = problem.forbidden
    if forbidden is not None:
        forbidden = np.vstack((np.zeros((n_labeled, engine.n_classes), bool), forbidden))[order[(~hidden).sum() :]]
    weights = problem.row_weights.copy()
    if hidden.any() and rest.size:  # a hidden label weighs as much as an unlabelled row on average
        weights[:n_labeled][hidden] = weights[rest].mean()
    part = TrainingProblem.create(
        problem.design.select_rows(order),
        problem.loss,
        problem.alpha,
        int((~hidden).sum()),
        weights[order],
        problem.n_partial,
        forbidden,
    )
    position = np.empty(n_rows, np.int64)
    position[order] = np.arange(n_rows)
    return LocalEngine(part.with_evidence(problem.evidence, order), engine.labels[order]), position
