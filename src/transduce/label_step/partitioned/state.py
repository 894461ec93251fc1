"""What is known of all parts: the problem that they add up to, and where their rows stand at some prices."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.exact import imbalance
from transduce.label_step.partitioned.partitions import FloatArray, IntArray, Parts
from transduce.label_step.partitioned.remote_calls import Prices, Reach, Seen, SomeRows, stand_at
from transduce.label_step.partitioned.tie_breaking import APART, BIN_BITS, N_BINS, bin_of
from transduce.label_step.problem import LabelProblem


@dataclass(frozen=True, eq=False, kw_only=True)
class Summed(LabelProblem):
    """A label problem known by its sums; row a of its costs (K, K) stands for all rows that have label a.

    rows   of all parts
    sizes  (K,) rows that have each label
    """

    rows: int
    sizes: IntArray

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return self.rows

    @property
    def classes(self) -> IntArray:
        """The labels of the rows that stand for others."""
        return np.arange(self.n_classes)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The rows that stand for others, in one block."""
        yield slice(0, self.n_classes), self.costs

    def tally(self, labels: IntArray) -> IntArray:
        """Rows of all parts that have each label, whatever labels are given."""
        return self.sizes


@dataclass(frozen=True, eq=False)
class Standing:
    """Where all rows stand at some prices: a problem with the sizes found, and what was seen in the parts."""

    problem: Summed
    prices: Prices
    seen: list[Seen]

    @classmethod
    def create(cls, problem: Summed, prices: Prices, seen: list[Seen]) -> "Standing":
        """Add up what was seen."""
        return cls(replace(problem, sizes=added_up([part.tally for part in seen], problem.n_classes)), prices, seen)

    @cached_property
    def market(self) -> FloatArray:
        """Potentials of all nodes."""
        return self.problem.nodes.potentials(self.prices.first)

    @cached_property
    def excess(self) -> IntArray:
        """Rows too many in each node."""
        return imbalance(self.problem, self.problem.classes, self.market)[1]

    @property
    def misplaced(self) -> int:
        """Rows that must move."""
        return int(self.excess[self.excess > 0].sum())

    @cached_property
    def _up_to(self) -> IntArray:
        """Rows up to each bin of nearness."""
        tally = np.zeros(N_BINS, np.int64)
        for part in self.seen:
            tally[part.bins] += part.counts
        return np.cumsum(tally)

    def n_nearer(self, radius: float) -> int:
        """Rows nearer than a radius that ends a bin."""
        return int(self._up_to[bin_of(radius) - 1])

    def radius(self, wanted: int) -> float:
        """It has so many rows without ties within it; +inf if there are not enough."""
        last = int(np.searchsorted(self._up_to, self.n_nearer(APART) + wanted))
        return float(np.int64(min(last + 1, bin_of(np.inf)) << BIN_BITS).view(np.float64))

    def reach(self, per_row: int) -> tuple[list[Reach], int]:
        """In each part, so many rows for each row that must move; and about how many that are in all."""
        n_classes, n_tied = self.problem.n_classes, self.n_nearer(APART)
        radius = self.radius(min(per_row * self.misplaced, self.problem.n_rows // 2))
        tied = per_row // 2 * (np.abs(self.excess[:n_classes]) + self.misplaced // n_classes + 1)
        shares = [part.counts[part.bins < bin_of(APART)].sum() / max(n_tied, 1) for part in self.seen]
        reaches = [Reach(radius, np.ceil(share * tied).astype(np.int64)) for share in shares]
        return reaches, self.n_nearer(radius) - n_tied + min(n_tied, int(tied.sum()))


@dataclass(eq=False)
class Search:
    """All parts with their sizes, the problem that they add up to, and the rows gathered from them so far."""

    parts: Parts
    sizes: list[int]
    problem: Summed
    n_gathered: int = 0

    @property
    def first(self) -> list[int]:
        """The number of the first row of each part."""
        return [int(end) - size for end, size in zip(np.cumsum(self.sizes), self.sizes, strict=True)]

    def stand(self, prices: Prices) -> Standing:
        """See where rows stand at these prices."""
        seen = self.parts.each_with(stand_at, [(prices, first) for first in self.first])
        return Standing.create(self.problem, prices, seen)


def all_of(some: list[SomeRows], n_classes: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Rows, costs and labels of all parts."""
    rows, costs, labels = (
        np.concatenate(arrays) for arrays in list(zip(*[SomeRows.nobody(n_classes), *some], strict=True))[:3]
    )
    return rows, costs, labels


def added_up(arrays: list[NDArray[Any]], size: int) -> NDArray[Any]:
    """The sum of arrays of this size, none perhaps."""
    return np.sum(arrays, axis=0) if arrays else np.zeros(size, np.int64)
