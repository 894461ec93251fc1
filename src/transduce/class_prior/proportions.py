"""Class proportions from the counts of randomly drawn labels: posterior mean and deviation, and likelihood ratios.

    counts c ~ Multinomial(φ),  φ ~ Dirichlet(a, ..., a),  a unknown

A few labels estimate proportions poorly: eighty labels of twenty equal classes give fractions from 1 to 10 per cent. So
the concentration a is estimated from the counts too, by its likelihood with φ integrated out. Where the counts differ
no more than by chance, a is large and the fractions shrink towards each other; where they differ more, they stay.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammainc, gammaln

from transduce.arrays import FloatArray

LEVEL = 0.9
"""Probability that an interval contains the true size."""
CONCENTRATIONS = np.logspace(-1.5, 3.0, 91)
"""Values of a that are summed over, with equal prior probability."""
MOST_CLASSES = 0.6
"""Labels are balanced by design if at least this fraction of the classes has the largest count."""
DESIGN_PROBABILITY = 0.02
"""Labels are balanced by design if chance makes counts as equal as theirs with a lower probability."""


class SizeEstimate(NamedTuple):
    """Estimated class sizes, as fractions of the rows to label.

    Attributes
    ----------
    mean : ndarray of shape (K,)
        Estimates, which sum to 1.
    deviation : ndarray of shape (K,)
        Their standard deviations.
    """

    mean: FloatArray
    deviation: FloatArray

    @property
    def low(self) -> FloatArray:
        """Lower ends (K,) of intervals that contain the true sizes with a probability of 90 %."""
        return self._quantile((1.0 - LEVEL) / 2.0)

    @property
    def high(self) -> FloatArray:
        """Upper ends (K,) of these intervals."""
        return self._quantile((1.0 + LEVEL) / 2.0)

    def _quantile(self, probability: float) -> FloatArray:
        """Quantiles of the beta distributions with these means and deviations."""
        mean = np.clip(self.mean, 1e-9, 1.0 - 1e-9)
        size = np.maximum(mean * (1.0 - mean) / np.maximum(self.deviation, 1e-9) ** 2 - 1.0, 1e-3)
        return np.asarray(betaincinv(mean * size, (1.0 - mean) * size, probability))


def labeled_proportions(counts: ArrayLike) -> SizeEstimate:
    """Posterior of the class proportions, given the labelled rows of each class; weighted rows may count by fractions.

    >>> labeled_proportions([3, 5, 4, 4, 6, 2]).mean.round(2).tolist()
    [0.16, 0.17, 0.17, 0.17, 0.18, 0.16]
    >>> labeled_proportions([58, 1, 0, 1]).mean.round(2).tolist()
    [0.96, 0.02, 0.0, 0.02]
    """
    c = np.asarray(counts, dtype=np.float64)
    n, K, a = c.sum(), c.size, CONCENTRATIONS[:, None]
    log_likelihood = (
        gammaln(K * CONCENTRATIONS) - gammaln(n + K * CONCENTRATIONS) + (gammaln(c + a) - gammaln(a)).sum(axis=1)
    )
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    first = (c + a) / (n + K * a)
    second = first * (c + a + 1.0) / (n + K * a + 1.0)
    mean = weights @ first
    variance = np.maximum(weights @ second - mean**2, 0.0)
    return SizeEstimate(mean / mean.sum(), np.sqrt(variance))


def are_balanced_by_design(counts: ArrayLike) -> bool:
    """Whether the numbers of labels are so equal that they were hardly drawn at random.

    Ten labels of each class, for example, or of each class that has as many, say nothing about class sizes. Only
    classes with labels are compared, if there are at least two; `counts` are numbers of rows, without sample weights.

    Random labels of three or more equal classes are mistaken for a design in one of fifty draws. Two classes with the
    same number of labels always are: chance makes that of equal classes in 37 % of draws of four labels and in 9 % of
    draws of eighty. This is intended: a design is the likelier reason, and estimated sizes cost little where it was
    chance. Most of four or more classes share the largest count in one of thirty draws of few labels, hardly ever of
    many.

    >>> [are_balanced_by_design(counts) for counts in ([10, 10, 10, 9, 10], [10, 10, 3, 10, 10], [3, 5, 4, 4, 6, 2])]
    [True, True, False]
    """
    c = np.asarray(counts, dtype=np.float64)
    c = c[c > 0]
    if c.size >= 4 and c.max() >= 2 and np.mean(c == c.max()) >= MOST_CLASSES:
        return True
    if c.size < 2 or c.min() < 2:
        return False
    chi_squared = float(((c - c.mean()) ** 2 / c.mean()).sum())
    return bool(gammainc((c.size - 1) / 2, chi_squared / 2) < DESIGN_PROBABILITY)


def disagreement(counts: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Likelihood ratio, for each degree of freedom, between labelled counts and proportions between low and high.

    It is about 1 for labels drawn at random from such proportions; docs/class-sizes.md says what larger values predict.
    A range counts only as far as the other ranges leave room for it.

    >>> half = [0.5, 0.5]
    >>> round(disagreement([20, 20], half, half), 2), round(disagreement([38, 2], half, half), 1)
    (0.0, 39.6)
    """
    ratios = contributions(counts, low, high)
    return float(ratios.sum() / max(ratios.size - 1, 1))


def contributions(counts: ArrayLike, low: ArrayLike, high: ArrayLike) -> FloatArray:
    """Terms of the likelihood ratio (K,), 2 (c log(c/e) − c + e) with e the expected counts; all 0 or more.

    >>> contributions([10, 10, 40], [0.5, 0.2, 0.3], [0.5, 0.2, 0.3]).round(1).tolist()
    [18.0, 0.4, 19.9]
    """
    c = np.asarray(counts, dtype=np.float64)
    total = c.sum()
    if c.size < 2 or total == 0:
        return np.zeros(c.size)
    stated = np.clip(c / total, *_effective_bounds(low, high))
    stated = np.maximum(stated, 0.5 / max(total, 1.0) * 1e-3)
    expected = total * stated / stated.sum()
    ratio = np.divide(c, expected, out=np.ones_like(c), where=c > 0)
    return np.asarray(2.0 * np.maximum(c * np.log(ratio) - c + expected, 0.0))


def distance(proportions: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Fraction of the rows that must change their class to bring the proportions between low and high.

    Where low equals high it is the total variation distance.

    >>> round(distance([0.9, 0.1], [0.2, 0.8], [0.2, 0.8]), 2), distance([0.9, 0.1], [0.5, 0.0], [1.0, 1.0])
    (0.7, 0.0)
    """
    present = np.asarray(proportions, dtype=np.float64)
    change = np.clip(present, *_effective_bounds(low, high)) - present
    return float(max(change[change > 0].sum(), -change[change < 0].sum()))


def _effective_bounds(low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Bounds (K,) narrowed to what the other classes leave."""
    least, most = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if np.array_equal(least, most):
        return least, most
    return np.maximum(least, 1.0 - (most.sum() - most)), np.minimum(most, 1.0 - (least.sum() - least))
