"""Prior diagnostics: how well stated class sizes agree with the labels and with the supervised classifier.

Labelled rows that were drawn at random have about the stated proportions. Where the two are far apart (a likelihood
ratio above 4 for each degree of freedom, see `proportions.disagreement`), labels are likely to be worse than those of
the supervised classifier: two of three such fits were, and three of four fits that were worse were such
(docs/class-sizes.md).

Labels whose numbers are equal by design say nothing about class sizes. There the stated sizes are compared with the
predictions of the supervised classifier: sizes that force more than half of the rows into another class are doubtful.
Without labels, scores and guesses take its place (true sizes move up to .26 of the rows away from the best class names
of five sets, equal sizes .53 of those of r8).
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.class_prior.proportions import are_balanced_by_design, contributions, disagreement, distance
from transduce.errors import PriorConflict, PriorWarning, PriorWarningKind

HARMFUL_DISAGREEMENT = 4.0
"""Disagreement above which harm is more likely than not."""
HARMFUL_DISTANCE = 0.5
"""Distance above which sizes are doubtful where the numbers of labels say nothing."""
EVIDENCE_GIVES = "the scores or guesses give"
"""What a warning compares stated sizes with, where these are all there is."""

_MOST_CONFLICTS, _MIN_CONTRIBUTION = 3, 0.2
"""A warning names at most so many classes, each with at least this fraction of the largest contribution."""
_NOISE = 1e-6
"""Ranges are not widened by less, in rows or in thousandths."""


@dataclass(frozen=True, eq=False)
class PriorDiagnostics:
    """Stated sizes of nodes, the K classes and then the G branches with a size, beside labels and classifier.

    Attributes
    ----------
    low, high : ndarray of shape (K+G,)
        Smallest and largest stated size of each node, as fractions of the rows to label.
    labeled : ndarray of shape (K+G,)
        Fraction of the labelled rows in each node.
    predicted : ndarray of shape (K+G,)
        Fraction of the rows to label that the classifier gives to each node without prices. It is the supervised
        classifier, learnt from the labelled rows alone, where `needs_supervised` is true and sizes were stated; else
        the fitted one.
    prices : ndarray of shape (K,)
        Prices of the classes in the label step.
    disagreement : float
        Likelihood ratio between stated and labelled sizes for each degree of freedom: about 1 by chance, of classes or
        of branches, whichever is larger.
    farthest : tuple of int
        Up to three nodes with the largest conflict, the worst first.
    n_rows : int
        Number of rows to label.
    in_rows : bool
        Whether sizes were stated in rows.
    groups : Groups or None
        Branches with a stated size.
    balanced_labels : bool
        Whether the numbers of labels are so equal that they were hardly drawn at random, and say nothing about sizes.
    distance : float
        Fraction of the rows that the stated sizes move away from the supervised predictions; 0 where `predicted` is
        that of the fitted classifier.
    by_evidence : bool
        Whether `predicted` is what scores or guesses say, in place of the supervised classifier.
    """

    low: Array
    high: Array
    labeled: Array
    predicted: Array
    prices: Array
    disagreement: float
    farthest: tuple[int, ...] = (0,)
    n_rows: int = 1
    in_rows: bool = False
    groups: Groups | None = None
    balanced_labels: bool = False
    distance: float = 0.0
    by_evidence: bool = False

    @property
    def needs_supervised(self) -> bool:
        """Whether to compare with the supervised classifier, which costs a fit to the labelled rows."""
        return self.disagreement > HARMFUL_DISAGREEMENT or self.balanced_labels

    def with_supervised(self, counts: Array) -> "PriorDiagnostics":
        """Compare with the class counts (K,) that the supervised classifier predicts for the rows to label."""
        predicted = _of_nodes(counts / max(int(counts.sum()), 1), self.groups)
        low, high, levels, farthest = self.low, self.high, self._levels(), self.farthest
        distances = [distance(predicted[nodes], low[nodes], high[nodes]) for nodes in levels]
        if self.balanced_labels:
            nodes = levels[int(np.argmax(distances))]
            farthest = _farthest(nodes, np.abs(np.clip(predicted, low, high) - predicted)[nodes])
        return replace(self, predicted=predicted, distance=max(distances), farthest=farthest)

    def with_evidence(self, counts: Array) -> "PriorDiagnostics":
        """Compare with the class counts (K,) that scores or guesses give, where too few classes have labels."""
        return replace(self, balanced_labels=True, by_evidence=True).with_supervised(counts)

    def with_labels(self, counts: Array) -> "PriorDiagnostics":
        """Compare with the class counts (K,) of the labelled rows."""
        counts, low, high, levels = _of_nodes(counts, self.groups), self.low, self.high, self._levels()
        ratios = [disagreement(counts[nodes], low[nodes], high[nodes]) for nodes in levels]
        nodes = levels[int(np.argmax(ratios))]
        outside = (self.labeled < low) | (self.labeled > high)  # a class within its bounds is no conflict
        amounts = contributions(counts[nodes], low[nodes], high[nodes]) * outside[nodes]
        return replace(self, disagreement=max(ratios), farthest=_farthest(nodes, amounts))

    def _levels(self) -> list[Array]:
        """Partitions of the rows, by branches and by classes."""
        return [np.arange(self.low.size)] if self.groups is None else list(self.groups.levels())

    def suggested_ranges(self) -> list[tuple[float, float]]:
        """For each class, then each branch, a range that agrees with the data.

        It covers what is stated, what is predicted and, unless their numbers say nothing, the labels; in rows where
        sizes were stated in rows, else in fractions.
        """
        witnesses = [self.predicted, self.predicted if self.balanced_labels else self.labeled]
        unit = self.n_rows if self.in_rows else 1000
        least = np.floor(np.min([self.low, *witnesses], axis=0) * unit + _NOISE)
        most = np.ceil(np.max([self.high, *witnesses], axis=0) * unit - _NOISE)
        if self.in_rows:
            return [(int(a), int(b)) for a, b in zip(least, most, strict=True)]
        return [(float(a), float(b)) for a, b in zip(least / unit, most / unit, strict=True)]

    def conflicts(self, classes: Array, n_labeled: int) -> tuple[PriorConflict, ...]:
        """The classes and branches in `farthest`, as records for a warning."""
        names = [*classes.tolist(), *(() if self.groups is None else self.groups.names)]
        ranges, of_evidence = self.suggested_ranges(), (EVIDENCE_GIVES,) if self.by_evidence else ()
        return tuple(
            PriorConflict(
                names[k],
                float(self.low[k]),
                float(self.high[k]),
                None if self.balanced_labels else float(self.labeled[k]),
                float(self.predicted[k]),
                ranges[k],
                n_labeled,
                *of_evidence,
            )
            for k in self.farthest
        )


def diagnose_prior(
    bounds: Bounds, labeled_counts: Array, predicted_counts: Array, prices: Array, in_rows: bool = False
) -> PriorDiagnostics:
    """Diagnose bounds, given the class counts (K,) of the labelled rows and of the predictions for the others.

    >>> bounds = Bounds(np.array([50, 50]), np.array([50, 50]))
    >>> found = diagnose_prior(bounds, np.array([38, 2]), np.array([80, 20]), np.array([-0.3, 0.3]))
    >>> found.disagreement > HARMFUL_DISAGREEMENT, found.suggested_ranges()
    (True, [(0.5, 0.95), (0.05, 0.5)])
    """
    (low, high, groups, _), n_rows = bounds, max(int(predicted_counts.sum()), 1)
    if groups is not None:
        low, high = np.append(low, groups.low), np.append(high, np.minimum(groups.high, n_rows))
    found = PriorDiagnostics(
        low / n_rows,
        high / n_rows,
        _of_nodes(labeled_counts / max(float(labeled_counts.sum()), 1.0), groups),
        _of_nodes(predicted_counts / n_rows, groups),
        prices,
        disagreement=0.0,
        n_rows=n_rows,
        in_rows=in_rows,
        groups=groups,
        balanced_labels=are_balanced_by_design(labeled_counts),
    )
    return found.with_labels(labeled_counts) if predicted_counts.sum() else found


def _of_nodes(values: Array, groups: Groups | None) -> Array:
    """Values of classes (K,), then their sums over the groups."""
    return values if groups is None else np.append(values, groups.members(values.size) @ values)


def _farthest(nodes: Array, amounts: Array) -> tuple[int, ...]:
    """The nodes with the largest amounts, the largest first."""
    order = np.argsort(-amounts, kind="stable")[:_MOST_CONFLICTS]
    least = _MIN_CONTRIBUTION * max(amounts[order[0]], _NOISE)
    return tuple(int(nodes[k]) for k in order if k == order[0] or amounts[k] >= least)


def warn_harmful_prior(diagnostics: PriorDiagnostics, classes: Array, n_labeled: int, stacklevel: int) -> None:
    """Warn if stated sizes and data disagree so much that harm is likely."""
    if diagnostics.balanced_labels:
        kind = PriorWarningKind.AGAINST_EVIDENCE if diagnostics.by_evidence else PriorWarningKind.AGAINST_ROWS
        is_harmful = diagnostics.distance > HARMFUL_DISTANCE
    else:
        kind, is_harmful = PriorWarningKind.AGAINST_LABELS, diagnostics.disagreement > HARMFUL_DISAGREEMENT
    if is_harmful:
        conflicts = diagnostics.conflicts(classes, n_labeled)
        warnings.warn(PriorWarning(kind, conflicts=conflicts, n_labeled=n_labeled), stacklevel=stacklevel)


def warn_balanced_labels(stacklevel: int) -> None:
    """Warn that class_prior="labeled" relies on labels that say nothing about class sizes."""
    warnings.warn(PriorWarning(PriorWarningKind.BALANCED_LABELS, conflicts=()), stacklevel=stacklevel)
