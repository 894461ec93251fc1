"""What a few labelled rows say about class shares, if they were drawn at random: a mean, a deviation, a disagreement.

    counts c ~ Multinomial(φ),  φ ~ Dirichlet(a, ..., a),  a unknown

Few labels are poor witnesses of shares by themselves: eighty labels of twenty equal classes give shares from 1 to 10
per cent. How uneven classes are is learnt from the counts too: the likelihood of a, with φ summed out, says whether
they differ by more than chance. Where they do not, shares are drawn towards each other; where they do, they stay.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaln

FloatArray = NDArray[np.float64]

EVENNESS = np.logspace(-1.5, 3.0, 91)
"""Values of a that are summed over, all as likely at first."""
MOST = 0.6
"""Share of the classes that have the largest count together where every class was to have so many."""
BY_DESIGN = 0.02
"""Counts that chance would make as even as this less often were made so."""


class Proportions(NamedTuple):
    """Mean and standard deviation (K,) of the class shares, given the labels."""

    mean: FloatArray
    deviation: FloatArray


def labeled_proportions(counts: ArrayLike) -> Proportions:
    """Class shares from the number of labelled rows of each class; weighted rows may count by fractions.

    >>> labeled_shares([3, 5, 4, 4, 6, 2]).mean.round(2).tolist()
    [0.16, 0.17, 0.17, 0.17, 0.18, 0.16]
    >>> labeled_shares([58, 1, 0, 1]).mean.round(2).tolist()
    [0.96, 0.02, 0.0, 0.02]
    """
    c = np.asarray(counts, dtype=np.float64)
    n, K, a = c.sum(), c.size, EVENNESS[:, None]
    likelihood = gammaln(K * EVENNESS) - gammaln(n + K * EVENNESS) + (gammaln(c + a) - gammaln(a)).sum(axis=1)
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    first = (c + a) / (n + K * a)
    second = first * (c + a + 1.0) / (n + K * a + 1.0)
    mean = weights @ first
    variance = np.maximum(weights @ second - mean**2, 0.0)
    return Proportions(mean / mean.sum(), np.sqrt(variance))


def are_balanced_by_design(counts: ArrayLike) -> bool:
    """Whether classes have so equal numbers of labels that these were hardly drawn at random.

    Ten labels of each class, say, or of each that has as many: such counts are no witness of class sizes. Only classes
    with labels are compared, if there are two or more; `counts` are those of rows, whatever these weigh.

    Many labels of three or more equal classes pass for a design in one of fifty draws. Two classes with the same number
    of labels always do, which chance makes of equal classes more often: in 37 % of draws of four labels, in 9 % of
    eighty. That is meant: a design is the likelier reason, and where it was chance, estimated sizes cost little.
    Most of four classes or more have the largest count together in one of thirty draws of few labels, hardly of many.

    >>> are_by_design([10, 10, 10, 9, 10]), are_by_design([10, 10, 3, 10, 10]), are_by_design([3, 5, 4, 4, 6, 2])
    (True, True, False)
    """
    c = np.asarray(counts, dtype=np.float64)
    c = c[c > 0]
    if c.size >= 4 and c.max() >= 2 and np.mean(c == c.max()) >= MOST:
        return True
    if c.size < 2 or c.min() < 2:
        return False
    even = c.mean()
    chi_squared = float(((c - even) ** 2 / even).sum())
    return bool(gammainc((c.size - 1) / 2, chi_squared / 2) < BY_DESIGN)


def disagreement(counts: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """How far labelled rows are from shares between low and high: the likelihood ratio a degree of freedom.

    About 1 where they were drawn at random from such shares; see docs/class-sizes.md for what larger values foretell.
    What is open to a class is no more than what the others leave.

    >>> half = [0.5, 0.5]
    >>> round(disagreement([20, 20], half, half), 2), round(disagreement([38, 2], half, half), 1)
    (0.0, 39.6)
    """
    parts = contributions(counts, low, high)
    return float(parts.sum() / max(parts.size - 1, 1))


def contributions(counts: ArrayLike, low: ArrayLike, high: ArrayLike) -> FloatArray:
    """What each class (K,) adds to the likelihood ratio, 2 (c log(c/e) − c + e) with e the rows expected; 0 or more.

    >>> contributions([10, 10, 40], [0.5, 0.2, 0.3], [0.5, 0.2, 0.3]).round(1).tolist()
    [18.0, 0.4, 19.9]
    """
    c = np.asarray(counts, dtype=np.float64)
    total = c.sum()
    if c.size < 2 or total == 0:
        return np.zeros(c.size)
    stated = np.clip(c / total, *within_the_rest(low, high))
    stated = np.maximum(stated, 0.5 / max(total, 1.0) * 1e-3)
    expected = total * stated / stated.sum()
    ratio = np.divide(c, expected, out=np.ones_like(c), where=c > 0)
    return np.asarray(2.0 * np.maximum(c * np.log(ratio) - c + expected, 0.0))


def distance(shares: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Share of the rows that would have to change their class for these shares to come between low and high.

    Between two lists of shares it is their total variation.

    >>> round(distance([0.9, 0.1], [0.2, 0.8], [0.2, 0.8]), 2), distance([0.9, 0.1], [0.5, 0.0], [1.0, 1.0])
    (0.7, 0.0)
    """
    own = np.asarray(shares, dtype=np.float64)
    off = np.clip(own, *within_the_rest(low, high)) - own
    return float(max(off[off > 0].sum(), -off[off < 0].sum()))


def within_the_rest(low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Bounds (K,) of shares, no wider than what the others leave of all rows."""
    least, most = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if np.array_equal(least, most):
        return least, most
    return np.maximum(least, 1.0 - (most.sum() - most)), np.minimum(most, 1.0 - (least.sum() - least))
