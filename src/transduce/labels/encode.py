"""Labels as class indices: from the entries of y to a code for each full label and the classes that others allow."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.arrays import Array, BoolArray, IntArray
from transduce.errors import LabelError, LabelErrorKind
from transduce.labels.classes import as_objects, class_names, leaf_names, leaves_under
from transduce.labels.missing import AUTO, find_labeled
from transduce.labels.partial import RuledOut, is_partial, names_in, read_matrix
from transduce.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """Labels as class indices.

    codes    (n,) class of each row with a full label, else −1
    partial  (n,) whether a row has a partial label other than RuledOut
    allowed  (n, K) classes that each row may get; None where every row without a full label may get any
    """

    codes: IntArray
    partial: BoolArray
    allowed: BoolArray | None


def check_labels(n_rows: int, values: Array, labeled: Array, required: bool = True) -> None:
    """Raise LabelError unless each row has an entry, some row is labelled if required, and labels are classes."""
    if values.size != n_rows:
        raise LabelError(LabelErrorKind.LENGTH, n_rows=n_rows, n_labels=values.size)
    if required and not labeled.any():
        raise LabelError(LabelErrorKind.NOTHING_LABELED)
    if values.dtype.kind == "f":
        if np.any(np.isinf(values[labeled])):
            raise LabelError(LabelErrorKind.INFINITE)
        if np.any(values[labeled] != np.floor(values[labeled])):
            raise LabelError(LabelErrorKind.CONTINUOUS)


def encode_labels(
    entries: list[Any], labeled: Array, classes: list[Any], taxonomy: Taxonomy, tree: bool
) -> EncodedLabels:
    """Encode entries of y, of which those with `labeled` are labels; `tree` says whether the user gave a taxonomy."""
    index = {name: k for k, name in enumerate(classes)}
    codes, partial = np.full(len(entries), -1, np.int64), np.zeros(len(entries), bool)
    restricted: dict[int, Array] = {}
    for row in np.flatnonzero(labeled).tolist():
        entry = entries[row]
        if not is_partial(entry) and entry in index:
            codes[row] = index[entry]
            continue
        allowed = _allowed(entry, index, taxonomy, tree, row)
        if allowed.sum() == 1 and not isinstance(entry, RuledOut):
            codes[row] = int(allowed.argmax())
        else:
            restricted[row], partial[row] = allowed, not isinstance(entry, RuledOut)
    if not restricted:
        return EncodedLabels(codes, partial, None)
    matrix = np.ones((len(entries), len(classes)), bool)
    matrix[list(restricted)] = list(restricted.values())
    return EncodedLabels(codes, partial, matrix)


def _allowed(entry: object, index: dict[Any, int], taxonomy: Taxonomy, tree: bool, row: int) -> Array:
    """Mask of the classes (K,) that an entry allows."""
    named = np.zeros(len(index), bool)
    for name in names_in(entry):
        if name in index:
            named[index[name]] = True
        elif tree and taxonomy.is_inner(name):
            named |= taxonomy.below(name)
        else:
            kind = LabelErrorKind.EMPTY_BRANCH if tree else LabelErrorKind.UNKNOWN_CLASS
            raise LabelError(kind, row=row, name=name)
    allowed = ~named if isinstance(entry, RuledOut) else named
    if isinstance(entry, Set) and not entry:
        raise LabelError(LabelErrorKind.EMPTY_SET, row=row)
    if not allowed.any():
        raise LabelError(LabelErrorKind.ALL_RULED_OUT, row=row, n_classes=len(index))
    return allowed


def find_full_labels(
    y: Any, unlabeled: object = AUTO, taxonomy: object = None, names: list[Any] | None = None
) -> tuple[Array, Array]:
    """Return y as an array, and a mask of the rows that are labelled with one class.

    A set of one class, and an inner node over one leaf, are replaced by that class. `names` are the users' names of the
    classes, if not those in y.

    >>> find_full_labels(["tea", {"tea"}, {"tea", "coffee"}, RuledOut("tea"), ""])[1]
    array([ True,  True, False, False, False])
    """
    values, full = find_labeled(read_matrix(y)[0], unlabeled)
    if taxonomy is None and values.dtype.kind != "O":
        return values, full
    tree, entries = None if taxonomy is None else Taxonomy.create(taxonomy), as_objects(values)
    replaced: dict[int, Any] = {}
    leaf_of_row: dict[int, int] = {}
    for row in np.flatnonzero(full).tolist():
        entry, named = entries[row], names_in(entries[row])
        inner = [] if tree is None else [name for name in named if tree.is_inner(name)]
        full[row] = len(named) == 1 and not inner and not isinstance(entry, RuledOut)
        if full[row] and is_partial(entry):
            (replaced[row],) = named
        elif tree is not None and inner and not isinstance(entry, RuledOut):
            leaves = leaves_under(inner, tree)
            leaves[[tree.leaf_of(name) for name in named if name not in inner]] = True
            if leaves.sum() == 1:
                leaf_of_row[row] = int(leaves.argmax())
    if tree is not None and leaf_of_row:
        known = class_names([entries[row] for row in np.flatnonzero(full)], tree) if names is None else names
        by_leaf = leaf_names(tree, known)
        replaced |= {row: by_leaf[leaf] for row, leaf in leaf_of_row.items()}
    values = values.astype(object) if replaced else values
    for row, name in replaced.items():
        values[row], full[row] = name, True
    return values, full
