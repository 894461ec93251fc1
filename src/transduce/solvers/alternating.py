"""Algorithm 1 of the paper: alternate weight steps and label steps while the weight of the unlabelled rows grows.

    1-2    weights from the labelled rows
    3-9    greedy labels for all others, meeting the counts
    10-15  for each C of the schedule: weight step, then label step, until no label changes

Within a stage J never increases: of a weight step that ends higher than it started, the best point on the way is
accepted, and labels that do not decrease J by more than a threshold are rejected. So rounds cannot cycle.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from transduce.engines.base import AnnealedRestart, Restart
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import CheckpointSlot
from transduce.solvers.loop import Solver

EARLY_THRESHOLD, THRESHOLD = 1e-4, 1e-5
"""New labels must decrease the loss of the unlabelled rows by more than this fraction: in early and in final rounds."""


@dataclass(frozen=True)
class Settings:
    """Settings of the alternation.

    weights     total weight of the unlabelled rows in each stage
    tol         relative accuracy of the last weight steps
    early_tol   relative accuracy of all others
    max_rounds  most rounds in a stage
    """

    weights: tuple[float, ...]
    tol: float
    early_tol: float
    max_rounds: int


@dataclass(eq=False)
class Supervised(Solver):
    """Weights from the labelled rows alone, to the relative accuracy `tol`."""

    restart: Restart
    tol: float

    def start(self) -> FitResult:
        """Return an empty result."""
        return FitResult(np.zeros(self.restart.n_classes))

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Generate the only stage."""
        yield self._stage(result)

    def _stage(self, result: FitResult) -> Iterator[HistoryRow]:
        step = self.restart.supervise(self.tol)
        result.objective = step.objective
        result.status = FitStatus.SUPERVISED if step.converged else FitStatus.NOT_CONVERGED
        yield HistoryRow(0, 0.0, step.objective, 0, step.gap)

    def finish(self, result: FitResult) -> None:
        """Fetch weights and labels."""
        self.restart.result(result)


@dataclass(eq=False)
class Rounds(Solver):
    """Rounds of weight and label steps at each weight of the unlabelled rows, from labels that a subclass provides.

    first_stage  number of the first stage in the history
    n_done       completed stages; 0 once there are labels to start from, −1 before
    at_rest      whether no label changed in the last stage at the weights that the weight step would start from
    """

    restart: Restart
    settings: Settings
    first_stage: int = 1
    n_done: int = -1
    at_rest: bool = False

    @property
    def _n_stages(self) -> int:
        return len(self.settings.weights)

    def is_last_stage(self, row: HistoryRow) -> bool:
        """Whether a round was in the last stage."""
        return row.stage >= self.first_stage + self._n_stages - 1

    def start(self) -> FitResult:
        """Return an empty result."""
        return FitResult(np.zeros(self.restart.n_classes))

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Generate one stage for each weight."""
        for number in range(self.n_done + 1, self._n_stages + 1):
            yield self._stage(result, number)

    def finish(self, result: FitResult) -> None:
        """Fetch weights and labels."""
        self.restart.result(result)

    def save(self, slot: CheckpointSlot, result: FitResult) -> None:
        """Save the stage that was just completed."""
        metadata = {"stage": self.n_done, "at_rest": bool(self.at_rest), "status": result.status.name}
        metadata["objective"] = float(result.objective)
        self.restart.save(slot, {"prices": result.prices}, metadata, done=self.n_done == self._n_stages)

    def resume(self, slot: CheckpointSlot, result: FitResult) -> None:
        """Continue after the stage in the slot, if there is one."""
        saved = self.restart.load(slot)
        if saved is not None:
            arrays, metadata = saved
            result.prices, result.objective = arrays["prices"], metadata["objective"]
            result.status = FitStatus[metadata["status"]]
            self.n_done, self.at_rest = metadata["stage"], metadata["at_rest"]

    def _stage(self, result: FitResult, number: int) -> Iterator[HistoryRow]:
        """Steps 11 to 14: rounds at one weight of the unlabelled rows, until no label changes.

        Labels at rest stay so when the weight of the unlabelled rows grows, as long as the weights stay.
        """
        settings, restart = self.settings, self.restart
        weight, is_last = settings.weights[number - 1], number == self._n_stages
        stage, tol, objective, n_moved = self.first_stage + number - 1, settings.early_tol, np.inf, 0
        at_rest, self.n_done, self.at_rest = self.at_rest, number, False
        for _ in range(settings.max_rounds):
            step = restart.weights(weight, tol)
            if at_rest and step.n_sweeps == 0 and not is_last:
                self.at_rest, result.objective = True, step.objective
                yield HistoryRow(stage, weight, step.objective, 0, step.gap)
                return
            objective, step_length = restart.descend(objective)
            is_early = tol > settings.tol
            objective, n_moved = self._label_step(result, objective, EARLY_THRESHOLD if is_early else THRESHOLD)
            yield HistoryRow(stage, weight, objective, n_moved, step.gap)
            if n_moved == 0 and not (is_early and is_last):
                self.at_rest = step_length == 1.0
                result.status = FitStatus.CONVERGED if step.converged else FitStatus.NOT_CONVERGED
                return
            if n_moved == 0:  # converged at the early tolerance: check it at the final one
                tol = settings.tol
        result.status = FitStatus.OUT_OF_ROUNDS if n_moved else FitStatus.NOT_CONVERGED

    def _label_step(self, result: FitResult, objective: float, threshold: float) -> tuple[float, int]:
        """Accept the best labels if they decrease J enough; return J and the number of rows that moved."""
        proposal = self.restart.propose(result.prices)
        better = proposal.n_moved == 0 or proposal.change < -threshold * proposal.old_loss
        self.restart.accept(better)
        result.prices = proposal.prices  # they belong to the weights, whether or not labels move
        result.objective = objective + proposal.change if better else objective
        return result.objective, proposal.n_moved if better else 0


@dataclass(eq=False)
class Alternation(Rounds):
    """Algorithm 1: alternating minimisation from the labels of the labelled rows."""

    restart: AnnealedRestart

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Generate the supervised start, then one stage for each weight."""
        if self.n_done < 0:
            yield self._supervised(result)
        yield from super().stages(result)

    def _supervised(self, result: FitResult) -> Iterator[HistoryRow]:
        """Steps 1 to 9."""
        step = self.restart.supervise(self.settings.early_tol)
        self.restart.greedy()
        self.n_done, result.objective = 0, step.objective
        yield HistoryRow(0, 0.0, step.objective, 0, step.gap)
