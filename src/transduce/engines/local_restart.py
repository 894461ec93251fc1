"""One run of a solver over rows in memory, with hard labels and with soft ones: q_ik ∝ exp((v_k − cost_ik) / T)."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.engines import common
from transduce.engines.base import LabelProposal, SoftRoundSummary, StepSettings, WeightSummary
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact, LabelProblem
from transduce.label_step.entropic import solve_at_entropy
from transduce.label_step.greedy import greedy_labels
from transduce.losses import costs_of, smoothed
from transduce.parallel import row_blocks
from transduce.problem import TrainingProblem, allowed_costs, evidence_costs, weighted_costs
from transduce.weight_step import LBFGS, WeightState, WeightStep, weight_step_for


@dataclass(eq=False)
class LocalRestart(common.RowState):
    """One run of a solver in memory.

    precision  type of the weights of the result; None if it is that of the rows
    W          accepted weights; `descend` reached the point `step_length` of the way from there to those of the state
    proposed   (n_unlabeled,) labels of the last label step, until they are accepted
    evidence   (n_unlabeled, K) costs of the labels by the evidence at the weight of the stage, or 0
    """

    state: WeightState = field(init=False)
    settings: StepSettings
    weight_step: WeightStep
    rng: np.random.Generator
    precision: np.dtype[Any] | None = field(default=None, kw_only=True)
    W: Array = field(init=False)
    report: WeightSummary | None = None
    step_length: float = 1.0
    proposed: Array | None = None
    evidence: Array | float = 0.0

    def __post_init__(self) -> None:
        self.W = self.problem.design.zeros()
        self.n_classes, self.n_unlabeled = self.problem.n_classes, self.problem.n_rows - self.problem.n_labeled

    def reset_weights(self) -> None:
        """Start the weight step at weights 0 for the present labels."""
        self.state = self.weight_step.start(self.problem, self.labels)

    def supervise(self, tol: float) -> WeightSummary:
        self.reset_weights()
        step = self.weights(0.0, tol)
        self.W[...] = self.state.W
        return step

    def stop_above(self, limit: float) -> None:
        """Sweeps go on: in memory the losing restart takes little time, and its history stays complete."""

    def greedy(self) -> None:
        costs = evidence_costs(self.problem, 0.0) - self.new_scores[self.unlabeled]
        costs = allowed_costs(self.problem, costs)
        problem = LabelProblem(costs, *self.settings.bounds)
        self.labels[self.unlabeled] = (
            greedy_labels(problem) if problem.groups is None else Exact().solve(problem).labels
        )

    def start_at(self, W: Array, weight: float) -> None:
        self.W[...] = W
        self.label_by(self.problem.design.scores(W), weight)

    def label_by(self, scores: Array, weight: float) -> None:
        """Take the best labels at these scores (n, K), and start the weight step at 0."""
        problem = self.problem
        costs = costs_of(problem.loss, scores[self.unlabeled], problem.design.threads)
        costs = with_evidence(costs, evidence_costs(problem, weight))
        label_problem = self._label_problem(costs, problem.kappa(weight))
        self.labels[self.unlabeled] = self.settings.label_step.solve(label_problem).labels
        self.reset_weights()

    def weights(self, weight: float, tol: float) -> WeightSummary:
        self.evidence = evidence_costs(self.problem, weight)
        self.weight_step.retarget(self.problem, self.state, self.labels, self.problem.kappa(weight))
        report = self.weight_step.solve(self.problem, self.state, tol, self.rng)
        self.state.scores, objective = report.scores, report.objective + self._label_cost()
        self.report = WeightSummary(objective, report.gap, report.n_sweeps, report.converged)
        return self.report

    def _count_cost(self, labels: Array) -> float:
        """Cost in J of the class counts of these labels (n_unlabeled,)."""
        counts = np.bincount(labels, minlength=self.n_classes)
        return common.count_cost(self.settings.bounds, counts, float(self.state.kappa[self.unlabeled].sum()))

    def _label_cost(self) -> float:
        """Cost in J of the labels by the class counts and the evidence, which does not depend on the weights."""
        labels = self.labels[self.unlabeled]
        if not isinstance(self.evidence, np.ndarray):
            return self._count_cost(labels)
        own = self.evidence[np.arange(labels.size), labels]
        return self._count_cost(labels) + float(np.dot(self.state.kappa[self.unlabeled], own))

    def loss_between(self, t: float) -> float:
        return super().loss_between(t) + self._label_cost()

    def descend(self, objective: float) -> tuple[float, float]:
        assert self.report is not None
        best, self.step_length = self.report.objective, 1.0
        if not best <= objective and self.scores is not None:  # also where a user's loss gives NaN
            products = common.inner_products(self.W, self.state.W)
            best, self.step_length = common.best_step(objective, self.problem.alpha, products, self.loss_between)
        self.scores = self.scores_between(self.step_length)
        return best, self.step_length

    def propose(self, prices: Array) -> LabelProposal:
        costs = with_evidence(self.label_costs(self.problem.design.threads), self.evidence)
        problem = self._label_problem(costs, self.state.kappa)
        solution = self.settings.label_step.solve(problem, prices, self.labels[self.unlabeled])
        self.proposed = solution.labels
        n_moved, change, old_loss = self.weigh_proposal(costs, solution.labels)
        change += self._count_cost(solution.labels) - self._count_cost(self.labels[self.unlabeled])
        return LabelProposal(solution.prices, n_moved, change, old_loss)

    def _label_problem(self, costs: Array, kappa: Array) -> LabelProblem:
        weighted = weighted_costs(self.problem, costs, kappa)
        return LabelProblem(weighted, *self.settings.bounds, threads=self.problem.design.threads)

    def accept(self, take_labels: bool) -> None:
        common.move_towards(self.W, self.state.W, self.step_length)
        if take_labels:
            assert self.proposed is not None
            self.labels[self.unlabeled] = self.proposed
        self.proposed = None

    def soft_labels(self) -> "LocalSoftLabels":
        return LocalSoftLabels(self)

    def result(self, result: FitResult) -> None:
        result.W, result.labels = self.W.astype(self.precision or self.W.dtype, copy=False), self.labels

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        if slot.path is None:
            return
        own = {"W": self.W, "labels": self.labels} | ({} if done else common.packed_state(self.state))
        slot.save(arrays | own, metadata | {"rng": self.rng.bit_generator.state})

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        saved = slot.load()
        if saved is None:
            return None
        arrays, metadata = saved
        self.W[...], self.labels[...] = arrays["W"], arrays["labels"]
        if "state_W" in arrays:
            self.rng.bit_generator.state = metadata["rng"]
            self.state = common.unpacked_state(self.problem, arrays)
        return arrays, metadata


def with_evidence(costs: Array, evidence: Array | float) -> Array:
    """Add the costs of the labels by the evidence, if there is any."""
    return costs + evidence if isinstance(evidence, np.ndarray) else costs


@dataclass(eq=False)
class LocalSoftLabels:
    """Distributions over the labels of a restart, for the smoothed loss; they are the targets of the weight step.

    best          (n_unlabeled,) class of the largest probability, to count rows that move
    row_weights   (n,) weights of the label step; equal if partial labels weigh as full ones: there is one temperature
    """

    restart: LocalRestart
    problem: TrainingProblem = field(init=False)
    step: WeightStep = field(init=False)
    state: WeightState = field(init=False)
    best: Array = field(init=False)
    row_weights: Array = field(init=False)
    prices: Array = field(init=False)
    temperature: float | None = None

    def __post_init__(self) -> None:
        hard = self.restart.problem
        self.problem = replace(hard, loss=smoothed(hard.loss))
        self.step = weight_step_for(self.problem.loss, common.SOFT_SWEEPS)
        if isinstance(self.step, LBFGS):
            self.step = replace(self.step, max_iter=common.SOFT_ITERATIONS)
        self.row_weights = np.ones(hard.n_rows) if hard.n_partial else hard.row_weights

    def start(self) -> None:
        restart, problem = self.restart, self.problem
        targets = common.first_targets(problem, restart.labels, restart.settings.bounds, restart.n_unlabeled)
        self.state = self.step.start(problem, targets)
        first = weight_step_for(problem.loss, common.FIRST_SWEEPS)
        first.retarget(problem, self.state, targets, problem.kappa(0.0))
        self.state.scores = first.solve(problem, self.state, common.FIRST_TOL, restart.rng).scores
        self.prices, self.best = np.zeros(problem.n_classes), np.full(restart.n_unlabeled, -1)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        problem, threads, targets = self.problem, self.problem.design.threads, self.state.targets
        posterior = targets[self.restart.unlabeled]
        soft, self.temperature = solve_at_entropy(
            self._label_problem(weight), entropy, self.temperature, self.prices,
            common.SOFT_TOL, threads, posterior,
        )  # fmt: skip
        self.prices = soft.prices
        self.step.retarget(problem, self.state, targets, problem.kappa(weight))
        report = self.step.solve(problem, self.state, 0.0, self.restart.rng)
        self.state.scores = report.scores
        n_moved = self._count_moved(posterior)
        return SoftRoundSummary(report.objective, report.gap, n_moved, self.temperature)

    def _count_moved(self, posterior: Array) -> int:
        """Find the likeliest class of each row, and return how many have changed."""

        def count(rows: slice) -> int:
            best = posterior[rows].argmax(axis=1)
            n_moved = int(np.count_nonzero(best != self.best[rows]))
            self.best[rows] = best
            return n_moved

        blocks = row_blocks(len(posterior), common.rows_of_block(posterior))
        return sum(self.problem.design.threads.each(count, blocks))

    def _label_problem(self, weight: float) -> LabelProblem:
        """Return the label problem at the present weights."""
        assert self.state.scores is not None
        problem = self.problem
        costs = costs_of(problem.loss, self.state.scores[self.restart.unlabeled], problem.design.threads)
        costs = with_evidence(costs, evidence_costs(problem, weight))
        return LabelProblem(weighted_costs(problem, costs, self.row_weights), *self.restart.settings.bounds)

    def harden(self, weight: float) -> None:
        assert self.state.scores is not None
        self.restart.label_by(self.state.scores, weight)

    def save(self, slot: CheckpointSlot, metadata: dict[str, Any]) -> None:
        if slot.path is None:
            return
        arrays = common.packed_state(self.state) | {"prices": self.prices, "best": self.best}
        slot.save(arrays, metadata | {"temperature": self.temperature, "rng": self.restart.rng.bit_generator.state})

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        saved = slot.load()
        if saved is None:
            return None
        arrays, metadata = saved
        self.state = common.unpacked_state(self.problem, arrays)
        self.temperature, self.restart.rng.bit_generator.state = metadata["temperature"], metadata["rng"]
        self.prices, self.best = arrays["prices"], arrays["best"]
        return metadata
