"""Algorithm 1 of the paper: weight steps and label steps in turn, while the unlabelled rows gain weight.

    1-2    weights from the labelled rows
    3-9    greedy labels for the others, meeting the counts
    10-15  for each C of the schedule: weights, then labels, until no label moves

Within a stage J never rises. A weight step stops at a tolerance and may end a little higher than it began; then the
best point on the way there is taken. A label step must lower J, by more than a tolerance while weight steps are loose,
or the old labels stay. A stage ends when no label moves, so rounds cannot repeat. Where the rows are, and how a step
is done there, is the engine's business.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.base import Restart
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import CheckpointSlot

Array = NDArray[Any]

LOOSE_FLOOR, FLOOR = 1e-4, 1e-5
"""Labels that lower the loss of the unlabelled rows by no more than this share of it are as good as the old ones, which
stay: first while weight steps are loose, then at their final tolerance."""


@dataclass(frozen=True)
class Settings:
    """Knobs of the alternation: weights of the stages, tolerances of the last and of earlier ones, rounds a stage."""

    weights: tuple[float, ...]
    tol: float
    early_tol: float
    max_rounds: int


@dataclass(frozen=True, eq=False)
class Alternation:
    """Whoever holds the rows, and how often weights and labels take turns there; `run` plays them."""

    engine: Restart
    settings: Settings
    on_round: Callable[[HistoryRow], None] = lambda row: None
    slot: CheckpointSlot = field(default_factory=CheckpointSlot)

    def run(self, start: Callable[[], None] | None = None) -> FitResult:
        """Fit from the labels of the labelled rows.

        `start` gives the engine labels of the unlabelled rows to begin from, in place of the greedy ones. Where the
        shelf has a stage of this fit, it goes on from there.
        """
        outcome = FitResult(np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(self.engine.n_classes))
        begin = time.perf_counter()
        try:
            if not self._go_on(outcome, begin):
                if start is None:
                    self._play(outcome, begin)
                else:
                    start()
                    self._stages(outcome, begin)
        except KeyboardInterrupt:
            outcome.status = FitStatus.INTERRUPTED
            if not outcome.history:
                raise
        self.engine.result(outcome)
        return outcome

    def _play(self, outcome: FitResult, begin: float) -> None:
        supervised = not self.settings.weights or self.engine.n_unlabeled == 0
        step = self.engine.supervise(self.settings.tol if supervised else self.settings.early_tol)
        if not supervised:
            self.engine.greedy()
        self._record(outcome, HistoryRow(0, 0.0, step.objective, 0, step.gap, time.perf_counter() - begin))
        if supervised:
            outcome.status = FitStatus.SUPERVISED if step.converged else FitStatus.NOT_CONVERGED
        self._keep(outcome, 0, False, done=supervised)
        if not supervised:
            self._stages(outcome, begin)

    def _stages(self, outcome: FitResult, begin: float, n_done: int = 0, at_rest: bool = False) -> None:
        """Steps 10 to 15."""
        n_stages = len(self.settings.weights)
        for stage in range(n_done + 1, n_stages + 1):
            at_rest = self._stage(outcome, stage, self.settings.weights[stage - 1], begin, at_rest)
            self._keep(outcome, stage, at_rest, done=stage == n_stages)

    def _keep(self, outcome: FitResult, stage: int, at_rest: bool, done: bool) -> None:
        """Put a complete stage on the shelf."""
        facts = {
            "stage": stage, "at_rest": bool(at_rest), "objective": float(outcome.objective), "done": done,
            "ending": outcome.status.name, "history": [asdict(row) for row in outcome.history],
        }  # fmt: skip
        self.engine.save(self.slot, {"prices": outcome.prices}, facts, done)

    def _go_on(self, outcome: FitResult, begin: float) -> bool:
        """Take up the fit after the stage that was kept, if there is one."""
        saved = self.engine.load(self.slot)
        if saved is None:
            return False
        arrays, facts = saved
        outcome.prices, outcome.objective = arrays["prices"], facts["objective"]
        outcome.status = FitStatus[facts["ending"]]
        outcome.history[:] = [HistoryRow(**row) for row in facts["history"]]
        if not facts["done"]:
            begin -= outcome.history[-1].seconds if outcome.history else 0.0
            self._stages(outcome, begin, facts["stage"], facts["at_rest"])
        return True

    def _stage(self, outcome: FitResult, stage: int, weight: float, begin: float, at_rest: bool) -> bool:
        """Rounds at one weight of the unlabelled rows; says whether the labels are at rest at the weights of the state.

        Labels at rest stay so when the unlabelled rows gain weight, for as long as the weights stay.
        """
        engine, last = self.engine, stage == len(self.settings.weights)
        tol, objective, n_moved = self.settings.early_tol, np.inf, 0
        for _ in range(self.settings.max_rounds):
            step = engine.weights(weight, tol)
            if at_rest and step.n_sweeps == 0 and not last:
                seconds = time.perf_counter() - begin
                self._record(outcome, HistoryRow(stage, weight, step.objective, 0, step.gap, seconds))
                return True
            objective, share = engine.descend(objective)
            proposal = engine.propose(outcome.prices)
            loose = tol > self.settings.tol
            floor = (LOOSE_FLOOR if loose else FLOOR) * proposal.old_loss
            better = proposal.n_moved == 0 or proposal.change < -floor
            n_moved = proposal.n_moved if better else 0
            engine.accept(better)
            if better:
                objective += proposal.change
            outcome.prices = proposal.prices  # they belong to the weights, whether or not labels move
            seconds = time.perf_counter() - begin
            self._record(outcome, HistoryRow(stage, weight, objective, n_moved, step.gap, seconds))
            if n_moved == 0 and not (loose and last):
                outcome.status = FitStatus.SETTLED if step.converged else FitStatus.NOT_CONVERGED
                return share == 1.0
            if n_moved == 0:  # settled at the loose tolerance: see whether it stays so at the tight one
                tol = self.settings.tol
        outcome.status = FitStatus.OUT_OF_ROUNDS if n_moved else FitStatus.NOT_CONVERGED
        return False

    def _record(self, outcome: FitResult, row: HistoryRow) -> None:
        outcome.objective = row.objective
        outcome.history.append(row)
        self.on_round(row)
