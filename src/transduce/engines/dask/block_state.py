"""One block of a shard: its rows, and a restart on them with the label costs that a label step works on."""

from dataclasses import dataclass

import numpy as np

from transduce.arrays import Array
from transduce.engines.common import (
    Calibration,
    RowState,
    finite_costs,
    posterior_costs,
    predicted_counts,
    priced_probabilities,
    total_confidence,
)
from transduce.engines.local import LocalEngine
from transduce.label_step.partitions import Partition
from transduce.problem import allowed_costs


@dataclass(frozen=True, eq=False)
class Block(LocalEngine):
    """The rows of one block.

    `relative_weight` (n_unlabeled,) is the weight of each row without a full label divided by their mean over all
    blocks, or None where all are equal.
    """

    relative_weight: Array | None = None


@dataclass(eq=False)
class BlockState(RowState):
    """One restart on one block.

    partition  label costs, and what a label step has left with them
    best       (n_unlabeled,) class of the largest probability in the last round of soft labels
    """

    block: Block
    partition: Partition | None = None
    best: Array | None = None

    def set_greedy_costs(self) -> None:
        """Make minus the scores at W the label costs of rows without a full label."""
        self._set_costs(-self.new_scores[self.unlabeled])

    def set_posterior_costs(self, calibration: Calibration) -> None:
        """Likewise minus the logarithm of the probabilities at the scores."""
        self._set_costs(posterior_costs(self.problem.loss, self.new_scores[self.unlabeled], calibration))

    def set_posterior(self, prices: Array, calibration: Calibration) -> None:
        """Make the probabilities at the scores and prices the posterior that a label step would leave."""
        self.set_greedy_costs()
        assert self.partition is not None
        found = priced_probabilities(self.problem, self.new_scores[self.unlabeled], prices, calibration)
        self.partition.state["posterior"] = found

    def total_confidence(self, prices: Array, calibration: Calibration) -> tuple[float]:
        """Return the sum of the largest probabilities of rows without a full label."""
        return (total_confidence(self.problem.loss, self.new_scores[self.unlabeled], prices, calibration),)

    def set_soft_costs(self) -> None:
        """Likewise the loss at W; row weights are equal if partial labels weigh as full ones."""
        costs = finite_costs(self.problem.loss, self.new_scores[self.unlabeled])
        weights = None if self.problem.n_partial else self.block.relative_weight
        self._set_costs(costs, weights, np.full(len(costs), -1))

    def set_hard_costs(self, step_length: float = 1.0) -> None:
        """Move the scores that labels are chosen by this far to those at W, and make the hard loss there the costs."""
        self.problem, self.scores = self.block.problem, self.scores_between(step_length)
        self._set_costs(self.label_costs(), self.block.relative_weight)

    def _set_costs(self, costs: Array, weights: Array | None = None, labels: Array | None = None) -> None:
        costs = costs if weights is None else costs * weights[:, None]
        labels = self.labels[self.unlabeled] if labels is None else labels
        self.partition = Partition(allowed_costs(self.problem, costs), labels)

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
