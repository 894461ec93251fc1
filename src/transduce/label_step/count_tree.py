"""The tree of count constraints: classes, groups of classes and all rows are nodes with bounds on their rows.

    low_j ≤ Σ_{k in j} #{i : y_i = k} ≤ high_j          v_k = Σ_{j above k, or k itself} u_j

Nodes 0 to K−1 are the classes, K to N−1 the groups, and node N is all rows. The price v_k of a class is the sum of the
multipliers u_j of the bounds from the class up to the root. So u_j is the potential of node j less that of the node
above, with potential 0 for all rows. The bounds are worth Σ_j min over n of (f_j(n) + u_j n), low_j ≤ n ≤ high_j, with
the cost f_j of the belief about node j (see `class_prior.belief`); without one that is low_j u_j if u_j > 0 else
high_j u_j.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.label_step.row_blocks import BoolArray, FloatArray, IntArray


class Imbalance(NamedTuple):
    """How far labels are from the bounds of a tree; augmenting paths change the arrays in place."""

    tree: "CountTree"
    potentials: FloatArray  # (N+1,)
    flow: IntArray  # (N,) rows of each node beyond its low count, from 0 to high − low
    excess: IntArray  # (N+1,) rows too many in each node

    @property
    def n_misplaced(self) -> int:
        """Number of rows that must move."""
        return int(self.excess[self.excess > 0].sum())


@dataclass(frozen=True, eq=False)
class CountTree:
    """Bounds as stated, and as a tree."""

    bounds: Bounds
    n_rows: int
    above: IntArray  # (N,) the node above each class and group
    low: IntArray  # (N,)
    high: IntArray  # (N,)
    members: BoolArray  # (G, K) which classes each group has
    belief: Belief  # about all nodes (N,), with a strength of 0 where there is none

    @classmethod
    def create(cls, bounds: Bounds, n_rows: int, implied_groups: bool = False) -> "CountTree":
        """Build the tree; unless `implied_groups`, groups are left out where exact counts of classes imply theirs."""
        low, high, groups, belief = bounds
        K = low.size
        belief = belief or Belief(np.ones(K), np.zeros(K), np.zeros(K))
        if groups is None or (np.array_equal(low, high) and not implied_groups):
            return cls(bounds, n_rows, np.full(K, K), low, high, np.zeros((0, K), bool), belief)
        group_high, none = np.minimum(groups.high, n_rows), np.zeros(groups.n_groups)
        both = np.concatenate((low, groups.low)), np.concatenate((high, group_high))
        parts = zip(belief, (none + 1.0, none, none), strict=True)
        return cls(bounds, n_rows, groups.above, *both, groups.members(K), Belief(*map(np.concatenate, parts)))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.members.shape[1])

    @property
    def n_groups(self) -> int:
        """Number of groups in the tree."""
        return int(self.members.shape[0])

    @cached_property
    def believed(self) -> BoolArray:
        """Nodes (N,) with a belief and more than one possible count."""
        return np.asarray((self.belief.strength > 0) & (self.low < self.high) & ~self.closed)

    def best_counts(self, multipliers: FloatArray) -> tuple[IntArray, IntArray]:
        """Least and greatest counts (N,) at which the bounds are worth most, given the multipliers (N,)."""
        low = np.where(multipliers < 0, self.high, self.low)
        high = np.where(multipliers > 0, self.low, self.high)
        if self.believed.any():
            least, most = self.belief.whole_counts(multipliers)
            low = np.where(self.believed, np.clip(least, self.low, self.high), low)
            high = np.where(self.believed, np.clip(most, self.low, self.high), high)
        return low, high

    def best_masses(self, multipliers: FloatArray) -> FloatArray:
        """The same in real numbers (N,); the least where there are several."""
        masses = np.where(multipliers < 0, self.high, self.low).astype(np.float64)
        if not self.believed.any():
            return masses
        return np.where(self.believed, np.clip(self.belief.real_counts(multipliers), self.low, self.high), masses)

    @cached_property
    def exact(self) -> bool:
        """Whether the counts of all classes are fixed."""
        return bool(np.array_equal(self.bounds.low, self.bounds.high))

    @cached_property
    def levels(self) -> list[IntArray]:
        """Sets of nodes of which no two share a class: the classes, then groups from the innermost outwards."""
        height = np.zeros(self.above.size + 1, np.int64)
        for j, above in enumerate(self.above.tolist()):
            height[above] = max(height[above], height[j] + 1)
        groups = np.arange(self.n_classes, self.above.size)
        return [np.arange(self.n_classes), *(groups[height[groups] == h] for h in np.unique(height[groups]))]

    @cached_property
    def closed(self) -> BoolArray:
        """Nodes (N,) that may have no rows, by their own high count or that of a group above."""
        closed = np.append(self.high == 0, False)
        for j in range(self.above.size - 1, -1, -1) if self.n_groups else ():
            closed[j] |= closed[self.above[j]]
        return closed[:-1]

    @property
    def closed_classes(self) -> BoolArray:
        """Classes (K,) that may have no rows."""
        return self.closed[: self.n_classes]

    def sums(self, of_classes: NDArray[Any]) -> NDArray[Any]:
        """Extend numbers (K,) of the classes to all nodes (N,)."""
        return np.concatenate((of_classes, self.members @ of_classes)) if self.n_groups else of_classes

    def is_met(self, tally: IntArray) -> bool:
        """Whether class counts (K,) meet all bounds."""
        sizes = self.sums(tally)
        return bool(np.all((sizes >= self.low) & (sizes <= self.high)))

    def multipliers(self, prices: FloatArray, group_prices: FloatArray) -> FloatArray:
        """Split prices (K,) of classes, given the multipliers (G,) of groups, into the multipliers (N,)."""
        return np.concatenate((prices - group_prices @ self.members, group_prices)) if self.n_groups else prices

    def differences(self, potentials: FloatArray) -> FloatArray:
        """The multipliers (N,) at potentials (N+1,)."""
        return np.asarray(potentials[:-1] - potentials[self.above])

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """The prices (K,) of classes: multipliers (N,) summed from the root, so that equal paths give equal prices."""
        if self.n_groups == 0:
            return multipliers
        potentials = np.append(multipliers, 0.0)
        for g in range(self.above.size - 1, self.n_classes - 1, -1):
            potentials[g] += potentials[self.above[g]]
        return np.asarray(multipliers[: self.n_classes] + potentials[self.above[: self.n_classes]])

    @property
    def no_group_prices(self) -> FloatArray:
        """Zeros (G,), one for each group that was stated."""
        return np.zeros(0 if self.bounds.groups is None else self.bounds.groups.n_groups)

    def prices_at(self, potentials: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prices (K,) of classes and multipliers (G,) of groups at potentials (N+1,)."""
        prices = self.normalized(potentials[: self.n_classes] - potentials[-1])
        return prices, self.no_group_prices if self.exact else self.differences(potentials)[self.n_classes :]

    def normalized(self, prices: FloatArray) -> FloatArray:
        """Prices (K,) that average to 0 over the rows if counts are exact, and so leave a constant free."""
        if not self.exact or self.n_rows == 0:
            return prices.copy()
        return np.asarray(prices - np.dot(self.bounds.low, prices) / self.n_rows)

    def slack(self, tally: IntArray, multipliers: FloatArray) -> float:
        """Complementary slackness: what counts (K,) lose against the bounds that the multipliers (N,) point to."""
        sizes, best = self.sums(tally), self.best_counts(multipliers)[0]
        slack = float(np.dot(sizes - best, multipliers))
        return slack + self.count_cost(sizes) - self.count_cost(best)

    def count_cost(self, sizes: NDArray[Any]) -> float:
        """Cost of the sizes (N,) of all nodes by the beliefs about them; or of class counts (K,)."""
        if self.bounds.belief is None:
            return 0.0
        return float(self.belief.cost(self.sums(sizes) if sizes.size < self.above.size else sizes).sum())

    def imbalance(self, tally: IntArray, potentials: FloatArray) -> Imbalance:
        """The imbalance of class counts (K,), with the flow that the potentials (N+1,) ask for."""
        K, (least, most) = self.n_classes, self.best_counts(self.differences(potentials))
        least, most, beyond = least - self.low, most - self.low, tally - self.low[:K]
        flow = most.copy()
        flow[:K] = np.clip(beyond, least[:K], most[:K])
        excess = beyond - flow[:K]
        if self.n_groups == 0:
            return Imbalance(self, potentials.copy(), flow, np.append(excess, -excess.sum()))
        excess = np.concatenate((excess, -self.low[K:], [-self.n_rows]))
        np.add.at(excess, self.above[:K], (self.low + flow)[:K])
        for g in range(K, self.above.size):
            flow[g] = min(max(excess[g], least[g]), most[g])
            excess[g] -= flow[g]
            excess[self.above[g]] += self.low[g] + flow[g]
        return Imbalance(self, potentials.copy(), flow, excess)

    def potentials(self, prices: FloatArray) -> FloatArray:
        """The potentials (N+1,) of all nodes at which the bounds are worth most, given those of the classes.

        Let classes with a price below x be full, and others at their low counts. A group takes what its parts do: its
        low count or less for x below some price a, its high count or more for x above some b. The best potential of the
        group is that of the node above, clipped to [a, b]: there the slope of the value of the bounds changes sign.
        """
        K = self.n_classes
        potentials = np.concatenate((prices, np.zeros(self.n_groups + 1)))
        if self.n_groups == 0:
            return potentials
        if self.believed.any():
            return self._believed_potentials(potentials)
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

    def _believed_potentials(self, potentials: FloatArray) -> FloatArray:
        """The same where beliefs make the counts of classes vary with their multipliers: by bisection."""
        K, span = self.n_classes, 1.0 + np.ptp(potentials) + 50.0 * float(self.belief.strength.max())
        within = np.tile((-np.inf, np.inf), (self.above.size, 1))

        def taken(g: int, at: float) -> float:
            """Rows that the parts of a group take at this potential of the group."""
            parts, multipliers = np.flatnonzero(self.above == g), np.zeros(self.above.size)
            classes = parts[parts < K]
            multipliers[classes] = potentials[classes] - at
            total = float(self.best_masses(multipliers)[classes].sum())
            for part in parts[parts >= K].tolist():
                own = taken(part, float(np.clip(at, *within[part])))
                total += float(np.clip(own, self.low[part], self.high[part]))
            return total

        middle = float(potentials[:K].mean())
        for g in range(K, self.above.size):
            for end, bound in enumerate((self.low[g], self.high[g])):
                low, high = middle - span, middle + span
                if (taken(g, low) >= bound) if end == 0 else (taken(g, high) <= bound):
                    continue
                for _ in range(60):
                    at = 0.5 * (low + high)
                    low, high = (at, high) if taken(g, at) < bound else (low, at)
                within[g, end] = low
        for g in range(self.above.size - 1, K - 1, -1):
            potentials[g] = np.clip(potentials[self.above[g]], *within[g])
        return potentials
