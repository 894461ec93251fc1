"""The tree of counts: classes, groups of classes and all rows are nodes, each with bounds on the rows it gets.

    low_j ≤ Σ_{k in j} #{i : y_i = k} ≤ high_j          v_k = Σ_{j that k is in} u_j

Nodes 0 to K−1 are the classes, K to N−1 the groups, and N is all rows. Every bound has a multiplier u_j. The price v_k
of a class is the sum of those on its way up: its potential, if all rows have potential 0. So u_j is the potential of j
less that of the node above.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Groups

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """The node above each class and group (N,), and bounds on their rows (N,); `members` (G, K) are of groups."""

    above: IntArray
    low: IntArray
    high: IntArray
    members: NDArray[np.bool_]

    @classmethod
    def create(cls, low: IntArray, high: IntArray, groups: Groups | None, n_rows: int) -> "Nodes":
        """Without groups every class is part of all rows, and nothing else."""
        if groups is None:
            return cls(np.full(low.size, low.size), low, high, np.zeros((0, low.size), bool))
        group_high = np.minimum(groups.high, n_rows)
        return cls(
            groups.above,
            np.concatenate((low, groups.low)),
            np.concatenate((high, group_high)),
            groups.members(low.size),
        )

    @property
    def n_classes(self) -> int:
        """Classes."""
        return int(self.members.shape[1])

    @property
    def n_groups(self) -> int:
        """Groups."""
        return int(self.members.shape[0])

    @cached_property
    def levels(self) -> list[IntArray]:
        """Sets of nodes of which no two share a class: the classes, then groups from the innermost outwards."""
        height = np.zeros(self.above.size + 1, np.int64)
        for j, above in enumerate(self.above.tolist()):
            height[above] = max(height[above], height[j] + 1)
        groups = np.arange(self.n_classes, self.above.size)
        inner = [groups[height[groups] == h] for h in np.unique(height[groups])]
        return [np.arange(self.n_classes), *inner]

    def sums(self, of_classes: NDArray[Any]) -> NDArray[Any]:
        """Extend numbers (K,) of the classes to all nodes (N,)."""
        return np.concatenate((of_classes, self.members @ of_classes)) if self.n_groups else of_classes

    def multipliers(self, prices: FloatArray, group_prices: FloatArray) -> FloatArray:
        """Split prices (K,) of classes, given the multipliers (G,) of groups, into the multipliers (N,)."""
        return np.concatenate((prices - group_prices @ self.members, group_prices)) if self.n_groups else prices

    def differences(self, potentials: FloatArray) -> FloatArray:
        """The multipliers (N,) at potentials (N+1,)."""
        return np.asarray(potentials[:-1] - potentials[self.above])

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """The prices (K,) of classes: multipliers (N,) added up from above, so that equal ways give equal prices."""
        if self.n_groups == 0:
            return multipliers
        potentials = np.append(multipliers, 0.0)
        for g in range(self.above.size - 1, self.n_classes - 1, -1):
            potentials[g] += potentials[self.above[g]]
        return np.asarray(multipliers[: self.n_classes] + potentials[self.above[: self.n_classes]])

    def potentials(self, prices: FloatArray) -> FloatArray:
        """The potentials (N+1,) of all nodes at which the bounds are worth most, given those of the classes.

        Let classes with a price below x be full, and others at their low counts. A group takes up what its parts do,
        cut off at its own bounds. It is cut off at its low count for x below some price a, and at its high one for x
        above some b. The best potential of the group is that of the node above, brought into [a, b]: the slope of
        Σ_j (low_j u_j if u_j > 0 else high_j u_j) changes its sign there.

        >>> Nodes.create(np.zeros(2, int), np.full(2, 9), Groups([2, 2, 3], [0], [4]), 9).potentials(np.array([-1, -3]))
        array([-1., -3., -3.,  0.])
        """
        K = self.n_classes
        potentials = np.concatenate((prices, np.zeros(self.n_groups + 1)))
        if self.n_groups == 0:
            return potentials
        order = np.argsort(prices, kind="stable")
        ends = np.concatenate(([-np.inf], prices[order], [np.inf]))
        taken = np.zeros((self.n_groups + 1, K + 1), np.int64)  # for x between two prices
        np.add.at(taken[:, 0], self.above[:K] - K, self.low[:K])
        taken[self.above[order] - K, np.arange(1, K + 1)] = (self.high - self.low)[order]
        taken = np.cumsum(taken, axis=1)
        within = np.empty((self.n_groups, 2))
        for g, above in enumerate(self.above[K:].tolist()):
            low, high = self.low[K + g], self.high[K + g]
            within[g] = ends[np.searchsorted(taken[g], low)], ends[np.searchsorted(taken[g], high, side="right")]
            taken[above - K] += np.clip(taken[g], low, high)
        for g in range(self.n_groups - 1, -1, -1):
            over = potentials[self.above[K + g]]
            here = min(max(over, within[g, 0]), within[g, 1])
            potentials[K + g] = here if np.isfinite(here) else over
        return potentials
