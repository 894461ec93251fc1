"""Labels that leave several classes open: sets of candidates, inner nodes of the tree, labels that are ruled out.

A row with candidates takes part in the label step with all other labels forbidden. A row of which only some labels are
ruled out is an unlabelled row that may not get them.
"""

from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.taxonomy import Taxonomy

Array = NDArray[Any]


class RuledOut:
    """An entry of y: the row is unlabelled, and these labels are not its own.

    >>> RuledOut("spam"), RuledOut(["spam", "news"]).labels == {"spam", "news"}
    (RuledOut('spam'), True)
    """

    def __init__(self, labels: Hashable | Iterable[Hashable]) -> None:
        several = isinstance(labels, (list, set, frozenset, np.ndarray))
        self.labels: frozenset[Any] = frozenset(labels if several else [labels])  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"RuledOut({', '.join(sorted(map(repr, self.labels)))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuledOut) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(("RuledOut", self.labels))


@dataclass(frozen=True, eq=False)
class Coded:
    """Labels as indices of classes.

    codes    (n,) the class of each row that has one, else −1
    partial  (n,) rows that have several candidates
    allowed  (n, K) labels that each row may get; None where no row has candidates or ruled-out labels
    """

    codes: NDArray[np.int64]
    partial: NDArray[np.bool_]
    allowed: NDArray[np.bool_] | None


def from_matrix(y: Any) -> tuple[Any, list[Any]]:
    """Candidates as a boolean matrix (n, K): entries with labels, sets and None, and the names of all classes.

    Columns of a data frame name the classes; otherwise their numbers do. Anything else comes back as it is, and names
    nothing.

    >>> entries, names = from_matrix(np.array([[True, False], [True, True], [False, True]]))
    >>> entries.tolist(), names
    ([0, None, 1], [0, 1])
    """
    matrix = np.asarray(y) if hasattr(y, "shape") and len(y.shape) == 2 else None
    if matrix is None or matrix.dtype != bool or matrix.shape[1] < 2:
        return y, []
    names = list(getattr(y, "columns", range(matrix.shape[1])))
    entries = np.empty(len(matrix), dtype=object)
    for i, row in enumerate(matrix):
        open_to = [names[k] for k in np.flatnonzero(row)]
        if not open_to:
            raise ValueError(f"every row of y must allow a class, but row {i} allows none. Allow one, or all.")
        entries[i] = open_to[0] if len(open_to) == 1 else None if len(open_to) == len(names) else frozenset(open_to)
    return entries, names


def is_open(value: object) -> bool:
    """Whether an entry of y names candidates, or rules labels out."""
    return isinstance(value, (Set, RuledOut))


def named_in(values: Iterable[object], taxonomy: Taxonomy | None) -> list[Any]:
    """Classes that entries of y name, each once, in their order; inner nodes of the tree name none."""
    names: dict[Any, None] = {}
    for value in values:
        members = value.labels if isinstance(value, RuledOut) else value if isinstance(value, Set) else (value,)
        for name in sorted(members, key=repr) if len(members) > 1 else members:
            if taxonomy is None or not taxonomy.is_inner(name):
                names[name] = None
    return list(names)


def code(values: list[Any], labeled: Array, classes: list[Any], taxonomy: Taxonomy, tree: bool) -> Coded:
    """Entries of y as indices of classes and candidates; values are plain, and labels where `labeled` says so."""
    index = {name: k for k, name in enumerate(classes)}
    codes, partial = np.full(len(values), -1, np.int64), np.zeros(len(values), bool)
    open_rows: dict[int, Array] = {}
    for i in np.flatnonzero(labeled).tolist():
        value = values[i]
        if not is_open(value) and value in index:
            codes[i] = index[value]
            continue
        allowed = _allowed(value, index, taxonomy, tree, i)
        if allowed.sum() == 1 and not isinstance(value, RuledOut):
            codes[i] = int(allowed.argmax())
        else:
            open_rows[i], partial[i] = allowed, not isinstance(value, RuledOut)
    if not open_rows:
        return Coded(codes, partial, None)
    matrix = np.ones((len(values), len(classes)), bool)
    for i, allowed in open_rows.items():
        matrix[i] = allowed
    return Coded(codes, partial, matrix)


def _allowed(value: object, index: dict[Any, int], taxonomy: Taxonomy, tree: bool, row: int) -> Array:
    """Classes (K,) that an entry leaves open."""
    members = value.labels if isinstance(value, RuledOut) else value if isinstance(value, Set) else (value,)
    named = np.zeros(len(index), bool)
    for name in members:
        if name in index:
            named[index[name]] = True
        elif tree and taxonomy.is_inner(name):
            named |= taxonomy.below(name)
        elif tree:
            raise ValueError(
                f"row {row} of y names {name!r}, under which no class is labelled or named by class_prior. Label a row "
                "of such a class, or this one otherwise."
            )
        else:
            raise ValueError(f"row {row} of y names {name!r}, which is not a class. Correct it, or pass a taxonomy.")
    allowed = ~named if isinstance(value, RuledOut) else named
    if isinstance(value, Set) and not value:
        raise ValueError(f"row {row} of y is an empty set, which leaves no class open. Use None for an unlabelled row.")
    if not allowed.any():
        raise ValueError(f"row {row} of y leaves no class open, since no class is under {value!r}. Label it otherwise.")
    return allowed
