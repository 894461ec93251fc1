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

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.proportions import labeled_proportions
from transduce.class_prior.rounding import apportion
from transduce.engines.base import Engine, StepSettings
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import METHODS
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.loop import Loop

Array = NDArray[Any]

FIRST_FIT = -1
"""The way that rounds of the first fit are told to belong to."""


@dataclass(frozen=True, eq=False)
class Estimation:
    """What the first fit needs; bounds are those of its class sizes, heeding what is forbidden."""

    rows: Engine
    bounds: Bounds
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]

    @classmethod
    def create(
        cls,
        rows: Engine,
        labeled_counts: Array,
        by_design: bool,
        bounds: Bounds,
        settings: Settings,
        rng: np.random.Generator,
        on_round: Callable[[HistoryRow], None],
    ) -> "Estimation":
        """Sizes are exact but where labels are forbidden: by the supervised classifier, or the labels of each class."""
        if by_design:
            bounds = _predicted(rows, settings, rng)
        elif not rows.forbids:
            counts = apportion(labeled_proportions(labeled_counts).mean, rows.n_unlabeled)
            bounds = Bounds(counts, counts)
        return cls(rows, bounds, settings, rng, on_round)

    def first_fit(self, slot: CheckpointSlot) -> FitResult:
        """Fit from the labels of the labelled rows, by the paper's way."""
        restart = self.rows.new_restart(_task(self.bounds, self.settings), self.rng)
        return Loop(self.on_round).run(Alternation(restart, self.settings), slot, FIRST_FIT)

    def sizes(self, first: FitResult) -> Bounds:
        """Class sizes by the posterior of the first fit."""
        n_rows, shares = self.rows.n_unlabeled, self.rows.predicted_proportions(first.W)
        if self.rows.forbids:  # whole numbers on both sides can be met, whatever is forbidden
            return Bounds(np.floor(n_rows * shares).astype(np.int64), np.ceil(n_rows * shares).astype(np.int64))
        counts = apportion(shares, n_rows)
        return Bounds(counts, counts)


def _predicted(rows: Engine, settings: Settings, rng: np.random.Generator) -> Bounds:
    """Sizes of the classes as the supervised classifier labels the unlabelled rows; none is quite empty."""
    counts = supervised_counts(rows, settings, rng)
    if not rows.forbids:
        counts = apportion((counts + 1) / (counts + 1).sum(), int(counts.sum()))
    return Bounds(counts, counts)


def supervised_counts(rows: Engine, settings: Settings, rng: np.random.Generator) -> Array:
    """Unlabelled rows of each class (K,) as the supervised classifier labels them, heeding what is forbidden.

    It has the loss and the alpha of the problem, and learns from the labelled rows alone.
    """
    nothing = np.zeros(rows.n_classes, np.int64)
    restart = rows.new_restart(_task(Bounds(nothing, nothing), settings), rng)
    supervised = Loop().run(Alternation(restart, replace(settings, weights=())))
    if supervised.status is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return rows.predicted_counts(supervised.W)


def _task(bounds: Bounds, settings: Settings) -> StepSettings:
    return StepSettings(bounds, METHODS["exact"], 100 * settings.max_rounds)
