"""Rows in memory: the engine that runs weight steps and label steps over arrays of this process."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.engines.base import Engine, FittedLabels, StepSettings
from transduce.engines.common import model_posterior, posterior_costs, predicted_counts
from transduce.engines.local_restart import LocalRestart
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint
from transduce.io.fingerprint import fingerprint
from transduce.label_step import LabelProblem
from transduce.label_step.entropic import Entropic
from transduce.losses.blockwise import as_distributions
from transduce.problem import TrainingProblem, allowed_costs
from transduce.weight_step import weight_step_for

PARALLEL_CELLS = 10_000_000
"""Rows times classes up to which restarts run at the same time; beyond, they would need too much memory."""


@dataclass(frozen=True, eq=False)
class LocalEngine:
    """A training problem in memory.

    labels  (n,) class of every labelled row, which come first; other entries are ignored
    order   (n,) position in y of every row of the problem; None if it is the same
    """

    problem: TrainingProblem
    labels: Array
    order: Array | None = None

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.problem.n_rows - self.problem.n_labeled

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.problem.n_classes

    @property
    def forbids(self) -> bool:
        """Whether some rows must not get some labels."""
        return self.problem.forbidden is not None

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> LocalRestart:
        """Start a restart with the best weight step for the loss."""
        step = weight_step_for(self.problem.loss, settings.max_sweeps)
        return LocalRestart(self.problem, self.labels.copy(), settings, step, rng)

    def split_threads(self, n_restarts: int) -> tuple[int, Engine]:
        """Run as many restarts as there are threads if they are small, with one thread each."""
        small = self.problem.n_rows * self.problem.n_classes <= PARALLEL_CELLS
        n_threads = min(self.problem.design.n_threads, n_restarts) if small else 1
        if n_threads == 1:
            return 1, self
        design = replace(self.problem.design, n_threads=1)
        return n_threads, replace(self, problem=replace(self.problem, design=design))

    def predicted_counts(self, W: Array) -> Array:
        """Count rows without a full label by the class of the best allowed score (K,)."""
        return predicted_counts(self.problem, self._unlabeled_scores(W))

    def predicted_proportions(self, W: Array) -> Array:
        """Average the posterior of rows without a full label (K,); the best scores if the loss has no posterior."""
        return np.asarray(model_posterior(self.problem, self._unlabeled_scores(W)).mean(axis=0))

    def in_original_order(self, W: Array) -> Array:
        """Reorder weights so that they have one row for each column of X."""
        return self.problem.design.in_original_order(W)

    def fitted_labels(self, result: FitResult, bounds: Bounds, classes: Array) -> FittedLabels:
        """Gather labels and distributions of all rows, in the order of y."""
        problem, scores = self.problem, self._unlabeled_scores(result.W)
        counts = np.bincount(result.labels[problem.n_labeled :], minlength=self.n_classes)
        predicted, distributions = predicted_counts(problem, scores), None
        if hasattr(problem.loss, "posterior"):
            posterior = np.empty(scores.shape, problem.design.dtype)
            if len(scores):
                costs = allowed_costs(problem, posterior_costs(problem.loss, scores))
                soft = Entropic(1.0, tol=1e-3, n_threads=problem.design.n_threads)
                soft.solve(LabelProblem(costs, *bounds), out=posterior)
            distributions = self.distributions(result.labels, posterior)
        return FittedLabels(classes[self.in_order_of_y(result.labels)], counts, predicted, distributions)

    def in_order_of_y(self, values: Array) -> Array:
        """Return values of the rows of the problem in the order of y."""
        out = np.empty_like(values)
        out[slice(None) if self.order is None else self.order] = values
        return out

    def distributions(self, labels: Array, posterior: Array) -> Array:
        """Return distributions (n, K) in the order of y: one-hot for labelled rows, the posterior for all others."""
        labeled = as_distributions(labels[: self.problem.n_labeled], self.n_classes, posterior.dtype)
        return self.in_order_of_y(np.vstack((labeled, posterior)))

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        """Open the checkpoint folder of the fit with these parameters to this data."""
        problem = self.problem
        parts = parameters | {
            "X": (*problem.design.rows, problem.design.n_features, problem.row_weights),
            "y": (self.labels, problem.n_labeled, problem.n_partial, problem.forbidden),
        }
        return Checkpoint.open(path, fingerprint(parts), seeds)

    def _unlabeled_scores(self, W: Array) -> Array:
        return self.problem.design.scores(W)[self.problem.n_labeled :]
