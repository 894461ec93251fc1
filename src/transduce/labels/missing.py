"""Labels as users write them: which rows are labelled, which classes there are, and a code for each labelled row.

Unlabelled is what people write for it: -1, None, NaN, pandas and polars nulls, "" and blanks. Classes come sorted.
"""

import warnings
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from transduce.labels.partial import is_open, members_of

Array = NDArray[Any]

AUTO = "auto"


def find_labeled(y: Any, unlabeled: object = AUTO, whole: bool = True) -> tuple[Array, Array]:
    """Values of y as an array, and which of them are labels.

    With "auto" every common marker counts as unlabelled; otherwise only missing values and the one given do, and with
    None only missing values. Where these are not the `whole` of the labels, nobody is warned of what they hold.

    >>> values, labeled = find_labeled(["tea", "", None, "coffee"])
    >>> labeled
    array([ True, False, False,  True])
    >>> find_labeled([1, 0, -1])[1], find_labeled([1, 0, -1], unlabeled=None)[1]
    (array([ True,  True, False]), array([ True,  True,  True]))
    """
    values = _one_dimension(y)
    labeled = ~_missing(values)
    if values.dtype.kind == "O":
        _check_members(values, unlabeled)
    if not isinstance(unlabeled, str) or unlabeled != AUTO:
        if unlabeled is not None:
            known = zip(values.tolist(), labeled.tolist(), strict=True)
            labeled &= np.array([is_there and bool(value != unlabeled) for value, is_there in known], dtype=bool)
        return values, labeled
    if values.dtype.kind in "iufb":
        minus = values == -1
        if whole:
            warn_sign_labels(np.unique(values[labeled]).tolist())
    else:
        minus = np.array([_is_marker(value) for value in values.tolist()], dtype=bool)
        if values.dtype.kind == "U":  # what numpy makes of -1 and NaN among names
            minus |= (values == "-1") | (values == "nan")
        if values.dtype.kind == "O" and whole:
            warn_sign_labels([value for value, known in zip(values.tolist(), labeled, strict=True) if known])
    return values, labeled & ~minus


def _check_members(values: Array, unlabeled: object) -> None:
    """See that sets of candidates, and labels ruled out, hold labels."""
    auto = isinstance(unlabeled, str) and unlabeled == AUTO
    for row, value in enumerate(values.tolist()):
        for member in members_of(value) if is_open(value) else ():
            if _is_missing(member) or (_is_marker(member) if auto else member == unlabeled):
                raise ValueError(
                    f"row {row} of y names {member!r} in {value!r}, but that marks unlabelled rows and is no class. "
                    "Leave it out, or use None alone for an unlabelled row."
                )


def _one_dimension(y: Any) -> Array:
    if hasattr(y, "to_numpy"):
        y = y.to_numpy(dtype=object) if _is_nullable(y) else y.to_numpy()
    if isinstance(y, (Mapping, Set, str)) or not (hasattr(y, "__array__") or hasattr(y, "__iter__")):
        raise ValueError(f"y must be a list or array with one label a row, but is a {type(y).__name__}.")
    values = np.asarray(y) if hasattr(y, "__array__") else _from_list(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=4)
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, one label a row, but has shape {values.shape}.")
    return values


def _is_nullable(y: Any) -> bool:
    """Series of pandas' own nullable types, or of objects: their nulls survive only as objects."""
    return y.__class__.__module__.startswith("pandas") and not isinstance(
        getattr(y, "dtype", np.dtype(object)), np.dtype
    )


def _from_list(y: Any) -> Array:
    items = list(y)
    _check_arrays(items)
    if any(item is None or isinstance(item, str) for item in items) or any(isinstance(i, (tuple, list)) for i in items):
        values = np.empty(len(items), dtype=object)
        values[:] = items
        return values
    return np.asarray(items)


def _check_arrays(items: list[Any]) -> None:
    """See that no entry is an array, which is neither a label nor a set."""
    for row, item in enumerate(items):
        if isinstance(item, np.ndarray) and item.size != 1:
            example = "{" + ", ".join(map(repr, item.ravel()[:2].tolist())) + "}"
            raise ValueError(
                f"row {row} of y is an array, which is no label. Write a set, such as {example}, for a row with "
                "several candidates."
            )


def _missing(values: Array) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype.kind == "O":
        _check_arrays(values.tolist())
        return np.array([_is_missing(value) for value in values.tolist()], dtype=bool)
    return np.zeros(values.size, dtype=bool)


def _is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT: all that is not equal to itself, or cannot say."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA refuses to be a truth value
        return True


def _is_marker(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) and value == -1


def warn_sign_labels(labels: list[Any]) -> None:
    """Ask whether -1 is a class, where these labels are all there are."""
    if all(isinstance(label, (int, float, np.number)) for label in labels) and set(labels) == {-1, 1}:
        warnings.warn(
            "y holds only -1 and 1, and -1 is read as unlabelled. If it is a class, rename it, or pass unlabeled=None.",
            UserWarning,
            stacklevel=4,
        )
