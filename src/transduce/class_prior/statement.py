"""What is stated about class sizes, in rows to label: hard bounds, and rough sizes, which are beliefs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.estimation import SizeEstimate
from transduce.class_prior.groups import Groups
from transduce.errors import PriorError, PriorErrorKind

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


ROUGHNESS = 0.1
"""Relative standard deviation of a rough size."""
MIN_ROWS = 0.5
"""Smallest size of a class that combinations start from."""
MAX_PASSES = 1000


class RoughBranch(NamedTuple):
    """A branch of the taxonomy with a rough size: its name, a mask (K,) of its classes, and about how many rows."""

    name: str
    members: Mask
    rows: float


@dataclass(frozen=True, eq=False)
class Statement:
    """Stated sizes of K classes, in rows to label; `stated_sizes.read_statement` creates it.

    Attributes
    ----------
    low, high : ndarray of shape (K,)
        Whole numbers that the counts must lie between: exact sizes and ranges; 0 and all rows for other classes.
    rough : ndarray of shape (K,)
        About how many rows each class has; NaN where no rough size is stated.
    groups : Groups or None
        Hard bounds of branches.
    branches : tuple of RoughBranch
        Rough sizes of branches.
    in_rows : bool
        Whether sizes were stated in rows.
    divided_by : float or None
        The sum of rounded fractions, which were divided by it; None where they were not.
    """

    low: IntArray
    high: IntArray
    rough: FloatArray
    groups: Groups | None = None
    branches: tuple[RoughBranch, ...] = ()
    in_rows: bool = False
    divided_by: float | None = None

    @classmethod
    def nothing(cls, n_classes: int, n_rows: int) -> "Statement":
        """Nothing is stated."""
        return cls(np.zeros(n_classes, np.int64), np.full(n_classes, n_rows), np.full(n_classes, np.nan))

    @property
    def hard_bounds(self) -> Bounds:
        """Bounds that the counts must meet."""
        return Bounds(self.low, self.high, self.groups)

    @property
    def is_exact(self) -> bool:
        """Whether the counts of all classes are stated exactly."""
        return bool(np.array_equal(self.low, self.high))

    def likely_bounds(self) -> Bounds:
        """Bounds that the counts are likely to meet: rough sizes within two standard deviations."""
        rough, low, high = np.isfinite(self.rough), self.low.copy(), self.high.copy()
        low[rough], most = _likely_range(self.rough[rough])
        high[rough] = np.minimum(most, high[rough])
        return Bounds(low, high, self._likely_groups())

    def _likely_groups(self) -> Groups | None:
        """Hard bounds of branches, and likely ones of those with a rough size."""
        if not self.branches:
            return self.groups
        members, names = np.array([branch.members for branch in self.branches]), [each.name for each in self.branches]
        low, high = _likely_range(np.array([branch.rows for branch in self.branches]))
        if self.groups is not None:
            members, names = np.vstack((self.groups.members(self.low.size), members)), [*self.groups.names, *names]
            low, high = np.concatenate((self.groups.low, low)), np.concatenate((self.groups.high, high))
        return nested_groups(members, low, high, names)

    def combine(self, estimate: SizeEstimate, n_rows: int) -> SizeEstimate:
        """Combine what is stated with an estimate, each by its precision.

        A rough size has a relative standard deviation of `ROUGHNESS`. Classes without a size share what is left in the
        estimated proportions: the result has the least Kullback-Leibler divergence from the estimate.

        Parameters
        ----------
        estimate : SizeEstimate
        n_rows : int

        Examples
        --------
        >>> estimate = SizeEstimate(np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.1, 0.1]))
        >>> stated = Statement(np.zeros(3, np.int64), np.full(3, 100), np.array([np.nan, np.nan, 80.0]))
        >>> stated.combine(estimate, 100).mean.round(2).tolist()
        [0.11, 0.16, 0.73]
        """
        mean, deviation = estimate.mean * n_rows, estimate.deviation * n_rows
        targets = [(np.arange(mean.size) == k, self.rough[k]) for k in np.flatnonzero(np.isfinite(self.rough))]
        targets += [(branch.members, branch.rows) for branch in self.branches]
        pooled = []
        for members, rows in targets:
            rows, variance = _pooled(mean[members].sum(), np.sqrt((deviation[members] ** 2).sum()), rows)
            deviation = np.where(members, np.minimum(deviation, rows * np.sqrt(variance)), deviation)
            pooled.append((members, rows, rows))
        bounded = np.flatnonzero((self.low > 0) | (self.high < n_rows))
        hard = [(np.arange(mean.size) == k, self.low[k], self.high[k]) for k in bounded]
        if self.groups is not None:
            hard += zip(self.groups.members(mean.size), self.groups.low, self.groups.high, strict=True)
        hard.append((np.ones(mean.size, bool), n_rows, n_rows))
        new = _project(_project(np.maximum(mean, MIN_ROWS), [*pooled, *hard]), hard)  # hard ones win over rough ones
        deviation = np.where(self.low == self.high, 0.0, deviation * np.minimum(new / np.maximum(mean, MIN_ROWS), 1.0))
        return SizeEstimate(new / n_rows, deviation / n_rows)


def _pooled(mean: float, deviation: float, stated: float) -> tuple[float, float]:
    """Mean of an estimate and a rough size in rows, each by its precision, and its relative variance."""
    precisions = 1.0 / max(deviation / max(mean, MIN_ROWS), 1e-3) ** 2, 1.0 / ROUGHNESS**2
    logs = np.log(max(mean, MIN_ROWS)), np.log(max(stated, MIN_ROWS))
    return float(np.exp(np.dot(precisions, logs) / sum(precisions))), 1.0 / sum(precisions)


def _likely_range(rough: FloatArray) -> tuple[IntArray, IntArray]:
    """Whole numbers of rows two standard deviations below and above rough sizes."""
    spread = np.exp(2.0 * ROUGHNESS)
    return np.floor(rough / spread).astype(np.int64), np.ceil(rough * spread).astype(np.int64)


def _project(mean: FloatArray, ranges: Sequence[tuple[Mask, float, float]]) -> FloatArray:
    """Scale sets of classes into their ranges in turn until all are met (iterative proportional fitting)."""
    for _ in range(MAX_PASSES):
        before = mean
        for members, low, high in ranges:
            total = float(mean[members].sum())
            wanted = min(max(total, low), high)
            if total != wanted:
                mean = np.where(members, mean * (wanted / max(total, 1e-300)), mean)
        if np.abs(mean - before).max(initial=0.0) < 1e-9 * mean.sum():
            break
    return mean


def on_both_sides(sizes: FloatArray) -> tuple[IntArray, IntArray]:
    """The whole numbers on both sides of each size, the same number twice for one that is whole but for noise."""
    noise = rounding_noise(sizes)
    return np.floor(sizes + noise).astype(np.int64), np.ceil(sizes - noise).astype(np.int64)


def outlier_counts(fractions: tuple[float, float], n_rows: int) -> tuple[int, int]:
    """The least and the greatest number of n_rows rows that these fractions are, rounded outwards.

    >>> outlier_counts((0.1, 0.1), 30), outlier_counts((0.0, 0.05), 30)
    ((3, 3), (0, 2))
    """
    low, high = on_both_sides(n_rows * np.array(fractions))
    return int(low[0]), int(high[1])


def rounding_noise(sizes: FloatArray) -> FloatArray:
    """Errors that arithmetic with these sizes may have."""
    return np.asarray(8 * np.finfo(np.float64).eps * np.maximum(np.where(np.isfinite(sizes), sizes, 1.0), 1.0))


def nested_groups(members: Mask, low: IntArray, high: IntArray, names: Sequence[str]) -> Groups | None:
    """Groups from their classes (G, K), smaller ones first, each below the smallest that contains it; None for none."""
    if not len(members):
        return None
    order = np.argsort(members.sum(axis=1), kind="stable")
    members, n_groups, n_classes = members[order], *members.shape
    sets = np.vstack((np.eye(n_classes, dtype=bool), members))
    above = np.full(n_classes + n_groups, n_classes + n_groups)
    for node, inside in enumerate(sets):
        for g in range(max(node - n_classes + 1, 0), n_groups):
            if np.all(members[g][inside]):
                above[node] = n_classes + g
                break
    return Groups(above, low[order], high[order], tuple(names[g] for g in order))


def check_feasible(low: IntArray, high: IntArray, groups: Groups | None, n_rows: int) -> None:
    """Raise PriorError if no whole numbers of rows meet the bounds of classes and branches."""
    conflict = None if groups is None else groups.find_conflict(low, high, n_rows)
    if groups is None:
        _check_sums(int(low.sum()), int(high.sum()), n_rows)
    elif conflict is not None and conflict.group is None:
        _check_sums(conflict.needed, conflict.allowed, n_rows)
    elif conflict is not None and conflict.group is not None:
        kind = PriorErrorKind.BRANCH_TOO_SMALL if conflict.is_too_small else PriorErrorKind.BRANCH_TOO_LARGE
        raise PriorError(kind, name=groups.names[conflict.group], n_rows=n_rows, **conflict._asdict())


def _check_sums(low: int, high: int, n_rows: int) -> None:
    """Raise PriorError if the low counts sum to more than the rows to label, or the high counts to fewer."""
    if low > n_rows:
        raise PriorError(PriorErrorKind.LOW_SUM, total=low, n_rows=n_rows, fraction=low / n_rows)
    if high < n_rows:
        raise PriorError(PriorErrorKind.HIGH_SUM, total=high, n_rows=n_rows, fraction=high / n_rows)
