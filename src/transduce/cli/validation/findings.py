"""What a check says and what it looks at: findings in whole sentences, and the documents with their labels in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from transduce import suggest
from transduce.cli.classes import ClassNames, read_class_names

PROBLEM, WARNING, NOTE = "problem", "warning", "note"
MOST_ROWS = 20
MOST_ALIKE = 5
_SHOWN_ROWS, _SHOWN_NAMES = 5, 4


@dataclass(frozen=True)
class Finding:
    """Something a careful colleague would point out.

    severity  "problem" (the result will be wrong, or there will be none), "warning" (it may well be), or "note"
    what      one sentence with figures
    rows      where to look, counted from 1, at most 20
    advice    what to do about it
    """

    severity: str
    what: str
    rows: tuple[int, ...]
    advice: str


@dataclass(frozen=True)
class Documents:
    """Texts, labels (None where there is none), shares of the classes if known, and how class names are to be read.

    tree  whether they are paths
    flat  whether all are plain names, even such as "a|b"
    """

    texts: Sequence[str]
    labels: Sequence[str | None]
    prior: Mapping[str, tuple[float, float]] | None
    tree: bool
    flat: bool = False

    @cached_property
    def rows_with(self) -> dict[str, list[int]]:
        """Rows with each label, as it is written, counted from 1; labels by name."""
        found: dict[str, list[int]] = {}
        for row, label in enumerate(self.labels, 1):
            if label is not None:
                found.setdefault(label, []).append(row)
        return dict(sorted(found.items()))

    @cached_property
    def names(self) -> ClassNames:
        """What the labels name."""
        counts = {name: len(rows) for name, rows in self.rows_with.items()}
        return read_class_names(counts, flat=self.flat, tree=self.tree)

    @cached_property
    def rows_naming(self) -> dict[str, list[int]]:
        """Rows that name each class or branch, counted from 1, by a label or as a part of a set; names in order."""
        found: dict[str, list[int]] = {}
        for label, rows in self.rows_with.items():
            for name in self.names.sets.candidates.get(label, (label,)):
                found.setdefault(name, []).extend(rows)
        return dict(sorted(found.items()))

    @cached_property
    def rows_of(self) -> dict[str, list[int]]:
        """Rows of each class, counted from 1, that have a full label; classes by name."""
        found = {name: list(self.rows_with.get(name, ())) for name in self.names.classes}
        for name, each in self.names.candidates.items():
            if len(each) == 1:
                found[min(each)] += self.rows_with[name]
        return found

    def knows(self, name: str) -> bool:
        """Whether a name is a class, with or without full labels, or a branch of some."""
        return name in self.rows_of or (self.tree and any(one.startswith(f"{name}/") for one in self.rows_of))

    def rows_under(self, name: str) -> list[int]:
        """Rows with a full label of a class, or of those under a branch."""
        below = (other for other in self.rows_of if self.tree and other.startswith(f"{name}/"))
        return self.rows_of[name] if name in self.rows_of else [row for one in below for row in self.rows_of[one]]

    @property
    def n_labelled(self) -> int:
        """How many rows have a full label."""
        return sum(map(len, self.rows_of.values()))

    @property
    def n_partial(self) -> int:
        """How many rows have a label that leaves several classes open."""
        return sum(map(len, self.rows_with.values())) - self.n_labelled


def finding(severity: str, what: str, rows: Iterable[int], advice: str) -> Finding:
    """Make a finding of the first rows, in order."""
    return Finding(severity, what, tuple(sorted(rows)[:MOST_ROWS]), advice)


def first_of(alike: Iterable[Finding]) -> Iterator[Finding]:
    """The first of findings of one kind, and how many more there are."""
    found = list(alike)
    yield from found[:MOST_ALIKE]
    more = found[MOST_ALIKE:]
    if more:
        rows = {row for one in more for row in one.rows}
        yield finding(more[0].severity, f"There are {len(more)} more like the last one.", rows, more[0].advice)


def row_list(rows: Iterable[int]) -> str:
    """Row numbers for a sentence.

    >>> row_list([7]), row_list([7, 2]), row_list(range(1, 101))
    ('row 7', 'rows 2 and 7', 'rows 1, 2, 3, 4, 5 and 95 more')
    """
    ordered = sorted(rows)
    return f"{'row' if len(ordered) == 1 else 'rows'} {suggest.name_list(ordered, _SHOWN_ROWS)}"


def name_list(names: Iterable[str], *, quote: bool = True) -> str:
    """Names for a sentence.

    >>> name_list(["tea", "milk"]), name_list("abcdef")
    ("'tea' and 'milk'", "'a', 'b', 'c', 'd' and 2 more")
    """
    return suggest.name_list(names, _SHOWN_NAMES, quote=quote)


def number_of(n: int, singular: str, plural: str | None = None) -> str:
    """Count things.

    >>> number_of(1, "text"), number_of(1200, "text"), number_of(2, "class", "classes")
    ('1 text', '1200 texts', '2 classes')
    """
    return f"{n} {singular if n == 1 else plural or singular + 's'}"
