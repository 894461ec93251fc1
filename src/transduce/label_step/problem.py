"""The label problem: costs and bounds on the class counts, validated once.

    min over y of Σ_i costs[i, y_i] + Σ_k f_k(n_k)     subject to     low_k ≤ n_k = #{i : y_i = k} ≤ high_k

A cost of +inf forbids a label for a row. Nested groups of classes may have bounds too (see `count_tree`). f_k, a convex
cost of the count of class k, is 0 unless there is a belief about it (see `class_prior.belief`).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.counts import count_bounds
from transduce.class_prior.groups import Groups
from transduce.label_step.count_tree import CountTree
from transduce.label_step.row_blocks import CostRows, FloatArray, IntArray
from transduce.parallel import Threads

__all__ = ["FloatArray", "IntArray", "LabelProblem"]

LARGEST_COST = 1e150
"""Larger costs could overflow when they are added up."""
FAULTS = (
    "costs must be numbers or +inf, but row {row}, class {k} is {cost}. Replace it, or use +inf to forbid the label.",
    "each row needs a label that is allowed, but every cost of row {row} is +inf. Allow a label, or leave the row out.",
    "costs must be below 1e150 in size, to be added up, but row {row} has {cost:g}. Divide them by a constant.",
)


@dataclass(frozen=True, eq=False)
class LabelProblem(CostRows):
    """Costs of all labels for all rows, and bounds on the number of rows of each class.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        Cost of each label for each row; +inf forbids a label.
    low, high : ndarray of shape (K,)
        Least and greatest number of rows of each class.
    groups : Groups or None, default=None
        Nested groups of classes with bounds on the rows of each.
    belief : Belief or None, default=None
        Cost of the counts within their bounds.
    threads : transduce.parallel.Threads or None, default=None
        Threads that passes over all rows run in.

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> problem.n_rows, problem.n_classes, problem.exact_counts
    (3, 2, True)
    """

    costs: NDArray[Any]
    low: IntArray
    high: IntArray
    groups: Groups | None = None
    belief: Belief | None = None
    threads: Threads | None = field(default=None, kw_only=True, repr=False)

    @classmethod
    def create(
        cls,
        costs: ArrayLike,
        counts: ArrayLike | tuple[ArrayLike, ArrayLike] | None,
        groups: Groups | None = None,
        belief: Belief | None = None,
    ) -> "LabelProblem":
        """Make a problem after checking costs, counts, groups and belief; see `solve_labels`."""
        array = _cost_matrix(costs)
        if counts is None:
            counts = np.zeros(array.shape[1]), np.full(array.shape[1], array.shape[0])
        low, high = count_bounds(counts, *array.shape)
        if belief is not None and (not isinstance(belief, Belief) or belief.mean.size != low.size):
            raise ValueError(f"belief must be a Belief about the {low.size} columns of costs, but is {belief!r}.")
        if groups is not None:
            if not isinstance(groups, Groups):
                raise TypeError(f"groups must be a Groups object or None, but came as {groups!r}.")
            groups.check(low, high, array.shape[0])
        problem = cls(array, low, high, groups, belief)
        _check_costs(problem)
        return problem

    @cached_property
    def tree(self) -> CountTree:
        """Bounds of classes and groups as a tree."""
        return CountTree.create(self.bounds, self.n_rows)

    @property
    def bounds(self) -> Bounds:
        """Bounds on the counts, and the belief."""
        return Bounds(self.low, self.high, self.groups, self.belief)

    @property
    def exact_counts(self) -> bool:
        """Whether every low count equals its high count."""
        return self.tree.exact

    def refuse_groups(self, label_step: str) -> None:
        """Raise ValueError if there are groups or a belief, which a label step does not support.

        Parameters
        ----------
        label_step : str
            Name of the label step in the message.
        """
        if self.groups is not None:
            raise ValueError(f"{label_step} takes no groups of classes. Use method='exact', or leave groups out.")
        if self.belief is not None:
            raise ValueError(f"{label_step} takes no belief. Use method='exact' or 'greedy', or pass counts.")

    def check_prices(self, prices: ArrayLike) -> FloatArray:
        """Return a copy of starting prices after checking that they are finite; see `solve_labels`."""
        advice = "Pass those of an earlier solution, or none."
        try:
            array = np.array(prices, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"prices must be numbers, one for each class. {advice}") from error
        if array.shape != (self.n_classes,):
            found = f"have shape {array.shape}. {advice}"
            raise ValueError(f"prices must have one number for each of the {self.n_classes} classes, but {found}")
        if not np.all(np.isfinite(array)):
            k = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"prices must be finite, but class {k} has {array[k]}. {advice}")
        return array

    def check_labels(self, labels: ArrayLike) -> IntArray:
        """Return a copy of starting labels after checking that they are allowed and meet the counts.

        Parameters
        ----------
        labels : array-like of shape (n,)
        """
        try:
            start = np.array(labels)
        except ValueError as error:
            raise _bad_start("be a list of class indices, but is ragged") from error
        if start.shape != (self.n_rows,):
            raise _bad_start(f"have one label for each of the {self.n_rows} rows, but has shape {start.shape}")
        if start.size and start.dtype.kind not in "iu":
            raise TypeError(f"start must hold class indices as integers, but has dtype {start.dtype}. Convert it.")
        if start.size and (start.min() < 0 or start.max() >= self.n_classes):
            found = f"goes from {start.min()} to {start.max()}"
            raise _bad_start(f"hold class indices from 0 to {self.n_classes - 1}, but {found}")
        start = start.astype(np.int64)
        tally = self.tally(start)
        _check_sizes("class", tally, self.low, self.high)
        if self.groups is not None:
            _check_sizes("group", self.groups.members(self.n_classes) @ tally, self.groups.low, self.groups.high)
        chosen = self.costs[np.arange(self.n_rows), start]
        if np.any(chosen == np.inf):
            i = int(np.argmax(chosen == np.inf))
            raise _bad_start(f"avoid forbidden labels, but row {i} has label {start[i]} at cost +inf")
        return start


def _check_sizes(kind: str, sizes: IntArray, low: IntArray, high: IntArray) -> None:
    """Check that starting labels meet the bounds of classes, or of groups."""
    off = (sizes < low) | (sizes > high)
    if off.any():
        j = int(np.argmax(off))
        asked = f"{low[j]}" if low[j] == high[j] else f"{low[j]} to {high[j]}"
        raise _bad_start(f"meet the counts, but gives {kind} {j} {sizes[j]} rows where {asked} are asked for")


def _bad_start(fault: str) -> ValueError:
    return ValueError(f"start must {fault}. Leave it out, or correct it.")


def _cost_matrix(costs: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(costs)
        array = array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError("costs must be numbers in rows of equal length. Pass a matrix of floats.") from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"costs must be real numbers, but have dtype {array.dtype}. Pass a matrix of floats.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"costs must be a matrix, a row a document and a column a class, but have shape {array.shape}."
        )
    if array.dtype.kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > 2**53:
        raise ValueError("whole-number costs must be at most 2**53 in size, to be exact as floats. Scale them down.")
    return array


def _check_costs(problem: LabelProblem) -> None:
    for rows, block in problem.blocks():
        if np.vdot(block, block) <= LARGEST_COST**2:  # then no cost is larger, NaN or infinite
            continue
        is_allowed = block < np.inf
        bad = ~(block > -np.inf), ~is_allowed.any(axis=1, keepdims=True), is_allowed & (np.abs(block) > LARGEST_COST)
        for is_bad, fault in zip(bad, FAULTS, strict=True):
            if is_bad.any():
                i, k = np.argwhere(is_bad)[0]
                raise ValueError(fault.format(row=rows.start + i, k=k, cost=block[i, k]))
