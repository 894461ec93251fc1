"""Beliefs about class counts: a convex cost on the number of rows that each class gets.

    f_k(n) = s_k ((n + o_k) log((n + o_k) / m_k) − (n + o_k) + m_k)

m_k > 0 is the number of rows that is believed, where f_k is 0, and s_k ≥ 0 the strength of the belief in the units of
the label costs: deviating by ten per cent costs about a tenth of s_k for each further row. A strength of 0 is no
belief. The offset o_k, 0 unless a problem is part of a larger one, counts rows whose label is certain. Σ_k f_k is
s times the number of rows times the Kullback-Leibler divergence from the believed proportions.

With the multiplier u_k of class k, the count that minimises f_k(n) + u_k n is n = m_k exp(−u_k / s_k) − o_k. Whole
numbers follow from the marginal cost f_k(n + 1) − f_k(n), which rises with n.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_AROUND = np.arange(6.0)
"""Whole numbers to try around the real number at which the cost is least."""
_LARGEST_COUNT = 1e15


class Belief(NamedTuple):
    """Believed class counts.

    Parameters
    ----------
    mean : ndarray of shape (K,)
        Number of rows believed of each class, above 0.
    strength : ndarray of shape (K,)
        Strength of the belief in the units of the label costs; 0 for none.
    offset : ndarray of shape (K,)
        Rows of each class that are counted but are not part of the problem.

    Examples
    --------
    >>> belief = Belief.create(mean=[30, 70], strength=1.0)
    >>> belief.cost(np.array([30, 70])).round(2).tolist(), belief.cost(np.array([40, 60])).round(2).tolist()
    ([0.0, 0.0], [1.51, 0.75])
    """

    mean: FloatArray
    strength: FloatArray
    offset: FloatArray

    @classmethod
    def create(cls, mean: ArrayLike, strength: ArrayLike, offset: ArrayLike = 0.0) -> "Belief":
        """Check the numbers and make a belief; a single strength or offset is that of every class.

        Parameters
        ----------
        mean : array-like of shape (K,)
        strength : float or array-like of shape (K,)
        offset : float or array-like of shape (K,), default=0.0
        """
        try:
            means = np.array(mean, dtype=np.float64)
            own = [np.array(np.broadcast_to(np.asarray(each, np.float64), means.shape)) for each in (strength, offset)]
        except (TypeError, ValueError):
            raise ValueError(
                "a belief must have one mean and at most one strength for each class. Pass a list of means, and "
                "a number or a list as long for the strength."
            ) from None
        if means.ndim != 1 or not np.all((means > 0) & (means < _LARGEST_COUNT)):
            raise ValueError(f"believed counts must be numbers above 0, one for each class, but are {mean!r}.")
        for values, name in zip(own, ("strength", "offset"), strict=True):
            if not np.all((values >= 0) & (values < np.inf)):
                raise ValueError(f"the {name} of a belief must be finite and 0 or more, but is {values!r}.")
        return cls(means, *own)

    def cost(self, counts: NDArray[Any]) -> FloatArray:
        """Cost f (K,) of class counts (K,).

        Parameters
        ----------
        counts : ndarray of shape (K,)
        """
        n = counts + self.offset
        logs = np.log(np.maximum(n, np.finfo(np.float64).tiny) / self.mean)
        return np.asarray(self.strength * (n * logs - n + self.mean))

    def marginal(self, counts: NDArray[Any]) -> FloatArray:
        """Cost of one more row, f(n + 1) − f(n), in the last dimension (K,)."""
        n = counts + self.offset
        more = np.log((n + 1.0) / self.mean)
        return np.asarray(self.strength * (more + n * np.log1p(1.0 / np.maximum(n, np.finfo(np.float64).tiny)) - 1.0))

    def real_counts(self, multipliers: FloatArray) -> FloatArray:
        """Real numbers of rows (K,) at which f_k(n) + u_k n is least; meaningless where the strength is 0."""
        scaled = -multipliers / np.where(self.strength > 0, self.strength, 1.0)
        return np.asarray(self.mean * np.exp(np.clip(scaled, -700.0, np.log(_LARGEST_COUNT / self.mean))) - self.offset)

    def whole_counts(self, multipliers: FloatArray) -> tuple[IntArray, IntArray]:
        """Least and greatest whole number of rows (K,) at which f_k(n) + u_k n is least."""
        first = np.maximum(np.floor(self.real_counts(multipliers)) - 2.0, 0.0)
        marginals = self.marginal(first + _AROUND[:, None])
        least, most = ((compare(marginals, -multipliers)).sum(axis=0) for compare in (np.less, np.less_equal))
        return (first + least).astype(np.int64), (first + most).astype(np.int64)

    def scaled(self, factor: float) -> "Belief":
        """The same belief about a sample with this fraction of the rows."""
        return Belief(self.mean * factor, self.strength, self.offset * factor)

    def center(self, low: NDArray[Any], high: NDArray[Any], n_rows: float) -> FloatArray:
        """Real class counts (K,) in the proportions of the means, between bounds (K,), that sum to n_rows."""
        limits = np.log(1e-12), np.log(_LARGEST_COUNT)
        for _ in range(100):
            log_factor = sum(limits) / 2.0
            counts = np.clip(self.mean * np.exp(log_factor) - self.offset, low, high)
            limits = (limits[0], log_factor) if counts.sum() > n_rows else (log_factor, limits[1])
        return np.asarray(counts)
