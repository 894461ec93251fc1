"""Class sizes as users write them: one parser for numbers in Python and for text in options and files.

A size is rough, exact or a range:

    0.3    30%    3.5 %    0,02    1/77    rough: about this fraction of the rows to label
    ~120   ~30%                            rough: about 120 rows, about 30 %
    120    =120   =30%     =0.3            exact; numbers of rows are exact without the sign, too
    (0.1, 0.3)    10%:30%  10%-30%         range of fractions, limits that always hold
    (5, 9)        5:9      100-200         range of rows
    None   ?                               unknown, as for a class that is not mentioned

1 is one row; 1.0, 100% and the 1 in (0, 1) are all rows. 0 is exact in every spelling but ~0.

A class prior is a keyword, or sizes in the order of the classes or by name:

    "estimate"                   sizes that all rows suggest together
    "labeled"                    ranges around the proportions of the labelled rows
    "equal"                      rough: all classes have the same size
    [0.2, 0.8] or [20, 80]       sizes in the order of the classes
    {"tea": 0.2, "milk": "?"}    sizes by name
    {"sport": (0.2, 0.4)}        a branch of the taxonomy, whose classes then need no size of their own

The sum of plain numbers may decide their unit (`stated_sizes.with_units`): a column that sums to 100 is per cents.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from transduce.errors import Names, PriorError, PriorErrorKind, PriorTypeError

KEYWORDS = ("estimate", "labeled", "equal")
_MOST_ROWS = 1e15

_NUMBER = r"-?(?:(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[-+]?\d+)?|inf|nan)\s*(?:%|/\s*\d+)?"
_SIZE = re.compile(rf"([=~]?)\s*({_NUMBER})(?:\s*[:\u2013-]\s*({_NUMBER}))?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[1-9]\d{0,2},\d{3}")
_UNITS = re.compile(r"\s*(%|/)\s*")


@dataclass(frozen=True)
class Size:
    """A stated size.

    low, high  limits; an exact or a rough size is both. The high one may be infinite
    is_rough   whether this is about the size; otherwise the limits always hold
    in_rows    whether this is a number of rows; otherwise it is a fraction of the rows to label
    is_plain   whether this is a single number without any sign, whose unit the sum of all sizes may decide
    source     where it is stated, for error messages
    """

    low: float
    high: float
    is_rough: bool = False
    in_rows: bool = False
    is_plain: bool = field(default=False, compare=False)
    source: str = field(default="class_prior", compare=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether this says anything."""
        return self.low > 0 or self.high < np.inf

    @property
    def is_count(self) -> bool:
        """Whether this is an exact number of rows."""
        return self.in_rows and not self.is_rough and self.low == self.high


UNKNOWN = Size(0.0, np.inf)
Prior: TypeAlias = dict[Any, Size]


class _Number(NamedTuple):
    """A number, whether % or / make it a fraction, and whether it is written as a whole number."""

    value: float
    is_fraction: bool
    is_whole: bool


def read_prior(class_prior: object) -> object:
    """Turn a pandas Series into a mapping by its index; return anything else unchanged."""
    if hasattr(class_prior, "to_dict") and hasattr(class_prior, "index"):
        return class_prior.to_dict()
    return class_prior


def read_sizes(class_prior: object, classes: Sequence[Any]) -> Prior:
    """Sizes by name, from "equal", from sizes in the order of the classes, or from a mapping.

    >>> {name: size.low for name, size in read_sizes(["20%", "~7"], ["milk", "tea"]).items()}
    {'milk': 0.2, 'tea': 7.0}
    """
    if class_prior is None:
        raise PriorError(PriorErrorKind.NONE)
    if isinstance(class_prior, str):
        if class_prior != "equal":
            raise PriorError(PriorErrorKind.KEYWORD, value=class_prior)
        return dict.fromkeys(classes, Size(1 / len(classes), 1 / len(classes), is_rough=True))
    if not isinstance(class_prior, Mapping):
        sizes = _in_order(class_prior)
        if len(sizes) != len(classes):
            raise PriorError(PriorErrorKind.SHAPE, n_classes=len(classes), n_sizes=len(sizes), classes=Names(classes))
        class_prior = dict(zip(classes, sizes, strict=True))
    return {name: parse_size(size, f"class_prior[{name!r}]") for name, size in class_prior.items()}


def _in_order(class_prior: Any) -> list[object]:
    """Entries of a list or array."""
    if isinstance(class_prior, (set, frozenset, bytes, Iterator)) or not np.iterable(class_prior):
        raise PriorTypeError(PriorErrorKind.NOT_SIZES, value=class_prior)
    return list(class_prior)


def parse_size(value: object, source: str) -> Size:
    """Read a size from text, a number, or a pair of either; `source` says where it is stated.

    >>> size = parse_size("12 %", "here")
    >>> size.low, size.is_rough, size.in_rows
    (0.12, True, False)
    >>> parse_size((5, 9), "here") == parse_size("5-9", "here"), parse_size("?", "here").is_known
    (True, False)
    """
    if isinstance(value, Size):
        return value
    mark, parts = "", [value]
    if value is None or (isinstance(value, str) and value.strip() in ("", "?")):
        return UNKNOWN
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None or (found[1] and found[3]):
            raise PriorError(PriorErrorKind.SYNTAX, source=source, value=value)
        mark, parts = found[1], [part for part in found.groups()[1:] if part is not None]
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        parts = list(value)
    if len(parts) not in (1, 2):
        raise PriorTypeError(PriorErrorKind.SYNTAX, source=source, value=value)
    numbers = [_parse_number(part, source, value) for part in parts]
    if len(numbers) == 1 or numbers[0] == numbers[1]:
        return _single(numbers[0], mark if len(numbers) == 1 else "=", source, value)
    return _range(numbers[0], numbers[1], source, value)


def _parse_number(part: object, source: str, value: object) -> _Number:
    """Read one number, per cent or quotient."""
    if isinstance(part, str):
        if not re.fullmatch(_NUMBER, part.strip(), re.IGNORECASE):
            raise PriorError(PriorErrorKind.SYNTAX, source=source, value=value)
        if _THOUSANDS.fullmatch(part.strip()):
            raise PriorError(PriorErrorKind.THOUSANDS, source=source, value=value)
        digits, *unit = (piece for piece in _UNITS.split(part.strip().replace(",", ".")) if piece)
        divisor = {"%": 100.0, "/": float(unit[-1]) if unit[1:] else 1.0}[unit[0]] if unit else 1.0
        number = _Number(float(digits) / divisor if divisor else np.nan, bool(unit), digits.isdigit())
    elif isinstance(part, (Real, Decimal)) and not isinstance(part, bool):
        number = _Number(_as_float(part), False, isinstance(part, Integral))
    else:
        raise PriorTypeError(PriorErrorKind.SYNTAX, source=source, value=value)
    if not number.value >= 0 or _MOST_ROWS < number.value < np.inf:
        raise PriorError(PriorErrorKind.OUT_OF_RANGE, source=source, value=value)
    if number.is_fraction and number.value > 1:
        raise PriorError(PriorErrorKind.MORE_THAN_ALL, source=source, value=value)
    return number


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.nan


def _single(number: _Number, mark: str, source: str, value: object) -> Size:
    """A size of one number."""
    size, is_plain = number.value, not mark and not number.is_fraction
    if size == np.inf:
        raise PriorError(PriorErrorKind.OUT_OF_RANGE, source=source, value=value)
    in_rows = not number.is_fraction and (size > 1 or number.is_whole)
    if mark == "=" and in_rows and not size.is_integer():
        raise PriorError(PriorErrorKind.NEITHER_UNIT, source=source, value=value)
    if mark != "~" and size == 0:
        return Size(0.0, 0.0, False, True, is_plain, source)
    return Size(size, size, mark == "~" or (not mark and not in_rows), in_rows, is_plain, source)


def _range(low: _Number, high: _Number, source: str, value: object) -> Size:
    """A size between two different limits."""
    ends = [low.value, high.value]
    if high.is_fraction and not low.is_fraction and ends[0] > 1:  # 10-30%
        low, ends[0] = high, ends[0] / 100
    is_fraction = low.is_fraction or high.is_fraction or 0 < ends[0] < 1 or 0 < ends[1] < 1
    in_rows = not is_fraction and ((max(ends) > 1 and ends != [0, np.inf]) or (ends[0] == 1 and low.is_whole))
    if ends[0] > ends[1]:
        raise PriorError(PriorErrorKind.REVERSED, source=source, value=value)
    if is_fraction and 1 < ends[1] < np.inf:
        raise PriorError(PriorErrorKind.MIXED_UNITS, source=source, value=value)
    if in_rows and not all(end.is_integer() for end in ends if end < np.inf):
        raise PriorError(PriorErrorKind.NEITHER_UNIT, source=source, value=value)
    return Size(ends[0], ends[1], False, in_rows, False, source)
