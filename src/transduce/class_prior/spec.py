"""The class prior as users write it: a keyword, or sizes in the order of the classes or by name.

    "estimate"                   sizes that all rows suggest together
    "labeled"                    ranges around the proportions of the labelled rows
    [0.2, 0.8] or [20, 80]       fractions or numbers of rows, in the order of the classes
    [(0.1, 0.3), 0.2, None]      ranges, and None for an unknown size
    {"tea": 0.2, "milk": None}   the same by name
    {"sport": (0.2, 0.4)}        a branch of the taxonomy, whose classes then need no size of their own

Numbers up to 1 are fractions of the rows to label; if any number is larger, all are numbers of rows, and one between 0
and 1 is refused. A 1 written as an integer, beside other integers and open sizes, is one row: {"tea": 1, "milk": None}.
Write 1.0 for all rows. (0, 1) is any fraction; beside numbers of rows it means no row or one.

As text, in options and files, a size is "0.2", "20%", "120", "10%:30%", "5:9" or "?".
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from transduce.errors import Names, PriorError, PriorErrorKind, PriorTypeError
from transduce.suggest import did_you_mean
from transduce.taxonomy import Taxonomy

Size: TypeAlias = float | tuple[float, float] | None
Prior: TypeAlias = dict[str, Size]

ROUNDING = 0.021
"""Fractions whose sum differs from 1 by no more are taken as rounded ones."""


def read_prior(class_prior: object) -> object:
    """Turn a pandas Series into a mapping by its index; return anything else unchanged."""
    if hasattr(class_prior, "to_dict") and hasattr(class_prior, "index"):
        return class_prior.to_dict()
    return class_prior


def is_in_rows(class_prior: object) -> bool:
    """Whether stated sizes are numbers of rows; otherwise they are fractions.

    >>> is_in_rows({"tea": 0.2, "milk": None}), is_in_rows({"tea": 20, "milk": None})
    (False, True)
    >>> is_in_rows({"tea": 1, "milk": None}), is_in_rows({"tea": 1.0, "milk": None}), is_in_rows({"tea": 1, "milk": 0})
    (True, False, False)
    """
    if isinstance(class_prior, str) or not isinstance(class_prior, Iterable):
        return False
    sizes = list(class_prior.values() if isinstance(class_prior, Mapping) else class_prior)
    pairs: list[Any] = [size if is_range(size) else (size, size) for size in sizes if size is not None]
    ends = [end for pair in pairs for end in pair if np.isfinite(end)]
    if any(end > 1 for end in ends):
        return True
    least = sum(low for low, _ in pairs)  # single integers that sum to 1 are fractions: one class gets all rows
    return all(isinstance(end, Integral) for end in ends) and (least > 1 or (least == 1 and any(map(is_range, sizes))))


def is_range(size: object) -> bool:
    """Whether a size is (low, high), or None for any."""
    return size is None or (isinstance(size, (tuple, list, np.ndarray)) and len(size) == 2)


def is_number(value: object) -> bool:
    """Whether this is a real number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def by_name(class_prior: object, classes: Sequence[Any]) -> object:
    """Turn ranges and open sizes in the order of the classes into a mapping; return anything else unchanged."""
    if isinstance(class_prior, Mapping) or not isinstance(class_prior, (Sequence, np.ndarray)):
        return class_prior
    sizes = list(class_prior)
    if not any(map(is_range, sizes)):
        return class_prior
    if len(sizes) != len(classes):
        raise PriorError(PriorErrorKind.SHAPE, n_classes=len(classes), shape=(len(sizes),), classes=Names(classes))
    return dict(zip(classes, sizes, strict=True))


def check_units(sizes: Iterable[tuple[Any, Any]]) -> None:
    """Raise PriorError if (name, size) pairs mix fractions and numbers of rows."""
    ends = [(name, end) for name, size in sizes for end in (size if is_range(size) and size is not None else (size,))]
    ends = [(name, end) for name, end in ends if is_number(end)]
    count_name = next((name for name, end in ends if end > 1 and np.isfinite(end)), None)
    fraction_name = next((name for name, end in ends if 0 < end < 1), None)
    if count_name is not None and fraction_name is not None:
        raise PriorError(PriorErrorKind.MIXED_UNITS, fraction_name=fraction_name, count_name=count_name)


def bounds_of_size(name: object, size: object) -> tuple[float, float]:
    """Low and high of one size, checked; high may be infinite."""
    if size is None:
        return 0.0, np.inf
    ends: tuple[Any, Any] = size if is_range(size) else (size, size)  # type: ignore[assignment]
    if not all(map(is_number, ends)):
        raise PriorTypeError(PriorErrorKind.NOT_A_SIZE, name=name, value=size)
    low, high = float(ends[0]), float(ends[1])
    check_size(name, low)
    check_size(name, 0.0 if high == np.inf else high)
    if low > high:
        raise PriorError(PriorErrorKind.REVERSED, name=name, low=low, high=high)
    return low, high


def check_size(name: object, size: float) -> None:
    """Raise PriorError for a number that is no size."""
    if not 0 <= size < np.inf:
        kind = PriorErrorKind.NEGATIVE if size < 0 else PriorErrorKind.INFINITE if size > 0 else PriorErrorKind.NAN
        raise PriorError(kind, name=name, value=size)


def check_names(
    class_prior: Mapping[Any, Any], names: Sequence[Any], labeled: Iterable[int], taxonomy: Taxonomy | None = None
) -> None:
    """Raise PriorError unless every class has an entry and every entry a class; `labeled` are classes with labels."""
    unknown = next((name for name in class_prior if name not in names), None)
    if unknown is not None:
        hint = did_you_mean(unknown, names)
        raise PriorError(PriorErrorKind.UNKNOWN_CLASS, name=unknown, hint=hint, classes=Names(names))
    missing = next((name for name in names if name not in class_prior), None)
    if missing is None:
        return
    seen = set(labeled)
    unlabeled = next((name for k, name in enumerate(names) if k not in seen and name in class_prior), None)
    hint = "" if unlabeled is None else f", but names {unlabeled!r}, which no row is labelled with"
    if names.index(missing) not in seen:
        hint = ", which partial labels in y allow"
    branch = _branch_hint(missing, names, taxonomy)
    raise PriorError(PriorErrorKind.MISSING_CLASS, name=missing, hint=hint, branch=branch)


def _branch_hint(name: object, names: Sequence[Any], taxonomy: Taxonomy | None) -> str:
    """Advise to state the size of the branch above a class without a size."""
    if taxonomy is not None:
        path = taxonomy.leaf_paths[names.index(name)]
        return f"; or state its branch {taxonomy.separator.join(path[:-1])!r}" if len(path) > 1 else ""
    above = name.rpartition("/")[0] if isinstance(name, str) else ""
    return f"; or pass taxonomy= and state its branch {above!r}" if above else ""


def parse_size(value: object, source: str) -> Size:
    """Read a size from text, or from a number or list in a file; `source` says where it stands.

    >>> parse_size("12 %", "here"), parse_size([0.1, 0.2], "here"), parse_size("?", "here")
    (0.12, (0.1, 0.2), None)
    """
    if isinstance(value, str):
        value = value.strip()
        if value in ("", "?"):
            return None
        parts: Sequence[object] = value.split(":")
    else:
        parts = value if isinstance(value, list) else [value]
    if len(parts) not in (1, 2):
        raise PriorError(PriorErrorKind.SYNTAX, source=source, value=value)
    numbers = [_parse_number(part, source) for part in parts]
    if len(numbers) == 1:
        return numbers[0]
    if numbers[0] > numbers[1]:
        raise PriorError(PriorErrorKind.REVERSED_TEXT, source=source, value=value)
    return numbers[0], numbers[1]


def _parse_number(written: object, source: str) -> float:
    """Read one number or percentage."""
    part, scale = written, 1.0
    if isinstance(written, str) and written.strip().endswith("%"):
        part, scale = written.strip()[:-1], 0.01
    try:
        if isinstance(part, bool) or not isinstance(part, (str, int, float)):
            raise ValueError
        number = float(part) * scale
    except (ValueError, OverflowError):
        raise PriorError(PriorErrorKind.SYNTAX, source=source, value=written) from None
    if not 0 <= number < 1e15:
        raise PriorError(PriorErrorKind.OUT_OF_RANGE, source=source, value=written)
    number = round(number, 12)
    if number > 1 and (scale < 1 or not number.is_integer()):
        raise PriorError(PriorErrorKind.NEITHER_UNIT, source=source, value=written)
    return number


class CompletePrior(NamedTuple):
    """A class prior with an entry for every class, and what was assumed.

    sizes     size of each class, then of each stated branch; None where unknown
    unstated  classes without a size that are in no branch with a size
    total     the sum of rounded fractions, which were divided by it; None where they were not
    """

    sizes: Prior
    unstated: list[str]
    total: float | None


def complete_prior(prior: Mapping[str, Size], classes: Sequence[str], *, tree: bool = False) -> CompletePrior:
    """Give every class an entry, None where nothing is stated; fractions that sum to nearly 1 are divided by the sum.

    With `tree`, names such as "rec/chess" are paths, and a prior may name the branch "rec".

    >>> complete_prior({"tea": 0.3}, ["coffee", "tea"])
    CompletePrior(sizes={'coffee': None, 'tea': 0.3}, unstated=['coffee'], total=None)
    """
    branches = [name for name in prior if name not in classes]
    for name in branches:
        below = Names(each for each in classes if each.startswith(f"{name}/"))
        if not tree or not below:
            _refuse_unknown(name, classes, below, tree)
    check_units(prior.items())
    sizes: Prior = {name: prior.get(name) for name in (*classes, *branches)}
    unstated = [name for name in classes if name not in prior and not has_size(name, prior, tree=tree)]
    numbers = [size for size in sizes.values() if isinstance(size, float)]
    total = sum(numbers)
    if len(numbers) < len(classes) or branches or not 1e-9 < abs(total - 1) <= ROUNDING:
        return CompletePrior(sizes, unstated, None)
    return CompletePrior({name: size / total for name, size in sizes.items()}, unstated, total)  # type: ignore[operator]


def _refuse_unknown(name: str, classes: Sequence[str], below: Names, tree: bool) -> None:
    if below:
        raise PriorError(PriorErrorKind.BRANCH_OF_FLAT_CLASSES, name=name, below=below)
    known = dict.fromkeys(node for each in classes for node in (_nodes(each) if tree else [each]))
    hint = did_you_mean(name.strip("/ "), known)
    raise PriorError(PriorErrorKind.UNKNOWN_CLASS, name=name, hint=hint, classes=Names(classes))


def has_size(name: str, prior: Mapping[str, Size], *, tree: bool) -> bool:
    """Whether a class, or a branch that it is in, has a stated size.

    >>> has_size("rec/chess", {"rec": 0.3}, tree=True), has_size("sci", {"rec": 0.3, "sci": None}, tree=True)
    (True, False)
    """
    return any(prior.get(node) is not None for node in (_nodes(name) if tree else [name]))


def _nodes(name: str) -> list[str]:
    """A path and the branches that it is in."""
    return [*(name[:end] for end, letter in enumerate(name) if letter == "/" and end), name]


def fraction_ranges(prior: Mapping[str, Size], n_rows: int) -> dict[str, tuple[float, float]]:
    """Sizes as ranges of fractions of the rows to label.

    >>> fraction_ranges({"tea": 30.0, "coffee": (50.0, 70.0), "cocoa": None}, 100)
    {'tea': (0.3, 0.3), 'coffee': (0.5, 0.7), 'cocoa': (0.0, 1.0)}
    """
    check_units(prior.items())
    pairs = {name: size if isinstance(size, tuple) else (size, size) for name, size in prior.items()}
    in_rows = any(high is not None and high > 1 for _, high in pairs.values())
    scale = max(n_rows, 1) if in_rows else 1
    return {
        name: (0.0, 1.0) if low is None or high is None else (low / scale, high / scale)
        for name, (low, high) in pairs.items()
    }
