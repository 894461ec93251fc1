"""Soft labels of rows in memory: q_ik ∝ exp((v_k − cost_ik) / T), with weights of their own."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.base import SoftRoundSummary
from transduce.engines.common import (
    FIRST_SWEEPS,
    FIRST_TOL,
    SOFT_ITERATIONS,
    SOFT_SWEEPS,
    first_targets,
    packed_state,
    unpacked_state,
)
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import LabelProblem
from transduce.label_step.entropic import solve_at_entropy
from transduce.losses import costs_of, smoothed
from transduce.problem import TrainingProblem, weighted_costs
from transduce.weight_step import LBFGS, WeightState, WeightStep, weight_step_for

if TYPE_CHECKING:
    from transduce.engines.local import LocalRestart

Array = NDArray[Any]


@dataclass(eq=False)
class LocalSoftLabels:
    """Distributions over the labels of a restart, for the smoothed loss.

    targets       (n, K) one-hot for labelled rows, distributions for all others
    scores        (n, K) at the present weights
    best          (n_unlabeled,) class of the largest probability, to count rows that move
    row_weights   (n,) weights of the label step; equal if partial labels weigh as full ones: there is one temperature
    """

    restart: "LocalRestart"
    problem: TrainingProblem = field(init=False)
    step: WeightStep = field(init=False)
    state: WeightState = field(init=False)
    targets: Array = field(init=False)
    scores: Array = field(init=False)
    best: Array = field(init=False)
    row_weights: Array = field(init=False)
    prices: Array = field(init=False)
    temperature: float | None = None

    def __post_init__(self) -> None:
        hard = self.restart.problem
        self.problem = replace(hard, loss=smoothed(hard.loss))
        self.step = weight_step_for(self.problem.loss, SOFT_SWEEPS)
        if isinstance(self.step, LBFGS):
            self.step = replace(self.step, max_iter=SOFT_ITERATIONS)
        self.row_weights = np.ones(hard.n_rows) if hard.n_partial else hard.row_weights

    @property
    def _unlabeled(self) -> slice:
        return slice(self.problem.n_labeled, None)

    def start(self) -> None:
        """Learn weights from the labelled rows alone; all other rows get the class proportions."""
        restart, problem = self.restart, self.problem
        self.targets = first_targets(problem, restart.labels, restart.settings.bounds, restart.n_unlabeled)
        self.state = self.step.start(problem, self.targets)
        first = weight_step_for(problem.loss, FIRST_SWEEPS)
        first.retarget(problem, self.state, self.targets, problem.kappa(0.0))
        self.scores = first.solve(problem, self.state, FIRST_TOL, restart.rng).scores
        self.prices, self.best = np.zeros(problem.n_classes), np.full(restart.n_unlabeled, -1)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Choose distributions of this entropy at the present weights, then improve the weights a little."""
        restart, problem = self.restart, self.problem
        n_threads, targets = problem.design.n_threads, self.targets[self._unlabeled]
        costs = costs_of(problem.loss, self.scores[self._unlabeled], n_threads)
        label_problem = LabelProblem(weighted_costs(problem, costs, self.row_weights), *restart.settings.bounds)
        soft, self.temperature = solve_at_entropy(
            label_problem, entropy, self.temperature, self.prices, n_threads=n_threads, out=targets
        )
        self.prices = soft.prices
        self.step.retarget(problem, self.state, self.targets, problem.kappa(weight))
        report = self.step.solve(problem, self.state, 0.0, restart.rng)
        self.scores = report.scores
        best = targets.argmax(axis=1)
        n_moved, self.best = int((best != self.best).sum()), best
        return SoftRoundSummary(report.objective, report.gap, n_moved, self.temperature)

    def harden(self, weight: float) -> None:
        """Give the restart the best hard labels at the present weights, and reset its weights to 0."""
        restart, hard = self.restart, self.restart.problem
        costs = costs_of(hard.loss, self.scores[self._unlabeled], hard.design.n_threads)
        label_problem = LabelProblem(weighted_costs(hard, costs, hard.kappa(weight)), *restart.settings.bounds)
        restart.labels[self._unlabeled] = restart.settings.label_step.solve(label_problem).labels
        restart.reset_weights()

    def save(self, slot: CheckpointSlot, metadata: dict[str, Any]) -> None:
        """Save the state and this metadata."""
        if slot.path is None:
            return
        arrays = packed_state(self.state) | {"prices": self.prices, "best": self.best}
        slot.save(arrays, metadata | {"temperature": self.temperature, "rng": self.restart.rng.bit_generator.state})

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Restore the state; return the metadata, or None if nothing was saved."""
        saved = slot.load()
        if saved is None:
            return None
        arrays, metadata = saved
        self.state = unpacked_state(self.problem, arrays)
        self.targets = self.state.targets.copy()
        self.temperature, self.restart.rng.bit_generator.state = metadata["temperature"], metadata["rng"]
        self.prices, self.best = arrays["prices"], arrays["best"]
        self.scores = self.problem.design.scores(self.state.W)
        return metadata
