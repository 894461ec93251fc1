"""Rows in memory: the engine that runs weight steps and label steps over arrays of this process."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.engines.base import Engine, FittedLabels, LabelProposal, StepSettings, WeightSummary
from transduce.engines.common import (
    STEP_LENGTHS,
    finite_costs,
    model_posterior,
    packed_state,
    predicted_counts,
    unpacked_state,
)
from transduce.engines.local_soft import LocalSoftLabels
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.io.fingerprint import fingerprint
from transduce.label_step import Exact, LabelProblem
from transduce.label_step.entropic import Entropic
from transduce.label_step.greedy import greedy_labels
from transduce.problem import TrainingProblem, allowed_costs, weighted_costs
from transduce.weight_step import WeightReport, WeightState, WeightStep, weight_step_for

Array = NDArray[Any]

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

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> "LocalRestart":
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
        problem, order = self.problem, np.arange(self.problem.n_rows) if self.order is None else self.order
        labels = np.empty(order.size, np.int64)
        labels[order] = result.labels
        counts = np.bincount(result.labels[problem.n_labeled :], minlength=self.n_classes)
        scores = self._unlabeled_scores(result.W)
        predicted, distributions = predicted_counts(problem, scores), None
        if hasattr(problem.loss, "posterior"):
            distributions = np.empty((order.size, self.n_classes), problem.design.dtype)
            distributions[order] = _distributions(problem, result.labels, bounds, scores)
        return FittedLabels(classes[labels], counts, predicted, distributions)

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


def _distributions(problem: TrainingProblem, labels: Array, bounds: Bounds, scores: Array) -> Array:
    """Distributions (n, K): one-hot for labelled rows, the posterior corrected for the class counts for all others."""
    n_labeled = problem.n_labeled
    distributions = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
    distributions[np.arange(n_labeled), labels[:n_labeled]] = 1.0
    if len(scores):
        costs = problem.loss.posterior(scores)  # type: ignore[attr-defined]
        np.maximum(costs, np.finfo(costs.dtype).tiny, out=costs)
        np.negative(np.log(costs, out=costs), out=costs)
        soft = Entropic(1.0, tol=1e-3, n_threads=problem.design.n_threads)
        soft.solve(LabelProblem(allowed_costs(problem, costs), *bounds), out=distributions[n_labeled:])
    return distributions


@dataclass(eq=False)
class LocalRestart:
    """One run of a solver in memory.

    labels       (n,) accepted labels
    W            accepted weights
    state        state of the weight step, with the weights of the last one
    kappa        (n,) row weights of the last weight step
    scores       (n, K) at the weights that `descend` reached, `step_length` of the way from W to those of the state
    proposed     (n_unlabeled,) labels of the last label step, until they are accepted
    """

    problem: TrainingProblem
    labels: Array
    settings: StepSettings
    weight_step: WeightStep
    rng: np.random.Generator
    W: Array = field(init=False)
    state: WeightState = field(init=False)
    kappa: Array = field(init=False)
    report: WeightReport | None = None
    scores: Array | None = None
    step_length: float = 1.0
    proposed: Array | None = None

    def __post_init__(self) -> None:
        self.W = self.problem.design.zeros()

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.problem.n_rows - self.problem.n_labeled

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.problem.n_classes

    @property
    def _unlabeled(self) -> slice:
        return slice(self.problem.n_labeled, None)

    def reset_weights(self) -> None:
        """Start the weight step at weights 0 for the present labels."""
        self.state = self.weight_step.start(self.problem, self.labels)

    def supervise(self, tol: float) -> WeightSummary:
        """Steps 1 and 2 of Algorithm 1: learn weights from the labelled rows alone, and accept them."""
        self.reset_weights()
        step = self.weights(0.0, tol)
        self.W[...] = self.state.W
        return step

    def greedy(self) -> None:
        """Steps 3 to 9: greedy labels; optimal ones under bounds on groups, which greedy labels may not meet."""
        assert self.report is not None
        costs = allowed_costs(self.problem, -self.report.scores[self._unlabeled])
        problem = LabelProblem(costs, *self.settings.bounds)
        self.labels[self._unlabeled] = (
            greedy_labels(problem) if problem.groups is None else Exact().solve(problem).labels
        )

    def weights(self, weight: float, tol: float) -> WeightSummary:
        """Step 12: weight step for the present labels."""
        self.kappa = self.problem.kappa(weight)
        self.weight_step.retarget(self.problem, self.state, self.labels, self.kappa)
        report = self.report = self.weight_step.solve(self.problem, self.state, tol, self.rng)
        return WeightSummary(report.objective, report.gap, report.n_sweeps, report.converged)

    def descend(self, objective: float) -> tuple[float, float]:
        """J is convex in W and scores are linear in W, so trying a step length needs no product with X."""
        report = self.report
        assert report is not None
        if report.objective <= objective or self.scores is None:
            self.scores, self.step_length = report.scores, 1.0
            return report.objective, 1.0
        squares = [float(np.vdot(a, b)) for a, b in ((self.W, self.W), (self.W, self.state.W), (self.state.W,) * 2)]
        best, best_scores, best_length = objective, self.scores, 0.0
        for length in STEP_LENGTHS:
            scores = (1.0 - length) * self.scores + length * report.scores
            value = self._objective_between(scores, squares, length)
            if value < best:
                best, best_scores, best_length = value, scores, length
        self.scores, self.step_length = best_scores, best_length
        return best, best_length

    def _objective_between(self, scores: Array, squares: list[float], t: float) -> float:
        """J at (1 − t) W + t W', from its scores and the products W·W, W·W' and W'·W'."""
        live = self.kappa > 0
        square = (1.0 - t) ** 2 * squares[0] + 2.0 * t * (1.0 - t) * squares[1] + t**2 * squares[2]
        losses = self.problem.loss.value(scores[live], self.labels[live])
        return 0.5 * self.problem.alpha * square + float(np.dot(self.kappa[live], losses))

    def propose(self, prices: Array) -> LabelProposal:
        """Step 13: label step at the weights that `descend` reached."""
        assert self.scores is not None
        costs = finite_costs(self.problem.loss, self.scores[self._unlabeled], self.problem.design.n_threads)
        kappa, labels = self.kappa[self._unlabeled], self.labels[self._unlabeled]
        problem = LabelProblem(weighted_costs(self.problem, costs, self.kappa), *self.settings.bounds)
        solution = self.settings.label_step.solve(problem, prices, labels)
        moved = np.flatnonzero(solution.labels != labels)
        old = np.take_along_axis(costs, labels[:, None], axis=1)[:, 0]
        change = float(np.dot(kappa[moved], costs[moved, solution.labels[moved]] - old[moved]))
        self.proposed = solution.labels
        return LabelProposal(solution.prices, int(moved.size), change, float(np.dot(kappa, old)))

    def accept(self, take_labels: bool) -> None:
        """Accept the weights that `descend` reached, and the proposed labels if `take_labels`."""
        if self.step_length == 1.0:
            self.W[...] = self.state.W
        elif self.step_length > 0.0:
            self.W *= 1.0 - self.step_length
            self.W += self.step_length * self.state.W
        if take_labels:
            assert self.proposed is not None
            self.labels[self._unlabeled] = self.proposed
        self.proposed = None

    def soft_labels(self) -> LocalSoftLabels:
        """Start soft labels for this restart."""
        return LocalSoftLabels(self)

    def result(self, result: FitResult) -> None:
        """Write the accepted weights and labels into the result."""
        result.W, result.labels = self.W, self.labels

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        """Save the state with these arrays and metadata; without that of the weight step if the restart is done."""
        if slot.path is None:
            return
        own = {"W": self.W, "labels": self.labels} | ({} if done else packed_state(self.state))
        slot.save(arrays | own, metadata | {"rng": self.rng.bit_generator.state})

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Restore the state; return arrays and metadata, or None if nothing was saved."""
        saved = slot.load()
        if saved is None:
            return None
        arrays, metadata = saved
        self.W[...], self.labels[...] = arrays["W"], arrays["labels"]
        if "state_W" in arrays:
            self.rng.bit_generator.state = metadata["rng"]
            self.state = unpacked_state(self.problem, arrays)
        return arrays, metadata
