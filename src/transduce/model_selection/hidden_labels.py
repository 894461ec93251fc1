"""Fits with some labels hidden: a hidden row stays in training as an unlabelled one, and its label changes nothing."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from transduce.arrays import Array, IntArray
from transduce.class_prior.spec import is_in_rows, read_prior
from transduce.history import FitStatus
from transduce.labels.classes import as_objects
from transduce.labels.encode import find_full_labels
from transduce.labels.missing import AUTO, find_labeled
from transduce.labels.partial import read_matrix


def hide(y: Any, rows: Any, unlabeled: object = AUTO) -> Array:
    """Copy y with some rows unlabelled.

    Hidden rows are -1 among integers, NaN among floats and "" in an array of strings, otherwise None.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or boolean matrix of partial labels
        Labels.
    rows : array-like
        Indices of the rows to hide, or a boolean mask.
    unlabeled : object, default="auto"
        As in TransductiveClassifier.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> hide(["tea", "coffee", ""], [1]).tolist()
    ['tea', None, '']
    """
    values, _ = find_labeled(read_matrix(y)[0], unlabeled)
    indices = _indices(rows, values.size)
    if not indices.size:
        return values.copy()
    missing = _missing_label(values.dtype.kind, unlabeled)
    hidden = values.astype(object) if missing is None else values.copy()
    hidden[indices] = missing
    return hidden


def fit_hidden(estimator: Any, X: Any, y: Any, rows: Any, sample_weight: Any = None, **params: Any) -> Any:
    """Fit a clone of the estimator with these parameters on all rows, with the labels of these rows hidden."""
    unlabeled, taxonomy = label_parameters(estimator)
    values = hide(y, rows, unlabeled)
    n_before, n_after = (int(np.sum(~find_full_labels(labels, unlabeled, taxonomy)[1])) for labels in (y, values))
    model = clone(estimator).set_params(**clone(params, safe=False))
    priors = _parameters(model, "class_prior")
    model.set_params(**{key: scale_prior(prior, n_before, n_after) for key, prior in priors.items()})
    model = model.fit(X, values) if sample_weight is None else model.fit(X, values, sample_weight=sample_weight)
    classifier = model
    while hasattr(classifier, "steps"):  # a pipeline
        classifier = classifier.steps[-1][1]
    if getattr(classifier, "_status", None) is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt  # an unfinished model must not be scored
    return model


def scale_prior(class_prior: Any, n_before: int, n_after: int) -> Any:
    """Scale counts in a class prior from `n_before` to `n_after` unlabelled rows; fractions stay the same.

    Ranges of counts are rounded outwards. If there were no unlabelled rows, the prior becomes "labeled".
    """
    if n_before == n_after:
        return class_prior
    if n_before == 0:
        return "labeled"
    prior: Any = read_prior(class_prior)
    if isinstance(prior, str) or not isinstance(prior, Iterable):
        return prior
    sizes = list(prior.values()) if isinstance(prior, Mapping) else list(prior)
    try:
        has_ranges = any(size is None or np.ndim(size) == 1 for size in sizes)
        if not has_ranges and sum(sizes) == n_before and all(float(size).is_integer() for size in sizes):
            sizes = [float(size) / n_before for size in sizes]
        elif (has_ranges or isinstance(prior, Mapping)) and is_in_rows(sizes):  # sums differ if there are inner nodes
            sizes = [_scale_size(size, n_after / n_before) for size in sizes]
    except (TypeError, ValueError):  # invalid sizes, which the fit reports
        return prior
    return dict(zip(prior, sizes, strict=True)) if isinstance(prior, Mapping) else sizes


def label_parameters(estimator: Any) -> tuple[Any, Any]:
    """Return `unlabeled` and `taxonomy` of an estimator, or of the step of a pipeline that has them."""
    defaults = {"unlabeled": AUTO, "taxonomy": None}
    unlabeled, taxonomy = (next(iter(_parameters(estimator, name).values()), defaults[name]) for name in defaults)
    return unlabeled, taxonomy


def class_codes(*labels: Array) -> tuple[list[Any], Array]:
    """Return the distinct labels in order of appearance, and the index of each label among them."""
    index: dict[Any, int] = {}
    codes = [index.setdefault(name, len(index)) for some in labels for name in as_objects(some)]
    return list(index), np.array(codes, dtype=np.int64)


def _parameters(estimator: Any, name: str) -> dict[str, Any]:
    """Return the parameters of this name, of the estimator and of all nested ones."""
    found = estimator.get_params(deep=True).items()
    return {key: value for key, value in found if key == name or key.endswith(f"__{name}")}


def _indices(rows: Any, n_rows: int) -> IntArray:
    indices = np.asarray(rows)
    if indices.dtype == np.bool_ and indices.shape == (n_rows,):
        return np.flatnonzero(indices)
    if indices.size and (indices.dtype.kind not in "iu" or indices.min() < -n_rows or indices.max() >= n_rows):
        raise ValueError(f"rows must be indices below {n_rows} or a mask of that length, but are {rows!r}.")
    return indices.astype(np.int64)


def _missing_label(kind: str, unlabeled: object) -> object:
    """Return a missing label for an array of this kind; None if it must be an array of objects."""
    if kind in "fmM":
        return np.nan if kind == "f" else "NaT"
    auto = isinstance(unlabeled, str) and unlabeled == AUTO
    return {"i": -1, "U": ""}.get(kind) if auto else None


def _scale_size(size: Any, factor: float) -> Any:
    if size is None:
        return None
    low, high = np.ravel(size)[[0, -1]] * factor
    if np.ndim(size) == 0:
        return int(low) if low == np.floor(low) else float(low)
    return int(np.floor(low + 1e-9)), float(high) if np.isinf(high) else int(np.ceil(high - 1e-9))
