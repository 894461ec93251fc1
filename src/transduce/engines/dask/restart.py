"""One restart over Dask: each step of a solver is one or a few round trips to all shards.

Labels and distributions stay on the workers; prices, class counts, sums and their curvature travel.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.engines.base import LabelProposal, SoftRoundSummary, WeightSummary
from transduce.engines.common import (
    FIRST_SWEEPS,
    FIRST_TOL,
    SOFT_ITERATIONS,
    SOFT_SWEEPS,
    SOFT_TOL,
    best_step,
    count_cost,
)
from transduce.engines.dask.block_state import BlockState
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.sharded_state import ShardedWeights
from transduce.engines.dask.shards import Shard, call_restart, smoothed_problem
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact
from transduce.label_step.entropic import solve_partitions_at_entropy
from transduce.label_step.greedy import greedy_partitions
from transduce.losses import smoothed
from transduce.losses.blockwise import as_distributions
from transduce.weight_step import LBFGS, weight_step_for


@dataclass(eq=False)
class DaskRestart(ShardedWeights):
    """One restart; `has_scores` says that shards know the scores at W.

    counts     (K,) class counts of the accepted labels, or None where they are not known here
    proposed   (K,) those of the last label step
    weight     total weight of the unlabelled rows in the last weight step
    """

    has_scores: bool = False
    step_length: float = 1.0
    report: WeightSummary | None = None
    counts: Array | None = None
    proposed: Array | None = None
    weight: float = 0.0

    def __post_init__(self) -> None:
        self.n_unlabeled, self.n_classes = self.rows.n_unlabeled, self.rows.n_classes

    def supervise(self, tol: float) -> WeightSummary:
        self.start()
        labeled = self.rows.labeled
        if labeled is None:
            self.report = self.weights(0.0, tol)
        else:
            step = weight_step_for(labeled.problem.loss, self.settings.max_sweeps)
            self.report, self.has_scores = self.fit_labeled(labeled.problem, step, labeled.labels, tol), True
        self.accept_weights()
        return self.report

    def start(self, soft: str | None = None) -> None:
        """Start at weights 0, with the hard labels found for the soft labels of this name, if any."""
        self.pool.call(Shard.start, self.name, soft)
        self.has_scores, self.report, self.counts = False, None, None
        self.accept_weights()

    def greedy(self) -> None:
        self.call_blocks(BlockState.set_greedy_costs)
        if self.settings.bounds.groups is None:
            greedy_partitions(self, self.settings.bounds)
        else:
            Exact().solve_partitions(self, self.settings.bounds)
        self.call(RestartState.accept, True)
        self.counts = None

    def _count_cost(self, counts: Array | None = None) -> float:
        """Cost in J of these class counts, or of those of the accepted labels."""
        bounds = self.settings.bounds
        if bounds.belief is None:
            return 0.0
        if self.counts is None:
            (self.counts,) = self.sum_blocks(BlockState.label_counts)
        weight = self.rows.total_weight(self.weight) - self.rows.total_weight(0.0)
        return count_cost(bounds, self.counts if counts is None else counts, weight)

    def weights(self, weight: float, tol: float) -> WeightSummary:
        self.has_scores = not self.retarget(weight) and self.has_scores
        step = weight_step_for(self.rows.spec.settings.loss, self.settings.max_sweeps)
        last = np.inf if self.report is None else self.report.objective
        self.report, self.has_scores = self.solve(step, tol, weight, self.has_scores, last), True
        self.weight = weight
        return self.report._replace(objective=self.report.objective + self._count_cost())

    def descend(self, objective: float) -> tuple[float, float]:
        assert self.report is not None
        best, self.step_length = self.report.objective + self._count_cost(), 1.0
        if not best <= objective:  # also where a user's loss gives NaN
            products = self.pool.call_first(call_restart, self.name, RestartState.products)
            best, self.step_length = best_step(objective, self.rows.spec.settings.alpha, products, self._loss_between)
        return best, self.step_length

    def _loss_between(self, step_length: float) -> float:
        return float(sum(map(sum, self.call_blocks(BlockState.loss_between, step_length)))) + self._count_cost()

    def propose(self, prices: Array) -> LabelProposal:
        self.call_blocks(BlockState.set_hard_costs, self.step_length)
        answer = Exact().solve_partitions(self, self.settings.bounds, prices)
        n_moved, change, old_loss, self.proposed = self.sum_blocks(BlockState.weigh_found)
        change += self._count_cost(self.proposed) - self._count_cost()
        return LabelProposal(answer.prices, n_moved, change, old_loss)

    def accept(self, take_labels: bool) -> None:
        self.counts = self.proposed if take_labels else self.counts
        self.call(RestartState.accept, take_labels, self.step_length, uninterrupted=True)

    def soft_labels(self) -> "DaskSoftLabels":
        return DaskSoftLabels(self.rows, f"{self.name} soft", self.settings, self.rng, restart=self)

    def result(self, result: FitResult) -> None:
        """Fetch the accepted weights; labels stay on the workers, under the name of the restart."""
        result.W, result.labels = self.get_weights(accepted=True), np.array(self.name)
        self.call(RestartState.finish)

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        if slot.path is None or not slot.disk.is_writable:
            return
        weights = {"W": self.get_weights(accepted=True)}
        if not done:
            weights["now"] = self.get_weights(accepted=False)
        report = None if self.report is None else list(self.report)
        own = {"rng": self.rng.bit_generator.state, "has_scores": self.has_scores, "report": report}
        self.save_stage(slot, arrays | weights, metadata | own, done)

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        saved = self.load_stage(slot, soft=False)
        if saved is None:
            return None
        arrays, metadata = saved
        self.set_weights(arrays["W"])
        self.accept_weights()
        if "now" in arrays:
            self.set_weights(arrays["now"])
            self.rng.bit_generator.state, self.has_scores = metadata["rng"], metadata["has_scores"]
            self.report = None if metadata["report"] is None else WeightSummary(*metadata["report"])
            if self.has_scores:
                self.call(RestartState.compute_scores)
        return saved


@dataclass(eq=False, kw_only=True)
class DaskSoftLabels(ShardedWeights):
    """Distributions over the labels of a restart, with weights of their own."""

    restart: DaskRestart
    prices: Array = field(init=False)
    temperature: float | None = None

    def __post_init__(self) -> None:
        self.loss = smoothed(self.rows.spec.settings.loss)

    def start(self) -> None:
        rows, labeled = self.rows, self.rows.labeled
        self.pool.call(Shard.start_soft, self.name, self.settings.bounds, rows.n_unlabeled)
        self.prices, step = np.zeros(rows.n_classes), weight_step_for(self.loss, FIRST_SWEEPS)
        if labeled is None:
            self._retarget_soft(0.0, first=True)
            self.solve(step, FIRST_TOL, 0.0, has_scores=False)
        else:
            targets = as_distributions(labeled.labels, rows.n_classes, rows.spec.dtype)
            self.fit_labeled(smoothed_problem(labeled.problem), step, targets, FIRST_TOL)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        self.call_blocks(BlockState.set_soft_costs)
        soft = solve_partitions_at_entropy(
            self, self.settings.bounds, entropy, self.temperature, self.prices, SOFT_TOL, self.rows.n_threads
        )
        self.prices, self.temperature = soft.prices, soft.temperature
        n_moved = self._retarget_soft(weight, first=False)
        step = weight_step_for(self.loss, SOFT_SWEEPS)
        step = LBFGS(SOFT_ITERATIONS) if isinstance(step, LBFGS) else step
        report = self.solve(step, 0.0, weight, has_scores=False)
        return SoftRoundSummary(report.objective, report.gap, n_moved, soft.temperature)

    def _retarget_soft(self, weight: float, first: bool) -> int:
        """Hand distributions to the shards, and set W to what follows from them; returns rows with a new label."""
        self.weights_grew = True
        if isinstance(weight_step_for(self.loss, 0), LBFGS):
            return sum(self.call(RestartState.retarget_soft, weight, first))
        return sum(self.pool.call_and_reduce(self.name, RestartState.retarget_soft, weight, first, replace=True))

    def harden(self, weight: float) -> None:
        self.call_blocks(BlockState.set_hard_costs)
        Exact().solve_partitions(self, self.settings.bounds)
        self.restart.start(soft=self.name)

    def save(self, slot: CheckpointSlot, metadata: dict[str, Any]) -> None:
        if slot.path is None or not slot.disk.is_writable:
            return
        arrays = {"now": self.get_weights(accepted=False), "prices": self.prices}
        own = {"temperature": self.temperature, "rng": self.rng.bit_generator.state}
        self.save_stage(slot, arrays, metadata | own)

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        saved = self.load_stage(slot, soft=True)
        if saved is None:
            return None
        arrays, metadata = saved
        self.prices = arrays["prices"]
        self.set_weights(arrays["now"])
        self.temperature, self.rng.bit_generator.state = metadata["temperature"], metadata["rng"]
        self.call(RestartState.compute_scores)
        return metadata
