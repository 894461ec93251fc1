"""Partial labels: entries of y that allow several classes.

A set allows its members, an inner node of the taxonomy all leaves under it, and `RuledOut` all classes but some. A set
or node that allows one class is a full label.
"""

from collections.abc import Hashable, Iterable, Mapping, Set
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.errors import LabelError, LabelErrorKind
from transduce.suggest import short_repr

_ROWS = (list, tuple, np.ndarray)


class RuledOut:
    """An entry of y for an unlabelled row that does not belong to some classes.

    Parameters
    ----------
    labels : label, list or set of labels
        Classes or inner nodes of the taxonomy. A path as a tuple goes into a list. The attribute is a frozenset.

    Examples
    --------
    >>> RuledOut("spam"), RuledOut(["spam", "news"]).labels == {"spam", "news"}
    (RuledOut('spam'), True)
    """

    def __init__(self, labels: Hashable | Iterable[Any]) -> None:
        if isinstance(labels, tuple):
            advice = f"Write [{labels!r}] for a path, and {list(labels)!r} for several labels."
            raise TypeError(f"RuledOut takes a label, list or set, but got the tuple {labels!r}. {advice}")
        members = labels if isinstance(labels, list) else [labels]
        is_list = isinstance(labels, (list, Set, np.ndarray))
        if (not is_list and not isinstance(labels, Hashable)) or any(isinstance(one, Mapping) for one in members):
            raise TypeError(f"RuledOut takes a label, list or set, but got {short_repr(labels)}. Convert it.")
        several: Iterable[Any] = labels if isinstance(labels, (list, Set, np.ndarray)) else [labels]
        self.labels: frozenset[Any] = frozenset(tuple(one) if isinstance(one, list) else one for one in several)

    def __repr__(self) -> str:
        return f"RuledOut({', '.join(sorted(map(repr, self.labels)))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuledOut) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(("RuledOut", self.labels))


def is_partial(entry: object) -> bool:
    """Whether an entry of y is a set, or rules labels out."""
    return isinstance(entry, (Set, RuledOut))


def names_in(entry: object) -> Set[Any] | tuple[Any]:
    """The names in an entry of y."""
    return entry.labels if isinstance(entry, RuledOut) else entry if isinstance(entry, Set) else (entry,)


def example_set(members: Iterable[Any]) -> str:
    """Members written as a set."""
    return "{" + ", ".join(map(repr, members)) + "}"


def read_matrix(y: Any) -> tuple[Any, list[Any]]:
    """Turn a boolean matrix (n, K) of allowed classes into labels, sets and None, and the names of all classes.

    The columns of a data frame name the classes; otherwise their positions do. The matrix may be sparse or a list of
    lists. Anything else is returned unchanged, without names.
    """
    matrix = _as_matrix(y)
    if matrix is None or matrix.dtype != bool:
        return y, []
    if matrix.shape[1] < 2:
        raise LabelError(LabelErrorKind.ONE_COLUMN)
    names = list(getattr(y, "columns", range(matrix.shape[1])))
    entries = np.empty(len(matrix), dtype=object)
    for row, columns in enumerate(matrix):
        allowed = [names[k] for k in np.flatnonzero(columns)]
        if not allowed:
            raise LabelError(LabelErrorKind.NO_CLASS_ALLOWED, row=row)
        entries[row] = allowed[0] if len(allowed) == 1 else None if len(allowed) == len(names) else frozenset(allowed)
    return entries, names


def _as_matrix(y: Any) -> Array | None:
    """The matrix that y is, or None; refuse numbers 0 and 1, which may mean something else."""
    if sparse.issparse(y):
        if y.dtype != bool:
            raise LabelError(LabelErrorKind.SPARSE_NUMBERS, dtype=y.dtype)
        return np.asarray(y.toarray())
    matrix = np.asarray(y) if hasattr(y, "shape") and len(y.shape) == 2 else _from_lists(y)
    if matrix is not None and matrix.shape[1] > 1 and matrix.dtype.kind in "iuf" and np.isin(matrix, (0, 1)).all():
        raise LabelError(LabelErrorKind.MATRIX_OF_NUMBERS, shape=matrix.shape)
    return matrix


def _from_lists(y: Any) -> Array | None:
    """A matrix from rows of equal length, of bool or of 0 and 1; tuples of numbers are labels."""
    if not isinstance(y, (list, tuple)) or not y or not all(isinstance(row, _ROWS) for row in y):
        return None
    if len({np.shape(row) for row in y}) > 1 or np.ndim(y[0]) != 1 or len(y[0]) < 2:
        return None
    if all(isinstance(cell, (bool, np.bool_)) for row in y for cell in row):
        return np.array(y, dtype=bool)
    numbers = all(not isinstance(row, tuple) and all(isinstance(cell, Integral) for cell in row) for row in y)
    return np.array(y) if numbers else None
