"""Algorithm 1 of the paper: weight steps and label steps in turn, while the unlabelled rows gain weight.

    1-2    weights from the labelled rows
    3-9    greedy labels for the others, meeting the counts
    10-15  for each C of the schedule: weights, then labels, until no label moves

Within a stage J never rises: a label step lowers it or leaves the labels alone, and a weight step must end at or
below the J it was given. A stage ends when no label moves, or when the weight step can lower J no further, so rounds
cannot repeat.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.history import HistoryRow
from transduce.label_step import LabelProblem, LabelStep
from transduce.label_step.greedy import greedy_labels
from transduce.problem import TrainingProblem
from transduce.weight_step import WeightReport, WeightState, WeightStep

Array = NDArray[Any]

FLOOR = 1e-9
"""A rise of J by less than this share is rounding."""


class Ending(Enum):
    """How the alternation ended; the value is the sentence for the user."""

    SETTLED = "No label moves any more at the final weight of the unlabelled rows."
    OUT_OF_ROUNDS = "A stage ended with labels still moving; raise max_iter to let it settle."
    SUPERVISED = "There were no unlabelled rows: this is the supervised classifier."
    INTERRUPTED = "It was interrupted; weights and labels are those of the last complete round."


@dataclass(frozen=True)
class Settings:
    """Knobs of the alternation: stage weights, tolerances of the weight step in early and last stages, rounds a stage."""

    weights: tuple[float, ...]
    tol: float
    early_tol: float
    max_rounds: int


@dataclass(eq=False)
class Outcome:
    """Weights, labels of all rows, prices of the classes, and what happened on the way."""

    W: Array
    labels: Array
    prices: Array
    objective: float = np.inf
    ending: Ending = Ending.SETTLED
    history: list[HistoryRow] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Alternation:
    """The pieces that take turns; `run` plays them."""

    problem: TrainingProblem
    low: Array
    high: Array
    weight_step: WeightStep
    label_step: LabelStep
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None] = lambda row: None

    def run(self, labels: Array) -> Outcome:
        """Fit from the labels of the labelled rows; those of unlabelled rows are ignored."""
        outcome = Outcome(self.problem.design.zeros(), labels.copy(), np.zeros(self.problem.n_classes))
        begin = time.perf_counter()
        try:
            self._play(outcome, begin)
        except KeyboardInterrupt:
            outcome.ending = Ending.INTERRUPTED
            if not outcome.history:
                raise
        return outcome

    def _play(self, outcome: Outcome, begin: float) -> None:
        problem, labels = self.problem, outcome.labels
        unlabeled = slice(problem.n_labeled, None)
        state = self.weight_step.start(problem, labels)
        supervised = not self.settings.weights or problem.n_rows == problem.n_labeled
        report = self._weights(state, labels, 0.0, self.settings.tol if supervised else self.settings.early_tol)
        self._record(outcome, HistoryRow(0, 0.0, report.objective, 0, report.gap, time.perf_counter() - begin), state)
        if supervised:
            outcome.ending = Ending.SUPERVISED
            return
        labels[unlabeled] = greedy_labels(LabelProblem(-report.scores[unlabeled], self.low, self.high))
        for stage, weight in enumerate(self.settings.weights, start=1):
            self._stage(outcome, state, stage, weight, begin)

    def _stage(self, outcome: Outcome, state: WeightState, stage: int, weight: float, begin: float) -> None:
        """Rounds at one weight of the unlabelled rows."""
        last = stage == len(self.settings.weights)
        tol = self.settings.tol if last else self.settings.early_tol
        unlabeled = slice(self.problem.n_labeled, None)
        kappa = self.problem.kappa(weight)
        ceiling = np.inf
        for _ in range(self.settings.max_rounds):
            kept = outcome.W
            report = self._weights(state, outcome.labels, weight, tol, ceiling)
            if report.objective > ceiling * (1.0 + FLOOR):
                outcome.W = kept
                outcome.ending = Ending.SETTLED
                return
            costs = self.problem.loss.label_costs(report.scores[unlabeled])
            answer = self.label_step.solve(
                LabelProblem(self._weighted(costs), self.low, self.high), outcome.prices, outcome.labels[unlabeled]
            )
            moved = np.flatnonzero(answer.labels != outcome.labels[unlabeled])
            old = costs[moved, outcome.labels[unlabeled][moved]]
            change = float(np.dot(kappa[unlabeled][moved], costs[moved, answer.labels[moved]] - old))
            ceiling = report.objective + change
            outcome.labels[unlabeled] = answer.labels
            outcome.prices = answer.prices
            seconds = time.perf_counter() - begin
            self._record(outcome, HistoryRow(stage, weight, ceiling, moved.size, report.gap, seconds), state)
            if moved.size == 0:
                outcome.ending = Ending.SETTLED
                return
        outcome.ending = Ending.OUT_OF_ROUNDS

    def _weights(
        self, state: WeightState, labels: Array, weight: float, tol: float, ceiling: float = np.inf
    ) -> WeightReport:
        """Steps 1 and 12: weights for these labels."""
        self.weight_step.retarget(self.problem, state, labels, self.problem.kappa(weight))
        return self.weight_step.solve(self.problem, state, tol, ceiling, self.rng)

    def _weighted(self, costs: Array) -> Array:
        """Costs in proportion to the weights of the unlabelled rows."""
        shares = self.problem.shares[self.problem.n_labeled :]
        if np.all(shares == shares[0]):
            return costs
        return np.asarray(costs * (shares / shares.mean())[:, None])

    def _record(self, outcome: Outcome, row: HistoryRow, state: WeightState) -> None:
        outcome.W = state.W.copy()
        outcome.objective = row.objective
        outcome.history.append(row)
        self.on_round(row)
