"""Bounds on class counts: low <= count <= high for classes and nested groups of classes, and beliefs within them."""

from typing import NamedTuple

import numpy as np

from transduce.arrays import FloatArray, IntArray
from transduce.class_prior.belief import Belief
from transduce.class_prior.groups import Groups
from transduce.class_prior.rounding import apportion


class Bounds(NamedTuple):
    """Bounds on the class counts of the rows to label.

    Parameters
    ----------
    low : ndarray of shape (K,)
        Smallest count of each class.
    high : ndarray of shape (K,)
        Largest count of each class; equal to `low` where the size is exact.
    groups : Groups or None, default=None
        Bounds on the counts of groups of classes.
    belief : Belief or None, default=None
        Cost of the counts within their bounds; None for none.
    """

    low: IntArray
    high: IntArray
    groups: Groups | None = None
    belief: Belief | None = None

    @classmethod
    def exact(cls, counts: IntArray) -> "Bounds":
        """Return bounds that allow these counts alone.

        Parameters
        ----------
        counts : ndarray of shape (K,)
        """
        return cls(counts, counts)

    def center(self, n_rows: int) -> FloatArray:
        """Return class proportions (K,) that are believed; without a belief, the middle of the bounds is.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.

        Examples
        --------
        >>> Bounds(np.array([0, 0]), np.array([10, 2])).center(10).round(2)
        array([0.83, 0.17])
        """
        low, high = self.low, np.minimum(self.high, n_rows)
        belief = self.belief or Belief.create(np.maximum(low + high, 1) / 2.0, 1.0)
        if np.array_equal(low, high):
            counts = low.astype(np.float64)
        elif self.groups is None:
            counts = belief.center(low, high, n_rows)
        else:
            counts = self.groups.center(low, high, belief, n_rows)
        return np.asarray(counts / max(counts.sum(), 1.0))

    def with_outliers(self, n_rows: int, low: int, high: int) -> "Bounds":
        """Return bounds with one more class, last, for `low` to `high` rows that fit no class.

        The bounds of the classes are those of the rows that are left, in proportion; exact counts stay exact, by
        largest remainder. There is no belief about these.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.
        low, high : int
            Bounds on the rows that fit no class.
        """
        bounds = self._in_proportion(n_rows - high, n_rows - low, n_rows)
        least, most, groups = bounds.low, bounds.high, bounds.groups
        if groups is None and low == high and self.low.any() and np.array_equal(self.low, self.high):
            least = most = apportion(self.low, n_rows - low)
        if groups is not None:
            K = self.low.size
            above = np.concatenate((groups.above[:K] + 1, [groups.above.size + 1], groups.above[K:] + 1))
            groups = Groups(above, groups.low, groups.high, groups.names)
        return Bounds(np.append(least, low), np.append(most, high), groups)

    def scaled(self, n_rows: int, n_sample: int) -> "Bounds":
        """Return bounds in proportion for a sample of the rows: exact counts by largest remainder, others outwards.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.
        n_sample : int
            Number of these in the sample.
        """
        if n_rows == n_sample:
            return self
        if self.groups is None and self.belief is None and self.low.any() and np.array_equal(self.low, self.high):
            return Bounds.exact(apportion(self.low, n_sample))
        belief = None if self.belief is None else self.belief.scaled(n_sample / n_rows)
        return self._in_proportion(n_sample, n_sample, n_rows)._replace(belief=belief)

    def _in_proportion(self, least: int, most: int, n_rows: int) -> "Bounds":
        """Bounds for `least` to `most` of n_rows rows, rounded outwards, without the belief."""
        groups, n = self.groups, max(n_rows, 1)
        if groups is not None:
            low, high = groups.low * least // n, -(-np.minimum(groups.high, n) * most // n)
            groups = Groups(groups.above, low, high, groups.names)
        return Bounds(self.low * least // n, -(-np.minimum(self.high, n) * most // n), groups)

    def as_belief(self, n_rows: int) -> "Bounds":
        """Return a belief around the middle of these bounds, so that any labels are allowed.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.

        Examples
        --------
        >>> Bounds.exact(np.array([2, 8])).as_belief(10)[:2]
        (array([0, 0]), array([10, 10]))
        """
        belief = Belief.create(np.maximum(n_rows * self.center(n_rows), 0.5), 1.0)
        return Bounds(np.zeros_like(self.low), np.full_like(self.high, n_rows), None, belief)

    def without_belief(self, n_rows: int) -> "Bounds":
        """Return hard bounds, the whole numbers around the believed counts, for methods that take no belief.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.

        Examples
        --------
        >>> belief = Belief.create([2.5, 7.5], strength=1.0)
        >>> Bounds(np.array([0, 0]), np.array([10, 10]), belief=belief).without_belief(10)[:2]
        (array([2, 7]), array([3, 8]))
        """
        if self.belief is None:
            return self
        counts = n_rows * self.center(n_rows)
        low, high = np.floor(counts + 1e-6).astype(np.int64), np.ceil(counts - 1e-6).astype(np.int64)
        return Bounds(np.clip(low, self.low, self.high), np.clip(high, self.low, self.high), self.groups)
