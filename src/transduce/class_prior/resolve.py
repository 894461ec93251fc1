"""Class sizes as users state them, read into whole numbers of unlabelled rows that can be met.

    "labeled"                    what the labelled rows say of the shares, give or take half a deviation
    [0.2, 0.8] or [20, 80]       shares, or rows, in the order of the classes
    {name: 0.2}                  by name; a value may also be (low, high), or None for "not known"
    {"sport": (0.2, 0.4)}        an inner node of the taxonomy, whose classes need no size of their own then

    [(0.1, 0.3), 0.2, None]      the same in the order of the classes

Numbers up to 1 are shares; where any is larger, all are rows, and one between 0 and 1 is refused. A 1 that is written
as an integer, beside other integers and sizes that are open, is one row: {"tea": 1, "coffee": None}. Write 1.0 for all
rows. (0, 1) is any share; beside a number of rows it is no row or one, and None is any number.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds, Groups, SizeWords, apportion
from transduce.class_prior.proportions import labeled_proportions
from transduce.suggest import did_you_mean, name_list
from transduce.taxonomy import Taxonomy

Array: TypeAlias = NDArray[Any]
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

SPREAD = 0.5
"""Deviations to each side that the labelled rows leave open: narrow ones are nearly as safe, and label better."""
_PRIOR = SizeWords(
    "class_prior contradicts itself: ", "sizes of classes and branches", "rows without a full label", "bound"
)
_SUM_TOLERANCE = 1e-6


def prior_bounds(
    class_prior: object,
    classes: Array,
    labels: IntArray,
    n_rows: int,
    weights: FloatArray | None = None,
    taxonomy: Taxonomy | None = None,
    forbidden: Array | None = None,
) -> Bounds:
    """Bounds of the counts of the unlabelled rows.

    `forbidden` (n, K) are labels that some rows may not get: sizes that come from labels alone heed them. Labels do not
    say that a class without any has rows at all, so it may be left empty then.

    classes (K,) are the names of the classes, labels (l,) the class index of each labelled row, weights (l,) what it
    weighs. A number beside a range means the whole numbers on both sides of it, so that rounding never makes it
    infeasible.

    >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
    >>> prior_bounds({"tea": 0.25, "coffee": (0.3, 0.5), "cocoa": None}, names, labels, 10)[:2]
    (array([0, 3, 2]), array([10,  5,  3]))
    >>> prior_bounds({"coffee": 0.75, "tea": 0.25, "cocoa": 0}, names, labels, 8)[:2]
    (array([0, 6, 2]), array([0, 6, 2]))
    """
    if isinstance(class_prior, str):
        return _of_labels(class_prior, classes, labels, n_rows, weights, forbidden)
    if class_prior is None:
        raise ValueError(
            "class_prior must say something of class sizes, but is None. Leave it out, or write 'estimate', where you "
            "know nothing; None is for single classes, in a mapping."
        )
    class_prior = _ranges_by_name(class_prior, classes)
    _check_one_kind(class_prior, classes)
    if isinstance(class_prior, Mapping) and _is_loose(class_prior, taxonomy):
        return _of_ranges(class_prior, classes, labels, n_rows, taxonomy)
    counts = prior_counts(class_prior, classes, labels, n_rows, taxonomy)
    return Bounds(counts, counts)


def prior_counts(
    class_prior: object, classes: Array, labels: IntArray, n_rows: int, taxonomy: Taxonomy | None = None
) -> IntArray:
    """Exact counts from fractions or counts, in order or by name.

    >>> prior_counts({"coffee": 0.75, "tea": 0.25}, np.array(["tea", "coffee"]), np.array([0, 1]), 8)
    array([2, 6])
    """
    values = _prior_array(class_prior, classes, labels, taxonomy)
    if n_rows == 0:
        return np.zeros(classes.size, np.int64)
    total = values.sum()
    if total == n_rows and np.all(values == np.floor(values)):
        return values.astype(np.int64)
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"class_prior must sum to 1, or as counts to the {n_rows} unlabelled rows, but sums to {total:.6g}. "
            "Divide it by its sum, or count the unlabelled rows only."
        )
    return apportion(values, n_rows)


def are_rows(class_prior: object) -> bool:
    """Whether stated sizes, in order or by name, are numbers of rows; otherwise they are shares.

    >>> are_rows({"tea": 0.2, "milk": None}), are_rows({"tea": 20, "milk": None})
    (False, True)
    >>> are_rows({"tea": 1, "milk": None}), are_rows({"tea": 1.0, "milk": None}), are_rows({"tea": 1, "milk": 0})
    (True, False, False)
    """
    if isinstance(class_prior, str) or not isinstance(class_prior, Iterable):
        return False
    sizes = list(class_prior.values() if isinstance(class_prior, Mapping) else class_prior)
    pairs: list[Any] = [size if _is_range(size) else (size, size) for size in sizes if size is not None]
    ends = [end for pair in pairs for end in pair if np.isfinite(end)]
    if any(end > 1 for end in ends):
        return True
    least = sum(low for low, _ in pairs)  # single numbers of which this is 1 are shares of all rows
    return all(isinstance(end, Integral) for end in ends) and (least > 1 or (least == 1 and any(map(_is_range, sizes))))


def _ranges_by_name(class_prior: object, classes: Array) -> object:
    """Ranges and unknown sizes in the order of the classes, as a mapping; anything else as it is."""
    if isinstance(class_prior, Mapping) or not isinstance(class_prior, (Sequence, np.ndarray)):
        return class_prior
    sizes = list(class_prior)
    if not any(_is_range(size) for size in sizes):
        return class_prior
    if len(sizes) != classes.size:
        raise ValueError(
            f"class_prior must have one entry for each of the {classes.size} classes, but has {len(sizes)}. "
            f"The classes are {name_list(classes.tolist())}."
        )
    return dict(zip(classes.tolist(), sizes, strict=True))


def _check_one_kind(class_prior: object, classes: Array) -> None:
    """See that no share stands beside a number of rows."""
    if not isinstance(class_prior, (Mapping, Sequence, np.ndarray)):
        return
    if isinstance(class_prior, Mapping):
        sizes = list(class_prior.items())
    else:
        sizes = list(zip(classes.tolist(), class_prior, strict=False))
    ends = [(name, end) for name, size in sizes for end in (size if _is_range(size) and size is not None else (size,))]
    ends = [(name, end) for name, end in ends if _is_number(end)]
    rows = next((name for name, end in ends if end > 1 and np.isfinite(end)), None)
    share = next((name for name, end in ends if 0 < end < 1), None)
    if rows is not None and share is not None:
        raise ValueError(
            f"class_prior has a share for {share!r} and a number of rows for {rows!r}. Use one kind."
            if share != rows
            else f"class_prior has a share and a number of rows for {share!r}. Use one kind."
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _of_labels(
    class_prior: str,
    classes: Array,
    labels: IntArray,
    n_rows: int,
    weights: FloatArray | None,
    forbidden: Array | None,
) -> Bounds:
    if class_prior != "labeled":
        raise ValueError(
            "class_prior must be 'labeled', 'estimate', fractions, counts or a mapping to either, "
            f"but is {class_prior!r}."
        )
    counts = labeled_counts(classes.size, labels, weights)
    low, high = _around(counts, np.ones(classes.size, bool), n_rows, forbidden)
    seen = counts > 0
    if not np.all(seen):
        without = _around(counts, seen, n_rows, forbidden)
        low, high = np.where(seen, np.minimum(low, without[0]), 0), np.maximum(high, without[1])
    return Bounds(low, high)


def _around(
    counts: FloatArray, there: NDArray[np.bool_], n_rows: int, forbidden: Array | None
) -> tuple[IntArray, IntArray]:
    """Rows around the shares that labels give to the classes that are there."""
    shares, leeway = np.zeros(counts.size), np.zeros(counts.size)
    mean, deviation = labeled_proportions(counts[there])
    shares[there], leeway[there] = mean, SPREAD * deviation / mean
    sizes = expected_sizes(shares, n_rows, forbidden)
    low = np.floor(sizes * np.maximum(1.0 - leeway, 0.0))
    high = np.minimum(np.ceil(sizes * (1.0 + leeway)), n_rows)
    return low.astype(np.int64), high.astype(np.int64)


def expected_sizes(shares: FloatArray, n_rows: int, forbidden: Array | None) -> FloatArray:
    """Rows that each class can expect when every row is shared out among the labels that it may get.

    Rows beyond those of `forbidden` may get any. Whole numbers on both sides of the sizes can always be met.

    >>> forbidden = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=bool)
    >>> expected_sizes(np.array([0.25, 0.25, 0.5]), 4, forbidden)
    array([1.25, 1.25, 1.5 ])
    """
    if forbidden is None:
        return np.asarray(n_rows * shares)
    each = np.where(forbidden, 0.0, np.maximum(shares, np.finfo(np.float64).tiny))
    free = (n_rows - len(forbidden)) * shares
    return np.asarray((each / each.sum(axis=1, keepdims=True)).sum(axis=0) + free)


def labeled_counts(n_classes: int, labels: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """Labelled rows of each class (K,); weighted ones sum to the number of rows that would say as much.

    >>> labeled_counts(2, np.array([0, 0, 1])), labeled_counts(2, np.array([0, 0, 1]), np.array([2.0, 2.0, 2.0]))
    (array([2., 1.]), array([2., 1.]))
    """
    if weights is None:
        return np.bincount(labels, minlength=n_classes).astype(np.float64)
    sums = np.bincount(labels, weights=weights, minlength=n_classes)
    return np.asarray(sums * weights.sum() / np.dot(weights, weights))


def _is_loose(class_prior: Mapping[Any, Any], taxonomy: Taxonomy | None) -> bool:
    """Whether sizes are ranges, not known, or those of inner nodes."""
    ranges = any(_is_range(value) for value in class_prior.values())
    return ranges or (taxonomy is not None and any(taxonomy.is_inner(name) for name in class_prior))


def _of_ranges(
    class_prior: Mapping[Any, Any], classes: Array, labels: IntArray, n_rows: int, taxonomy: Taxonomy | None
) -> Bounds:
    inner = [] if taxonomy is None else [name for name in class_prior if taxonomy.is_inner(name)]
    members = np.array([taxonomy.below(name) for name in inner]) if taxonomy and inner else np.zeros((0, classes.size))
    stated = {name: value for name, value in class_prior.items() if name not in inner}
    open_to = classes[members.any(axis=0)].tolist() if inner else []
    _check_names({**dict.fromkeys(open_to), **stated}, classes, labels, taxonomy)
    pairs = np.array(
        [_pair(name, stated.get(name)) for name in classes.tolist()]
        + [_pair(name, class_prior[name]) for name in inner]
    )
    if n_rows == 0:
        return Bounds(np.zeros(classes.size, np.int64), np.zeros(classes.size, np.int64))
    if not are_rows(class_prior):
        pairs = pairs * n_rows
    low, high = _whole(pairs, [*classes.tolist(), *inner], n_rows)
    n_classes = classes.size
    if not inner:
        _check_feasible(low, high, n_rows)
        return Bounds(low, high)
    names = ["/".join(name) if isinstance(name, tuple) else str(name) for name in inner]
    groups = _nested(members.astype(bool), low[n_classes:], high[n_classes:], names)
    words = _PRIOR._replace(in_shares=not are_rows(class_prior))
    groups.check(low[:n_classes], high[:n_classes], n_rows, words)
    return Bounds(low[:n_classes], high[:n_classes], groups)


def _nested(members: NDArray[np.bool_], low: IntArray, high: IntArray, names: Sequence[str]) -> Groups:
    """Groups from their classes (G, K), smaller ones first, each below the smallest that holds it."""
    order = np.argsort(members.sum(axis=1), kind="stable")
    members, n_groups, n_classes = members[order], *members.shape
    sets = np.vstack((np.eye(n_classes, dtype=bool), members))
    above = np.full(n_classes + n_groups, n_classes + n_groups)
    for node, mine in enumerate(sets):
        for g in range(max(node - n_classes + 1, 0), n_groups):
            if np.all(members[g][mine]):
                above[node] = n_classes + g
                break
    return Groups(above, low[order], high[order], tuple(names[g] for g in order))


def _whole(pairs: FloatArray, names: Sequence[Any], n_rows: int) -> tuple[IntArray, IntArray]:
    """Whole numbers within the ranges, and on both sides of a single number."""
    noise = 8 * np.finfo(np.float64).eps * np.maximum(np.where(np.isfinite(pairs), pairs, 1.0), 1.0)
    exact = pairs[:, 0] == pairs[:, 1]
    low = np.where(exact, np.floor(pairs[:, 0] + noise[:, 0]), np.ceil(pairs[:, 0] - noise[:, 0]))
    high = np.where(exact, np.ceil(pairs[:, 1] - noise[:, 1]), np.floor(pairs[:, 1] + noise[:, 1]))
    many = low > n_rows
    if many.any():
        k = int(np.argmax(many))
        raise ValueError(
            f"class_prior gives {names[k]!r} {pairs[k, 0]:.6g} rows, more than the {n_rows} that are without a full "
            "label. Count those only."
        )
    high = np.minimum(high, n_rows)
    if np.any(low > high):
        k = int(np.argmax(low > high))
        raise ValueError(
            f"class_prior must leave room for a whole number of rows, but {names[k]!r} is to have between "
            f"{pairs[k, 0]:.6g} and {pairs[k, 1]:.6g} of {n_rows} rows. Widen it."
        )
    return low.astype(np.int64), high.astype(np.int64)


def _is_range(value: object) -> bool:
    return value is None or (isinstance(value, (tuple, list, np.ndarray)) and len(value) == 2)


def _pair(name: object, value: object) -> tuple[float, float]:
    """Low and high as numbers; high may be infinite."""
    if value is None:
        return 0.0, np.inf
    ends: tuple[Any, Any] = value if _is_range(value) else (value, value)  # type: ignore[assignment]
    if not all(map(_is_number, ends)):
        raise TypeError(f"class_prior must give {name!r} a number, (low, high) or None, but has {value!r}.")
    low, high = float(ends[0]), float(ends[1])
    _check_size(name, low)
    _check_size(name, 0.0 if high == np.inf else high)
    if low > high:
        raise ValueError(
            f"class_prior gives {name!r} a low bound of {low:.6g}, which is above the high one of {high:.6g}. "
            "Exchange them."
        )
    return low, high


def _check_size(name: object, size: float) -> None:
    """See that a size is a number that can be one."""
    if np.isnan(size):
        raise ValueError(f"class_prior must be numbers, but {name!r} has nan. Write None for a size not known.")
    if size < 0:
        raise ValueError(f"class_prior must be 0 or more, but {name!r} has {size:.6g}. Correct it.")
    if size == np.inf:
        raise ValueError(
            f"class_prior must be finite, but {name!r} has inf, which only a high bound may be. Write None for a "
            "size not known."
        )


def _check_feasible(low: IntArray, high: IntArray, n_rows: int) -> None:
    for bounds, side, wrong, way in (
        (low, "low", low.sum() > n_rows, "Lower"),
        (high, "high", high.sum() < n_rows, "Raise"),
    ):
        if wrong:
            raise ValueError(
                f"class_prior's {side} bounds sum to {bounds.sum()} of the {n_rows} unlabelled rows "
                f"({bounds.sum() / n_rows:.1%}). {way} some of them."
            )


def _check_names(
    class_prior: Mapping[Any, Any], classes: Array, labels: IntArray, taxonomy: Taxonomy | None = None
) -> None:
    """Every class has an entry, and every entry a class."""
    names = classes.tolist()
    unknown = [name for name in class_prior if name not in names]
    if unknown:
        raise ValueError(
            f"class_prior names {unknown[0]!r}, which is not a class.{did_you_mean(unknown[0], names)} "
            f"The classes are {name_list(names)}."
        )
    missing = [name for name in names if name not in class_prior]
    if missing:
        strange = [name for k, name in enumerate(names) if k not in labels and name in class_prior]
        hint = f", and names {strange[0]!r}, which no row is labelled with" if strange else ""
        if names.index(missing[0]) not in labels:
            hint = ", which partial labels in y leave open"
        raise ValueError(
            f"class_prior must give every class a share, but has none for {missing[0]!r}{hint}. Add it with None for "
            f"not known, a size, or 0{_branch_hint(missing[0], names, taxonomy)}."
        )


def _branch_hint(name: object, names: list[Any], taxonomy: Taxonomy | None) -> str:
    """What else would do for a class without a size: one of a branch above it."""
    if taxonomy is not None:
        path = taxonomy.leaf_paths[names.index(name)]
        return f"; or state its branch {taxonomy.separator.join(path[:-1])!r}" if len(path) > 1 else ""
    above = name.rpartition("/")[0] if isinstance(name, str) else ""
    return f"; or pass taxonomy= and state its branch {above!r}" if above else ""


def _prior_array(class_prior: object, classes: Array, labels: IntArray, taxonomy: Taxonomy | None = None) -> FloatArray:
    """Numbers (K,) in the order of the classes."""
    if isinstance(class_prior, Mapping):
        _check_names(class_prior, classes, labels, taxonomy)
        class_prior = [class_prior[name] for name in classes.tolist()]
    sizes = list(class_prior) if isinstance(class_prior, Iterable) and np.ndim(class_prior) else [class_prior]  # type: ignore[arg-type]
    texts = [size for size in sizes if isinstance(size, str)]
    if texts:
        raise TypeError(f"class_prior must be numbers, one a class, but has the text {str(texts[0])!r}. Convert it.")
    try:
        values = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"class_prior must be numbers, one a class, but came as {class_prior!r}.") from error
    if values.shape != (classes.size,):
        raise ValueError(
            f"class_prior must have one number for each of the {classes.size} classes, but has shape {values.shape}. "
            f"The classes are {name_list(classes.tolist())}."
        )
    for name, size in zip(classes.tolist(), values.tolist(), strict=True):
        _check_size(name, size)
    return values
