"""The label problem: costs and count bounds, checked once at the door, read in blocks of rows ever after.

    min over y of Σ_i costs[i, y_i]     subject to     low_k ≤ #{i : y_i = k} ≤ high_k

Nested groups of classes may have bounds too (see `nodes`). A cost of +inf forbids a label for a row. The caller's array
is kept as it is, whatever its dtype and memory order; solvers read C-ordered float64 blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.class_prior.bounds import Groups, count_bounds
from transduce.label_step._kernels.passes import first_bad_row
from transduce.label_step.count_tree import Nodes

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_BLOCK_CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class LabelProblem:
    """Costs (n, K), and the least and greatest number of rows each class, and each group of classes, may get.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> problem.n_rows, problem.n_classes, problem.exact_counts
    (3, 2, True)
    """

    costs: NDArray[Any]
    low: IntArray
    high: IntArray
    groups: Groups | None = None

    @classmethod
    def create(
        cls, costs: ArrayLike, counts: ArrayLike | tuple[ArrayLike, ArrayLike], groups: Groups | None = None
    ) -> "LabelProblem":
        """Check costs, counts and groups; every complaint is one sentence."""
        array = _cost_matrix(costs)
        low, high = count_bounds(counts, *array.shape)
        if groups is not None:
            if not isinstance(groups, Groups):
                raise TypeError(f"groups must be a Groups object or None, but came as {groups!r}.")
            groups.check(low, high, array.shape[0])
        problem = cls(array, low, high, groups)
        _check_costs(problem)
        return problem

    @property
    def n_rows(self) -> int:
        """Rows to label."""
        return int(self.costs.shape[0])

    @property
    def n_classes(self) -> int:
        """Classes to choose from."""
        return int(self.costs.shape[1])

    @cached_property
    def exact_counts(self) -> bool:
        """Whether every low count equals its high count."""
        return bool(np.array_equal(self.low, self.high))

    @property
    def n_groups(self) -> int:
        """Groups of classes."""
        return 0 if self.groups is None else self.groups.n_groups

    @cached_property
    def nodes(self) -> Nodes:
        """Bounds of classes and groups as a tree; exact counts of all classes leave groups nothing to decide."""
        return Nodes.create(self.low, self.high, None if self.exact_counts else self.groups, self.n_rows)

    def refuse_groups(self, label_step: str) -> None:
        """Say that a label step knows nothing of groups, if there are any."""
        if self.groups is not None:
            raise ValueError(f"{label_step} takes no groups of classes. Use method='exact', or leave groups out.")

    @property
    def rows_per_block(self) -> int:
        """Rows read at a time, so that a block stays in the cache."""
        return max(1, _BLOCK_CELLS // self.n_classes)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield consecutive rows as C-ordered float64, without a copy where the costs already are."""
        for begin in range(0, self.n_rows, self.rows_per_block):
            part = slice(begin, min(begin + self.rows_per_block, self.n_rows))
            yield part, np.ascontiguousarray(self.costs[part], dtype=np.float64)

    def take(self, rows: IntArray) -> FloatArray:
        """Copy the given rows as C-ordered float64."""
        return np.ascontiguousarray(self.costs[rows], dtype=np.float64)

    def tally(self, labels: IntArray) -> IntArray:
        """Count the rows of each class."""
        return np.bincount(labels, minlength=self.n_classes).astype(np.int64)

    def check_labels(self, labels: ArrayLike) -> IntArray:
        """Copy starting labels, after seeing that they are labels, are allowed and meet the counts."""
        try:
            start = np.array(labels)
        except ValueError as error:
            raise ValueError("start must be a list of class indices, but is ragged. Pass one label a row.") from error
        if start.shape != (self.n_rows,):
            raise ValueError(
                f"start must have one label for each of the {self.n_rows} rows, but has shape {start.shape}. "
                "Leave it out, or correct it."
            )
        if self.n_rows and not np.issubdtype(start.dtype, np.integer):
            raise TypeError(f"start must hold class indices as integers, but has dtype {start.dtype}. Convert it.")
        if self.n_rows and (start.min() < 0 or start.max() >= self.n_classes):
            raise ValueError(
                f"start must hold class indices from 0 to {self.n_classes - 1}, "
                f"but goes from {start.min()} to {start.max()}. Leave it out, or correct it."
            )
        start = start.astype(np.int64)
        tally = self.tally(start)
        if np.any((tally < self.low) | (tally > self.high)):
            k = int(np.argmax((tally < self.low) | (tally > self.high)))
            raise ValueError(
                f"start must meet the counts, but gives class {k} {tally[k]} rows where "
                f"{_range(self.low[k], self.high[k])} are asked for. Leave start out, or correct it."
            )
        _check_groups(self, tally)
        chosen = self.costs[np.arange(self.n_rows), start]
        if not np.all(chosen < np.inf):
            i = int(np.argmax(~(chosen < np.inf)))
            raise ValueError(
                f"start must avoid forbidden labels, but row {i} has label {start[i]} at cost +inf. Correct it."
            )
        return start


def _check_groups(problem: LabelProblem, tally: IntArray) -> None:
    if problem.groups is None:
        return
    groups, sizes = problem.groups, problem.groups.members(problem.n_classes) @ tally
    off = (sizes < groups.low) | (sizes > groups.high)
    if off.any():
        g = int(np.argmax(off))
        raise ValueError(
            f"start must meet the counts of groups, but gives group {g} {sizes[g]} rows where "
            f"{_range(groups.low[g], groups.high[g])} are asked for. Leave start out, or correct it."
        )


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _cost_matrix(costs: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(costs)
        array = array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            "costs must be numbers in rows of equal length, but hold something else. Pass a matrix of floats."
        ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"costs must be real numbers, but have dtype {array.dtype}. Pass a matrix of floats.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"costs must be a matrix, but have shape {array.shape}. Pass one row a document and one column a class."
        )
    if array.dtype.kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > 2**53:
        raise ValueError("whole-number costs must be at most 2**53 in size, to be exact as floats. Scale them down.")
    return array


def _check_costs(problem: LabelProblem) -> None:
    for part, block in problem.blocks():
        if np.isfinite(np.vdot(block, block)):  # then every cost is finite and below 1e154, and nothing is forbidden
            continue
        i, kind = first_bad_row(block)
        if kind == 1:
            k = int(np.argmax(~(block[i] > -np.inf)))
            raise ValueError(
                f"costs must be numbers or +inf, but row {part.start + i}, class {k} is {block[i, k]}. "
                "Replace it, or use +inf to forbid the label."
            )
        if kind == 3:
            raise ValueError(
                f"costs must be below 1e150 in size, to be added up, but row {part.start + i} has a larger one. "
                "Divide them by a constant."
            )
        if kind == 2:
            raise ValueError(
                f"each row needs a label that is allowed, but every cost of row {part.start + i} is +inf. "
                "Allow a label, or leave the row out."
            )
