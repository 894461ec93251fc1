"""Fits with some labels hidden: a hidden row stays in training as an unlabelled one, and its label changes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from transduce.arrays import Array, IntArray
from transduce.class_prior.spec import Size, read_prior, read_sizes
from transduce.class_prior.stated_sizes import topmost, with_units
from transduce.history import FitStatus
from transduce.labels.classes import as_objects
from transduce.labels.encode import find_full_labels
from transduce.labels.missing import AUTO, find_labeled
from transduce.labels.partial import read_matrix
from transduce.taxonomy import Taxonomy


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
    n_rows = n_before, n_after, len(values)
    model.set_params(**{key: scale_prior(prior, *n_rows, taxonomy) for key, prior in priors.items()})
    model = model.fit(X, values) if sample_weight is None else model.fit(X, values, sample_weight=sample_weight)
    classifier = model
    while hasattr(classifier, "steps"):  # a pipeline
        classifier = classifier.steps[-1][1]
    if getattr(classifier, "_status", None) is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt  # an unfinished model must not be scored
    return model


def scale_prior(class_prior: Any, n_before: int, n_after: int, n_total: int, taxonomy: Any = None) -> Any:
    """Scale counts in a class prior from `n_before` to `n_after` unlabelled rows; fractions stay the same.

    Exact counts become exact fractions, and ranges of counts are rounded outwards. Counts of all `n_total` rows stay
    the same. If there were no unlabelled rows, the prior becomes "labeled".
    """
    if n_before == n_after:
        return class_prior
    if n_before == 0:
        return "labeled"
    prior: Any = read_prior(class_prior)
    if isinstance(prior, str):
        return prior
    is_mapping = isinstance(prior, Mapping)
    try:
        sizes = read_sizes(prior, list(prior) if is_mapping else range(len(prior)))
        outer = _topmost(sizes, taxonomy) if is_mapping and taxonomy is not None else list(sizes)
        sizes = with_units(sizes, outer, n_before, n_total)
    except (TypeError, ValueError):  # the fit reports what is invalid
        return prior
    counts = [sizes[name].low for name in outer if sizes[name].is_count]
    if len(counts) == len(outer) and (sum(counts) == n_total or (not is_mapping and sum(counts) != n_before)):
        return prior
    scaled = {name: _scale_size(size, n_before, n_after) for name, size in sizes.items()}
    return scaled if is_mapping else list(scaled.values())


def _topmost(names: Iterable[Any], taxonomy: Any) -> list[Any]:
    """Names of classes and branches that are in no other branch among them."""
    tree = Taxonomy.create(taxonomy)
    leaves = {name: tree.below(name) if tree.is_inner(name) else [tree.leaf_of(name)] for name in names}
    members = np.zeros((len(leaves), tree.n_classes), bool)
    for each, inside in zip(members, leaves.values(), strict=True):
        each[inside] = True
    return [name for name, is_top in zip(leaves, topmost(members), strict=True) if is_top]


def _scale_size(size: Size, n_before: int, n_after: int) -> Size:
    """An exact or rough count as a fraction of the rows, a range of counts as a wider range of counts."""
    if not size.in_rows or size.high == 0:
        return size
    if size.low == size.high:
        return replace(size, low=size.low / n_before, high=size.high / n_before, in_rows=False, is_plain=False)
    factor = n_after / n_before
    return replace(size, low=np.floor(size.low * factor + 1e-9), high=np.ceil(size.high * factor - 1e-9))


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
