"""Labels hidden and models fitted without them: a hidden row stays in training, as one of the unlabelled.

No figure that a fit sees depends on a hidden label: class sizes given as counts are scaled to the larger number of
unlabelled rows, n(y) (n + hidden) / n, and never by the classes of the hidden rows.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from transduce.class_prior.spec import is_in_rows, read_prior
from transduce.history import FitStatus
from transduce.labels.classes import as_objects
from transduce.labels.encode import full_labels
from transduce.labels.missing import AUTO, find_labeled
from transduce.labels.partial import read_matrix
from transduce.taxonomy import Taxonomy

Array = NDArray[Any]


def hide(y: Any, rows: Any, unlabeled: object = AUTO) -> Array:
    """Copy y as an array, with these rows (indices or a mask) unlabelled.

    The marker is one that the kind of y can hold: -1 among whole numbers, NaN, "" among texts, else None.

    >>> hide([2, 1, 2, -1], [0])
    array([-1,  1,  2, -1])
    >>> hide(["tea", "coffee", ""], [1]).tolist()
    ['tea', None, '']
    """
    values, _ = find_labeled(read_matrix(y)[0], unlabeled)
    mask = _mask(rows, values.size)
    if not mask.any():
        return values.copy()
    marker = _marker(values.dtype.kind, unlabeled)
    hidden = values.astype(object) if marker is None else values.copy()
    hidden[mask] = marker
    return hidden


def fit_hidden(estimator: Any, X: Any, y: Any, rows: Any, sample_weight: Any = None) -> Any:
    """Fit a copy of the estimator on all rows, with the labels of these rows hidden.

    A Ctrl-C, which would end this fit only and keep what it has, ends whatever it is part of.

    >>> from transduce import TransductiveClassifier
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> clf = TransductiveClassifier(class_prior=[1, 1])  # counts of the two unlabelled rows
    >>> model = fit_hidden(clf, X, ["tea", "tea", "coffee", "coffee", "", ""], [1, 3])
    >>> model.transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    """
    reading = parameter(estimator, "unlabeled", AUTO), parameter(estimator, "taxonomy", None)
    values = hide(y, rows, reading[0])
    before, after = (int(np.sum(~find_certain(labels, *reading)[1])) for labels in (y, values))
    model = clone(estimator)
    priors = _parameters(model, "class_prior")
    model.set_params(**{key: scale_prior(prior, before, after) for key, prior in priors.items()})
    model = model.fit(X, values) if sample_weight is None else model.fit(X, values, sample_weight=sample_weight)
    if _was_interrupted(model):
        raise KeyboardInterrupt
    return model


def _was_interrupted(model: Any) -> bool:
    """Whether Ctrl-C ended the fit, of a model or of the last step of a pipeline."""
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return getattr(model, "termination_condition_", None) == FitStatus.INTERRUPTED.value


def scale_prior(class_prior: Any, n_before: int, n_after: int) -> Any:
    """Make a class prior for `n_before` unlabelled rows one for `n_after`: counts in proportion, fractions as they are.

    Ranges of counts are rounded outwards. Without any unlabelled row the prior spoke of nothing, and the shares of the
    labelled rows take its place.

    >>> scale_prior([30, 70], 100, 110)
    [0.3, 0.7]
    >>> scale_prior({"tea": (20, 35), "coffee": None}, 100, 110)
    {'tea': (22, 39), 'coffee': None}
    >>> scale_prior({"tea": (0.2, 0.35), "coffee": None}, 100, 110)
    {'tea': (0.2, 0.35), 'coffee': None}
    """
    if n_before == n_after:
        return class_prior
    if n_before == 0:
        return "labeled"
    prior: Any = read_prior(class_prior)
    if isinstance(prior, str) or not isinstance(prior, Iterable):
        return prior
    named = isinstance(prior, Mapping)
    entries = list(prior.values()) if isinstance(prior, Mapping) else list(prior)
    if any(value is None or np.ndim(value) == 1 for value in entries):
        scaled = [_scale_range(value, n_after / n_before) for value in entries] if _are_counts(entries) else entries
    elif _sum_to(entries, n_before):
        scaled = [float(value) / n_before for value in entries]
    elif named and _are_counts(entries):  # of inner nodes too, which need not sum to anything
        scaled = [_scale_range(value, n_after / n_before) for value in entries]
    else:
        return prior
    return dict(zip(prior, scaled, strict=True)) if named else scaled


def find_certain(y: Any, unlabeled: object = AUTO, taxonomy: object = None) -> tuple[Array, Array]:
    """Values of y as an array, and which of them are labels that name one class.

    Sets of candidates, labels ruled out and inner nodes of the taxonomy are no truth to score a row by; but a set of
    one, and an inner node over one leaf, are the label that they leave.

    >>> find_certain(["tea", frozenset({"tea", "coffee"}), ""])[1]
    array([ True, False, False])
    """
    values, labeled = find_labeled(read_matrix(y)[0], unlabeled)
    if taxonomy is None and values.dtype.kind != "O":
        return values, labeled
    entries = as_objects(values)
    found, full = full_labels(entries, labeled, None if taxonomy is None else Taxonomy.create(taxonomy))
    other = [row for row in np.flatnonzero(full) if found[row] is not entries[row]]
    if other:
        values = values.astype(object)
        for row in other:
            values[row] = found[row]
    return values, full


def parameter(estimator: Any, name: str, default: object) -> Any:
    """Find a parameter of an estimator, or of the step of a pipeline that has it."""
    return next(iter(_parameters(estimator, name).values()), default)


def class_codes(*labels: Array) -> tuple[list[Any], Array]:
    """Names of the classes in the order they come, and the index of each label's.

    >>> class_codes(np.array(["tea", "coffee", "tea"]), np.array(["cocoa"]))
    (['tea', 'coffee', 'cocoa'], array([0, 1, 0, 2]))
    """
    index: dict[Any, int] = {}
    codes = [index.setdefault(name, len(index)) for some in labels for name in as_objects(some)]
    return list(index), np.array(codes, dtype=np.int64)


def _parameters(estimator: Any, name: str) -> dict[str, Any]:
    """All parameters of this name, at any depth."""
    found = estimator.get_params(deep=True).items()
    return {key: value for key, value in found if key == name or key.endswith(f"__{name}")}


def _mask(rows: Any, n_rows: int) -> NDArray[np.bool_]:
    picked = np.asarray(rows)
    if picked.dtype == np.bool_ and picked.shape == (n_rows,):
        return picked
    if picked.size and (picked.dtype.kind not in "iu" or picked.min() < -n_rows or picked.max() >= n_rows):
        raise ValueError(f"rows must be indices below {n_rows} or a mask of that length, but are {rows!r}. Check them.")
    mask = np.zeros(n_rows, dtype=bool)
    mask[picked.astype(np.int64)] = True
    return mask


def _marker(kind: str, unlabeled: object) -> object:
    """What an array of this kind can hold and is read as unlabelled; None if only an array of objects can."""
    if kind in "fmM":
        return np.nan if kind == "f" else "NaT"
    auto = isinstance(unlabeled, str) and unlabeled == AUTO
    return {"i": -1, "U": ""}.get(kind) if auto else None


def _sum_to(entries: Any, n_rows: int) -> bool:
    """Whether these are counts of so many rows; what is no numbers at all is left for the estimator to refuse."""
    try:
        values = np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return values.ndim == 1 and bool(np.all(values == np.floor(values)) and values.sum() == n_rows)


def _are_counts(entries: list[Any]) -> bool:
    """Whether sizes are counts, as `priors` reads them; what is no numbers is left for the estimator to refuse."""
    try:
        return is_in_rows(entries)
    except (TypeError, ValueError):
        return False


def _scale_range(value: Any, factor: float) -> Any:
    if value is None:
        return None
    low, high = np.ravel(value)[[0, -1]] * factor
    if np.ndim(value) == 0:
        return int(low) if low == np.floor(low) else float(low)
    return int(np.floor(low + 1e-9)), float(high) if np.isinf(high) else int(np.ceil(high - 1e-9))
