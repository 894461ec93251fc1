"""The engine over Dask: the verbs of `engines`, each a trip or two to all shards; only weights and prices travel.

Every shard has the weights; what shards change in them is added up on the workers, and the sum comes back to all. The
driver sees their length, and the weights themselves when a stage is kept or a way is done. Dual steps are swept by two
shards in turn, by more at once, each bending W by `sigma` times what it knows of, so that changes can safely be added
(Ma and others, 2015); losses without a dual are minimised by exact sums.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from distributed import Future
from numpy.typing import NDArray
from scipy import sparse

from transduce.class_prior.bounds import Bounds
from transduce.design import Design, frequency_order, pays_to_reorder, undo_order
from transduce.engines.base import Engine, FittedLabels, LabelProposal, SoftRoundSummary, StepSettings, WeightSummary
from transduce.engines.common import FIRST_SWEEPS, FIRST_TOL, SOFT_ITERATIONS, SOFT_SWEEPS, STEP_LENGTHS
from transduce.engines.dask import shard_labels, shard_weights, shards
from transduce.engines.dask.blocks import Source
from transduce.engines.dask.checkpoint import load, save
from transduce.engines.dask.shards import Made, Making
from transduce.engines.dask.weight_deltas import as_change
from transduce.engines.dask.weight_step import Climb, fetched_sum
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.io.fingerprint import fingerprint
from transduce.label_step import Exact
from transduce.label_step.entropic import Entropic, solve_partitions_at_entropy
from transduce.label_step.greedy import greedy_partitions
from transduce.label_step.partitions import Partition
from transduce.losses import Loss, smoothed
from transduce.problem import TrainingProblem
from transduce.weight_step import LBFGS, WeightStep, weight_step_for
from transduce.weight_step.dual import as_distributions

Array = NDArray[Any]
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

TEAMS = "shards.json"
"""Which blocks make up each shard of each team, beside the stages of a fit."""
SMALL = 1 << 18
"""Bytes of labelled rows that come here in any case."""


class Labeled(NamedTuple):
    """The labelled rows of all shards, gathered: a problem of their own, their labels, and how many a shard has."""

    problem: TrainingProblem
    labels: Array
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Rows on the workers of a crew: how many, of which classes, with which loss; labelled ones are here, if few."""

    pool: WorkerPool
    loss: Loss
    alpha: float
    n_unlabeled: int
    n_classes: int
    dtype: np.dtype[Any]
    total_weight: tuple[float, float]
    sizes: tuple[int, ...]
    source: Source
    content: dict[str, Any]
    n_threads: int = 1
    labeled: Labeled | None = None
    forbids: bool = False
    column_order: Array | None = None
    names: Any = field(default_factory=count)

    def new_restart(self, task: StepSettings, rng: np.random.Generator) -> "DaskRestart":
        """A new way to the labels."""
        return DaskRestart(self, task, rng, str(next(self.names)))

    def in_original_order(self, W: Array) -> Array:
        """Weights with a row for each column of X, as users count them."""
        return W if self.column_order is None else undo_order(W, self.column_order)

    def split_threads(self, n_restarts: int) -> tuple[int, Engine]:
        """One at a time: each has all workers."""
        return 1, self

    def predicted_counts(self, W: Array) -> Array:
        """Rows without a full label of each class (K,) by the best scores, heeding what is forbidden."""
        return np.asarray(np.sum([counts for counts, _ in self._tallies(W)], axis=0))

    def predicted_counts_of(self, restart: str) -> Array:
        """The same by the scores that a way was judged by."""
        return np.asarray(np.sum([counts for counts, _ in self.pool.each(shard_labels.tallies_of, restart)], axis=0))

    def predicted_proportions(self, W: Array) -> Array:
        """Class shares (K,) of these rows by the posterior alone; by the best scores, where there is none."""
        return np.asarray(np.sum([mass for _, mass in self._tallies(W)], axis=0) / max(self.n_unlabeled, 1))

    def fitted_labels(self, result: FitResult, bounds: Bounds, classes: Array) -> FittedLabels:
        """Labels and distributions of all blocks, as lists: arrays where the blocks are local, else futures."""
        restart = str(result.labels)
        counts = np.sum(self.pool.each(shard_labels.class_counts, restart), axis=0)
        transduction = self._of_each_block(shard_labels.labels_of, restart, classes)
        if not hasattr(self.loss, "posterior"):
            return FittedLabels(transduction, counts, self.predicted_counts(result.W), None)
        distribute(self, restart, result.W, bounds)
        distributions = self._of_each_block(shard_labels.distributions_of, restart)
        return FittedLabels(transduction, counts, self.predicted_counts_of(restart), distributions)

    def _of_each_block(self, function: Callable[..., Any], restart: str, *args: Any) -> list[Any]:
        """What a function says of each block: here where blocks are local, else where they are."""
        answers: list[Any] = [None] * len(self.source.X)
        for g, group in enumerate(self.source.groups):
            for place, b in enumerate(group):
                answers[b] = self.pool.task(g, function, restart, place, *args)
        if self.source.is_local:
            return self.pool.answers(answers)
        self.pool.finish(answers)
        return answers

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        """Open the folder of the fit, which remembers the shards too."""
        checkpoint = Checkpoint.open(path, fingerprint(parameters | self.content), seeds)
        try:
            checkpoint.note(TEAMS, json.dumps(self.source.teams))
        except OSError as error:
            checkpoint.__exit__(None, None, None)
            raise ValueError(f"checkpoint {path} cannot be written ({error.strerror}). Name another place.") from error
        return checkpoint

    def _tallies(self, W: Array) -> list[tuple[Array, Array]]:
        sent = self.send(W)
        return self.pool.answers([self.pool.task(g, shard_labels.tallies, sent) for g in range(len(self.pool.keys))])

    def send(self, W: Array) -> Future:
        """Weights, as a change of 0, on a worker, from where the others fetch them."""
        return self.pool.send(as_change(W), self.pool.homes[0])

    def spread(self, restart: str, W: Array) -> None:
        """Give all shards these weights."""
        sent = self.send(W)
        self.pool.finish(
            [self.pool.task(g, shard_weights.take_weights, restart, sent) for g in range(len(self.pool.keys))]
        )

    def fetch(self, restart: str, kept: bool) -> Array:
        """Weights of a way, from the first shard."""
        return np.asarray(self.pool.answers([self.pool.task(0, shard_weights.weights, restart, kept)])[0])


@dataclass(frozen=True, eq=False)
class _Parts:
    """The label parts of a way, as label steps see them."""

    pool: WorkerPool
    restart: str
    sizes: tuple[int, ...]

    def each(
        self,
        function: Callable[Concatenate[Partition, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        """Answers of function(part, *args), in the order of the parts."""
        answers = self.pool.each(shards.visit_parts, self.restart, function, args, kwargs)
        return [answer for of_shard in answers for answer in of_shard]

    def each_with(self, function: Callable[[Partition, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Answers of function(part, own[p]) for part p."""
        ends = np.cumsum((0, *self.sizes))
        mine = [(self.restart, function, list(own[a:b])) for a, b in pairwise(ends)]
        answers = self.pool.each_with(shards.visit_parts_with, mine)
        return [answer for of_shard in answers for answer in of_shard]


@dataclass(eq=False)
class DaskRestart:
    """One way; `fresh` says that shards have scores at their weights."""

    rows: DaskEngine
    task: StepSettings
    rng: np.random.Generator
    restart: str
    fresh: bool = False
    share: float = 1.0
    step: WeightSummary | None = None

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.rows.n_unlabeled

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.rows.n_classes

    @property
    def _pool(self) -> WorkerPool:
        return self.rows.pool

    @property
    def _parts(self) -> _Parts:
        return _Parts(self._pool, self.restart, self.rows.sizes)

    def supervise(self, tol: float) -> WeightSummary:
        """Weights of the labelled rows alone, which are kept."""
        self._pool.each(shard_weights.start, self.restart)
        self.begin()
        labeled = self.rows.labeled
        if labeled is None:
            self.step = self.weights(0.0, tol)
        else:
            step = weight_step_for(self.rows.loss, self.task.max_sweeps)
            self.step = _learn_here(self.rows, self.restart, labeled.problem, step, labeled.labels, tol, self.rng)
            self.fresh = True
        self._pool.one(shard_weights.keep, self.restart, 1.0)
        return self.step

    def begin(self) -> None:
        """Forget what was known of the weights: they are 0."""
        self.fresh, self.step = False, None
        self._pool.one(shard_weights.keep, self.restart, 1.0)

    def greedy(self) -> None:
        """Steps 3 to 9: greedy labels; the best ones under bounds on groups, which no greedy choice is sure to meet."""
        self._pool.each(shard_labels.offer, self.restart, "scores")
        if self.task.bounds.groups is None:
            greedy_partitions(self._parts, self.task.bounds)
        else:
            Exact().solve_partitions(self._parts, self.task.bounds)
        self._pool.each(shard_labels.settle, self.restart, True)

    def weights(self, weight: float, tol: float) -> WeightSummary:
        """Step 12: weights for the present labels."""
        labeled, unlabeled = self.rows.total_weight
        climb = Climb(self.rows, self.restart, self.rng)
        changed = climb.retarget(weight)
        self.fresh = self.fresh and not changed
        step, last = weight_step_for(self.rows.loss, self.task.max_sweeps), self.step.objective if self.step else np.inf
        self.step = climb.solve(step, tol, labeled + weight * unlabeled, self.fresh, last)
        self.fresh = True
        return self.step

    def descend(self, objective: float) -> tuple[float, float]:
        """J is convex in W, and scores are linear in it, so no product with the rows is needed on the way."""
        assert self.step is not None
        best, self.share = self.step.objective, 1.0
        if best > objective:
            square = self._pool.one(shard_weights.dots, self.restart)
            best, self.share = objective, 0.0
            for part in STEP_LENGTHS:
                norm = (1 - part) ** 2 * square[0] + 2 * part * (1 - part) * square[1] + part**2 * square[2]
                loss = sum(self._pool.each(shard_labels.loss_between, self.restart, part))
                value = 0.5 * self.rows.alpha * norm + loss
                if value < best:
                    best, self.share = value, part
        return best, self.share

    def propose(self, prices: Array) -> LabelProposal:
        """Step 13: the best labels at the weights that are looked at."""
        self._pool.each(shard_labels.offer, self.restart, "hard", self.share)
        answer = Exact().solve_partitions(self._parts, self.task.bounds, prices)
        moved, change, old = zip(*self._pool.each(shard_labels.weigh, self.restart), strict=True)
        return LabelProposal(answer.prices, sum(moved), sum(change), sum(old))

    def accept(self, take_labels: bool) -> None:
        """Keep the weights that are looked at, and the proposed labels or the old ones."""
        self._pool.each(shard_labels.settle, self.restart, take_labels, self.share, surely=True)

    def soft_labels(self) -> "DaskSoftLabels":
        """The soft labels of this way."""
        return DaskSoftLabels(self)

    def result(self, outcome: FitResult) -> None:
        """Weights come here; labels stay on the workers, under the name of the way."""
        outcome.W = self.rows.fetch(self.restart, kept=True)
        self._pool.each(shard_labels.rest, self.restart)
        outcome.labels = np.array(self.restart)

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
        """Keep all that is needed to go on: weights by the driver, what rows have by the workers, in one folder."""
        if slot.path is None or not slot.disk.is_writable:
            return
        kept = {"W": self.rows.fetch(self.restart, kept=True)}
        if not done:
            kept["now"] = self.rows.fetch(self.restart, kept=False)
        step = None if self.step is None else list(self.step)
        mine = {"rng": self.rng.bit_generator.state, "fresh": self.fresh, "step": step}
        save(self._pool, slot, self.restart, arrays | kept, facts | mine, done)

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Be as when this was kept."""
        saved = load(self._pool, slot, self.restart, soft=False)
        if saved is None:
            return None
        arrays, facts = saved
        self.rows.spread(self.restart, arrays["W"])
        self._pool.one(shard_weights.keep, self.restart, 1.0)
        if "now" in arrays:
            self.rows.spread(self.restart, arrays["now"])
            self.rng.bit_generator.state, self.fresh = facts["rng"], facts["fresh"]
            self.step = None if facts["step"] is None else WeightSummary(*facts["step"])
            if self.fresh:
                self._pool.each(shard_weights.show, self.restart)
        return arrays, facts


@dataclass(eq=False)
class DaskSoftLabels:
    """Distributions over labels; a way of their own on the shards, until they are hard."""

    engine: DaskRestart
    prices: Array = field(init=False)
    temperature: float | None = None

    @property
    def _way(self) -> str:
        return f"{self.engine.restart} soft"

    @property
    def _pool(self) -> WorkerPool:
        return self.engine.rows.pool

    @property
    def _parts(self) -> _Parts:
        return _Parts(self._pool, self._way, self.engine.rows.sizes)

    def start(self) -> None:
        """Weights of the labelled rows alone; of the others nothing is known but the class sizes."""
        rows, bounds = self.engine.rows, self.engine.task.bounds
        self._pool.each(shard_labels.begin_soft, self._way, bounds, rows.n_unlabeled)
        self.prices = np.zeros(rows.n_classes)
        step, labeled = weight_step_for(smoothed(rows.loss), FIRST_SWEEPS), rows.labeled
        if labeled is None:
            climb = Climb(rows, self._way, self.engine.rng)
            climb.soften(0.0, fresh=True)
            climb.solve(step, FIRST_TOL, rows.total_weight[0], False)
        else:
            problem = replace(labeled.problem, loss=smoothed(rows.loss))
            targets = as_distributions(labeled.labels, rows.n_classes, rows.dtype)
            _learn_here(rows, self._way, problem, step, targets, FIRST_TOL, self.engine.rng)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Distributions of this entropy at the present weights, then a little work on weights for them."""
        rows = self.engine.rows
        self._pool.each(shard_labels.offer, self._way, "soft")
        bounds = self.engine.task.bounds
        soft = solve_partitions_at_entropy(
            self._parts, bounds, entropy, self.temperature, self.prices, n_threads=rows.n_threads
        )
        self.prices, self.temperature = soft.prices, soft.temperature
        climb = Climb(rows, self._way, self.engine.rng)
        n_moved = climb.soften(weight, fresh=False)
        step = weight_step_for(smoothed(rows.loss), SOFT_SWEEPS)
        most = rows.total_weight[0] + weight * rows.total_weight[1]
        report = climb.solve(LBFGS(SOFT_ITERATIONS) if isinstance(step, LBFGS) else step, 0.0, most, False)
        return SoftRoundSummary(report.objective, report.gap, n_moved, soft.temperature)

    def harden(self, weight: float) -> None:
        """Hand the engine the best hard labels at the present weights, and weights 0."""
        self._pool.each(shard_labels.look_hard, self._way)
        self._pool.each(shard_labels.offer, self._way, "hard")
        Exact().solve_partitions(self._parts, self.engine.task.bounds)
        self._pool.each(shard_labels.harden, self.engine.restart, self._way)
        self.engine.begin()

    def save(self, slot: CheckpointSlot, facts: dict[str, Any]) -> None:
        """Keep all that is needed to go on."""
        if slot.path is None or not slot.disk.is_writable:
            return
        arrays = {"now": self.engine.rows.fetch(self._way, kept=False), "prices": self.prices}
        mine = {"T": self.temperature, "rng": self.engine.rng.bit_generator.state}
        save(self._pool, slot, self._way, arrays, facts | mine, False)

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Be as when this was kept."""
        saved = load(self._pool, slot, self._way, soft=True)
        if saved is None:
            return None
        arrays, facts = saved
        self.prices = arrays["prices"]
        self.engine.rows.spread(self._way, arrays["now"])
        self.temperature, self.engine.rng.bit_generator.state = facts["T"], facts["rng"]
        self._pool.each(shard_weights.show, self._way)
        return facts


def _learn_here(
    rows: DaskEngine,
    restart: str,
    problem: TrainingProblem,
    step: WeightStep,
    targets: Array,
    tol: float,
    rng: np.random.Generator,
) -> WeightSummary:
    """Weights of the labelled rows, which are here; shards are told what theirs have put into them."""
    assert rows.labeled is not None
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, problem.kappa(0.0))
    report = step.solve(problem, state, tol, rng)
    ends = np.cumsum((0, *rows.labeled.sizes))
    rows.pool.each_with(shard_weights.adopt, [(restart, state.dual[a:b], state.gaps[a:b]) for a, b in pairwise(ends)])
    rows.spread(restart, state.W)
    rows.pool.each(shard_weights.show, restart)
    return WeightSummary(report.objective, report.gap, report.n_sweeps, report.converged)


def rank(pool: WorkerPool, found: Sequence[Made], shape: tuple[int, int], itemsize: int, n_values: int) -> Array | None:
    """Let features that are met often lie side by side on all shards; answers their order, or None if it stays."""
    if not pays_to_reorder(shape, itemsize, n_values) or any(made.is_mapped for made in found):
        return None
    there, counts = fetched_sum(pool, shards.column_counts)
    pool.finish([pool.task(g, shards.rank, there) for g in range(len(pool.keys))])
    return frequency_order(counts.values[:, 0])


def gather_labeled(pool: WorkerPool, found: Sequence[Made], making: Making, shape: tuple[int, int]) -> Labeled | None:
    """The labelled rows of all shards, if they and their dual are no larger than the weights, which travel anyway."""
    n_rows, n_values = sum(made.n_labeled for made in found), sum(made.n_values for made in found)
    itemsize = np.dtype(making.dtype).itemsize
    allowed = max(shape[0] * shape[1] * itemsize, SMALL)
    if making.heavy or n_values * (itemsize + 8) > allowed or n_rows * shape[1] * itemsize > allowed:
        return None
    X, weights, labels = zip(*(block for of_shard in pool.each(shards.labeled_rows) for block in of_shard), strict=True)
    design = Design.create(sparse.vstack(X, format="csr"), making.taxonomy, making.n_threads)
    problem = TrainingProblem(design, making.loss, making.alpha, n_rows, np.concatenate(weights))
    return Labeled(problem, np.concatenate(labels), tuple(made.n_labeled for made in found))


def distribute(rows: DaskEngine, restart: str, W: Array, bounds: Bounds) -> None:
    """Distributions over labels at these weights that meet the counts; they stay on the workers."""
    pool, sent = rows.pool, rows.send(W)
    pool.finish([pool.task(g, shard_labels.judge, restart, sent) for g in range(len(pool.keys))])
    pool.each(shard_labels.offer, restart, "posterior")
    soft = Entropic(1.0, tol=1e-3, n_threads=rows.n_threads)
    soft.solve_partitions(_Parts(pool, restart, rows.sizes), bounds)
