"""Labels that leave several classes open: sets of candidates, inner nodes of the tree, labels that are ruled out.

An inner node leaves all leaves under it open, whether or not other rows are labelled with them; a label that leaves but
one class open is a full one.
A row with candidates takes part in the label step with all other labels forbidden. A row of which only some labels are
ruled out is an unlabelled row that may not get them.
"""

from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from transduce.taxonomy import Taxonomy

Array = NDArray[Any]

_ROWS = (list, tuple, np.ndarray)


class RuledOut:
    """An entry of y: the row is unlabelled, and these labels are not its own.

    >>> RuledOut("spam"), RuledOut(["spam", "news"]).labels == {"spam", "news"}
    (RuledOut('spam'), True)
    """

    def __init__(self, labels: Hashable | Iterable[Any]) -> None:
        if isinstance(labels, tuple):
            raise TypeError(
                f"RuledOut must get one label, or several in a list or set, but got {labels!r}, which may be a path or "
                f"several labels. Write [{labels!r}] for a path, and {list(labels)!r} for several labels."
            )
        several: Iterable[Any] = labels if isinstance(labels, (list, Set, np.ndarray)) else [labels]
        self.labels: frozenset[Any] = frozenset(tuple(one) if isinstance(one, list) else one for one in several)

    def __repr__(self) -> str:
        return f"RuledOut({', '.join(sorted(map(repr, self.labels)))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuledOut) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(("RuledOut", self.labels))


@dataclass(frozen=True, eq=False)
class EncodedLabels:
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

    Columns of a data frame name the classes; otherwise their numbers do. The matrix may be sparse, or a list of lists.
    Anything else comes back as it is, and names nothing.

    >>> entries, names = from_matrix(np.array([[True, False], [True, True], [False, True]]))
    >>> entries.tolist(), names
    ([0, None, 1], [0, 1])
    """
    matrix = _as_matrix(y)
    if matrix is None or matrix.dtype != bool:
        return y, []
    if matrix.shape[1] < 2:
        raise ValueError(
            "y is a boolean matrix of one column, but a matrix of candidates has a column for each class. Pass all "
            "columns, or one label a row."
        )
    names = list(getattr(y, "columns", range(matrix.shape[1])))
    entries = np.empty(len(matrix), dtype=object)
    for i, row in enumerate(matrix):
        open_to = [names[k] for k in np.flatnonzero(row)]
        if not open_to:
            raise ValueError(f"every row of y must allow a class, but row {i} allows none. Allow one, or all.")
        entries[i] = open_to[0] if len(open_to) == 1 else None if len(open_to) == len(names) else frozenset(open_to)
    return entries, names


def _as_matrix(y: Any) -> Array | None:
    """The matrix that y is, if it is one; of 0 and 1 it could be anything."""
    if sparse.issparse(y):
        if y.dtype != bool:
            raise ValueError(f"y is a sparse matrix of {y.dtype}. Pass y.astype(bool) if it holds candidates.")
        return np.asarray(y.toarray())
    matrix = np.asarray(y) if hasattr(y, "shape") and len(y.shape) == 2 else _from_lists(y)
    if matrix is not None and matrix.shape[1] > 1 and matrix.dtype.kind in "iuf" and np.isin(matrix, (0, 1)).all():
        raise ValueError(
            f"y is a matrix of 0 and 1 with shape {matrix.shape}, where one label a row was expected. Pass "
            "np.asarray(y).astype(bool) if it holds candidates, a column for each class."
        )
    return matrix


def _from_lists(y: Any) -> Array | None:
    """A matrix that came as lists of equal length, of bool or of 0 and 1; tuples of numbers are labels."""
    if not isinstance(y, (list, tuple)) or not y or not all(isinstance(row, _ROWS) for row in y):
        return None
    if len({np.shape(row) for row in y}) > 1 or np.ndim(y[0]) != 1 or len(y[0]) < 2:
        return None
    if all(isinstance(cell, (bool, np.bool_)) for row in y for cell in row):
        return np.array(y, dtype=bool)
    numbers = all(not isinstance(row, tuple) and all(isinstance(cell, Integral) for cell in row) for row in y)
    return np.array(y) if numbers else None


def is_open(value: object) -> bool:
    """Whether an entry of y names candidates, or rules labels out."""
    return isinstance(value, (Set, RuledOut))


def members_of(value: object) -> Set[Any] | tuple[Any]:
    """What an entry of y names."""
    return value.labels if isinstance(value, RuledOut) else value if isinstance(value, Set) else (value,)


def named_in(values: Iterable[object], taxonomy: Taxonomy | None) -> list[Any]:
    """Classes that entries of y name, each once, in their order; inner nodes of the tree name none."""
    names: dict[Any, None] = {}
    for value in values:
        named = members_of(value)
        for name in sorted(named, key=repr) if len(named) > 1 else named:
            if taxonomy is None or not taxonomy.is_inner(name):
                names[name] = None
    return list(names)


def leaves_under(values: Iterable[object], taxonomy: Taxonomy) -> Array:
    """Leaves (K,) under the inner nodes that entries of y leave open: all of them are classes.

    >>> tree = Taxonomy.create(["rec/hockey", "rec/chess", "sci/med", "sci/space"])
    >>> leaves_under(["rec", "sci/med", RuledOut("sci")], tree)
    array([ True,  True, False, False])
    """
    under = np.zeros(taxonomy.n_classes, bool)
    names = {name for value in values if not isinstance(value, RuledOut) for name in members_of(value)}
    for name in names:
        if taxonomy.is_inner(name):
            under |= taxonomy.below(name)
    return under


def leaf_names(taxonomy: Taxonomy, names: list[Any]) -> list[Any]:
    """What each leaf (K,) is called: as one of the names that users have for it, else in words of the same kind.

    >>> leaf_names(Taxonomy.create(["rec/hockey", "rec/chess", "sci/med"]), ["hockey", "sci/med"])
    ['hockey', 'rec/chess', 'sci/med']
    """
    called: dict[int, Any] = {}
    for name in names:
        known = called.setdefault(taxonomy.leaf_of(name), name)
        if known != name:
            raise ValueError(
                f"a class must have one name in y and class_prior, but {known!r} and {name!r} are the same class. "
                "Keep one of them."
            )
    kind = type(names[0]) if names else type(taxonomy.labels[0])
    for k, path in enumerate(taxonomy.leaf_paths):
        words = (taxonomy.labels[k], taxonomy.separator.join(path), path)
        called.setdefault(k, next((each for each in words if isinstance(each, kind)), words[0]))
    return [called[k] for k in range(taxonomy.n_classes)]


def read_full(
    values: list[Any], labeled: Array, taxonomy: Taxonomy | None, names: list[Any] | None = None
) -> tuple[list[Any], Array]:
    """Entries of y with the class in place of what leaves but one open, and which of them name one class.

    A set of one candidate, and an inner node over one leaf, are full labels. `names` are those that users have for
    classes, if not the ones in y.

    >>> read_full(["tea", {"tea"}, {"tea", "coffee"}, RuledOut("tea"), ""], np.array([True] * 4 + [False]), None)[1]
    array([ True,  True, False, False, False])
    """
    found, full, leaf_of_row = list(values), labeled.copy(), {}
    for row in np.flatnonzero(labeled).tolist():
        value, named = values[row], members_of(values[row])
        inner = taxonomy is not None and any(taxonomy.is_inner(name) for name in named)
        full[row] = len(named) == 1 and not inner and not isinstance(value, RuledOut)
        if full[row]:
            (found[row],) = named
        elif inner and taxonomy is not None and not isinstance(value, RuledOut):
            leaves = leaves_under([value], taxonomy)
            leaves[[taxonomy.leaf_of(name) for name in named if not taxonomy.is_inner(name)]] = True
            if leaves.sum() == 1:
                leaf_of_row[row] = int(leaves.argmax())
    if leaf_of_row and taxonomy is not None:
        known = named_in([found[row] for row in np.flatnonzero(full)], taxonomy) if names is None else names
        called = leaf_names(taxonomy, known)
        for row, leaf in leaf_of_row.items():
            found[row], full[row] = called[leaf], True
    return found, full


def code(values: list[Any], labeled: Array, classes: list[Any], taxonomy: Taxonomy, tree: bool) -> EncodedLabels:
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
        return EncodedLabels(codes, partial, None)
    matrix = np.ones((len(values), len(classes)), bool)
    for i, allowed in open_rows.items():
        matrix[i] = allowed
    return EncodedLabels(codes, partial, matrix)


def _allowed(value: object, index: dict[Any, int], taxonomy: Taxonomy, tree: bool, row: int) -> Array:
    """Classes (K,) that an entry leaves open."""
    named = np.zeros(len(index), bool)
    for name in members_of(value):
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
        raise ValueError(
            f"row {row} of y leaves no class open: it rules out all {len(index)}. Rule out fewer, or use None for an "
            "unlabelled row."
        )
    return allowed
