"""Nested groups of classes with bounds on their counts, as branches of a taxonomy have them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transduce.arrays import BoolArray, FloatArray, IntArray
from transduce.class_prior.belief import Belief
from transduce.class_prior.counts import check_order, whole_numbers
from transduce.suggest import name_list, short_repr


class CountConflict(NamedTuple):
    """Bounds of a group, or of all rows (None), and the rows that its parts must and may get, which contradict them."""

    group: int | None
    low: int
    high: int
    needed: int
    allowed: int

    @property
    def is_too_small(self) -> bool:
        """Whether the parts must get more rows than the group may."""
        return self.needed > self.high


@dataclass(frozen=True, eq=False)
class Groups:
    """Nested groups of classes with bounds on their counts.

    Nodes are numbered: 0 to K−1 the classes, K to K+G−1 the groups, K+G all rows.

    Parameters
    ----------
    above : array-like of shape (K+G,)
        The node that each class and group is part of, always a larger number.
    low : array-like of shape (G,)
        Smallest number of rows of each group.
    high : array-like of shape (G,)
        Largest number of rows of each group.
    names : tuple of str, default=()
        Names of the groups in messages; without them, numbers.

    Examples
    --------
    >>> sport = Groups(above=[4, 3, 3, 4], low=[2], high=[5])  # classes 1 and 2 are sport: two to five rows of both
    >>> sport.members(3)
    array([[False,  True,  True]])
    """

    above: IntArray
    low: IntArray
    high: IntArray
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n_groups = np.size(self.low)
        low = whole_numbers(np.atleast_1d(self.low), "low counts of groups", n_groups, each="group")
        high = whole_numbers(np.atleast_1d(self.high), "high counts of groups", n_groups, at_most=2**53, each="group")
        check_order(low, high, "group")
        if not isinstance(self.names, (tuple, list)) or len(self.names) not in (0, n_groups):
            found = short_repr(self.names)
            raise ValueError(
                f"names must be one for each of the {n_groups} groups, in a tuple, or (), but are {found}."
            )
        above = _nodes_above(self.above, n_groups)
        empty = np.setdiff1d(above.size - n_groups + np.flatnonzero(low), above)
        if empty.size:
            g = int(empty[0]) - above.size + n_groups
            raise ValueError(
                f"group {g} must get at least {low[g]} rows, but no class is part of it. Name node {empty[0]} in above "
                "for its classes, or lower its low count."
            )
        for name, value in (("above", above), ("low", low), ("high", high)):
            object.__setattr__(self, name, value)

    @property
    def n_classes(self) -> int:
        """Number of classes, in groups or not."""
        return int(self.above.size - self.low.size)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.low.size)

    @cached_property
    def _members(self) -> BoolArray:
        members = np.zeros((self.above.size + 1, self.n_classes), bool)
        members[: self.n_classes] = np.eye(self.n_classes, dtype=bool)
        for node, above in enumerate(self.above.tolist()):
            members[above] |= members[node]
        return members[self.n_classes : -1]

    def members(self, n_classes: int) -> BoolArray:
        """Return a mask (G, K) of the classes in each group.

        Parameters
        ----------
        n_classes : int
        """
        if n_classes != self.n_classes:
            raise ValueError(
                f"groups must be those of the {n_classes} classes there are, but are of {self.n_classes}. "
                "Give each class the node that it is part of."
            )
        return self._members

    def name_of(self, g: int) -> str:
        """Return the name of a group in messages.

        Parameters
        ----------
        g : int
        """
        numbers = np.flatnonzero(self._members[g]).tolist()
        return repr(self.names[g]) if self.names else f"group {g} (classes {name_list(numbers)})"

    def levels(self) -> Iterator[IntArray]:
        """Yield partitions of all rows into nodes, from the topmost groups and classes down to classes alone.

        >>> [nodes.tolist() for nodes in Groups(above=[4, 3, 3, 4], low=[2], high=[5]).levels()]
        [[0, 3], [0, 1, 2]]
        """
        nodes = np.flatnonzero(self.above == self.above.size)
        while np.any(nodes >= self.n_classes):
            yield nodes
            below = np.flatnonzero(np.isin(self.above, nodes[nodes >= self.n_classes]))
            nodes = np.sort(np.concatenate((nodes[nodes < self.n_classes], below)))
        yield nodes

    def find_conflict(self, low: IntArray, high: IntArray, n_rows: int) -> CountConflict | None:
        """Return bounds that no whole numbers of rows can meet, or None.

        From the classes upwards, a group must get what its parts must get, and may get what its parts may.

        Parameters
        ----------
        low, high : ndarray of shape (K,)
            Bounds on the counts of the classes.
        n_rows : int
            Number of rows to label.
        """
        self.members(low.size)  # raises if the groups are those of other classes
        needed = np.concatenate((low, np.zeros(self.n_groups + 1, np.int64)))
        allowed = np.concatenate((np.minimum(high, n_rows), np.zeros(self.n_groups + 1, np.int64)))
        lows, highs = np.append(self.low, n_rows), np.append(self.high, n_rows)
        for j in range(self.above.size + 1):
            g = j - low.size
            if g >= 0:
                if needed[j] > highs[g] or allowed[j] < lows[g]:
                    group = g if g < self.n_groups else None
                    return CountConflict(group, int(lows[g]), int(highs[g]), int(needed[j]), int(allowed[j]))
                needed[j], allowed[j] = max(needed[j], lows[g]), min(allowed[j], highs[g])
            if j < self.above.size:
                needed[self.above[j]] += needed[j]
                allowed[self.above[j]] += allowed[j]
        return None

    def check(self, low: IntArray, high: IntArray, n_rows: int) -> None:
        """Raise ValueError if no whole numbers of rows meet all bounds; see `Groups.find_conflict`."""
        conflict = self.find_conflict(low, high, n_rows)
        if conflict is not None:
            name = "all classes together" if conflict.group is None else self.name_of(conflict.group)
            raise ValueError(
                f"{name} must get {conflict.low} to {conflict.high} rows, but the parts need at least "
                f"{conflict.needed} and allow at most {conflict.allowed}. Change some of these counts."
            )

    def center(self, low: IntArray, high: IntArray, belief: Belief, n_rows: int) -> FloatArray:
        """Return real counts (K,) within all bounds; the parts of a group have the proportions believed of them.

        Parameters
        ----------
        low, high, n_rows
            As in `find_conflict`.
        belief : Belief
            Believed counts of the classes.
        """
        K = self.n_classes
        parts = [np.flatnonzero(self.above == node) for node in range(K, self.above.size + 1)]
        least, most = np.append(low, self.low), np.append(high, self.high)
        for node, inside in enumerate(parts[:-1], K):
            least[node], most[node] = max(least[node], least[inside].sum()), min(most[node], most[inside].sum())
        mean, offset = (np.append(each, self._members @ each) for each in (belief.mean, belief.offset))
        counts = np.full(self.above.size + 1, float(n_rows))
        for node, inside in reversed(list(enumerate(parts, K))):
            believed = belief._replace(mean=mean[inside], offset=offset[inside])
            counts[inside] = believed.center(least[inside], most[inside], counts[node])
        return counts[:K]


def nested_groups(members: BoolArray, low: IntArray, high: IntArray, names: Sequence[str]) -> Groups | None:
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


def _nodes_above(above: ArrayLike, n_groups: int) -> IntArray:
    """Check that groups come after their parts, and all rows last."""
    nodes = np.array(above)
    if nodes.ndim != 1 or nodes.size <= n_groups or not np.issubdtype(nodes.dtype, np.integer):
        raise ValueError(
            f"above must be whole numbers, one for each class and then one for each of the {n_groups} groups, but has "
            f"shape {nodes.shape} and dtype {nodes.dtype}."
        )
    wrong = (nodes <= np.arange(nodes.size)) | (nodes > nodes.size) | (nodes < nodes.size - n_groups)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"above must name a group that comes after its parts, or {nodes.size} for all rows, but node {j} is part "
            f"of {nodes[j]}. Number the groups from the innermost outwards."
        )
    return nodes.astype(np.int64)
