"""What is stated about class sizes, in rows to label: limits that always hold, and rough sizes, which are beliefs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transduce.arrays import BoolArray, FloatArray
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups, nested_groups
from transduce.class_prior.proportions import SizeEstimate

ROUGHNESS = 0.1
"""Relative standard deviation of a rough size."""
MIN_ROWS = 0.5
"""Smallest size of a class that combinations start from."""
MAX_PASSES = 1000


@dataclass(frozen=True, eq=False)
class Statement:
    """Stated sizes of nodes: all K classes, then the branches with a size; `stated_sizes.read_statement` creates it.

    names       (N) classes, then branches
    members     (N, K) classes of each node
    low, high   (N,) rows that a node must get at least and at most, whole numbers; twice the size of a rough node
    is_rough    (N,) whether a size is rough
    is_in_rows  (N,) whether a size was stated in rows
    n_rows      number of rows to label
    divided_by  sum of rounded fractions, which were divided by it; None where they were not
    """

    names: list[Any]
    members: BoolArray
    low: FloatArray
    high: FloatArray
    is_rough: BoolArray
    is_in_rows: BoolArray
    n_rows: int
    divided_by: float | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.members.shape[1])

    @property
    def is_exact(self) -> BoolArray:
        """Whether each size is exact (N,)."""
        return np.asarray(~self.is_rough & (self.low == self.high))

    @property
    def all_exact(self) -> bool:
        """Whether the sizes of all classes are exact."""
        return bool(self.is_exact[: self.n_classes].all())

    @property
    def all_stated(self) -> bool:
        """Whether all classes have a size of their own, exact or rough."""
        return bool(np.array_equal(self.low[: self.n_classes], self.high[: self.n_classes]))

    @property
    def in_rows(self) -> bool:
        """Whether any size was stated in rows."""
        return bool(np.any(self.is_in_rows & (self.high > 0)))

    @property
    def groups(self) -> Groups | None:
        """Limits of branches."""
        return self.hard_bounds.groups

    @cached_property
    def hard_bounds(self) -> Bounds:
        """Bounds that the counts must meet."""
        return self._bounds(np.where(self.is_rough, 0, self.low), np.where(self.is_rough, self.n_rows, self.high))

    def likely_bounds(self) -> Bounds:
        """Bounds that the counts are likely to meet: rough sizes within two standard deviations."""
        spread = np.where(self.is_rough, np.exp(2.0 * ROUGHNESS), 1.0)
        return self._bounds(np.floor(self.low / spread), np.minimum(np.ceil(self.high * spread), self.n_rows))

    def _bounds(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Bounds of classes, and of the branches that are limited."""
        least, most, K = low.astype(np.int64), high.astype(np.int64), self.n_classes
        limited = ((least > 0) | (most < self.n_rows)) & (np.arange(least.size) >= K)
        names = [str(name) for name, each in zip(self.names, limited, strict=True) if each]
        return Bounds(least[:K], most[:K], nested_groups(self.members[limited], least[limited], most[limited], names))

    def combine(self, estimate: SizeEstimate) -> SizeEstimate:
        """Combine what is stated with an estimate, each by its precision.

        A rough size has a relative standard deviation of `ROUGHNESS`. Classes without a size share what is left in the
        estimated proportions: the result has the least Kullback-Leibler divergence from the estimate.
        """
        mean, deviation = estimate.mean * self.n_rows, estimate.deviation * self.n_rows
        pooled = []
        for members, stated in zip(self.members[self.is_rough], self.low[self.is_rough], strict=True):
            rows, variance = _pooled(mean[members].sum(), np.sqrt((deviation[members] ** 2).sum()), stated)
            deviation = np.where(members, np.minimum(deviation, rows * np.sqrt(variance)), deviation)
            pooled.append((members, rows, rows))
        limited = ~self.is_rough & ((self.low > 0) | (self.high < self.n_rows))
        hard = list(zip(self.members[limited], self.low[limited], self.high[limited], strict=True))
        hard.append((np.ones(mean.size, bool), self.n_rows, self.n_rows))
        new = _project(_project(np.maximum(mean, MIN_ROWS), [*pooled, *hard]), hard)  # hard ones win over rough ones
        deviation = deviation * np.minimum(new / np.maximum(mean, MIN_ROWS), 1.0)
        deviation[self.is_exact[: self.n_classes]] = 0.0
        return SizeEstimate(new / self.n_rows, deviation / self.n_rows)


def _pooled(mean: float, deviation: float, stated: float) -> tuple[float, float]:
    """Mean of an estimate and a rough size in rows, each by its precision, and its relative variance."""
    precisions = 1.0 / max(deviation / max(mean, MIN_ROWS), 1e-3) ** 2, 1.0 / ROUGHNESS**2
    logs = np.log(max(mean, MIN_ROWS)), np.log(max(stated, MIN_ROWS))
    return float(np.exp(np.dot(precisions, logs) / sum(precisions))), 1.0 / sum(precisions)


def _project(mean: FloatArray, ranges: Sequence[tuple[BoolArray, float, float]]) -> FloatArray:
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
