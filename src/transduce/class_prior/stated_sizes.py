"""From a class prior as written to a `Statement` in rows to label: names, units, sums and whole numbers.

1. `spec` reads each size; plain numbers get their unit from their sum (`with_units`).
2. Exact counts of all classes must sum to the rows to label, or to all rows: then the labelled ones are subtracted.
   Fractions of all classes must sum to nearly 1, and are divided by their sum; those of some classes to 1 at most.
3. Exact sizes and ranges become whole numbers low <= count <= high. Rough sizes stay as they are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.rounding import apportion
from transduce.class_prior.spec import Prior, Size, SizeKind, read_sizes
from transduce.class_prior.statement import (
    RoughBranch,
    Statement,
    check_feasible,
    nested_groups,
    on_both_sides,
    rounding_noise,
)
from transduce.errors import Names, PriorError, PriorErrorKind
from transduce.suggest import did_you_mean
from transduce.taxonomy import Taxonomy

Array: TypeAlias = NDArray[Any]
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

ROUNDING = 0.021
"""Fractions whose sum differs from 1 by no more are taken as rounded ones."""
_PERCENT_ROUNDING = 1.1
"""Plain numbers whose sum differs from 100 by no more may be per cents."""
_EXACT_SUM = 1e-9
"""Fractions whose sum differs from 1 by no more are not reported as divided by it."""


def read_statement(
    class_prior: object, classes: Array, labels: IntArray, n_rows: int, taxonomy: Taxonomy | None = None
) -> Statement:
    """Read sizes in the order of the classes, by name, or "equal", as a statement about the rows to label.

    Parameters
    ----------
    class_prior : object
        The class prior (see `spec`), but neither "labeled" nor "estimate".
    classes : ndarray of shape (K,)
        Names of the classes.
    labels : ndarray of shape (n_labeled,)
        Class indices of the rows with a full label.
    n_rows : int
        Number of rows to label, including those with a partial label.
    taxonomy : Taxonomy or None, default=None
        Tree of the classes, whose branches may have a size too.

    Examples
    --------
    >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
    >>> stated = read_statement({"tea": "25%", "coffee": (3, 5)}, names, labels, 10)
    >>> stated.low, stated.high, stated.rough
    (array([0, 3, 0]), array([10,  5, 10]), array([nan, nan, 2.5]))
    """
    names = classes.tolist()
    nodes = _Nodes.create(read_sizes(class_prior, names), names, n_rows, n_rows + labels.size, taxonomy)
    K = len(names)
    if n_rows == 0:
        return Statement(np.zeros(K, np.int64), np.zeros(K, np.int64), np.full(K, np.nan))
    nodes, divided_by = _match_sums(nodes, np.bincount(labels, minlength=K), n_rows)
    low, high = _whole_numbers(nodes, n_rows)
    hard = nodes.is_exact[K:] | nodes.is_range[K:]
    called = ["/".join(name) if isinstance(name, tuple) else str(name) for name in nodes.names[K:]]
    hard_names = [name for name, each in zip(called, hard, strict=True) if each]
    groups = nested_groups(nodes.members[hard], low[K:][hard], high[K:][hard], hard_names)
    check_feasible(low[:K], high[:K], groups, n_rows)
    rough, sizes = nodes.is_rough, nodes.low
    branches = zip(called, nodes.members, sizes[K:], rough[K:], strict=True)
    soft = tuple(RoughBranch(name, members, float(rows)) for name, members, rows, is_rough in branches if is_rough)
    in_rows = bool(np.any(nodes.in_rows & (nodes.high > 0)))
    return Statement(low[:K], high[:K], np.where(rough, sizes, np.nan)[:K], groups, soft, in_rows, divided_by)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Sizes of K classes, then of B branches, in rows.

    names    (K+B) names
    low      (K+B,) the size, or the low end of a range
    high     (K+B,) the same, or the high end
    kinds    (K+B,) kind of each size, None where it is unknown
    in_rows  (K+B,) whether it is stated in rows
    members  (B, K) classes of each branch
    topmost  (K+B,) whether a node is in no stated branch
    """

    names: list[Any]
    low: FloatArray
    high: FloatArray
    kinds: Array
    in_rows: Mask
    members: Mask
    topmost: Mask

    @classmethod
    def create(cls, prior: Prior, names: list[Any], n_rows: int, n_total: int, taxonomy: Taxonomy | None) -> "_Nodes":
        """Find the branches among the names of a prior, and convert sizes to rows."""
        branches = _find_branches(prior, names, taxonomy)
        below = [] if taxonomy is None else [taxonomy.below(name) for name in branches]
        members = np.array(below, bool).reshape(len(branches), len(names))
        topmost = np.append(~members.any(axis=0), [not is_inside(each, members) for each in members]).astype(bool)
        nodes = [*names, *branches]
        counted = [name for name, top in zip(nodes, topmost, strict=True) if top and name in prior]
        prior = with_units(prior, counted, n_rows, n_total)
        sizes = [prior.get(name) or Size(SizeKind.RANGE, 0.0, np.inf) for name in nodes]
        in_rows = np.array([size.in_rows for size in sizes])
        low, high = np.array([(size.low, size.high) for size in sizes]).T * np.where(in_rows, 1.0, max(n_rows, 1))
        kinds = np.array(
            [None if prior.get(name) is None else size.kind for name, size in zip(nodes, sizes, strict=True)]
        )
        return cls(nodes, low, high, kinds, in_rows, members, topmost)

    @property
    def is_rough(self) -> Mask:
        return np.asarray(self.kinds == SizeKind.ROUGH)

    @property
    def is_exact(self) -> Mask:
        return np.asarray(self.kinds == SizeKind.EXACT)

    @property
    def is_range(self) -> Mask:
        return np.asarray(self.kinds == SizeKind.RANGE)

    @property
    def is_count(self) -> Mask:
        """Whether a size is an exact number of rows."""
        return self.is_exact & self.in_rows

    @property
    def is_closed(self) -> bool:
        """Whether sizes that are single numbers cover all classes, and so must sum to all rows."""
        return bool(np.all((self.is_rough | self.is_exact)[self.topmost]))


def _find_branches(prior: Prior, names: list[Any], taxonomy: Taxonomy | None) -> list[Any]:
    """Branches with a size; raises PriorError for a name that is neither a class nor a branch."""
    known = set(names)
    branches = [name for name in prior if name not in known]
    for name in branches:
        if taxonomy is None or not taxonomy.is_inner(name):
            _refuse_unknown(name, names, taxonomy)
    return [name for name in branches if prior[name] is not None]


def is_inside(members: Mask, others: Mask) -> bool:
    """Whether the classes of a branch are part of those of a larger one."""
    return bool(np.any(others[:, members].all(axis=1) & (others.sum(axis=1) > members.sum())))


def _refuse_unknown(name: Any, names: list[Any], taxonomy: Taxonomy | None) -> None:
    """Raise PriorError for a name that is neither a class nor a branch."""
    written = "/".join(map(str, name)) if isinstance(name, tuple) else name
    below = Names(each for each in names if isinstance(each, str) and each.startswith(f"{written}/"))
    if taxonomy is None and below:
        raise PriorError(PriorErrorKind.BRANCH_OF_FLAT_CLASSES, name=written, below=below)
    nodes = [] if taxonomy is None else [taxonomy.separator.join(path) for path in taxonomy.nodes]
    hint = did_you_mean(written.strip("/ ") if isinstance(written, str) else written, [*names, *nodes])
    raise PriorError(PriorErrorKind.UNKNOWN_CLASS, name=written, hint=hint, classes=Names(names))


def with_units(sizes: Mapping[Any, Size | None], topmost: Collection[Any], n_rows: int, n_total: int) -> Prior:
    """Decide the unit of plain numbers by the sum of those that are in no stated branch, the `topmost` ones.

    If all sizes are plain numbers, at least two, they are numbers of rows where they sum to the `n_rows` rows to label
    or to the `n_total` rows with and without labels; fractions where they sum to 1; per cents where they sum to 100.

    >>> sizes = read_sizes([60, 39.5, 0.5], ["cocoa", "coffee", "tea"])
    >>> [size.low for size in with_units(sizes, list(sizes), 2000, 2030).values()]
    [0.6, 0.395, 0.005]
    """
    plain = [size for size in sizes.values() if size is not None and size.is_plain]
    total, found = sum(size.low for name in topmost if (size := sizes[name]) is not None), dict(sizes)
    if len(plain) == len(sizes) > 1:
        if total in (n_rows, n_total) and all(size.low.is_integer() for size in plain):
            found = {name: _in_unit(size, SizeKind.EXACT) for name, size in sizes.items()}
        elif abs(total - 1) <= ROUNDING:
            found = {name: _in_unit(size, SizeKind.ROUGH) for name, size in sizes.items()}
        elif abs(total - 100) <= _PERCENT_ROUNDING:
            found = {name: _in_unit(size, SizeKind.ROUGH, 100.0) for name, size in sizes.items()}
    wrong = next((size for size in found.values() if size and size.is_count and not size.low.is_integer()), None)
    if wrong is not None:
        raise PriorError(PriorErrorKind.NEITHER_UNIT, source=wrong.source, value=wrong.low)
    return found


def _in_unit(size: Size | None, kind: SizeKind, divisor: float = 1.0) -> Size | None:
    """A plain number as rows, which are exact, or as a fraction, which is rough; 0 stays exact."""
    if size is None or size.low == 0:
        return size
    return replace(size, kind=kind, low=size.low / divisor, high=size.low / divisor, in_rows=kind is SizeKind.EXACT)


def _match_sums(nodes: _Nodes, labeled: IntArray, n_rows: int) -> tuple[_Nodes, float | None]:
    """Make sizes sum to the rows to label; return the sum of fractions that were divided by it, too."""
    top, closed = nodes.topmost, nodes.is_closed
    if closed and np.all(nodes.is_count[top]):
        return _without_labeled(nodes, labeled, n_rows), None
    _check_too_many(nodes, n_rows)
    total = float(nodes.low[top].sum()) / n_rows
    scaled = (nodes.is_rough | nodes.is_exact) & ~nodes.is_count if closed else nodes.is_rough
    movable, fixed = float(nodes.low[top & scaled].sum()), float(nodes.low[top & ~scaled].sum())
    is_contradiction = closed and (abs(total - 1) > ROUNDING or not movable or fixed >= n_rows)
    if is_contradiction or (movable and total > 1 + ROUNDING):
        raise PriorError(PriorErrorKind.SUM, total=total, n_rows=n_rows)
    if not movable or (not closed and total <= 1):
        return nodes, None
    factor = np.where(scaled, max(n_rows - fixed, 0.0) / movable, 1.0)
    nodes = replace(nodes, low=nodes.low * factor, high=nodes.high * factor)
    return nodes, total if abs(total - 1) > _EXACT_SUM else None


def _without_labeled(nodes: _Nodes, labeled: IntArray, n_rows: int) -> _Nodes:
    """Exact counts of all classes: of the rows to label, or of all rows, less the labelled ones."""
    total, n_total = int(nodes.low[nodes.topmost].sum()), n_rows + int(labeled.sum())
    if total == n_rows:
        return nodes
    if total != n_total:
        raise PriorError(PriorErrorKind.COUNT_SUM, total=total, n_rows=n_rows, n_total=n_total)
    counts = np.where(nodes.in_rows, np.append(labeled, nodes.members @ labeled), 0)
    negative = nodes.high < counts
    if negative.any():
        j = int(np.argmax(negative))
        fields = {"name": nodes.names[j], "value": int(nodes.high[j]), "n_labeled": int(counts[j])}
        raise PriorError(PriorErrorKind.BELOW_LABELED, n_total=n_total, **fields)
    return replace(nodes, low=np.maximum(nodes.low - counts, 0.0), high=nodes.high - counts)


def _check_too_many(nodes: _Nodes, n_rows: int) -> None:
    too_many = nodes.low > n_rows + rounding_noise(nodes.low)
    if too_many.any():
        j = int(np.argmax(too_many))
        raise PriorError(PriorErrorKind.TOO_MANY_ROWS, name=nodes.names[j], value=float(nodes.low[j]), n_rows=n_rows)


def _whole_numbers(nodes: _Nodes, n_rows: int) -> tuple[IntArray, IntArray]:
    """Hard bounds (K+B,): within ranges, and on both sides of an exact fraction; fractions of all classes add up."""
    exact, ends = nodes.is_exact, (nodes.low, np.minimum(nodes.high, n_rows))
    low, high = np.zeros(exact.size, np.int64), np.full(exact.size, n_rows)
    low[exact], high[exact] = on_both_sides(nodes.low[exact])
    for bound, end, sign in ((low, ends[0], 1), (high, ends[1], -1)):
        inward = sign * np.ceil(sign * end - rounding_noise(end))
        bound[nodes.is_range] = inward[nodes.is_range]
    if nodes.is_closed and not nodes.members.size and not np.all(nodes.is_count):
        rest = ~nodes.is_count
        counts = np.zeros_like(low)
        counts[rest] = apportion(nodes.low[rest], n_rows - int(low[nodes.is_count].sum()))
        low[rest & exact] = high[rest & exact] = counts[rest & exact]
    if np.any(low > high):
        j = int(np.argmax(low > high))
        limits = {"low": float(nodes.low[j]), "high": float(nodes.high[j])}
        raise PriorError(PriorErrorKind.NO_WHOLE_NUMBER, name=nodes.names[j], n_rows=n_rows, **limits)
    return low, high
