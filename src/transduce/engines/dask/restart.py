"""One restart over Dask: each step of a solver is one or a few round trips to all shards."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.base import LabelProposal, WeightSummary
from transduce.engines.common import STEP_LENGTHS
from transduce.engines.dask import shard_labels, shard_weights
from transduce.engines.dask.checkpoint import load, save
from transduce.engines.dask.sharded_state import ShardedState
from transduce.engines.dask.soft_labels import DaskSoftLabels
from transduce.engines.dask.weight_step import ShardedWeightStep, sums_over_blocks
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact
from transduce.label_step.greedy import greedy_partitions
from transduce.weight_step import weight_step_for

Array = NDArray[Any]


@dataclass(eq=False)
class DaskRestart(ShardedState):
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

    def soft_labels(self) -> DaskSoftLabels:
        """Start soft labels for this restart."""
        return DaskSoftLabels(self.rows, f"{self.name} soft", self.settings, self.rng, self)

    def result(self, result: FitResult) -> None:
        """Fetch the accepted weights; labels stay on the workers, under the name of the restart."""
        result.W = self.rows.get_weights(self.name, accepted=True)
        self.pool.call(shard_labels.finish_restart, self.name)
        result.labels = np.array(self.name)

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        """Save the state, these arrays and metadata; without the state of the weight step if the restart is done."""
        if slot.path is None or not slot.disk.is_writable:
            return
        weights = {"W": self.rows.get_weights(self.name, accepted=True)}
        if not done:
            weights["now"] = self.rows.get_weights(self.name, accepted=False)
        report = None if self.report is None else list(self.report)
        own = {"rng": self.rng.bit_generator.state, "has_scores": self.has_scores, "report": report}
        save(self.pool, slot, self.name, arrays | weights, metadata | own, done)

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Restore the state; return arrays and metadata, or None if nothing was saved."""
        saved = load(self.pool, slot, self.name, soft=False)
        if saved is None:
            return None
        arrays, metadata = saved
        self.rows.set_weights(self.name, arrays["W"])
        self.pool.call_first(shard_weights.accept_weights, self.name, 1.0)
        if "now" in arrays:
            self.rows.set_weights(self.name, arrays["now"])
            self.rng.bit_generator.state, self.has_scores = metadata["rng"], metadata["has_scores"]
            self.report = None if metadata["report"] is None else WeightSummary(*metadata["report"])
            if self.has_scores:
                self.pool.call(shard_weights.compute_scores, self.name)
        return arrays, metadata
