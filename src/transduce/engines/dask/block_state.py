"""One block of a shard: its rows, and a restart on them with the label costs that a label step works on."""

from dataclasses import dataclass, field

import numpy as np

from transduce.arrays import Array
from transduce.engines.common import (
    Calibration,
    RowState,
    posterior_costs,
    predicted_counts,
    priced_probabilities,
    total_confidence,
)
from transduce.engines.dask.shared_weights import extrapolated
from transduce.engines.local import LocalEngine
from transduce.label_step.partitions import Partition
from transduce.problem import allowed_costs
from transduce.weight_step import weight_step_for
from transduce.weight_step.batches import BatchSweeps
from transduce.weight_step.dual import DualStep
from transduce.weight_step.sweep_schedule import sweep_order


@dataclass(frozen=True, eq=False)
class Block(LocalEngine):
    """The rows of one block.

    `relative_weight` (n_unlabeled,) is the weight of each row without a full label divided by their mean over all
    blocks, or None where all are equal. `constant` is the feature of the intercept, which X does not have; or 0.
    """

    relative_weight: Array | None = None
    constant: float = 0.0

    def scores(self, W: Array, bias: Array) -> Array:
        """Scores (n, K) at weights W (d, M) and b (M,), if there is a constant."""
        S = self.problem.design.scores(W)
        if self.constant:
            S += self.class_bias(bias).astype(S.dtype)
        return S

    def class_bias(self, bias: Array) -> Array:
        """What b (M,) adds to the score of each class (K,)."""
        taxonomy = self.problem.design.taxonomy
        return self.constant * (bias if taxonomy.is_flat else np.asarray(taxonomy.paths @ bias).ravel())

    def pullback(self, R: Array) -> Array:
        """Gradient in W and b, b last, of R (n, K) in the scores."""
        design = self.problem.design
        if not self.constant:
            return design.pullback(R)
        total = R.sum(axis=0)
        total = total if design.taxonomy.is_flat else np.asarray(design.taxonomy.paths.T @ total).ravel()
        return np.vstack((design.pullback(R), self.constant * total[None]))


@dataclass(eq=False)
class BlockState(RowState):
    """One restart on one block.

    partition  label costs, and what a label step has left with them
    last_dual  dual variables before the present round
    """

    block: Block
    partition: Partition | None = None
    last_dual: Array | None = field(default=None, init=False)

    def start_round(self, beta: float) -> None:
        """Start from the dual variables plus beta times their last change, as `SharedWeights.start_round`.

        These may leave the simplex, until their row is visited.
        """
        state = self.state
        if beta:
            assert self.last_dual is not None
            state.dual, self.last_dual = extrapolated(state.dual, self.last_dual, beta), state.dual
        else:
            self.last_dual = state.dual.copy()

    def sweep(self, rng: np.random.Generator, bias: Array, sigma: float) -> tuple[Array, Array]:
        """Visit all rows with a weight, at a fixed b; W changes sigma times as much as they imply.

        Returns sums over rows (K,) of what they contribute to λW, and of how far their dual variables give way.
        """
        step, state, problem = weight_step_for(self.problem.loss, 0), self.state, self.problem
        assert isinstance(step, DualStep)
        live, none = np.flatnonzero(state.kappa > 0), np.zeros(problem.n_classes)
        if not live.size:
            return none, none
        own, state.scores = step.loss_arguments(problem, state), None
        if self.block.constant:
            own = own.with_scores_added(self.block.class_bias(bias), len(state.dual), state.W.dtype)
        sweeps = BatchSweeps(problem.design, problem.alpha / sigma, state, own)
        if self.block.constant:  # rows of zeros would turn with every move of b
            least = self.block.constant**2 * own.bound / problem.alpha * state.kappa
            sweeps.curvatures = np.maximum(sweeps.curvatures, least)
        sweeps.sweep(sweep_order(state.gaps, live, rng, 0))
        return step.answers(problem, state, live, sweeps.curvatures, own) if self.block.constant else (none, none)

    def start_weights(self, W: Array) -> None:
        """Start the weight step at weights 0, which are in W, for the accepted labels."""
        self.state = weight_step_for(self.problem.loss, 0).start(self.problem, self.labels)
        self.state.W = W

    def set_posterior_costs(self, calibration: Calibration) -> None:
        """Make minus the logarithm of the probabilities at the scores the label costs of rows without a full label."""
        self._set_costs(posterior_costs(self.problem.loss, self.new_scores[self.unlabeled], calibration))

    def set_posterior(self, prices: Array, calibration: Calibration) -> None:
        """Make the probabilities at the scores and prices the posterior that a label step would leave."""
        scores = self.new_scores[self.unlabeled]
        self._set_costs(-scores)
        assert self.partition is not None
        self.partition.state["posterior"] = priced_probabilities(self.problem, scores, prices, calibration)

    def total_confidence(self, prices: Array, calibration: Calibration) -> tuple[float]:
        """Return the sum of the largest probabilities of rows without a full label."""
        return (total_confidence(self.problem.loss, self.new_scores[self.unlabeled], prices, calibration),)

    def set_hard_costs(self, step_length: float = 1.0) -> None:
        """Move the scores that labels are chosen by this far to those at W, and make the loss there the costs."""
        self.scores = self.scores_between(step_length)
        self._set_costs(self.label_costs(), self.block.relative_weight)

    def _set_costs(self, costs: Array, weights: Array | None = None) -> None:
        costs = costs if weights is None else costs * weights[:, None]
        self.partition = Partition(allowed_costs(self.problem, costs), self.labels[self.unlabeled])

    def found(self, name: str) -> Array:
        """Return the labels or the posterior that a label step has left with the costs."""
        assert self.partition is not None
        return np.asarray(self.partition.state[name])

    def weigh_found(self) -> tuple[int, float, float, Array]:
        """Weigh the labels that a label step has found, and count them by class."""
        assert self.partition is not None
        costs = self.partition.costs if self.block.relative_weight is None else self.label_costs()
        labels = self.found("labels")
        counts = np.bincount(labels, minlength=self.problem.n_classes)
        return *self.weigh_proposal(costs, labels), counts

    def label_counts(self) -> tuple[Array]:
        """Return class counts of the accepted labels of rows without a full label."""
        return (np.bincount(self.labels[self.unlabeled], minlength=self.problem.n_classes),)

    def class_counts(self) -> tuple[Array, Array]:
        """Return class counts of the rows without a full label: of the accepted labels, and predicted by the scores."""
        counts = np.bincount(self.labels[self.unlabeled], minlength=self.problem.n_classes)
        return counts, predicted_counts(self.problem, self.new_scores[self.unlabeled])
