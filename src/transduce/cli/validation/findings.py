"""The documents that checks examine, the findings that they report, and lists of rows and names for sentences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, TypeAlias

from transduce import suggest
from transduce.class_prior.spec import Prior
from transduce.cli.classes import ClassNames, read_class_names

Severity: TypeAlias = Literal["problem", "warning", "note"]
"""The result will be wrong, or there will be none; it may be wrong; or neither."""
MAX_ROWS, MAX_SIMILAR = 20, 5
_SHOWN_ROWS, _SHOWN_NAMES = 5, 4


@dataclass(frozen=True)
class Finding:
    """A sentence with figures, the first rows concerned (counted from 1), what to do, and the check that found it."""

    severity: Severity
    message: str
    rows: tuple[int, ...]
    advice: str
    check: str = ""


@dataclass(frozen=True)
class Documents:
    """Texts, labels (None where missing), stated sizes, rows without a class; see `check_documents`."""

    texts: Sequence[str]
    labels: Sequence[str | None]
    prior: Prior
    tree: bool
    flat: bool = False
    none: tuple[int, int] | None = None
    plain_rows: Mapping[str, float] = field(default_factory=dict)
    row_is_line: bool = False

    @cached_property
    def rows_with(self) -> dict[str, list[int]]:
        """Rows with each label as written, counted from 1, sorted by label."""
        return _grouped((label, row) for row, label in enumerate(self.labels, 1) if label is not None)

    @cached_property
    def names(self) -> ClassNames:
        """The classes and partial labels that the labels name."""
        counts = {name: len(rows) for name, rows in self.rows_with.items()}
        return read_class_names(counts, flat=self.flat, tree=self.tree)

    @cached_property
    def rows_naming(self) -> dict[str, list[int]]:
        """Rows that name each class or branch, alone or in a set of candidates, sorted by name."""
        sets, rows_with = self.names.sets.candidates, self.rows_with
        pairs = ((name, label) for label in rows_with for name in sets.get(label, (label,)))
        return _grouped((name, row) for name, label in pairs for row in rows_with[label])

    @cached_property
    def rows_of(self) -> dict[str, list[int]]:
        """Rows with a full label of each class, sorted by class."""
        found = {name: list(self.rows_with.get(name, ())) for name in self.names.classes}
        for name, each in self.names.candidates.items():
            if len(each) == 1:
                found[min(each)] += self.rows_with[name]
        return found

    def classes_under(self, name: str) -> list[str]:
        """The class of this name, or the classes below this branch of the tree."""
        below = [other for other in self.rows_of if self.tree and other.startswith(f"{name}/")]
        return [name] if name in self.rows_of else below

    def list_rows(self, rows: Iterable[int]) -> str:
        """List row numbers in brackets."""
        return f"({row_list(rows, is_line=self.row_is_line)})"

    @property
    def n_labeled(self) -> int:
        """Number of rows with a full label."""
        return sum(map(len, self.rows_of.values()))


def _grouped(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, row in pairs:
        found.setdefault(name, []).append(row)
    return dict(sorted(found.items()))


def finding(severity: Severity, message: str, rows: Iterable[int], advice: str) -> Finding:
    """Make a finding with the first of its rows."""
    return Finding(severity, message, tuple(sorted(rows)[:MAX_ROWS]), advice)


def first_of(similar: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first findings of one kind, and one for the number of the others."""
    found = list(similar)
    yield from found[:MAX_SIMILAR]
    more = found[MAX_SIMILAR:]
    if more:
        rows = {row for one in more for row in one.rows}
        yield finding(more[0].severity, f"There are {len(more)} more of this kind.", rows, more[0].advice)


def merged(names: Iterable[str], rows_of: Mapping[str, list[int]]) -> list[int]:
    """The rows of several names."""
    return [row for name in names for row in rows_of.get(name, ())]


def row_list(rows: Iterable[int], *, is_line: bool = False) -> str:
    """List row numbers in a sentence, with the line of the first one if each row of the file is a line.

    >>> row_list([7, 2]), row_list([2], is_line=True)
    ('rows 2 and 7', 'row 2, which is line 3 of the file')
    >>> row_list(range(2, 100), is_line=True)
    'rows 2, 3, 4, 5, 6 and 93 more; row 2 is line 3 of the file'
    """
    ordered = sorted(rows)
    is_one = len(ordered) == 1
    listed = f"{'row' if is_one else 'rows'} {suggest.name_list(ordered, _SHOWN_ROWS)}"
    if not is_line:
        return listed
    first = ordered[0]  # a spreadsheet counts the header, too
    return f"{listed}{', which' if is_one else f'; row {first}'} is line {first + 1} of the file"


name_list = partial(suggest.name_list, most=_SHOWN_NAMES)
