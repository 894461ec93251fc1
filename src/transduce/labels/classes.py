"""The classes of a problem: their names, the tree that they are leaves of, and warnings about probable mistakes."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from transduce.arrays import Array, object_array
from transduce.errors import (
    LabelError,
    LabelErrorKind,
    LabelWarning,
    LabelWarningKind,
    PriorError,
    PriorErrorKind,
    user_stacklevel,
)
from transduce.labels.partial import RuledOut, example_set, is_partial, names_in
from transduce.suggest import closest_name, did_you_mean, find_misspelled, have_same_numbers
from transduce.taxonomy import Taxonomy

_MOST_NAMES = 100
"""At most so many names without full labels are compared with others."""


def find_classes(
    values: Array, labeled: Array, class_prior: object, taxonomy: object, columns: Sequence[Any] = ()
) -> tuple[Array, Taxonomy]:
    """Sorted class names from labels, prior and columns, and the tree whose leaves they are.

    All leaves under an inner node that a label allows are classes too.
    """
    tree = None if taxonomy is None else Taxonomy.create(taxonomy)
    entries = [*as_objects(values[labeled]), *columns]
    if tree is None:
        _check_without_taxonomy(values, labeled, class_prior, columns)
    names = class_names(entries, tree)
    if isinstance(class_prior, Mapping):
        stated = [name for name in class_prior if name not in names and (tree is None or not tree.is_inner(name))]
        if tree is None:
            _check_spelling(stated, [name for name in names if name not in class_prior])
        else:
            _check_in_tree(stated, tree)
        names += stated
    if tree is None:
        classes = _class_array(sorted_names(names), values)
        return classes, Taxonomy.flat(classes.tolist())
    by_leaf = leaf_names(tree, names)
    allowed = np.flatnonzero(leaves_under(entries, tree))
    leaf_of = {by_leaf[k]: k for k in (*(tree.leaf_of(name) for name in names), *allowed)}
    names = sorted_names(list(leaf_of))
    return _class_array(names, values), tree.reorder([tree.labels[leaf_of[name]] for name in names])


def as_objects(values: Array) -> list[Any]:
    """Labels as hashable Python objects; lists become tuples, which are paths."""
    if values.dtype.kind != "O" and values.ndim == 1:
        return list(values.tolist())
    items = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    return [tuple(value) if isinstance(value, list) else value for value in items]


def class_names(entries: Iterable[object], taxonomy: Taxonomy | None) -> list[Any]:
    """Classes that entries of y name, each once, in their order; inner nodes of the taxonomy are left out."""
    found: dict[Any, None] = {}
    for entry in entries:
        names = names_in(entry)
        for name in sorted(names, key=repr) if len(names) > 1 else names:
            if taxonomy is None or not taxonomy.is_inner(name):
                found[name] = None
    return list(found)


def leaves_under(entries: Iterable[object], taxonomy: Taxonomy) -> Array:
    """Mask of the leaves (K,) under the inner nodes that entries of y allow."""
    under = np.zeros(taxonomy.n_classes, bool)
    for name in {name for entry in entries if not isinstance(entry, RuledOut) for name in names_in(entry)}:
        if taxonomy.is_inner(name):
            under |= taxonomy.below(name)
    return under


def leaf_names(taxonomy: Taxonomy, names: list[Any]) -> list[Any]:
    """Name of each leaf (K,): the one among the users' names, else one of the same type."""
    by_leaf: dict[int, Any] = {}
    for name in names:
        known = by_leaf.setdefault(taxonomy.leaf_of(name), name)
        if known != name:
            raise LabelError(LabelErrorKind.TWO_NAMES, name=known, other=name)
    kind = type(names[0]) if names else type(taxonomy.labels[0])
    for k, path in enumerate(taxonomy.leaf_paths):
        forms = (taxonomy.labels[k], taxonomy.separator.join(path), path)
        by_leaf.setdefault(k, next((each for each in forms if isinstance(each, kind)), forms[0]))
    return [by_leaf[k] for k in range(taxonomy.n_classes)]


def common_dtype(dtypes: Sequence[str]) -> Any:
    """The dtype of all labels, given those of blocks of labels; None for objects.

    >>> common_dtype(["<i8", "<i4"]), common_dtype(["<U3", "|O"])
    (dtype('int64'), None)
    """
    types = [np.dtype(each) for each in dtypes]
    if any(each.kind == "O" for each in types) or len({each.kind in "iufb" for each in types}) > 1:
        return None
    return np.result_type(*types)


def _check_without_taxonomy(values: Array, labeled: Array, class_prior: object, columns: Sequence[Any]) -> None:
    """Raise LabelError for a path among other labels, and for an unknown label that is ruled out."""
    entries = as_objects(values[labeled])
    rows = list(zip(np.flatnonzero(labeled).tolist(), entries, strict=True))
    paths = [(row, entry) for row, entry in rows if isinstance(entry, tuple)]
    if paths and not all(isinstance(entry, tuple) or is_partial(entry) for entry in entries):
        row, path = paths[0]
        raise LabelError(LabelErrorKind.PATH_WITHOUT_TAXONOMY, row=row, entry=path, example=example_set(path))
    ruled_out = [(row, name) for row, entry in rows if isinstance(entry, RuledOut) for name in entry.labels]
    known = class_names((entry for entry in entries if not isinstance(entry, RuledOut)), None) if ruled_out else []
    known += [*columns, *(class_prior if isinstance(class_prior, Mapping) else ())]
    for row, name in ruled_out:
        if name not in known:
            raise LabelError(LabelErrorKind.UNKNOWN_RULED_OUT, row=row, name=name, hint=did_you_mean(name, known))


def _check_spelling(stated: list[Any], omitted: list[Any]) -> None:
    """Raise PriorError for a stated name without labels that resembles a labelled class without a size."""
    for name in stated[:_MOST_NAMES]:
        near = closest_name(name, (other for other in omitted if have_same_numbers(name, other)))
        if near is not None:
            raise PriorError(PriorErrorKind.MISSPELLED_CLASS, name=name, near=near)


def _check_in_tree(names: list[Any], tree: Taxonomy) -> None:
    """Raise PriorError for a name in class_prior that is not in the taxonomy."""
    for name in names:
        try:
            tree.leaf_of(name)
        except ValueError as error:
            raise PriorError(PriorErrorKind.UNKNOWN_NODE, name=name, reason=str(error)) from None


def sorted_names(names: list[Any]) -> list[Any]:
    """Sorted names; raises LabelError if they are of types that cannot be compared."""
    try:
        return sorted(names)
    except TypeError as error:
        types = ", ".join(sorted({type(name).__name__ for name in names}))
        raise LabelError(LabelErrorKind.MIXED_TYPES, types=types) from error


def _class_array(names: list[Any], values: Array) -> Array:
    """Names as an array of the type of the labels, where it can hold them."""
    if any(isinstance(name, tuple) for name in names):
        return object_array(names)
    if values.dtype.kind == "O":
        types = {type(name) for name in names}
        return np.array(names, dtype=object if types == {str} or len(types) > 1 else None)
    classes = np.array(names)
    same = classes.astype(values.dtype) if values.dtype.kind in "iufb" and classes.dtype.kind in "iufb" else classes
    return same if np.array_equal(same, classes) else classes


def warn_similar_names(values: Array, labeled: Array, class_prior: object, evidence: Sequence[Any] = ()) -> None:
    """Without a taxonomy, warn of names without full labels that resemble a labelled one, and of inner nodes.

    `evidence` has the names of classes in scores or guesses, which need no labels.
    """
    full: dict[Any, None] = {}
    in_sets: dict[Any, None] = {}
    for entry in as_objects(values[labeled]):
        if not isinstance(entry, RuledOut):
            (in_sets if len(names_in(entry)) > 1 else full).update(dict.fromkeys(names_in(entry)))
    stated = dict.fromkeys(class_prior) if isinstance(class_prior, Mapping) else {}
    shown = dict.fromkeys(evidence)
    for name in sorted((name for name in in_sets | stated | shown if name not in full), key=repr)[:_MOST_NAMES]:
        near = find_misspelled(name, full if name in shown else full | shown)
        if near is not None:
            kind = LabelWarningKind.SIMILAR_IN_Y if name in in_sets else LabelWarningKind.SIMILAR_IN_PRIOR
            kind = LabelWarningKind.SIMILAR_IN_EVIDENCE if name in shown else kind
            warnings.warn(LabelWarning(kind, name=name, near=near), stacklevel=user_stacklevel() - 1)
    warn_inner_nodes([*full, *in_sets, *shown])


def warn_inner_nodes(names: Iterable[Any]) -> None:
    """Without a taxonomy, warn if a label such as "hot" stands beside "hot/tea", once."""
    paths = {tuple(name.split("/")) if isinstance(name, str) else name: name for name in names}
    paths = {path: name for path, name in paths.items() if isinstance(path, tuple)}
    above = {path[:k]: name for path, name in paths.items() for k in range(1, len(path))}
    inner = next((path for path in paths if path in above), None)
    if inner is not None:
        warning = LabelWarning(LabelWarningKind.INNER_NODE, name=paths[inner], near=above[inner])
        warnings.warn(warning, stacklevel=user_stacklevel() - 1)


def with_none(classes: Array) -> Array:
    """Class names, and last the mark of rows without a class: -1, "" or None, as in y.

    >>> with_none(np.array(["tea", "milk"])).tolist(), with_none(np.array([0, 1])).tolist()
    (['tea', 'milk', ''], [0, 1, -1])
    """
    if classes.dtype.kind in "iu" and -1 not in classes:
        return np.append(classes.astype(np.int64), -1)
    if classes.dtype.kind == "U":
        return np.append(classes, "")
    names = classes.tolist()
    return object_array([*names, "" if all(isinstance(name, str) for name in names) else None])
