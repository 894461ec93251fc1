"""Soft annealing: labels start as distributions that meet the counts, cool until they are hard, and end in Algorithm 1.

    weights   one sweep of the weight step for the present distributions
    labels    q_ik ∝ exp((v_k − cost_ik) / T), prices v for the counts, T for the entropy that the stage asks for

Many such cheap rounds find better labels than a few accurate ones. Which minimum they reach depends on the cooling
schedule, and no schedule is best everywhere. So each schedule is one restart, and Algorithm 1 with the paper's schedule
is another. Cooled labels go through Algorithm 1 at the final weight, and the restart with the lowest J wins.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from transduce.engines.base import Engine, SoftLabels, StepSettings
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.loop import Loop
from transduce.solvers.schedule import ROUNDS, SoftStage

MIN_IMPROVEMENT = 5e-3
"""Minimum relative improvement over the paper's schedule."""
COOLED_TOL = 3e-2
"""Relative accuracy of weight steps after cooling: less accurate ones would lose what the soft labels have found."""


@dataclass(eq=False)
class CooledAlternation(Alternation):
    """Alternating minimisation at the final weight that starts from cooled labels instead of greedy ones.

    schedule      stages of the cooling
    cooling_slot  checkpoint of the soft labels
    soft_labels   while labels are soft
    n_cooled      completed stages of the cooling
    """

    schedule: tuple[SoftStage, ...] = ()
    cooling_slot: CheckpointSlot = field(default_factory=CheckpointSlot)
    soft_labels: SoftLabels | None = None
    n_cooled: int = 0

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Generate the stages of the cooling, then those of the alternation."""
        if self.n_done < 0:
            yield from self._cooling(self.restart.soft_labels())
        yield from super().stages(result)

    def _cooling(self, soft_labels: SoftLabels) -> Iterator[Iterator[HistoryRow]]:
        saved = soft_labels.load(self.cooling_slot)
        if saved is None:
            soft_labels.start()
        else:
            self.n_cooled = saved["stage"]
        self.soft_labels = soft_labels
        for stage in self.schedule[self.n_cooled :]:
            yield self._soft_stage(soft_labels, stage)
        soft_labels.harden(self.schedule[-1].weight)
        self.soft_labels, self.n_done = None, 0

    def _soft_stage(self, soft_labels: SoftLabels, stage: SoftStage) -> Iterator[HistoryRow]:
        self.n_cooled += 1
        for _ in range(ROUNDS):
            soft = soft_labels.round(stage.weight, stage.entropy)
            yield HistoryRow(
                self.n_cooled, stage.weight, soft.objective, soft.n_moved, soft.gap, temperature=soft.temperature
            )

    def save(self, slot: CheckpointSlot, result: FitResult) -> None:
        """Save the stage that was just completed."""
        if self.soft_labels is None:
            super().save(slot, result)
        else:
            self.soft_labels.save(self.cooling_slot, {"stage": self.n_cooled})


@dataclass(frozen=True, eq=False)
class SoftAnnealing:
    """Algorithm 1 and the cooling schedules, as restarts; `run` returns the best one.

    Restarts are independent, so they run in threads if there are several; the result does not depend on it.
    """

    engine: Engine
    steps: StepSettings
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]
    schedules: tuple[tuple[SoftStage, ...], ...]
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def run(self) -> FitResult:
        """Run all restarts and return the result of the best."""
        loop, schedules = Loop(self.on_round), self.schedules
        if not self.settings.weights or self.engine.n_unlabeled == 0 or self.engine.n_classes < 2:
            schedules = ()
        n_threads, engine = self.engine.split_threads(1 + len(schedules)) if schedules else (1, self.engine)
        rngs = [self.rng, *(self.rng.spawn(len(schedules)) if schedules else ())]
        slots = [self.checkpoint.slot(f"restart {k}") for k in range(len(rngs))]
        results: list[FitResult | None] = [None] * len(rngs)
        for k, slot in enumerate(slots):
            loop.histories[k] = slot.reported

        def run_one(k: int) -> None:
            if loop.stopped.is_set():
                return
            solver = Alternation(engine.new_restart(self.steps, rngs[k]), self.settings)
            result = loop.run(solver if k == 0 else self._cooled(solver, k, slots[k]), slots[k], k)
            if result.status is FitStatus.INTERRUPTED:
                loop.stopped.set()
            with loop.lock:
                results[k] = result
                _drop_weights(results)

        interrupted = loop.run_all(run_one, len(rngs), n_threads)
        return _best_result(results, loop, interrupted)

    def _cooled(self, plain: Alternation, k: int, slot: CheckpointSlot) -> CooledAlternation:
        """The solver of restart k, with the cooling schedule k − 1."""
        schedule, settings = self.schedules[k - 1], self.settings
        tol = max(settings.tol, min(settings.early_tol, COOLED_TOL))
        return CooledAlternation(
            plain.restart,
            replace(settings, weights=settings.weights[-1:], early_tol=tol),
            first_stage=len(schedule) + 1,
            schedule=schedule,
            cooling_slot=replace(self.checkpoint.slot(f"cooling {k}"), reported=slot.reported),
        )


def _best_restart(results: list[FitResult | None]) -> int | None:
    """The complete restart of lowest J; the paper's schedule unless another one is lower by MIN_IMPROVEMENT."""
    complete = {
        k: result.objective * (1.0 - MIN_IMPROVEMENT if k == 0 else 1.0)
        for k, result in enumerate(results)
        if result is not None and result.status is not FitStatus.INTERRUPTED
    }
    return min(complete, key=lambda k: complete[k]) if complete else None


def _drop_weights(results: list[FitResult | None]) -> None:
    """Free the weights of all complete restarts but the best: they are large."""
    best = _best_restart(results)
    for k, result in enumerate(results):
        if result is not None and k != best and result.status is not FitStatus.INTERRUPTED:
            result.W = None


def _best_result(results: list[FitResult | None], loop: Loop, interrupted: bool) -> FitResult:
    """The best result, of the complete restarts if there are any, with the history of all restarts."""
    best = results[_best_restart(results) or 0]
    if best is None:
        raise KeyboardInterrupt
    best.history = [row for k in sorted(loop.histories) for row in loop.histories[k]]
    if interrupted:
        best.status = FitStatus.INTERRUPTED
    return best
