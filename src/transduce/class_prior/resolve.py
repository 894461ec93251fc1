"""From a class prior, the labels and an estimate to bounds and beliefs on the class counts of the rows to label."""

from typing import NamedTuple

import numpy as np

from transduce.arrays import Array, BoolArray, FloatArray, IntArray
from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.estimation import MIN_SAMPLED
from transduce.class_prior.proportions import SizeEstimate, are_balanced_by_design, labeled_proportions
from transduce.class_prior.stated_sizes import read_statement
from transduce.class_prior.statement import MIN_ROWS, Statement
from transduce.taxonomy import Taxonomy

STRENGTHS, LABELS_PER_STRENGTH = (2.0, 64.0), 120.0
"""Least and greatest strength of the belief in a size, in units of the loss, and labels that a unit stands for.

Rows follow a belief unless their scores are clear. One that is much weaker lets a large class absorb small ones.
"""


class ResolvedPrior(NamedTuple):
    """A class prior for the rows to label.

    stated     the class prior as the user wrote it
    statement  what is stated, in rows
    labels     (l,) class of each labelled row
    weights    (l,) their sample weights, or None
    sampled    (l,) whether each label was drawn at random, as far as is known
    is_known   whether the user said that all were
    forbidden  labels that rows must not get, or None
    """

    stated: object
    statement: Statement
    labels: IntArray
    weights: FloatArray | None
    sampled: BoolArray
    is_known: bool = False
    forbidden: Array | None = None

    @classmethod
    def create(
        cls,
        stated: object,
        classes: Array,
        labels: IntArray,
        n_rows: int,
        weights: FloatArray | None = None,
        taxonomy: Taxonomy | None = None,
        forbidden: Array | None = None,
        sampled: Array | None = None,
    ) -> "ResolvedPrior":
        """Resolve a prior for `n_rows` rows to label.

        classes (K,) are names, labels (l,) the class indices and weights (l,) the sample weights of the rows with a
        full label. `sampled` (l,) says which labels were drawn at random; by default all, unless their numbers are so
        equal that they were chosen by class.

        >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2, 2])
        >>> prior = ResolvedPrior.create({"tea": "=25%", "coffee": (0.3, 0.5)}, names, labels, 12)
        >>> prior.bounds(prior.from_labels())[:2]
        (array([0, 4, 3]), array([12,  6,  3]))
        """
        statement = read_statement({} if _is_keyword(stated) else stated, classes, labels, n_rows, taxonomy)
        is_known = sampled is not None and bool(np.all(sampled))
        if sampled is None:
            is_sample = not are_balanced_by_design(np.bincount(labels, minlength=classes.size))
            sampled = np.full(labels.size, is_sample)
        return cls(stated, statement, labels, weights, sampled, is_known, forbidden)

    @property
    def is_stated(self) -> bool:
        """Whether the user stated any size."""
        return not _is_keyword(self.stated)

    @property
    def is_estimated(self) -> bool:
        """Whether class sizes are estimated from hidden labels."""
        return not (_is_keyword(self.stated) and self.stated == "labeled") and not self.statement.all_exact

    @property
    def labeled_rows(self) -> IntArray:
        """Labelled rows of each class (K,)."""
        return np.bincount(self.labels, minlength=self.statement.n_classes)

    def from_labels(self) -> SizeEstimate | None:
        """Estimate class sizes from the labels alone; None if too few of them were drawn at random."""
        chosen = self.sampled if self.is_estimated else np.ones_like(self.sampled)
        if chosen.sum() < MIN_SAMPLED and not chosen.all():
            return None
        weights = None if self.weights is None else self.weights[chosen]
        return labeled_proportions(labeled_counts(self.statement.n_classes, self.labels[chosen], weights))

    def combine(self, estimate: SizeEstimate) -> SizeEstimate:
        """Combine an estimate with what is stated, and with the labels that rows may get."""
        n_rows = self.statement.n_rows
        if n_rows == 0:
            return estimate
        return self.statement.combine(
            estimate._replace(mean=expected_counts(estimate.mean, n_rows, self.forbidden) / n_rows)
        )

    def bounds(self, estimate: SizeEstimate) -> Bounds:
        """Bounds on the counts, and a belief around an estimate combined with what is stated.

        A belief is as strong as the number of labels that would show the size of the class as precisely.
        """
        hard = self.statement.hard_bounds
        if self.statement.all_exact:
            return Bounds.exact(hard.low)
        mean, deviation = self.combine(estimate)
        as_labels = mean * (1.0 - mean) / np.maximum(deviation, 1e-6) ** 2
        strengths = np.clip(as_labels / LABELS_PER_STRENGTH, *STRENGTHS)
        return hard._replace(belief=Belief.create(np.maximum(self.statement.n_rows * mean, MIN_ROWS), strengths))


def _is_keyword(stated: object) -> bool:
    return isinstance(stated, str) and stated in ("labeled", "estimate")


def expected_counts(proportions: FloatArray, n_rows: int, forbidden: Array | None) -> FloatArray:
    """Expected class counts when every row draws its label from the proportions, restricted to its allowed labels.

    Rows beyond those of `forbidden` may get any label. The whole numbers on both sides of the result are feasible.

    >>> forbidden = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=bool)
    >>> expected_counts(np.array([0.25, 0.25, 0.5]), 4, forbidden)
    array([1.25, 1.25, 1.5 ])
    """
    if forbidden is None:
        return np.asarray(n_rows * proportions)
    each = np.where(forbidden, 0.0, np.maximum(proportions, np.finfo(np.float64).tiny))
    free = (n_rows - len(forbidden)) * proportions
    return np.asarray((each / each.sum(axis=1, keepdims=True)).sum(axis=0) + free)


def labeled_counts(n_classes: int, labels: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """Labelled rows of each class (K,); weighted rows sum to their effective sample size, (Σw)² / Σw².

    >>> labeled_counts(2, np.array([0, 0, 1])), labeled_counts(2, np.array([0, 0, 1]), np.array([2.0, 2.0, 2.0]))
    (array([2., 1.]), array([2., 1.]))
    """
    if weights is None:
        return np.bincount(labels, minlength=n_classes).astype(np.float64)
    weights = weights / weights.max(initial=np.finfo(np.float64).tiny)  # their squares could overflow
    sums = np.bincount(labels, weights=weights, minlength=n_classes)
    return np.asarray(sums * weights.sum() / np.dot(weights, weights))
