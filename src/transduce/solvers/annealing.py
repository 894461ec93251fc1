"""Soft annealing: labels start as distributions that meet the counts, cool until they are hard, and end in Algorithm 1.

    weights   one sweep of the weight step for the present distributions
    labels    q_ik ∝ exp((v_k − cost_ik) / T), prices v for the counts, T for the entropy that the stage asks for

Which minimum the rounds reach depends on the cooling schedule, and no schedule is best everywhere. So each schedule is
one restart, and Algorithm 1 with the paper's schedule is another. Cooled labels go through Algorithm 1 at the final
weight, and the restart with the lowest J wins. After a round at the final weight, J less the duality gap of the weight
step, a lower bound on J for these labels, tells nearly as well which one that will be. So restarts are compared then:
the better one of those with a cooling schedule goes on, and the paper's does for as long as it can win.

Which minimum they reach is a matter of the classes, not of the number of rows. So of very many unlabelled rows a sample
is annealed, and all rows go through Algorithm 1 at the final weight from there.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np

from transduce.class_prior.bounds import Bounds
from transduce.engines.base import AnnealedEngine, AnnealedRestart, Engine, SoftLabels, StepSettings
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.label_step import METHODS
from transduce.label_step.infeasible import InfeasibleError
from transduce.losses import is_builtin
from transduce.problem import evidence_costs
from transduce.solvers.alternating import Alternation, Rounds, Settings, Supervised
from transduce.solvers.first_labels import evidence_of, recalibrate, with_first_labels
from transduce.solvers.loop import Job, Loop
from transduce.solvers.schedule import ROUNDS, SoftStage

MIN_IMPROVEMENT = 5e-3
"""Minimum relative improvement over the paper's schedule, and accuracy of the weight steps that decide about it where
all rows are refined afterwards."""
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLASS = 20_000, 200
"""Unlabelled rows that are annealed, or so many for each class if that is more."""
COOLED_TOL = 3e-2
"""Relative accuracy of weight steps after cooling: less accurate ones would lose what the soft labels have found."""
COLD = 1e-3
"""Fraction of the rows whose best label may change in each round of a stage that ends the cooling: few would later."""
SINGLE_TOL = 1e-3
"""Relative accuracy of the last weight step down to which single precision is enough."""


@dataclass(eq=False)
class CooledAlternation(Rounds):
    """Alternating minimisation at the final weight that starts from cooled labels instead of greedy ones.

    schedule      stages of the cooling
    cooling_slot  checkpoint of the soft labels
    soft_labels   while labels are soft
    n_cooled      completed stages of the cooling
    is_cold       whether hardly any label changed in the last of them
    """

    restart: AnnealedRestart
    schedule: tuple[SoftStage, ...] = ()
    cooling_slot: CheckpointSlot = field(default_factory=CheckpointSlot)
    soft_labels: SoftLabels | None = None
    n_cooled: int = 0
    is_cold: bool = False

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
            self.n_cooled, self.is_cold = saved["stage"], saved["is_cold"]
        self.soft_labels = soft_labels
        for stage in self.schedule[self.n_cooled :]:
            if self.is_cold:
                break
            yield self._soft_stage(soft_labels, stage)
        soft_labels.harden(self.schedule[-1].weight)
        self.soft_labels, self.n_done = None, 0

    def _soft_stage(self, soft_labels: SoftLabels, stage: SoftStage) -> Iterator[HistoryRow]:
        self.n_cooled += 1
        self.is_cold = True
        for _ in range(ROUNDS):
            soft = soft_labels.round(stage.weight, stage.entropy)
            self.is_cold &= soft.n_moved <= COLD * self.restart.n_unlabeled
            yield HistoryRow(
                self.n_cooled, stage.weight, soft.objective, soft.n_moved, soft.gap, temperature=soft.temperature
            )

    def save(self, slot: CheckpointSlot, result: FitResult) -> None:
        """Save the stage that was just completed."""
        if self.soft_labels is None:
            super().save(slot, result)
        else:
            self.soft_labels.save(self.cooling_slot, {"stage": self.n_cooled, "is_cold": self.is_cold})


@dataclass(eq=False)
class Refinement(Rounds):
    """Alternating minimisation at the final weight of all rows, from the weights of a fit of a sample of them.

    If that fit was interrupted, or labelling all rows is, they only get their labels.
    """

    sample_fit: FitResult = field(default_factory=lambda: FitResult(np.zeros(0)))

    def start(self) -> FitResult:
        """Return a result with the prices and the objective of the sample."""
        return FitResult(self.sample_fit.prices, objective=self.sample_fit.objective)

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Label all rows by the weights of the sample, then generate the stage of the alternation."""
        if self.sample_fit.status is FitStatus.INTERRUPTED:
            raise KeyboardInterrupt
        self._label_all()
        yield from super().stages(result)

    def finish(self, result: FitResult) -> None:
        """Fetch weights and labels."""
        self._label_all()
        super().finish(result)

    def _label_all(self) -> None:
        if self.n_done < 0:
            self.restart.start_at(self.sample_fit.W, self.settings.weights[-1])
            self.n_done = 0


@dataclass(frozen=True, eq=False)
class SoftAnnealing:
    """Algorithm 1 and the cooling schedules, as independent restarts, maybe in threads; `run` returns the best."""

    engine: Engine
    steps: StepSettings
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]
    schedules: tuple[tuple[SoftStage, ...], ...]
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def run(self) -> FitResult:
        """Anneal all rows, or a sample of them and then refine the result on all."""
        n_rows = self.engine.n_unlabeled
        if not self.settings.weights or not n_rows:
            supervised = Supervised(self.engine.new_restart(self.steps, self.rng), self.settings.tol)
            return Loop(self.on_round).run(supervised)
        draw, last = self.rng.spawn(2)  # so that both are the same if a restart is resumed
        evidence = evidence_of(self.engine)
        if evidence is not None and evidence.is_judged:
            return self._refine(self._at_zero(), last)
        sample: AnnealedEngine = self.engine.sample(max_annealed_rows(self.engine.n_classes), draw)
        if evidence is not None:
            return self._weigh_evidence(sample, draw, last)
        if sample is self.engine:
            return self._anneal(sample, self.steps)
        bounds = self.steps.bounds.scaled(n_rows, sample.n_unlabeled)
        rough = replace(self.settings, tol=max(self.settings.tol, MIN_IMPROVEMENT))
        return self._refine(replace(self, settings=rough)._anneal_some(sample, bounds), last)

    def _anneal_some(self, sample: AnnealedEngine, bounds: Bounds) -> FitResult:
        """Anneal some of the rows with bounds in proportion."""
        try:
            return self._anneal(sample, self.steps._replace(bounds=bounds))
        except InfeasibleError:  # by chance, more rows of the sample have some partial label than of all rows
            free = self.steps._replace(bounds=bounds.as_belief(sample.n_unlabeled), label_step=METHODS["exact"])
            return self._anneal(sample, free)

    def _weigh_evidence(self, sample: Any, draw: np.random.Generator, last: np.random.Generator) -> FitResult:
        """Anneal with first labels by the evidence, weigh it by the labels found, and refine with all rows."""
        bounds = self.steps.bounds.scaled(self.engine.n_unlabeled, sample.n_unlabeled)
        first = with_first_labels(sample, bounds)
        found = self._anneal_some(first, self.steps.bounds.scaled(self.engine.n_unlabeled, first.n_unlabeled))
        engine: Any = recalibrate(self.engine, first, found.labels, draw)  # type: ignore[arg-type]
        return replace(self, engine=engine)._refine(found, last)

    def _at_zero(self) -> FitResult:
        """A result with weights 0, from which rows get their first labels by the evidence alone."""
        restart: Any = self.engine.new_restart(self.steps, self.rng)
        return FitResult(np.zeros(self.engine.n_classes), restart.W)

    def _refine(self, found: FitResult, rng: np.random.Generator) -> FitResult:
        """Continue with all rows from the fit of a sample."""
        number, history = 1 + len(self.schedules), found.history
        restart = self.engine.new_restart(self.steps, rng)
        stage = 1 + (history[-1].stage if history else 0)
        solver = Refinement(restart, self._cooled_settings(), stage, sample_fit=found)
        slot = self.checkpoint.slot(f"restart {number}")
        result = Loop(self.on_round, histories={0: history}).run(solver, slot, number)
        result.history = [*history, *result.history]
        if evidence_of(self.engine) is not None:
            result.evidence = evidence_costs(self.engine.problem, self.settings.weights[-1])  # type: ignore[attr-defined]
        return result

    def _anneal(self, engine: AnnealedEngine, steps: StepSettings) -> FitResult:
        """Run all restarts and return the result of the best."""
        schedules = self.schedules if engine.n_classes > 1 else ()
        if schedules and self.settings.tol >= SINGLE_TOL:
            engine = engine.in_single_precision()
        n_threads, engine = engine.split_threads(1 + len(schedules))
        rngs = [self.rng, *self.rng.spawn(len(schedules))]
        slots = [self.checkpoint.slot(f"restart {k}") for k in range(len(rngs))]
        loop = Loop(self.on_round, histories={k: slot.reported for k, slot in enumerate(slots)})
        contest = _Contest(loop, slots, has_gap=is_builtin(engine.problem.loss))

        def run_one(k: int) -> Job:
            restart = engine.new_restart(steps, rngs[k])
            solver = self._solver(restart, k, schedules, slots[k])
            yield from contest.whole(solver, k) if engine.is_large else contest.until_last_stage(solver, k)

        interrupted = loop.run_all(run_one, len(rngs), n_threads)
        finalists = [] if interrupted else contest.finalists()
        if finalists:
            interrupted = loop.run_all(lambda number: finalists[number], len(finalists), min(n_threads, len(finalists)))
        best = contest.best()
        if best is None:
            raise KeyboardInterrupt
        best.history = [row for k in sorted(loop.histories) for row in loop.histories[k]]
        best.status = FitStatus.INTERRUPTED if interrupted else best.status
        return best

    def _solver(
        self, restart: AnnealedRestart, k: int, schedules: tuple[tuple[SoftStage, ...], ...], slot: CheckpointSlot
    ) -> Rounds:
        """The solver of restart k: the paper's schedule, or the cooling schedule k − 1."""
        if k == 0:
            return Alternation(restart, self.settings)
        schedule, cooling = schedules[k - 1], replace(self.checkpoint.slot(f"cooling {k}"), reported=slot.reported)
        return CooledAlternation(
            restart, self._cooled_settings(), len(schedule) + 1, schedule=schedule, cooling_slot=cooling
        )

    def _cooled_settings(self) -> Settings:
        """Settings of the alternation at the final weight, from good labels."""
        settings = self.settings
        tol = max(settings.tol, min(settings.early_tol, COOLED_TOL))
        return replace(settings, weights=settings.weights[-1:], early_tol=tol)


def max_annealed_rows(n_classes: int) -> int:
    """Most unlabelled rows that are annealed."""
    return max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLASS * n_classes)


@dataclass(eq=False)
class _Contest:
    """Restarts that are compared after the first round of their last stage, and those that go on from there.

    has_gap  whether gaps of rounds are duality gaps, which those of a loss of the user's own are not
    firsts   that round of each restart
    pending  the rounds that each restart has left
    results  of the restarts that ended
    paper    the paper's restart
    """

    loop: Loop
    slots: list[CheckpointSlot]
    has_gap: bool = True
    firsts: dict[int, HistoryRow] = field(default_factory=dict)
    pending: dict[int, Job] = field(default_factory=dict)
    results: dict[int, FitResult] = field(default_factory=dict)
    paper: Alternation | None = None

    def until_last_stage(self, solver: Rounds, k: int) -> Job:
        """Run restart k up to the first round of its last stage."""
        self.pending[k] = self.whole(solver, k)
        self.paper = solver if isinstance(solver, Alternation) else self.paper
        yield from takewhile(lambda row: not solver.is_last_stage(row), self.pending[k])
        first = next(filter(solver.is_last_stage, self.loop.histories[k]), None)
        if first is not None:
            self.firsts[k] = first

    def whole(self, solver: Rounds, k: int) -> Job:
        """Run restart k to its end."""
        self.results[k] = yield from self.loop.rounds(solver, self.slots[k], k)

    def finalists(self) -> list[Job]:
        """The rounds left of the paper's restart, while it can win, and of the best other one."""
        cooled = [k for k in self.firsts if k]
        if not cooled:
            return list(self.pending.values())
        best = min(cooled, key=lambda k: self._bound(self.firsts[k]))
        self.pending = {k: self.pending[k] for k in (0, best)}  # the others need memory
        return [self._while_it_can_win(self.firsts[best].objective), self.pending[best]]

    def _while_it_can_win(self, objective: float) -> Job:
        """Rounds of the paper's restart until even its bound is too far above J of another one."""
        limit = objective / (1.0 - MIN_IMPROVEMENT) if self.has_gap else np.inf
        if self.paper is not None:
            self.paper.restart.stop_above(limit)
        if self._bound(self.firsts[0]) <= limit:
            yield from takewhile(lambda row: self._bound(row) <= limit, self.pending[0])

    def _bound(self, row: HistoryRow) -> float:
        """Lower bound on J at the labels of a round, or J if none is known."""
        return row.objective - row.gap if self.has_gap else row.objective

    def best(self) -> FitResult | None:
        """The complete restart of lowest J; the paper's schedule unless another one is lower by MIN_IMPROVEMENT.

        If none is complete, what the paper's restart has found so far.
        """
        complete = [k for k in sorted(self.results) if self.results[k].status is not FitStatus.INTERRUPTED]
        if complete:
            objectives = {k: self.results[k].objective * (1.0 if k else 1.0 - MIN_IMPROVEMENT) for k in complete}
            return self.results[min(complete, key=lambda k: objectives[k])]
        if 0 in self.pending:
            with suppress(StopIteration, KeyboardInterrupt):
                self.pending[0].throw(KeyboardInterrupt)
        return self.results.get(0)
