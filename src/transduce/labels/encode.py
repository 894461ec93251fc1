"""What users pass to an estimator, checked and turned into names, codes and weights; each complaint is one sentence."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.labels.partial import RuledOut, is_open, leaf_names, leaves_under, members_of, named_in
from transduce.suggest import did_you_mean, find_misspelled
from transduce.taxonomy import Taxonomy

Array = NDArray[Any]

_LOOKED_AT = 100
"""Names without labels that are looked at for misspellings, at most."""


def check_above_zero(estimator: object, *names: str) -> None:
    """See that these parameters are numbers above 0."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name} must be a number above 0, but is {value!r}.")


def check_whole(estimator: object) -> None:
    """See that max_iter and n_jobs are whole numbers that make sense."""
    max_iter, n_jobs = getattr(estimator, "max_iter"), getattr(estimator, "n_jobs")  # noqa: B009
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter must be a whole number, 1 or more, but is {max_iter!r}.")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, but is {n_jobs!r}.")


def check_rows(n_rows: int, values: Array, labeled: Array) -> None:
    """See that labels fit the rows, and that some row has one."""
    if values.size != n_rows:
        raise ValueError(f"X has {n_rows} rows and y {values.size}: inconsistent numbers of samples. Match them.")
    if not labeled.any():
        raise ValueError(
            "y must label at least one row, but every row is unlabelled. Label a few, each class if you can."
        )
    if values.dtype.kind == "f":
        kinds = values[labeled]
        if np.any(np.isinf(kinds)):
            raise ValueError("y contains inf or -inf, which is no label. Replace it.")
        if np.any(kinds != np.floor(kinds)):
            raise ValueError(
                "Unknown label type: y is continuous. A classifier needs classes; pass names or whole numbers."
            )


def classes_and_tree(
    values: Array, labeled: Array, prior: object, taxonomy: object, columns: Sequence[Any] = ()
) -> tuple[Array, Taxonomy]:
    """Classes from the labels, the names of the prior and of columns, sorted, and the tree they are leaves of.

    All leaves under an inner node that a label leaves open are classes too.
    """
    tree = None if taxonomy is None else Taxonomy.create(taxonomy)
    entries = [*plain(values[labeled]), *columns]
    if tree is None:
        _check_flat(values, labeled, prior, columns)
    names = named_in(entries, tree)
    if isinstance(prior, Mapping):
        named = [name for name in prior if name not in names and (tree is None or not tree.is_inner(name))]
        _check_in_tree(named, tree)
        names += named
    if tree is None:
        classes = class_array(sorted_names(names), values)
        return classes, Taxonomy.flat(classes.tolist())
    called = leaf_names(tree, names)
    under = np.flatnonzero(leaves_under(entries, tree))
    leaf_of = {called[k]: k for k in (*(tree.leaf_of(name) for name in names), *under)}
    names = sorted_names(list(leaf_of))
    return class_array(names, values), tree.reorder([tree.labels[leaf_of[name]] for name in names])


def _check_flat(values: Array, labeled: Array, prior: object, columns: Sequence[Any]) -> None:
    """Without a tree, see that no path stands among other labels, and that what is ruled out is a class."""
    rows, entries = np.flatnonzero(labeled).tolist(), plain(values[labeled])
    paths = [isinstance(entry, tuple) for entry in entries]
    if any(paths) and not all(path or is_open(entry) for path, entry in zip(paths, entries, strict=True)):
        row, entry = next(pair for pair, path in zip(zip(rows, entries, strict=True), paths, strict=True) if path)
        raise ValueError(
            f"row {row} of y is {entry!r}, a list or tuple among other labels. Write a set, {set_of(entry)}, for a row "
            "with several candidates; a path needs taxonomy=."
        )
    if not any(isinstance(entry, RuledOut) for entry in entries):
        return
    known = named_in((entry for entry in entries if not isinstance(entry, RuledOut)), None)
    known += [*columns, *(prior if isinstance(prior, Mapping) else ())]
    for row, entry in zip(rows, entries, strict=True):
        strange = [] if not isinstance(entry, RuledOut) else [name for name in entry.labels if name not in known]
        if strange:
            raise ValueError(
                f"row {row} of y rules out {strange[0]!r}, which no label, no set of candidates and no class_prior "
                f"names.{did_you_mean(strange[0], known)} Correct it, or leave it out."
            )


def _check_in_tree(names: list[Any], tree: Taxonomy | None) -> None:
    """See that names in class_prior that are no branches are classes of the tree."""
    for name in names if tree is not None else ():
        try:
            tree.leaf_of(name)  # type: ignore[union-attr]
        except ValueError as error:
            raise ValueError(f"class_prior names what is neither a class nor a branch: {error}") from None


def set_of(entry: tuple[Any, ...]) -> str:
    """A tuple written as a set.

    >>> set_of(("tea", "coffee"))
    "{'tea', 'coffee'}"
    """
    return "{" + ", ".join(map(repr, entry)) + "}"


def warn_similar_names(values: Array, labeled: Array, prior: object, stacklevel: int) -> None:
    """Without a tree: ask whether a name without labels is a misspelling, and whether a label is an inner node."""
    full: dict[Any, None] = {}
    named: dict[Any, None] = {}
    for entry in plain(values[labeled]):
        if not isinstance(entry, RuledOut):
            (named if len(members_of(entry)) > 1 else full).update(dict.fromkeys(members_of(entry)))
    stated = dict.fromkeys(prior) if isinstance(prior, Mapping) else {}
    for name in sorted((name for name in named | stated if name not in full), key=repr)[:_LOOKED_AT]:
        near = find_misspelled(name, full)
        if near is not None:
            where = "y has it among candidates only" if name in named else "only class_prior names it"
            warnings.warn(
                f"{name!r} is taken for a class, but no row is labelled with it: {where}. If it is a misspelling of "
                f"{near!r}, which has labels, correct it.",
                UserWarning,
                stacklevel=stacklevel,
            )
    warn_inner_nodes([*full, *named], stacklevel + 1)


def warn_inner_nodes(names: Iterable[Any], stacklevel: int) -> None:
    """Without a tree, labels such as "hot" beside "hot/tea" are classes of their own: say so, once."""
    paths = {tuple(name.split("/")) if isinstance(name, str) else name: name for name in names}
    paths = {path: name for path, name in paths.items() if isinstance(path, tuple)}
    above = {path[:k]: name for path, name in paths.items() for k in range(1, len(path))}
    inner = [path for path in paths if path in above]
    if inner:
        warnings.warn(
            f"{paths[inner[0]]!r} in y is taken for a class of its own beside {above[inner[0]]!r}. Pass taxonomy= to "
            "make it a partial label, which leaves open what is under it.",
            UserWarning,
            stacklevel=stacklevel,
        )


def can(thing: object, *verbs: str) -> bool:
    """Whether this is an object, not a class or a name, that has these methods."""
    return not isinstance(thing, (str, type)) and all(callable(getattr(thing, verb, None)) for verb in verbs)


def sorted_names(names: list[Any]) -> list[Any]:
    """Names in order, if they have one."""
    try:
        return sorted(names)
    except TypeError as error:
        kinds = ", ".join(sorted({type(name).__name__ for name in names}))
        raise ValueError(
            f"names of classes, in y and in class_prior, must be of one kind that can be sorted, but are {kinds}. "
            "Convert them."
        ) from error


def plain(values: Array) -> list[Any]:
    """Labels as hashable Python objects; lists become paths."""
    items = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    return [tuple(value) if isinstance(value, list) else value for value in items]


def class_array(names: list[Any], values: Array) -> Array:
    """Names as an array of the kind that the labels came in."""
    if any(isinstance(name, tuple) for name in names):
        classes = np.empty(len(names), dtype=object)
        classes[:] = names
        return classes
    if values.dtype.kind == "O":
        kinds = {type(name) for name in names}
        return np.array(names, dtype=object if kinds == {str} or len(kinds) > 1 else None)
    classes = np.array(names)
    same = classes.astype(values.dtype) if values.dtype.kind in "iufb" and classes.dtype.kind in "iufb" else classes
    return same if np.array_equal(same, classes) else classes


def class_kind(kinds: Sequence[str]) -> Any:
    """The type of all labels, where blocks of them came in several; None for objects.

    >>> class_kind(["<i8", "<i4"]), class_kind(["<U3", "|O"])
    (dtype('int64'), None)
    """
    types = [np.dtype(kind) for kind in kinds]
    if any(one.kind == "O" for one in types) or len({one.kind in "iufb" for one in types}) > 1:
        return None
    return np.result_type(*types)


def row_weights(sample_weight: Any, n_rows: int, labeled: Array, whole: bool = True) -> Array | None:
    """Sample weights, one a row, if there are any; some labelled row has one above 0, where these are all rows."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("sample_weight must be numbers, one a row. Correct it, or leave it out.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number for each of the {n_rows} rows, but has shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be finite and 0 or more. Correct it, or leave it out.")
    if whole and not weights[labeled].any():
        raise ValueError(
            "sample_weight must be above 0 for a labelled row, but every weight is zero. Give one a weight."
        )
    return weights
