"""Soft annealing: labels begin as distributions that meet the counts, cool until they are hard, and end in Algorithm 1.

    weights   one sweep of the weight step for the present distributions
    labels    q_ik ∝ exp((v_k − cost_ik) / T), prices v for the counts, T for the entropy that the stage asks for

Many such cheap rounds find better labels than a few accurate ones. What they end in depends on how they cool, and none
of the schedules is best everywhere. So each of them is run, and the paper's own too; the labels of each are taken to a
minimum of J by Algorithm 1 at the final weight, and the lowest J wins; the paper's, if it is nearly as low. J needs no
labels but the given ones to compare.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.base import Engine, SoftLabels, StepSettings
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.schedule import ROUNDS, SoftStage

Array = NDArray[Any]

MEANS_NOTHING = 5e-3
"""Share of J by which another way must be lower than the paper's: closer ones are as right."""
ARRIVAL_TOL = 3e-2
"""Relative accuracy of weight steps when cooled labels arrive at Algorithm 1: too loose would lose what they know."""


@dataclass(frozen=True, eq=False)
class SoftAnnealing:
    """Algorithm 1 and the coolings that lead to it; `run` keeps the best of all ways.

    Ways are independent, so each has a thread where there are cores; what comes out does not depend on it.
    """

    rows: Engine
    task: StepSettings
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]
    cooling_schedules: tuple[tuple[SoftStage, ...], ...]
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def run(self) -> FitResult:
        """Fit from the labels of the labelled rows."""
        if not self.settings.weights or self.rows.n_unlabeled == 0 or self.rows.n_classes < 2:
            engine = self.rows.new_restart(self.task, self.rng)
            return Alternation(engine, self.settings, self.on_round, self.checkpoint.slot("restart 0")).run()
        clock = _Clock(self.on_round)
        n_restarts = 1 + len(self.cooling_schedules)
        n_threads, rows = self.rows.split_threads(n_restarts)
        rngs = [self.rng, *self.rng.spawn(len(self.cooling_schedules))]
        shelves = [self.checkpoint.slot(f"restart {restart}") for restart in range(n_restarts)]
        told = [clock.of_restart(restart, slot) for restart, slot in enumerate(shelves)]
        outcomes: list[FitResult | None] = [None] * n_restarts

        def go(restart: int) -> None:
            if clock.stopped.is_set():
                return
            play = Alternation(
                rows.new_restart(self.task, rngs[restart]), self.settings, told[restart], shelves[restart]
            )
            soft_labels = replace(self.checkpoint.slot(f"cooling {restart}"), reported=shelves[restart].reported)
            outcome = play.run() if restart == 0 else _cooled(play, self.cooling_schedules[restart - 1], soft_labels)
            if outcome.status is FitStatus.INTERRUPTED:
                clock.stopped.set()
            with clock.lock:
                outcomes[restart] = outcome
                _drop_weights_of_all_but_the_best(outcomes)

        interrupted = _in_threads(go, n_restarts, n_threads, clock)
        return _best(outcomes, clock, interrupted)


class _Clock:
    """Time since the start, and the rounds of all ways; stops them when it is told to."""

    def __init__(self, on_round: Callable[[HistoryRow], None]) -> None:
        self.begin = time.perf_counter()
        self.on_round = on_round
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.rows: dict[int, list[HistoryRow]] = {}

    def _now(self) -> float:
        """Seconds since the start; after those of rounds that were told of before the fit was taken up again."""
        now = time.perf_counter() - self.begin
        lag = max((rows[-1].seconds for rows in self.rows.values() if rows), default=0.0) - now
        if lag > 0.0:
            self.begin -= lag
        return now + max(lag, 0.0)

    def of_restart(self, restart: int, slot: CheckpointSlot) -> Callable[[HistoryRow], None]:
        """What a way tells its rounds to; its shelf remembers them."""
        rows = self.rows[restart] = slot.reported

        def tell(row: HistoryRow) -> None:
            with self.lock:
                row = replace(row, restart=restart, seconds=self._now())
                rows.append(row)
                if self.stopped.is_set():
                    raise KeyboardInterrupt
                self.on_round(row)

        return tell


def _in_threads(go: Callable[[int], None], n_tasks: int, n_threads: int, clock: _Clock) -> bool:
    """Run the tasks, in this thread if there is but one; says whether they were interrupted."""
    pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
    try:
        if pool is None:
            for task in range(n_tasks):
                go(task)
        else:
            for future in [pool.submit(go, task) for task in range(n_tasks)]:
                future.result()
    except KeyboardInterrupt:
        clock.stopped.set()
        return True
    except BaseException:
        clock.stopped.set()
        raise
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    return False


def _drop_weights_of_all_but_the_best(outcomes: list[FitResult | None]) -> None:
    """Let go of what is not needed any more: weights are large."""
    best = _best_restart(outcomes)
    for restart, outcome in enumerate(outcomes):
        if outcome is not None and restart != best and outcome.status is not FitStatus.INTERRUPTED:
            outcome.W = np.zeros((0, 0))


def _best_restart(outcomes: list[FitResult | None]) -> int | None:
    """The complete way of least J; the paper's, unless another is lower by more than differences that mean nothing."""
    found = {
        restart: outcome.objective * (1.0 - MEANS_NOTHING if restart == 0 else 1.0)
        for restart, outcome in enumerate(outcomes)
        if outcome is not None and outcome.status is not FitStatus.INTERRUPTED
    }
    return min(found, key=lambda restart: found[restart]) if found else None


def _best(outcomes: list[FitResult | None], clock: _Clock, interrupted: bool) -> FitResult:
    """The outcome of least J, of those that are complete if any is; with the rounds of all ways."""
    interrupted |= any(outcome is not None and outcome.status is FitStatus.INTERRUPTED for outcome in outcomes)
    best = outcomes[_best_restart(outcomes) or 0]
    if best is None:
        raise KeyboardInterrupt
    best.history = [row for restart in sorted(clock.rows) for row in clock.rows[restart]]
    if interrupted:
        best.status = FitStatus.INTERRUPTED
    return best


def _cooled(play: Alternation, stages: tuple[SoftStage, ...], slot: CheckpointSlot) -> FitResult:
    """Cool, then settle at the final weight."""
    settings, tell = play.settings, play.on_round
    tol = max(settings.tol, min(settings.early_tol, ARRIVAL_TOL))

    def tell_later(row: HistoryRow) -> None:
        tell(replace(row, stage=len(stages) + 1))

    def start() -> None:
        _cool(play.engine.soft_labels(), stages, slot, tell)

    last = replace(settings, weights=settings.weights[-1:], early_tol=tol)
    return replace(play, settings=last, on_round=tell_later).run(start)


def _cool(
    soft_labels: SoftLabels, stages: tuple[SoftStage, ...], slot: CheckpointSlot, on_round: Callable[[HistoryRow], None]
) -> None:
    """Go through all stages, from the one after the last that was kept, to hard labels."""
    saved = soft_labels.load(slot)
    if saved is None:
        soft_labels.start()
    for number, stage in list(enumerate(stages, start=1))[0 if saved is None else saved["stage"] :]:
        for _ in range(ROUNDS):
            soft = soft_labels.round(stage.weight, stage.entropy)
            on_round(HistoryRow(number, stage.weight, soft.objective, soft.n_moved, soft.gap, 0.0, soft.temperature))
        soft_labels.save(slot, {"stage": number})
    soft_labels.harden(stages[-1].weight)
