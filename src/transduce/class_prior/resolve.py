"""From a class prior and the labels to bounds on the class counts of the rows to label."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds, Groups
from transduce.class_prior.proportions import labeled_proportions
from transduce.class_prior.rounding import SUM_TOLERANCE, apportion
from transduce.class_prior.spec import (
    bounds_of_size,
    by_name,
    check_names,
    check_size,
    check_units,
    is_in_rows,
    is_range,
)
from transduce.errors import Names, PriorError, PriorErrorKind, PriorTypeError
from transduce.taxonomy import Taxonomy

Array: TypeAlias = NDArray[Any]
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

SPREAD = 0.5
"""Half-width of ranges around labelled proportions, in standard deviations: narrow ranges label better."""


class ResolvedPrior(NamedTuple):
    """A class prior as stated and as bounds on the counts, and the labelled rows (K,) by number and by weight."""

    stated: object
    bounds: Bounds
    labeled_rows: IntArray
    labeled_weight: FloatArray

    @classmethod
    def create(
        cls,
        stated: object,
        classes: Array,
        labels: IntArray,
        n_rows: int,
        weights: FloatArray | None,
        taxonomy: Taxonomy | None,
        forbidden: Array | None,
    ) -> "ResolvedPrior":
        """Resolve a prior (see `prior_bounds`); for "estimate", the bounds are those of "labeled"."""
        first = "labeled" if isinstance(stated, str) and stated == "estimate" else stated
        bounds = prior_bounds(first, classes, labels, n_rows, weights, taxonomy, forbidden)
        rows = np.bincount(labels, minlength=classes.size)
        return cls(stated, bounds, rows, labeled_counts(classes.size, labels, weights))

    @property
    def is_estimated(self) -> bool:
        """Whether class sizes are estimated from all rows."""
        return isinstance(self.stated, str) and self.stated == "estimate"


def prior_bounds(
    class_prior: object,
    classes: Array,
    labels: IntArray,
    n_rows: int,
    weights: FloatArray | None = None,
    taxonomy: Taxonomy | None = None,
    forbidden: Array | None = None,
) -> Bounds:
    """Bounds on the class counts of the `n_rows` rows to label, from any class prior but "estimate" (see `spec`).

    classes (K,) are names, labels (l,) the class indices and weights (l,) the sample weights of the labelled rows. A
    number beside a range becomes the whole numbers on both sides of it, so that rounding never makes it infeasible.
    Bounds from labels respect `forbidden` (m, K), and allow a class without labels to stay empty.

    >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
    >>> prior_bounds({"tea": 0.25, "coffee": (0.3, 0.5), "cocoa": None}, names, labels, 10)[:2]
    (array([0, 3, 2]), array([10,  5,  3]))
    >>> prior_bounds({"coffee": 0.75, "tea": 0.25, "cocoa": 0}, names, labels, 8)[:2]
    (array([0, 6, 2]), array([0, 6, 2]))
    """
    if isinstance(class_prior, str):
        if class_prior != "labeled":
            raise PriorError(PriorErrorKind.KEYWORD, value=class_prior)
        return _bounds_from_labels(labeled_counts(classes.size, labels, weights), n_rows, forbidden)
    if class_prior is None:
        raise PriorError(PriorErrorKind.NONE)
    class_prior, names = by_name(class_prior, classes.tolist()), classes.tolist()
    if isinstance(class_prior, Mapping):
        check_units(class_prior.items())
        if _is_open(class_prior, taxonomy):
            return _bounds_from_ranges(class_prior, names, labels, n_rows, taxonomy)
        check_names(class_prior, names, labels, taxonomy)
        class_prior = [class_prior[name] for name in names]
    elif isinstance(class_prior, (Sequence, np.ndarray)):
        check_units(zip(names, class_prior, strict=False))
    return Bounds.exact(_exact_counts(class_prior, names, n_rows))


def _exact_counts(sizes: Any, names: list[Any], n_rows: int) -> IntArray:
    """Counts from fractions or counts in the order of the classes."""
    try:
        if any(isinstance(size, str) for size in (sizes if np.ndim(sizes) else ())):
            raise TypeError
        values = np.asarray(sizes, dtype=np.float64)
    except (TypeError, ValueError):
        raise PriorTypeError(PriorErrorKind.NOT_NUMBERS, value=sizes) from None
    if values.shape != (len(names),):
        raise PriorError(PriorErrorKind.SHAPE, n_classes=len(names), shape=values.shape, classes=Names(names))
    for name, size in zip(names, values.tolist(), strict=True):
        check_size(name, size)
    total = float(values.sum())
    if n_rows == 0 or (total == n_rows and np.all(values == np.floor(values))):
        return values.astype(np.int64) if n_rows else np.zeros(len(names), np.int64)
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise PriorError(PriorErrorKind.SUM, total=total, n_rows=n_rows)
    return apportion(values, n_rows)


def _bounds_from_labels(counts: FloatArray, n_rows: int, forbidden: Array | None) -> Bounds:
    """Ranges around the proportions of the labelled rows, of which each class has `counts` (K,)."""
    low, high = _around(counts, np.ones(counts.size, bool), n_rows, forbidden)
    seen = counts > 0
    if not np.all(seen):
        without = _around(counts, seen, n_rows, forbidden)
        low, high = np.where(seen, np.minimum(low, without[0]), 0), np.maximum(high, without[1])
    return Bounds(low, high)


def _around(
    counts: FloatArray, present: NDArray[np.bool_], n_rows: int, forbidden: Array | None
) -> tuple[IntArray, IntArray]:
    """Ranges around the labelled proportions if only the classes `present` have rows."""
    proportions, width = np.zeros(counts.size), np.zeros(counts.size)
    mean, deviation = labeled_proportions(counts[present])
    proportions[present], width[present] = mean, SPREAD * deviation / mean
    expected = expected_counts(proportions, n_rows, forbidden)
    low = np.floor(expected * np.maximum(1.0 - width, 0.0))
    high = np.minimum(np.ceil(expected * (1.0 + width)), n_rows)
    return low.astype(np.int64), high.astype(np.int64)


def expected_counts(proportions: FloatArray, n_rows: int, forbidden: Array | None) -> FloatArray:
    """Expected class counts when every row draws its label from the proportions, restricted to its allowed labels.

    Rows beyond those of `forbidden` may get any label. The whole numbers on both sides of the result are feasible.

    >>> forbidden = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=bool)
    >>> expected_counts(np.array([0.25, 0.25, 0.5]), 4, forbidden)
    array([1.25, 1.25, 1.5 ])
    """
    if forbidden is None:
        return np.asarray(n_rows * proportions)
    each = np.where(forbidden, 0.0, np.maximum(proportions, np.finfo(np.float64).tiny))
    free = (n_rows - len(forbidden)) * proportions
    return np.asarray((each / each.sum(axis=1, keepdims=True)).sum(axis=0) + free)


def labeled_counts(n_classes: int, labels: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """Labelled rows of each class (K,); weighted rows sum to their effective sample size, (Σw)² / Σw².

    >>> labeled_counts(2, np.array([0, 0, 1])), labeled_counts(2, np.array([0, 0, 1]), np.array([2.0, 2.0, 2.0]))
    (array([2., 1.]), array([2., 1.]))
    """
    if weights is None:
        return np.bincount(labels, minlength=n_classes).astype(np.float64)
    sums = np.bincount(labels, weights=weights, minlength=n_classes)
    return np.asarray(sums * weights.sum() / np.dot(weights, weights))


def _is_open(class_prior: Mapping[Any, Any], taxonomy: Taxonomy | None) -> bool:
    """Whether a mapping has ranges, unknown sizes or sizes of branches."""
    ranges = any(map(is_range, class_prior.values()))
    return ranges or (taxonomy is not None and any(map(taxonomy.is_inner, class_prior)))


def _bounds_from_ranges(
    class_prior: Mapping[Any, Any], names: list[Any], labels: IntArray, n_rows: int, taxonomy: Taxonomy | None
) -> Bounds:
    """Bounds from a mapping with ranges, unknown sizes or sizes of branches."""
    branches = [] if taxonomy is None else [name for name in class_prior if taxonomy.is_inner(name)]
    members = np.array([taxonomy.below(name) for name in branches]) if taxonomy and branches else None
    stated = {name: size for name, size in class_prior.items() if name not in branches}
    covered = () if members is None else [names[k] for k in np.flatnonzero(members.any(axis=0))]
    check_names({**dict.fromkeys(covered), **stated}, names, labels, taxonomy)
    sizes = [(name, stated.get(name)) for name in names] + [(name, class_prior[name]) for name in branches]
    pairs = np.array([bounds_of_size(*size) for size in sizes])
    K = len(names)
    if n_rows == 0:
        return Bounds.exact(np.zeros(K, np.int64))
    if not is_in_rows(class_prior):
        pairs = pairs * n_rows
    low, high = _round_ranges(pairs, [*names, *branches], n_rows)
    if members is None:
        _check_sums(int(low.sum()), int(high.sum()), n_rows)
        return Bounds(low, high)
    called = ["/".join(name) if isinstance(name, tuple) else str(name) for name in branches]
    groups = _nested_groups(members, low[K:], high[K:], called)
    _check_groups(groups, low[:K], high[:K], n_rows)
    return Bounds(low[:K], high[:K], groups)


def _check_sums(low: int, high: int, n_rows: int) -> None:
    """Raise PriorError if the low counts sum to more than the rows to label, or the high counts to fewer."""
    if low > n_rows:
        raise PriorError(PriorErrorKind.LOW_SUM, total=low, n_rows=n_rows, fraction=low / n_rows)
    if high < n_rows:
        raise PriorError(PriorErrorKind.HIGH_SUM, total=high, n_rows=n_rows, fraction=high / n_rows)


def _check_groups(groups: Groups, low: IntArray, high: IntArray, n_rows: int) -> None:
    """Raise PriorError if the sizes of classes and branches contradict each other."""
    conflict = groups.find_conflict(low, high, n_rows)
    if conflict is None:
        return
    if conflict.group is None:
        _check_sums(conflict.needed, conflict.allowed, n_rows)
        return
    kind = PriorErrorKind.BRANCH_TOO_SMALL if conflict.is_too_small else PriorErrorKind.BRANCH_TOO_LARGE
    raise PriorError(kind, name=groups.names[conflict.group], n_rows=n_rows, **conflict._asdict())


def _nested_groups(members: NDArray[np.bool_], low: IntArray, high: IntArray, names: Sequence[str]) -> Groups:
    """Groups from their classes (G, K), smaller ones first, each below the smallest that contains it."""
    order = np.argsort(members.sum(axis=1), kind="stable")
    members, n_groups, n_classes = members[order], *members.shape
    sets = np.vstack((np.eye(n_classes, dtype=bool), members))
    above = np.full(n_classes + n_groups, n_classes + n_groups)
    for node, inside in enumerate(sets):
        for g in range(max(node - n_classes + 1, 0), n_groups):
            if np.all(members[g][inside]):
                above[node] = n_classes + g
                break
    return Groups(above, low[order], high[order], tuple(names[g] for g in order))


def _round_ranges(pairs: FloatArray, names: Sequence[Any], n_rows: int) -> tuple[IntArray, IntArray]:
    """Whole numbers within each range (low, high), and on both sides of a single number."""
    noise = 8 * np.finfo(np.float64).eps * np.maximum(np.where(np.isfinite(pairs), pairs, 1.0), 1.0)
    exact = pairs[:, 0] == pairs[:, 1]
    low = np.where(exact, np.floor(pairs[:, 0] + noise[:, 0]), np.ceil(pairs[:, 0] - noise[:, 0]))
    high = np.where(exact, np.ceil(pairs[:, 1] - noise[:, 1]), np.floor(pairs[:, 1] + noise[:, 1]))
    if np.any(low > n_rows):
        k = int(np.argmax(low > n_rows))
        raise PriorError(PriorErrorKind.TOO_MANY_ROWS, name=names[k], value=float(pairs[k, 0]), n_rows=n_rows)
    high = np.minimum(high, n_rows)
    if np.any(low > high):
        k = int(np.argmax(low > high))
        ends = {"low": float(pairs[k, 0]), "high": float(pairs[k, 1])}
        raise PriorError(PriorErrorKind.NO_WHOLE_NUMBER, name=names[k], n_rows=n_rows, **ends)
    return low.astype(np.int64), high.astype(np.int64)
