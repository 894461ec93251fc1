"""What a few labelled rows say about class shares, if they were drawn at random: a mean, a deviation, a disagreement.

    counts c ~ Multinomial(φ),  φ ~ Dirichlet(a, ..., a),  a unknown

Few labels are poor witnesses of shares by themselves: eighty labels of twenty equal classes give shares from 1 to 10
per cent. How uneven classes are is learnt from the counts too: the likelihood of a, with φ summed out, says whether
they differ by more than chance. Where they do not, shares are drawn towards each other; where they do, they stay.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

FloatArray = NDArray[np.float64]

EVENNESS = np.logspace(-1.5, 3.0, 91)
"""Values of a that are summed over, all as likely at first."""


class Shares(NamedTuple):
    """Mean and standard deviation (K,) of the class shares, given the labels."""

    mean: FloatArray
    deviation: FloatArray


def labeled_shares(counts: ArrayLike) -> Shares:
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
    return Shares(mean / mean.sum(), np.sqrt(variance))


def disagreement(counts: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """How far labelled rows are from shares between low and high: the likelihood ratio a degree of freedom.

    About 1 where they were drawn at random from such shares; see docs/class-sizes.md for what larger values foretell.

    >>> half = [0.5, 0.5]
    >>> round(disagreement([20, 20], half, half), 2), round(disagreement([38, 2], half, half), 1)
    (0.0, 39.6)
    """
    c = np.asarray(counts, dtype=np.float64)
    total = c.sum()
    if c.size < 2 or total == 0:
        return 0.0
    stated = np.clip(c / total, np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
    stated = np.maximum(stated, 0.5 / max(total, 1.0) * 1e-3)
    stated /= stated.sum()
    held = c > 0
    return float(2.0 * np.sum(c[held] * np.log(c[held] / (total * stated[held]))) / (c.size - 1))
