"""From a class prior as written to a `Statement` in rows to label: names, units, sums and whole numbers.

1. `spec` reads each size; plain numbers get their unit from their sum (`with_units`).
2. Exact counts of all classes must sum to the rows to label, or to all rows: then the labelled ones are subtracted.
   Fractions of all classes must sum to nearly 1, and are divided by their sum; those of some classes to 1 at most.
3. Exact sizes and ranges become whole numbers low <= count <= high. Rough sizes stay as they are.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from transduce.arrays import Array, BoolArray, IntArray
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.class_prior.rounding import apportion, on_both_sides, rounding_noise
from transduce.class_prior.spec import UNKNOWN, Prior, Size, read_sizes
from transduce.class_prior.statement import Statement
from transduce.errors import Names, Percents, PriorError, PriorErrorKind
from transduce.suggest import did_you_mean
from transduce.taxonomy import Taxonomy

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

    classes (K,) are names, labels (l,) the class indices of the rows with a full label; n_rows counts the rows to
    label, including those with a partial label. Branches of the taxonomy may have a size too.

    >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
    >>> stated = read_statement({"tea": "25%", "coffee": (3, 5)}, names, labels, 10)
    >>> stated.low, stated.high, stated.is_rough
    (array([0. , 3. , 2.5]), array([10. ,  5. ,  2.5]), array([False, False,  True]))
    """
    names = classes.tolist()
    prior = read_sizes(class_prior, names)
    branches = _find_branches(prior, names, taxonomy)
    below = [] if taxonomy is None else [taxonomy.below(name) for name in branches]
    members, nodes = np.array([*np.eye(len(names)), *below], bool), [*names, *branches]
    counted = [name for name, top in zip(nodes, topmost(members), strict=True) if top and name in prior]
    prior = with_units(prior, counted, n_rows, n_rows + labels.size)
    sizes = [prior.get(name, UNKNOWN) for name in nodes]
    is_rough, in_rows = (np.array([getattr(size, name) for size in sizes]) for name in ("is_rough", "in_rows"))
    low, high = np.array([(size.low, size.high) for size in sizes]).T * np.where(in_rows, 1.0, max(n_rows, 1))
    nodes[len(names) :] = ["/".join(name) if isinstance(name, tuple) else name for name in branches]
    if n_rows == 0:
        return Statement(nodes, members, np.zeros_like(low), np.zeros_like(low), is_rough & False, in_rows, 0)
    stated = Statement(nodes, members, low, high, is_rough, in_rows, n_rows)
    stated = _with_whole_numbers(_match_sums(stated, np.bincount(labels, minlength=len(names))))
    _check_feasible(stated.hard_bounds, n_rows)
    return stated


def _find_branches(prior: Prior, names: list[Any], taxonomy: Taxonomy | None) -> list[Any]:
    """Branches with a size; raises PriorError for a name that is neither a class nor a branch."""
    known = set(names)
    branches = [name for name in prior if name not in known]
    for name in branches:
        if taxonomy is None or not taxonomy.is_inner(name):
            _refuse_unknown(name, names, taxonomy)
    return [name for name in branches if prior[name].is_known]


def _refuse_unknown(name: Any, names: list[Any], taxonomy: Taxonomy | None) -> None:
    """Raise PriorError for a name that is neither a class nor a branch."""
    written = "/".join(map(str, name)) if isinstance(name, tuple) else name
    below = Names(each for each in names if isinstance(each, str) and each.startswith(f"{written}/"))
    if taxonomy is None and below:
        raise PriorError(PriorErrorKind.BRANCH_OF_FLAT_CLASSES, name=written, below=below)
    nodes = [] if taxonomy is None else [taxonomy.separator.join(path) for path in taxonomy.nodes]
    hint = did_you_mean(written.strip("/ ") if isinstance(written, str) else written, [*names, *nodes])
    raise PriorError(PriorErrorKind.UNKNOWN_CLASS, name=written, hint=hint, classes=Names(names))


def topmost(members: BoolArray) -> BoolArray:
    """Which nodes with these classes (N, K), all nested or disjoint, are in no other; of equal ones the last.

    >>> topmost(np.array([[True, False], [False, True], [True, False]])).tolist()
    [False, True, True]
    """
    found, covered = np.zeros(len(members), bool), np.zeros(members.shape[1], bool)
    for node in np.lexsort((-np.arange(len(members)), -members.sum(axis=1))):
        found[node] = not np.any(covered & members[node])
        covered |= members[node]
    return found


def with_units(sizes: Prior, topmost: Collection[Any], n_rows: int, n_total: int) -> Prior:
    """Decide the unit of plain numbers by the sum of those that are in no stated branch, the `topmost` ones.

    If all sizes are plain numbers, at least two, they are numbers of rows where they sum to the `n_rows` rows to label
    or to the `n_total` rows with and without labels; fractions where they sum to 1; per cents where they sum to 100.

    >>> sizes = read_sizes([60, 39.5, 0.5], ["cocoa", "coffee", "tea"])
    >>> [size.low for size in with_units(sizes, list(sizes), 2000, 2030).values()]
    [0.6, 0.395, 0.005]
    """
    total, found = sum(sizes[name].low for name in topmost), dict(sizes)
    if len(sizes) > 1 and all(size.is_plain for size in sizes.values()):
        if total in (n_rows, n_total) and all(size.low.is_integer() for size in sizes.values()):
            found = {name: _in_unit(size, in_rows=True) for name, size in sizes.items()}
        elif abs(total - 1) <= ROUNDING:
            found = {name: _in_unit(size) for name, size in sizes.items()}
        elif abs(total - 100) <= _PERCENT_ROUNDING:
            found = {name: _in_unit(size, divisor=100.0) for name, size in sizes.items()}
    wrong = next((size for size in found.values() if size.is_count and not size.low.is_integer()), None)
    if wrong is not None:
        raise PriorError(PriorErrorKind.NEITHER_UNIT, source=wrong.source, value=wrong.low)
    return found


def _in_unit(size: Size, *, in_rows: bool = False, divisor: float = 1.0) -> Size:
    """A plain number as rows, which are exact, or as a fraction, which is rough; 0 stays exact."""
    if size.low == 0:
        return size
    return replace(size, low=size.low / divisor, high=size.low / divisor, is_rough=not in_rows, in_rows=in_rows)


def _match_sums(stated: Statement, labeled: IntArray) -> Statement:
    """Make sizes sum to the rows to label, if single numbers cover all classes; lower rough ones that sum to more."""
    n_rows, top, is_single = stated.n_rows, topmost(stated.members), stated.is_rough | stated.is_exact
    is_count, closed = stated.is_exact & stated.is_in_rows, bool(np.all(is_single[top]))
    if np.all(is_count[top]):
        return _without_labeled(stated, top, labeled)
    too_many = stated.low > n_rows + rounding_noise(stated.low)
    _refuse(PriorErrorKind.TOO_MANY_ROWS, stated, too_many, value=stated.low, n_rows=n_rows)
    total = float(stated.low[top].sum()) / n_rows
    scaled = is_single & ~is_count if closed else stated.is_rough
    movable, fixed = (float(stated.low[top & each].sum()) for each in (scaled, ~scaled))
    is_contradiction = closed and (abs(total - 1) > ROUNDING or not movable or fixed >= n_rows)
    if is_contradiction:
        raise PriorError(PriorErrorKind.SUM, total=total, n_rows=n_rows)
    if movable and total > 1 + ROUNDING:
        fractions = Percents((stated.low[top & (stated.low > 0)] / n_rows).tolist())
        raise PriorError(PriorErrorKind.SUM_OF_SOME, total=total, n_rows=n_rows, fractions=fractions)
    if not movable or (not closed and total <= 1):
        return stated
    factor = np.where(scaled, max(n_rows - fixed, 0.0) / movable, 1.0)
    divided_by = total if abs(total - 1) > _EXACT_SUM else None
    return replace(stated, low=stated.low * factor, high=stated.high * factor, divided_by=divided_by)


def _without_labeled(stated: Statement, top: BoolArray, labeled: IntArray) -> Statement:
    """Exact counts of all classes: of the rows to label, or of all rows, less the labelled ones."""
    total, n_total = int(stated.low[top].sum()), stated.n_rows + int(labeled.sum())
    if total == stated.n_rows:
        return stated
    if total != n_total:
        clause = f" and {n_total} with the labelled ones" if n_total > stated.n_rows else ""
        about = {"n_rows": stated.n_rows, "n_total": n_total, "with_labeled": clause}
        raise PriorError(PriorErrorKind.COUNT_SUM, total=total, **about)
    counts = np.where(stated.is_in_rows, stated.members @ labeled, 0)
    values = np.minimum(stated.high, n_total).astype(np.int64)
    _refuse(PriorErrorKind.BELOW_LABELED, stated, stated.high < counts, value=values, n_labeled=counts, n_total=n_total)
    return replace(stated, low=np.maximum(stated.low - counts, 0.0), high=stated.high - counts)


def _refuse(kind: PriorErrorKind, stated: Statement, wrong: BoolArray, **fields: Any) -> None:
    """Raise PriorError about the first node that is wrong; fields that are arrays have a value for each node."""
    if wrong.any():
        j = int(np.argmax(wrong))
        own = {name: value[j].item() if isinstance(value, np.ndarray) else value for name, value in fields.items()}
        raise PriorError(kind, name=stated.names[j], **own)


def _with_whole_numbers(stated: Statement) -> Statement:
    """Round ranges inwards, exact fractions to both sides; exact fractions of classes without branches add up."""
    n_rows, exact, is_count = stated.n_rows, stated.is_exact, stated.is_exact & stated.is_in_rows
    (least, low), (high, most) = map(on_both_sides, (stated.low, np.minimum(stated.high, n_rows)))
    low, high = np.where(exact, least, low), np.where(exact, most, high)
    is_flat = len(stated.names) == stated.n_classes
    if is_flat and np.all(exact | stated.is_rough) and not np.all(is_count):
        counts, rest = np.zeros_like(low), ~is_count
        counts[rest] = apportion(stated.low[rest], n_rows - int(low[is_count].sum()))
        low, high = (np.where(rest & exact, counts, end) for end in (low, high))
    is_empty, ends = (low > high) & ~stated.is_rough, {"low": stated.low, "high": stated.high}
    _refuse(PriorErrorKind.NO_WHOLE_NUMBER, stated, is_empty, n_rows=n_rows, **ends)
    rounded = [np.where(stated.is_rough, stated.low, end) for end in (low, high)]
    return replace(stated, low=rounded[0], high=rounded[1])


def _check_feasible(bounds: Bounds, n_rows: int) -> None:
    """Raise PriorError if no whole numbers of rows meet the bounds of classes and branches."""
    n_classes = bounds.low.size
    groups = bounds.groups or Groups(np.full(n_classes, n_classes), *np.zeros((2, 0), np.int64))
    conflict = groups.find_conflict(bounds.low, bounds.high, n_rows)
    if conflict is None:
        return
    if conflict.group is not None:
        kind = PriorErrorKind.BRANCH_TOO_SMALL if conflict.is_too_small else PriorErrorKind.BRANCH_TOO_LARGE
        raise PriorError(kind, name=groups.names[conflict.group], n_rows=n_rows, **conflict._asdict())
    kind = PriorErrorKind.LOW_SUM if conflict.is_too_small else PriorErrorKind.HIGH_SUM
    total = conflict.needed if conflict.is_too_small else conflict.allowed
    raise PriorError(kind, total=total, n_rows=n_rows, fraction=total / n_rows)
