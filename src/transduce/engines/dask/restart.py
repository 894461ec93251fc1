"""One restart over Dask: each step of a solver is one or a few round trips to all shards.

Labels stay on the workers; prices, class counts and sums travel. Nothing is saved: a fit that is stopped labels all
rows again from the fit of the sample, which the driver has saved.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.engines.base import LabelProposal, WeightSummary
from transduce.engines.common import best_step, count_cost
from transduce.engines.dask.block_state import BlockState
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.sharded_state import ShardedWeights
from transduce.engines.dask.shards import Shard, call_restart
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact
from transduce.weight_step import weight_step_for


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
        self._start()
        report = self.weights(0.0, tol)
        self.pool.call_first(call_restart, self.name, RestartState.accept_weights)
        return report

    def _start(self) -> None:
        """Start at weights 0 with the given labels."""
        self.pool.call(Shard.start, self.name)
        self.has_scores, self.report, self.counts = False, None, None

    def start_at(self, W: Array, weight: float) -> None:
        self._start()
        self.run_with_weights(RestartState.compute_scores, W)
        self.call(RestartState.set_hard_costs)
        Exact().solve_partitions(self, self.settings.bounds)
        self.call(RestartState.start_weights)
        self.pool.call_first(call_restart, self.name, RestartState.set_accepted, W)

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
        self.report, self.has_scores = self.solve(step, tol, self.has_scores), True
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
        return float(sum(self.call(RestartState.loss_between, step_length))) + self._count_cost()

    def propose(self, prices: Array) -> LabelProposal:
        self.call(RestartState.set_hard_costs, self.step_length)
        answer = Exact().solve_partitions(self, self.settings.bounds, prices)
        n_moved, change, old_loss, self.proposed = self.sum_blocks(BlockState.weigh_found)
        change += self._count_cost(self.proposed) - self._count_cost()
        return LabelProposal(answer.prices, n_moved, change, old_loss)

    def accept(self, take_labels: bool) -> None:
        self.counts = self.proposed if take_labels else self.counts
        self.call(RestartState.accept, take_labels, self.step_length, uninterrupted=True)

    def result(self, result: FitResult) -> None:
        """Fetch the accepted weights; labels stay on the workers, under the name of the restart."""
        result.W, result.labels = self.get_weights(accepted=True), np.array(self.name)
        self.call(RestartState.finish)

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        pass

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        return None
