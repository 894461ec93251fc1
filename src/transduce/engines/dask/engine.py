"""The engine over Dask: each step of a solver is one or a few round trips to all shards.

Every shard has the weights W. Their changes are summed on the workers, so the driver sees W itself only when a stage is
saved or a restart ends. Otherwise prices, class counts and sums travel.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.design import undo_order
from transduce.engines.base import Engine, FittedLabels, LabelProposal, SoftRoundSummary, StepSettings, WeightSummary
from transduce.engines.common import FIRST_SWEEPS, FIRST_TOL, SOFT_ITERATIONS, SOFT_SWEEPS, STEP_LENGTHS
from transduce.engines.dask import shard_labels, shard_weights
from transduce.engines.dask.blocks import BlockSource
from transduce.engines.dask.checkpoint import load, save
from transduce.engines.dask.shards import ProblemSpec, call_blocks, call_partitions
from transduce.engines.dask.weight_deltas import as_delta
from transduce.engines.dask.weight_step import ShardedWeightStep, sums_over_blocks
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.history import FitResult
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.io.fingerprint import fingerprint
from transduce.label_step import Exact
from transduce.label_step.entropic import Entropic, solve_partitions_at_entropy
from transduce.label_step.greedy import greedy_partitions
from transduce.label_step.partitions import Partition
from transduce.losses import smoothed
from transduce.problem import TrainingProblem
from transduce.weight_step import LBFGS, WeightStep, weight_step_for
from transduce.weight_step.dual import as_distributions

Array = NDArray[Any]
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

GROUPS_FILE = "shards.json"
"""File of a checkpoint with the blocks of each shard in each group."""


class LabeledRows(NamedTuple):
    """The labelled rows of all shards in the driver: a problem of their own, their labels, and the number per shard."""

    problem: TrainingProblem
    labels: Array
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Rows on the workers of a pool.

    content       what the fingerprint of a checkpoint depends on
    labeled       the labelled rows, if they are few enough to be here
    column_order  column of X of every row of W, or None if it is the same
    """

    pool: WorkerPool
    source: BlockSource
    spec: ProblemSpec
    n_unlabeled: int
    content: dict[str, Any]
    labeled: LabeledRows | None = None
    column_order: Array | None = None
    names: Any = field(default_factory=count)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.spec.taxonomy.n_classes

    @property
    def forbids(self) -> bool:
        """Whether some rows must not get some labels."""
        return self.spec.has_forbidden

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> "DaskRestart":
        """Start a restart."""
        return DaskRestart(self, str(next(self.names)), settings, rng)

    def split_threads(self, n_restarts: int) -> tuple[int, Engine]:
        """Run restarts one at a time: each uses all workers."""
        return 1, self

    def in_original_order(self, W: Array) -> Array:
        """Reorder weights so that they have one row for each column of X."""
        return W if self.column_order is None else undo_order(W, self.column_order)

    def predicted_counts(self, W: Array) -> Array:
        """Count rows without a full label by the class of the best allowed score (K,)."""
        return np.asarray(self._predictions(W)[0])

    def predicted_proportions(self, W: Array) -> Array:
        """Average the posterior of rows without a full label (K,); the best scores if the loss has no posterior."""
        return np.asarray(self._predictions(W)[1] / max(self.n_unlabeled, 1))

    def _predictions(self, W: Array) -> list[Array]:
        sent, all_shards = self.send_weights(W), range(self.pool.n_shards)
        found = self.pool.results([self.pool.start(s, shard_labels.predictions_at, sent) for s in all_shards])
        return sums_over_blocks(found)

    def fitted_labels(self, result: FitResult, bounds: Bounds, classes: Array) -> FittedLabels:
        """Return labels and distributions of all blocks, as lists: arrays where the blocks are local, else futures."""
        name = str(result.labels)
        counts = np.sum(
            [np.sum(own, axis=0) for own in self.pool.call(call_blocks, name, shard_labels.class_counts)], 0
        )
        transduction = self._each_block(shard_labels.label_names, name, classes)
        if not hasattr(self.spec.settings.loss, "posterior"):
            return FittedLabels(transduction, counts, self.predicted_counts(result.W), None)
        self.pool.run_all(shard_weights.compute_scores, name, self.send_weights(result.W))
        self.pool.call(call_blocks, name, shard_labels.set_costs, "posterior")
        soft = Entropic(1.0, tol=1e-3, n_threads=self.n_threads)
        soft.solve_partitions(ShardedPartitions(self, name), bounds)
        distributions = self._each_block(shard_labels.distributions, name)
        predicted = sums_over_blocks(self.pool.call(call_blocks, name, shard_labels.predictions))[0]
        return FittedLabels(transduction, counts, predicted, distributions)

    def _each_block(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        name, *rest = args
        tasks = {
            b: self.pool.start(s, function, name, position, *rest)
            for s, blocks in enumerate(self.source.shards)
            for position, b in enumerate(blocks)
        }
        futures = [tasks[b] for b in sorted(tasks)]
        return self.pool.results(futures, fetch=self.source.is_local) or futures

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        """Open the checkpoint folder of the fit, which stores the groups of shards too."""
        checkpoint = Checkpoint.open(path, fingerprint(parameters | self.content), seeds)
        try:
            checkpoint.note(GROUPS_FILE, json.dumps(self.source.groups))
        except WriteError as error:
            checkpoint.__exit__(None, None, None)
            raise ValueError(f"checkpoint {path} cannot be written ({error.reason}). Choose another place.") from error
        return checkpoint

    @property
    def n_threads(self) -> int:
        """Threads of each shard."""
        return self.spec.settings.n_jobs or 1

    def send_weights(self, W: Array) -> Future:
        """Send weights to one worker, from which the others fetch them."""
        return self.pool.send([(as_delta(W), self.pool.shards[0][0])])[0]

    def set_weights(self, name: str, W: Array) -> None:
        """Replace W on all shards."""
        self.pool.run_all(shard_weights.set_weights, name, self.send_weights(W))

    def get_weights(self, name: str, accepted: bool) -> Array:
        """Fetch W, or the accepted weights."""
        return np.asarray(self.pool.results([self.pool.start(0, shard_weights.get_weights, name, accepted)])[0])

    def total_weight(self, weight: float) -> float:
        """Return the weight of all rows, where those without a full label weigh `weight` together."""
        mean = self.spec.mean_weight
        return 1.0 + weight * (float(self.n_unlabeled > 0) if mean is None else mean * self.n_unlabeled)

    def fit_labeled(
        self, name: str, problem: TrainingProblem, step: WeightStep, targets: Array, tol: float, rng: Any
    ) -> WeightSummary:
        """Learn weights from the labelled rows in the driver; shards get these and the dual of their own rows."""
        assert self.labeled is not None
        state = step.start(problem, targets)
        step.retarget(problem, state, targets, problem.kappa(0.0))
        report = step.solve(problem, state, tol, rng)
        ends = np.cumsum((0, *self.labeled.sizes))
        duals = [(state.dual[a:b], state.gaps[a:b]) for a, b in pairwise(ends)]
        self.pool.call(shard_weights.adopt_dual, name, per_shard=duals)
        self.set_weights(name, state.W)
        self.pool.call(shard_weights.compute_scores, name)
        return WeightSummary(report.objective, report.gap, report.n_sweeps, report.converged)


@dataclass(frozen=True, eq=False)
class ShardedPartitions:
    """The label costs of a restart, one partition for each block, as label steps see them."""

    rows: DaskEngine
    name: str

    def each(
        self,
        function: Callable[Concatenate[Partition, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        """Return function(partition, *args) of all partitions."""
        return self._call(function, [args] * len(self.rows.source.X), kwargs)

    def each_with(self, function: Callable[[Partition, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Return function(partition, own[p]) of all partitions p."""
        return self._call(function, [(one,) for one in own], {})

    def _call(self, function: Any, args: Sequence[Any], kwargs: Any) -> list[Any]:
        ends = np.cumsum([0, *map(len, self.rows.source.shards)])
        own = [(args[a:b], kwargs) for a, b in pairwise(ends)]
        answers = self.rows.pool.call(call_partitions, self.name, function, per_shard=own)
        return [answer for of_shard in answers for answer in of_shard]


@dataclass(eq=False)
class _ShardedState:
    """State on all shards under a name."""

    rows: DaskEngine
    name: str
    settings: StepSettings
    rng: np.random.Generator

    @property
    def pool(self) -> WorkerPool:
        """The workers."""
        return self.rows.pool

    @property
    def partitions(self) -> ShardedPartitions:
        """The label costs."""
        return ShardedPartitions(self.rows, self.name)

    def call_blocks(self, function: Callable[..., Any], *args: Any) -> list[list[Any]]:
        """Return function(block, *args) of the blocks of each shard."""
        return self.pool.call(call_blocks, self.name, function, *args)


@dataclass(eq=False)
class DaskRestart(_ShardedState):
    """One restart; `has_scores` says that shards know the scores at W."""

    has_scores: bool = False
    step_length: float = 1.0
    report: WeightSummary | None = None

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.rows.n_unlabeled

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.rows.n_classes

    def supervise(self, tol: float) -> WeightSummary:
        """Learn weights from the labelled rows alone, and accept them."""
        self.pool.call(shard_weights.start, self.name)
        self.reset_weights()
        labeled = self.rows.labeled
        if labeled is None:
            self.report = self.weights(0.0, tol)
        else:
            step = weight_step_for(labeled.problem.loss, self.settings.max_sweeps)
            self.report = self.rows.fit_labeled(self.name, labeled.problem, step, labeled.labels, tol, self.rng)
            self.has_scores = True
        self.pool.call_first(shard_weights.accept_weights, self.name, 1.0)
        return self.report

    def reset_weights(self) -> None:
        """Forget what is known about the weights: they are 0."""
        self.has_scores, self.report = False, None
        self.pool.call_first(shard_weights.accept_weights, self.name, 1.0)

    def greedy(self) -> None:
        """Give all other rows greedy labels; optimal ones under bounds on groups, which greedy labels may not meet."""
        self.call_blocks(shard_labels.set_costs, "scores")
        if self.settings.bounds.groups is None:
            greedy_partitions(self.partitions, self.settings.bounds)
        else:
            Exact().solve_partitions(self.partitions, self.settings.bounds)
        self.pool.call(shard_labels.accept, self.name, True)

    def weights(self, weight: float, tol: float) -> WeightSummary:
        """Weight step for the present labels."""
        sharded = ShardedWeightStep(self.rows, self.name, self.rng)
        self.has_scores = not sharded.retarget(weight) and self.has_scores
        step = weight_step_for(self.rows.spec.settings.loss, self.settings.max_sweeps)
        last = np.inf if self.report is None else self.report.objective
        self.report = sharded.solve(step, tol, self.rows.total_weight(weight), self.has_scores, last)
        self.has_scores = True
        return self.report

    def descend(self, objective: float) -> tuple[float, float]:
        """J is convex in W and scores are linear in W, so trying a step length needs no product with X."""
        assert self.report is not None
        best, self.step_length = self.report.objective, 1.0
        if best > objective:
            old, mixed, new = self.pool.call_first(shard_weights.inner_products, self.name)
            best, self.step_length = objective, 0.0
            for t in STEP_LENGTHS:
                square = (1 - t) ** 2 * old + 2 * t * (1 - t) * mixed + t**2 * new
                loss = sum(sum(losses) for losses in self.call_blocks(shard_labels.loss_between, t))
                value = 0.5 * self.rows.spec.settings.alpha * square + loss
                if value < best:
                    best, self.step_length = value, t
        return best, self.step_length

    def propose(self, prices: Array) -> LabelProposal:
        """Label step at the weights that `descend` reached."""
        self.call_blocks(shard_labels.set_costs, "hard", self.step_length)
        answer = Exact().solve_partitions(self.partitions, self.settings.bounds, prices)
        return LabelProposal(answer.prices, *sums_over_blocks(self.call_blocks(shard_labels.weigh_proposal)))

    def accept(self, take_labels: bool) -> None:
        """Accept the weights that `descend` reached, and the proposed labels if `take_labels`."""
        self.pool.call(shard_labels.accept, self.name, take_labels, self.step_length, uninterrupted=True)

    def soft_labels(self) -> "DaskSoftLabels":
        """Start soft labels for this restart."""
        return DaskSoftLabels(self.rows, f"{self.name} soft", self.settings, self.rng, self)

    def result(self, result: FitResult) -> None:
        """Fetch the accepted weights; labels stay on the workers, under the name of the restart."""
        result.W = self.rows.get_weights(self.name, accepted=True)
        self.pool.call(shard_labels.finish_restart, self.name)
        result.labels = np.array(self.name)

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
        """Save the state beside these arrays and facts; without the state of the weight step if the restart is done."""
        if slot.path is None or not slot.disk.is_writable:
            return
        weights = {"W": self.rows.get_weights(self.name, accepted=True)}
        if not done:
            weights["now"] = self.rows.get_weights(self.name, accepted=False)
        report = None if self.report is None else list(self.report)
        own = {"rng": self.rng.bit_generator.state, "has_scores": self.has_scores, "report": report}
        save(self.pool, slot, self.name, arrays | weights, facts | own, done)

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Restore the state; return arrays and facts, or None if nothing was saved."""
        saved = load(self.pool, slot, self.name, soft=False)
        if saved is None:
            return None
        arrays, facts = saved
        self.rows.set_weights(self.name, arrays["W"])
        self.pool.call_first(shard_weights.accept_weights, self.name, 1.0)
        if "now" in arrays:
            self.rows.set_weights(self.name, arrays["now"])
            self.rng.bit_generator.state, self.has_scores = facts["rng"], facts["has_scores"]
            self.report = None if facts["report"] is None else WeightSummary(*facts["report"])
            if self.has_scores:
                self.pool.call(shard_weights.compute_scores, self.name)
        return arrays, facts


@dataclass(eq=False)
class DaskSoftLabels(_ShardedState):
    """Distributions over the labels of a restart, with weights of their own."""

    restart: DaskRestart
    prices: Array = field(init=False)
    temperature: float | None = None

    def start(self) -> None:
        """Learn weights from the labelled rows alone; all other rows get the class proportions."""
        rows, labeled, loss = self.rows, self.rows.labeled, smoothed(self.rows.spec.settings.loss)
        self.pool.call(shard_labels.start_soft, self.name, self.settings.bounds, rows.n_unlabeled)
        self.prices, step = np.zeros(rows.n_classes), weight_step_for(loss, FIRST_SWEEPS)
        if labeled is None:
            sharded = ShardedWeightStep(rows, self.name, self.rng)
            sharded.retarget_soft(0.0, first=True)
            sharded.solve(step, FIRST_TOL, rows.total_weight(0.0), False)
        else:
            targets = as_distributions(labeled.labels, rows.n_classes, rows.spec.dtype)
            rows.fit_labeled(self.name, replace(labeled.problem, loss=loss), step, targets, FIRST_TOL, self.rng)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Choose distributions of this entropy at the present weights, then improve the weights a little."""
        rows, bounds = self.rows, self.settings.bounds
        self.call_blocks(shard_labels.set_costs, "soft")
        soft = solve_partitions_at_entropy(
            self.partitions, bounds, entropy, self.temperature, self.prices, n_threads=rows.n_threads
        )
        self.prices, self.temperature = soft.prices, soft.temperature
        sharded = ShardedWeightStep(rows, self.name, self.rng)
        n_moved = sharded.retarget_soft(weight, first=False)
        step = weight_step_for(smoothed(rows.spec.settings.loss), SOFT_SWEEPS)
        step = LBFGS(SOFT_ITERATIONS) if isinstance(step, LBFGS) else step
        report = sharded.solve(step, 0.0, rows.total_weight(weight), False)
        return SoftRoundSummary(report.objective, report.gap, n_moved, soft.temperature)

    def harden(self, weight: float) -> None:
        """Give the restart the best hard labels at the present weights, and reset its weights to 0."""
        self.call_blocks(shard_labels.set_hard_costs)
        Exact().solve_partitions(self.partitions, self.settings.bounds)
        self.pool.call(shard_labels.harden, self.restart.name, self.name)
        self.restart.reset_weights()

    def save(self, slot: CheckpointSlot, facts: dict[str, Any]) -> None:
        """Save the state and these facts."""
        if slot.path is None or not slot.disk.is_writable:
            return
        arrays = {"now": self.rows.get_weights(self.name, accepted=False), "prices": self.prices}
        own = {"T": self.temperature, "rng": self.rng.bit_generator.state}
        save(self.pool, slot, self.name, arrays, facts | own, False)

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Restore the state; return the facts, or None if nothing was saved."""
        saved = load(self.pool, slot, self.name, soft=True)
        if saved is None:
            return None
        arrays, facts = saved
        self.prices = arrays["prices"]
        self.rows.set_weights(self.name, arrays["now"])
        self.temperature, self.rng.bit_generator.state = facts["T"], facts["rng"]
        self.pool.call(shard_weights.compute_scores, self.name)
        return facts
