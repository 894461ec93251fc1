"""Bounds on class counts: low <= count <= high for classes and nested groups of classes, and beliefs within them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.class_prior.belief import Belief
from transduce.suggest import name_list

IntArray: TypeAlias = NDArray[np.int64]


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
        low = _whole_numbers(np.atleast_1d(self.low), "low counts of groups", n_groups, each="group")
        high = _whole_numbers(np.atleast_1d(self.high), "high counts of groups", n_groups, at_most=2**53, each="group")
        _check_order(low, high, "group")
        if self.names and len(self.names) != n_groups:
            raise ValueError(f"names must be one for each of the {n_groups} groups, or none, but are {self.names!r}.")
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
    def _members(self) -> NDArray[np.bool_]:
        members = np.zeros((self.above.size + 1, self.n_classes), bool)
        members[: self.n_classes] = np.eye(self.n_classes, dtype=bool)
        for node, above in enumerate(self.above.tolist()):
            members[above] |= members[node]
        return members[self.n_classes : -1]

    def members(self, n_classes: int) -> NDArray[np.bool_]:
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

    def narrowed(self, low: IntArray, high: IntArray, mean: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return bounds (K,) of the classes, in rows, at which counts in the proportions of the means meet the groups.

        Parameters
        ----------
        low, high : ndarray of shape (K,)
            Bounds on the counts of the classes.
        mean : ndarray of shape (K,)
            Believed counts.
        """
        least, most = low.astype(np.float64), high.astype(np.float64)
        for members, group_low, group_high in zip(self._members, self.low, self.high, strict=True):
            inside = np.clip(mean, least, most)[members]
            parts = inside / max(inside.sum(), np.finfo(np.float64).tiny)
            if inside.sum() < group_low:
                least[members] = np.clip(group_low * parts, least[members], most[members])
            elif inside.sum() > group_high:
                most[members] = np.clip(group_high * parts, least[members], most[members])
        return least, most

    def center(self, low: IntArray, high: IntArray, n_rows: int) -> NDArray[np.float64]:
        """Return class proportions (K,) in the middle of all bounds: low + t (high − low), one t for parts of a group.

        For the parameters see `Groups.find_conflict`.
        """
        least = np.concatenate((low, self.low, [0])).astype(np.float64)
        most = np.minimum(np.concatenate((high, self.high, [n_rows])).astype(np.float64), n_rows)
        sums = np.zeros((2, least.size))
        for j, above in enumerate(self.above.tolist()):
            if j >= low.size:
                least[j], most[j] = max(least[j], sums[0, j]), min(most[j], sums[1, j])
            sums[:, above] += least[j], most[j]
        counts = np.full(least.size, float(n_rows))
        for j in range(self.above.size - 1, -1, -1):
            needed, allowed = sums[:, self.above[j]]
            t = (counts[self.above[j]] - needed) / (allowed - needed) if allowed > needed else 0.0
            counts[j] = least[j] + t * (most[j] - least[j])
        return np.asarray(counts[: low.size] / max(counts[: low.size].sum(), 1.0))


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

    def center(self, n_rows: int) -> NDArray[np.float64]:
        """Return class proportions (K,) that are believed; or those in the middle of the bounds without a belief.

        The middle is low + t (high − low), the same t for every class, or for all parts of a group (`Groups.center`).

        Parameters
        ----------
        n_rows : int
            Number of rows to label.

        Examples
        --------
        >>> Bounds(np.array([0, 0]), np.array([10, 2])).center(10).round(2)
        array([0.83, 0.17])
        """
        high = np.minimum(self.high, n_rows)
        if self.belief is not None:
            narrow = (self.low, high)
            if self.groups is not None:
                narrow = self.groups.narrowed(self.low, high, self.belief.mean)
            counts = self.belief.center(*narrow, n_rows)
            return np.asarray(counts / max(counts.sum(), 1.0))
        if self.groups is not None:
            return self.groups.center(self.low, self.high, n_rows)
        width = int((high - self.low).sum())
        t = (n_rows - int(self.low.sum())) / width if width else 0.0
        counts = self.low + t * (high - self.low)
        return np.asarray(counts / max(counts.sum(), 1.0))

    def with_outliers(self, n_rows: int, low: int, high: int) -> "Bounds":
        """Return bounds with one more class, last, for `low` to `high` rows that fit no class.

        The bounds of the classes are those of the rows that are left, in proportion. There is no belief about these.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.
        low, high : int
            Bounds on the rows that fit no class.
        """
        n, groups = max(n_rows, 1), self.groups
        least, most = _scaled_outwards(self.low, self.high, n - high, n - low, n)
        if groups is not None:
            K = self.low.size
            above = np.concatenate((groups.above[:K] + 1, [groups.above.size + 1], groups.above[K:] + 1))
            groups = Groups(above, *_scaled_outwards(groups.low, groups.high, n - high, n - low, n), groups.names)
        return Bounds(np.append(least, low), np.append(most, high), groups)

    def scaled(self, n_rows: int, n_sample: int) -> "Bounds":
        """Return bounds in proportion for a sample of the rows, rounded outwards.

        Parameters
        ----------
        n_rows : int
            Number of rows to label.
        n_sample : int
            Number of these in the sample.
        """
        if n_rows == n_sample:
            return self
        factor, groups = n_sample / n_rows, self.groups
        low, high = (np.floor(self.low * factor).astype(np.int64), np.ceil(self.high * factor).astype(np.int64))
        if groups is not None:
            least, most = np.floor(groups.low * factor), np.ceil(groups.high * factor)
            groups = Groups(groups.above, least.astype(np.int64), most.astype(np.int64), groups.names)
        return Bounds(low, high, groups, None if self.belief is None else self.belief.scaled(factor))

    def without_belief(self, n_rows: int) -> "Bounds":
        """Return bounds for methods that take no belief: the whole numbers on both sides of the believed counts.

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


def count_bounds(
    counts: ArrayLike | tuple[ArrayLike, ArrayLike], n_rows: int, n_classes: int
) -> tuple[IntArray, IntArray]:
    """Read exact counts, or a pair (low, high), as two whole-number arrays that `n_rows` rows can meet.

    >>> count_bounds([2, 1], n_rows=3, n_classes=2)
    (array([2, 1]), array([2, 1]))
    >>> count_bounds(([0, 1], [2, 3]), n_rows=3, n_classes=2)
    (array([0, 1]), array([2, 3]))
    """
    if _is_pair_of_arrays(counts):
        low = _whole_numbers(counts[0], "low counts", n_classes)  # type: ignore[index]
        high = _whole_numbers(counts[1], "high counts", n_classes, at_most=n_rows)  # type: ignore[index]
    else:
        low = high = _whole_numbers(counts, "counts", n_classes)
        if low.sum() != n_rows:
            raise ValueError(
                f"counts must sum to the number of rows, {n_rows}, but sum to {low.sum()}. "
                "Correct them, or pass fractions through counts_from_fractions."
            )
    _check_order(low, high, "class")
    if not low.sum() <= n_rows <= high.sum():
        total = f"low counts sum to {low.sum()}" if low.sum() > n_rows else f"high counts sum to {high.sum()}"
        raise ValueError(f"{n_rows} rows cannot meet the counts: the {total}. Widen some of them.")
    return low, high


def _scaled_outwards(low: IntArray, high: IntArray, least: int, most: int, n_rows: int) -> tuple[IntArray, IntArray]:
    """Bounds for `least` to `most` of n_rows rows, in proportion and rounded outwards."""
    return low * least // n_rows, -(-np.minimum(high, n_rows) * most // n_rows)


def _check_order(low: IntArray, high: IntArray, each: str) -> None:
    if np.any(low > high):
        k = int(np.argmax(low > high))
        raise ValueError(
            f"each low count must be at most its high count, but {each} {k} has low {low[k]} and high {high[k]}. "
            "Swap or widen them."
        )


def _is_pair_of_arrays(counts: object) -> bool:
    """Distinguish (low, high) from the counts of two classes: the members of a pair are sequences."""
    return isinstance(counts, tuple) and len(counts) == 2 and all(np.ndim(member) == 1 for member in counts)


def _whole_numbers(
    values: object, what: str, n_classes: int, at_most: int | None = None, each: str = "class"
) -> IntArray:
    """Check and convert counts; larger ones than `at_most`, infinity too, are cut to it."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be whole numbers, one for each {each}, but are {values!r}.") from error
    if array.shape != (n_classes,):
        of = f"{n_classes} columns of costs" if each == "class" else f"{n_classes} groups"
        raise ValueError(
            f"{what} must have one number for each of the {of}, but have shape {array.shape}. "
            "Pass a list of counts, or a tuple of two lists for (low, high)."
        )
    if at_most is not None:
        array = np.where(array > at_most, float(at_most), array)
    bad = ~(np.isfinite(array) & (array == np.floor(array)) & (array >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(
            f"{what} must be whole numbers, 0 or more, but {each} {k} has {array[k]:g}. "
            "Pass fractions through counts_from_fractions."
        )
    if array.max(initial=0.0) > 2**53:
        raise ValueError(f"{what} must be at most 2**53, but reach {array.max():.3g}. Correct them.")
    return array.astype(np.int64)
