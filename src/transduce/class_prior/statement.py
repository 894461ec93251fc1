"""What is stated about class sizes, in rows to label: hard bounds, and rough sizes, which are beliefs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds, Groups
from transduce.class_prior.rounding import apportion
from transduce.errors import PriorError, PriorErrorKind

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


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

    def bounds(self, n_rows: int) -> Bounds:
        """Bounds on the class counts of the `n_rows` rows to label.

        If every class has a single size, they are the nearest counts that sum to the rows. Otherwise a rough size
        becomes the whole numbers on both sides of it, so that rounding never makes it infeasible.

        Parameters
        ----------
        n_rows : int

        Examples
        --------
        >>> none, all_rows = np.zeros(2, np.int64), np.full(2, 10)
        >>> Statement(none, all_rows, np.array([2.5, 7.5])).bounds(10)[:2]
        (array([3, 7]), array([3, 7]))
        >>> Statement(none, all_rows, np.array([2.5, np.nan])).bounds(10)[:2]
        (array([2, 0]), array([ 3, 10]))
        """
        rough, low, high = np.isfinite(self.rough), self.low.copy(), self.high.copy()
        if self._is_closed(rough, n_rows):
            low[rough] = apportion(self.rough[rough], n_rows - int(low[~rough].sum()))
            return Bounds.exact(low)
        low[rough], high[rough] = on_both_sides(self.rough[rough])
        groups = self._all_groups()
        check_feasible(low, high, groups, n_rows)
        return Bounds(low, high, groups)

    def _is_closed(self, rough: Mask, n_rows: int) -> bool:
        """Whether rough and exact sizes of the classes sum to all rows, but for rounding of the exact ones."""
        exact, total = self.low[~rough], float(self.rough[rough].sum())
        if self.groups is not None or self.branches or np.any(exact != self.high[~rough]):
            return False
        return total > 0 and abs(total + int(exact.sum()) - n_rows) <= exact.size + 1e-6 * n_rows

    def _all_groups(self) -> Groups | None:
        """Groups of all branches, with the whole numbers on both sides of rough sizes as bounds."""
        if not self.branches:
            return self.groups
        members = np.array([branch.members for branch in self.branches])
        low, high = on_both_sides(np.array([branch.rows for branch in self.branches]))
        names = [branch.name for branch in self.branches]
        if self.groups is not None:
            members = np.vstack((members, self.groups.members(members.shape[1])))
            low, high = np.concatenate((low, self.groups.low)), np.concatenate((high, self.groups.high))
            names += self.groups.names
        return nested_groups(members, low, high, names)


def on_both_sides(sizes: FloatArray) -> tuple[IntArray, IntArray]:
    """The whole numbers on both sides of each size, the same number twice for one that is whole but for noise."""
    noise = rounding_noise(sizes)
    return np.floor(sizes + noise).astype(np.int64), np.ceil(sizes - noise).astype(np.int64)


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
