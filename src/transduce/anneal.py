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

from transduce.alternate import Alternation, packed_state, unpacked_state, weighted_costs
from transduce.checkpoints import Checkpoint, Shelf
from transduce.counts import Bounds
from transduce.history import Ending, HistoryRow, Outcome
from transduce.label_step import LabelProblem
from transduce.label_step.entropic import solve_at_entropy
from transduce.losses import softened
from transduce.problem import TrainingProblem
from transduce.schedule import ROUNDS, SoftStage
from transduce.weight_step import Smooth, WeightState, WeightStep, weight_step_for

Array = NDArray[Any]

FIRST_TOL, FIRST_SWEEPS = 1e-2, 1000
"""Relative accuracy of the weights before any unlabelled row counts, and sweeps that they may take."""
SWEEPS, ITERATIONS = 1, 10
"""Work of one weight step while labels are soft: sweeps of a dual one, or iterations of L-BFGS."""
PARALLEL_CELLS = 10_000_000
"""Rows times classes up to which ways run side by side; beyond, memory is dearer than time."""
MEANS_NOTHING = 5e-3
"""Share of J by which another way must be lower than the paper's: closer ones are as right."""
ARRIVAL_TOL = 3e-2
"""Relative accuracy of weight steps when cooled labels arrive at Algorithm 1: too loose would lose what they know."""


@dataclass(frozen=True, eq=False)
class SoftAnnealing:
    """Algorithm 1 and the coolings that lead to it; `run` keeps the best of all ways.

    Ways are independent, so each has a thread where there are cores; what comes out does not depend on it.
    """

    alternation: Alternation
    coolings: tuple[tuple[SoftStage, ...], ...]
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def run(self, labels: Array) -> Outcome:
        """Fit from the labels of the labelled rows; those of unlabelled rows are ignored."""
        problem = self.alternation.problem
        if not self.alternation.settings.weights or problem.n_rows == problem.n_labeled or problem.n_classes < 2:
            return replace(self.alternation, shelf=self.checkpoint.shelf("way 0")).run(labels)
        clock = _Clock(self.alternation.on_round)
        small = problem.n_rows * problem.n_classes <= PARALLEL_CELLS
        n_threads = min(problem.design.n_threads, 1 + len(self.coolings)) if small else 1
        design = replace(problem.design, n_threads=1) if n_threads > 1 else problem.design
        shared = replace(self.alternation, problem=replace(problem, design=design))
        tasks = []
        for way, rng in enumerate([self.alternation.rng, *self.alternation.rng.spawn(len(self.coolings))]):
            shelf = self.checkpoint.shelf(f"way {way}")
            cooling = replace(self.checkpoint.shelf(f"cooling {way}"), told=shelf.told)
            mine = replace(shared, rng=rng, on_round=clock.of_way(way, shelf), shelf=shelf)
            tasks.append((mine, None if way == 0 else self.coolings[way - 1], cooling))
        outcomes: list[Outcome | None] = [None] * len(tasks)

        def go(way: int) -> None:
            if clock.stopped.is_set():
                return
            outcome = _one_way(*tasks[way], labels)
            if outcome.ending is Ending.INTERRUPTED:
                clock.stopped.set()
            with clock.lock:
                outcomes[way] = outcome
                _drop_weights_of_all_but_the_best(outcomes)

        interrupted = _in_threads(go, len(tasks), n_threads, clock)
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

    def of_way(self, way: int, shelf: Shelf) -> Callable[[HistoryRow], None]:
        """What a way tells its rounds to; its shelf remembers them."""
        rows = self.rows[way] = shelf.told

        def tell(row: HistoryRow) -> None:
            with self.lock:
                row = replace(row, way=way, seconds=self._now())
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


def _drop_weights_of_all_but_the_best(outcomes: list[Outcome | None]) -> None:
    """Let go of what is not needed any more: weights are large."""
    best = _best_way(outcomes)
    for way, outcome in enumerate(outcomes):
        if outcome is not None and way != best and outcome.ending is not Ending.INTERRUPTED:
            outcome.W = np.zeros((0, 0))


def _best_way(outcomes: list[Outcome | None]) -> int | None:
    """The complete way of least J; the paper's, unless another is lower by more than differences that mean nothing."""
    found = {
        way: outcome.objective * (1.0 - MEANS_NOTHING if way == 0 else 1.0)
        for way, outcome in enumerate(outcomes)
        if outcome is not None and outcome.ending is not Ending.INTERRUPTED
    }
    return min(found, key=lambda way: found[way]) if found else None


def _best(outcomes: list[Outcome | None], clock: _Clock, interrupted: bool) -> Outcome:
    """The outcome of least J, of those that are complete if any is; with the rounds of all ways."""
    interrupted |= any(outcome is not None and outcome.ending is Ending.INTERRUPTED for outcome in outcomes)
    best = outcomes[_best_way(outcomes) or 0]
    if best is None:
        raise KeyboardInterrupt
    best.history = [row for way in sorted(clock.rows) for row in clock.rows[way]]
    if interrupted:
        best.ending = Ending.INTERRUPTED
    return best


def _one_way(alternation: Alternation, stages: tuple[SoftStage, ...] | None, cooling: Shelf, labels: Array) -> Outcome:
    """The paper's way; or cool, then settle at the final weight."""
    if stages is None:
        return alternation.run(labels)
    settings, tell = alternation.settings, alternation.on_round
    tol = max(settings.tol, min(settings.early_tol, ARRIVAL_TOL))

    def tell_later(row: HistoryRow) -> None:
        tell(replace(row, stage=len(stages) + 1))

    last = replace(settings, weights=settings.weights[-1:], early_tol=tol)
    settling = replace(alternation, settings=last, on_round=tell_later)
    return settling.run(labels, lambda: _cool(alternation, labels, stages, cooling))


def _cool(alternation: Alternation, labels: Array, stages: tuple[SoftStage, ...], shelf: Shelf) -> Array:
    """Hard labels of the unlabelled rows after all stages."""
    hard, rng = alternation.problem, alternation.rng
    bounds = Bounds(alternation.low, alternation.high, alternation.groups)
    problem = replace(hard, loss=softened(hard.loss))
    unlabeled = slice(hard.n_labeled, None)
    step = weight_step_for(problem.loss, SWEEPS)
    if isinstance(step, Smooth):
        step = replace(step, max_iter=ITERATIONS)
    saved = shelf.load()
    if saved is None:
        state, scores = _warm(problem, step, _first_targets(hard, labels, bounds), rng)
        T, n_done, prices = None, 0, np.zeros(hard.n_classes)
        chosen = np.full(hard.n_rows - hard.n_labeled, -1)
    else:
        state = unpacked_state(problem, saved)
        T, n_done, rng.bit_generator.state = (saved.facts[name] for name in ("T", "stage", "rng"))
        prices, chosen, scores = saved.arrays["prices"], saved.arrays["chosen"], problem.design.scores(state.W)
    targets = state.targets.copy()
    evenly = np.ones(hard.n_rows) if hard.n_partial else hard.shares  # a temperature is for rows of one kind
    for number, stage in list(enumerate(stages, start=1))[n_done:]:
        kappa = problem.kappa(stage.weight)
        for _ in range(ROUNDS):
            costs = weighted_costs(problem, problem.loss.label_costs(scores[unlabeled]), evenly)
            soft, T = solve_at_entropy(LabelProblem(costs, *bounds), stage.entropy, T, prices)
            prices, targets[unlabeled] = soft.prices, soft.posterior
            step.retarget(problem, state, targets, kappa)
            report = step.solve(problem, state, 0.0, rng)
            scores = report.scores
            now = soft.posterior.argmax(axis=1)
            moved, chosen = int((now != chosen).sum()), now
            alternation.on_round(HistoryRow(number, stage.weight, report.objective, moved, report.gap, 0.0, T))
        kept = packed_state(state) | {"prices": prices, "chosen": chosen}
        shelf.save(kept, {"stage": number, "T": T, "rng": rng.bit_generator.state})
    costs = weighted_costs(hard, hard.loss.label_costs(scores[unlabeled]), hard.kappa(stages[-1].weight))
    return np.asarray(alternation.label_step.solve(LabelProblem(costs, *bounds)).labels)


def _first_targets(problem: TrainingProblem, labels: Array, bounds: Bounds) -> Array:
    """Given labels, and distributions of all others that know nothing but the class sizes."""
    targets = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
    targets[np.arange(problem.n_labeled), labels[: problem.n_labeled]] = 1.0
    shares = _first_shares(bounds, problem.n_rows - problem.n_labeled)
    targets[problem.n_labeled :] = _at_first(problem, shares)
    return targets


def _warm(
    problem: TrainingProblem, step: WeightStep, targets: Array, rng: np.random.Generator
) -> tuple[WeightState, Array]:
    """Weights of the labelled rows alone, and scores at them."""
    state = step.start(problem, targets)
    first = weight_step_for(problem.loss, FIRST_SWEEPS)
    first.retarget(problem, state, targets, problem.kappa(0.0))
    return state, first.solve(problem, state, FIRST_TOL, rng).scores


def _at_first(problem: TrainingProblem, shares: Array) -> Array:
    """Distributions (n, K) of rows about which nothing is known but the class shares and what is forbidden."""
    if problem.forbidden is None:
        return shares
    allowed = np.where(problem.forbidden, 0.0, np.maximum(shares, np.finfo(np.float64).tiny))
    return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))


def _first_shares(bounds: Bounds, n_rows: int) -> Array:
    """Shares of the classes in the middle of their bounds."""
    low, high, groups = bounds
    return np.asarray((low + high) / (low + high).sum() if groups is None else groups.shares(low, high, n_rows))
