"""Missing labels: -1, None, NaN, nulls of pandas and polars, "" and blank strings mean unlabelled."""

import warnings
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from transduce.arrays import Array, BoolArray, object_array
from transduce.errors import LabelError, LabelErrorKind, LabelWarning, LabelWarningKind, user_stacklevel
from transduce.labels.partial import example_set, is_partial, names_in
from transduce.suggest import short_repr

AUTO = "auto"


def find_labeled(y: Any, unlabeled: object = AUTO, warn: bool = True) -> tuple[Array, Array]:
    """Values of y as an array, and a mask of those that are labels.

    Unless `unlabeled` is "auto", a row is unlabelled if its value is missing or is `unlabeled`. `warn` says whether to
    warn if y holds only -1 and 1.
    """
    if isinstance(unlabeled, (list, Mapping, Set)) or (hasattr(unlabeled, "__array__") and np.ndim(unlabeled)):
        raise ValueError(f"unlabeled must be 'auto', None or one value, but is {short_repr(unlabeled)}.")
    values = _one_dimension(y)
    labeled = ~_missing(values)
    auto = isinstance(unlabeled, str) and unlabeled == AUTO
    if values.dtype.kind == "O":
        _check_sets(values, unlabeled, auto)
    if not auto:
        if unlabeled is not None:
            known = zip(values.tolist(), labeled.tolist(), strict=True)
            labeled &= np.array([is_there and bool(value != unlabeled) for value, is_there in known], dtype=bool)
        return values, labeled
    if warn and values.dtype.kind in "iufbO":
        warn_sign_labels((values[labeled] if values.dtype.kind == "O" else np.unique(values[labeled])).tolist())
    return values, labeled & ~_marked(values)


def _marked(values: Array) -> Array:
    """Mask of the values that mark unlabelled rows, beside missing values."""
    if values.dtype.kind in "iufb":
        return np.asarray(values == -1)
    marked = np.array([_is_missing_label(value) for value in values.tolist()], dtype=bool)
    if values.dtype.kind == "U":  # as numpy writes -1 and NaN among strings
        marked |= (values == "-1") | (values == "nan")
    return marked


def _check_sets(values: Array, unlabeled: object, auto: bool) -> None:
    """Raise LabelError if a partial label contains a missing label."""
    for row, value in enumerate(values.tolist()):
        for name in names_in(value) if is_partial(value) else ():
            if is_missing(name) or (_is_missing_label(name) if auto else name == unlabeled):
                raise LabelError(LabelErrorKind.MISSING_IN_SET, row=row, name=name, entry=value)


def _one_dimension(y: Any) -> Array:
    if hasattr(y, "to_numpy"):
        y = y.to_numpy(dtype=object) if _is_nullable(y) else y.to_numpy()
    if isinstance(y, (Mapping, Set, str)) or not (hasattr(y, "__array__") or hasattr(y, "__iter__")):
        raise LabelError(LabelErrorKind.NOT_A_LIST, type=type(y).__name__)
    values = np.asarray(y) if hasattr(y, "__array__") else _from_list(y)
    if values.ndim == 2 and values.shape[1] == 1:
        message = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(message, DataConversionWarning, stacklevel=user_stacklevel() - 1)
        values = values.ravel()
    if values.ndim != 1:
        raise LabelError(LabelErrorKind.SHAPE, shape=values.shape)
    return values


def _is_nullable(y: Any) -> bool:
    """Whether y is a pandas Series whose nulls survive only as objects."""
    dtype = getattr(y, "dtype", np.dtype(object))
    return type(y).__module__.startswith("pandas") and not isinstance(dtype, np.dtype)


def _from_list(y: Any) -> Array:
    items = list(y)
    _check_arrays(items)
    if any(item is None or isinstance(item, (str, tuple, list)) for item in items):
        return object_array(items)
    return np.asarray(items)


def _check_arrays(items: list[Any]) -> None:
    """Raise LabelError if an entry is an array, which is neither a label nor a set."""
    for row, item in enumerate(items):
        if isinstance(item, np.ndarray) and item.size != 1:
            raise LabelError(LabelErrorKind.ARRAY_ENTRY, row=row, example=example_set(item.ravel()[:2].tolist()))


def _missing(values: Array) -> BoolArray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype.kind == "O":
        _check_arrays(values.tolist())
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    return np.zeros(values.size, dtype=bool)


def is_missing(value: object) -> bool:
    """Whether a value is None, or not equal to itself as NaN and NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True


def _is_missing_label(value: object) -> bool:
    """Whether a value is a blank string or -1."""
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) and value == -1


def warn_sign_labels(labels: list[Any]) -> None:
    """Warn if -1 and 1 are the only values of y: -1 may be a class."""
    if all(isinstance(label, (int, float, np.number)) for label in labels) and set(labels) == {-1, 1}:
        warnings.warn(LabelWarning(LabelWarningKind.SIGNS), stacklevel=user_stacklevel() - 1)
