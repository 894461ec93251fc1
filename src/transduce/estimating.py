"""Class sizes by the rows themselves: a first fit with the sizes of the labels, then the mean of its posterior.

    n(y) = Σ_i p_i(y) over the unlabelled rows, as whole numbers

Labels that are too even to have been drawn at random say nothing of sizes; the first fit then has those of the
supervised classifier's own labels. It is an outcome like any other: where nothing better comes, it can be kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.alternate import Alternation, Settings
from transduce.checkpoints import Shelf
from transduce.counts import Bounds, apportion
from transduce.history import Ending, HistoryRow, Outcome
from transduce.label_step import METHODS
from transduce.problem import TrainingProblem
from transduce.shares import labeled_shares
from transduce.weight_step import weight_step_for

Array = NDArray[Any]

FIRST_FIT = -1
"""The way that rounds of the first fit are told to belong to."""


@dataclass(frozen=True, eq=False)
class Estimation:
    """What the first fit needs; bounds are those of its class sizes, heeding what is forbidden."""

    problem: TrainingProblem
    bounds: Bounds
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]

    @classmethod
    def create(
        cls,
        problem: TrainingProblem,
        labels: Array,
        labeled_counts: Array,
        by_design: bool,
        bounds: Bounds,
        settings: Settings,
        rng: np.random.Generator,
        on_round: Callable[[HistoryRow], None],
    ) -> "Estimation":
        """Sizes are exact but where labels are forbidden: by the supervised classifier, or the labels of each class."""
        if by_design:
            bounds = _predicted(problem, labels, settings, rng)
        elif problem.forbidden is None:
            counts = apportion(labeled_shares(labeled_counts).mean, problem.n_rows - problem.n_labeled)
            bounds = Bounds(counts, counts)
        return cls(problem, bounds, settings, rng, on_round)

    def first_fit(self, labels: Array, shelf: Shelf) -> Outcome:
        """Fit from the labels of the labelled rows, by the paper's way."""
        step = weight_step_for(self.problem.loss, 100 * self.settings.max_rounds)

        def tell(row: HistoryRow) -> None:
            self.on_round(replace(row, way=FIRST_FIT))

        low, high, _ = self.bounds
        play = Alternation(self.problem, low, high, step, METHODS["exact"], self.settings, self.rng, tell, shelf=shelf)
        first = play.run(labels)
        first.history = [replace(row, way=FIRST_FIT) for row in first.history]
        return first

    def sizes(self, first: Outcome) -> Bounds:
        """Class sizes by the posterior of the first fit."""
        n_rows, shares = self.problem.n_rows - self.problem.n_labeled, own_shares(self.problem, first.W)
        if self.problem.forbidden is not None:  # whole numbers on both sides can be met, whatever is forbidden
            return Bounds(np.floor(n_rows * shares).astype(np.int64), np.ceil(n_rows * shares).astype(np.int64))
        counts = apportion(shares, n_rows)
        return Bounds(counts, counts)


def _predicted(problem: TrainingProblem, labels: Array, settings: Settings, rng: np.random.Generator) -> Bounds:
    """Sizes of the classes as the supervised classifier labels the unlabelled rows; none is quite empty."""
    counts = supervised_counts(problem, labels, settings, rng)
    if problem.forbidden is None:
        counts = apportion((counts + 1) / (counts + 1).sum(), int(counts.sum()))
    return Bounds(counts, counts)


def supervised_counts(problem: TrainingProblem, labels: Array, settings: Settings, rng: np.random.Generator) -> Array:
    """Unlabelled rows of each class (K,) as the supervised classifier labels them, heeding what is forbidden.

    It has the loss and the alpha of the problem, and learns from the labelled rows alone.
    """
    step, nothing = weight_step_for(problem.loss, 100 * settings.max_rounds), np.zeros(problem.n_classes, np.int64)
    alone = replace(settings, weights=())
    supervised = Alternation(problem, nothing, nothing, step, METHODS["exact"], alone, rng).run(labels)
    if supervised.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    scores = problem.design.scores(supervised.W)[problem.n_labeled :]
    if problem.forbidden is not None:
        scores = np.where(problem.forbidden, -np.inf, scores)
    return np.bincount(scores.argmax(axis=1), minlength=problem.n_classes)


def own_shares(problem: TrainingProblem, W: Array) -> Array:
    """Class shares (K,) of the unlabelled rows by the posterior alone; by the best scores, where there is none."""
    scores = problem.design.scores(W)[problem.n_labeled :]
    if hasattr(problem.loss, "posterior"):
        posterior = np.asarray(problem.loss.posterior(scores))
    else:
        posterior = np.eye(problem.n_classes)[scores.argmax(axis=1)]
    if problem.forbidden is not None:
        posterior = np.where(problem.forbidden, 0.0, np.maximum(posterior, np.finfo(np.float64).tiny))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return np.asarray(posterior.mean(axis=0))
