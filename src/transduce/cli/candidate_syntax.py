"""Labels such as "tea|coffee": whether "|" joins candidates, what these name, and which of them look like slips.

Where a part of such a label is a label of its own in the column, "|" joins candidates in all of them, and every part is
a class: one that other rows are labelled with, or one that several sets name. Elsewhere "|" is part of plain names.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from transduce.cli.similar_names import are_close, plain_name

MARK = "|"
ADVICE = 'Correct it, label a row so, or pass --flat if "|" is part of a name.'
"""What to do about a slip."""
_MOST_UNKNOWN, _MOST_NAMES = 50, 300
"""More parts than this are not compared, and not with more names, so that a column of texts takes no time."""


@dataclass(frozen=True)
class Slip:
    """A part of a set that can be no class: it is empty, close to a known name, or stands in one row only."""

    label: str
    part: str
    near: str | None

    def __str__(self) -> str:
        """What is wrong, after "row 3 has "."""
        if not self.part:
            return f"{self.label!r}, a set of classes with an empty part."
        hint = f"; did you mean {self.near!r}?" if self.near else "."
        return f"{self.label!r}, but no row is labelled {self.part!r}{hint}"


@dataclass(frozen=True)
class Choices:
    """What the labels of a column name.

    single  names by themselves: labels that are no sets, and parts known from sets alone
    parts   of every set, the names in it that are no slips
    unseen  of `single` those known from sets alone, sorted
    slips   in the order of the labels
    plain   labels with "|" that are plain names
    """

    single: frozenset[str]
    parts: Mapping[str, tuple[str, ...]]
    unseen: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()
    plain: tuple[str, ...] = ()


def read_choices(counts: Mapping[str, int], *, flat: bool = False) -> Choices:
    """Tell sets from plain names, given the rows that each label has; `flat` takes all as plain names.

    >>> found = read_choices({"tea": 9, "coffee": 9, "tea|coffee": 1, "tea|milk": 2, "tea|cofee": 1})
    >>> found.unseen, [(slip.part, slip.near) for slip in found.slips]
    (('milk',), [('cofee', 'coffee')])
    >>> read_choices({"black|white": 3, "red|green": 3}).plain
    ('black|white', 'red|green')
    """
    parts = {} if flat else {name: parts_of(name) for name in counts if MARK in name}
    whole = [name for name in counts if name not in parts]
    known = {node for name in whole for node in nodes_of(name)}
    unknown: Counter[str] = Counter()
    for name, each in parts.items():
        unknown.update({part: counts[name] for part in each if part and part not in known})
    near = _near(unknown, sorted(whole, key=lambda name: -counts[name]))
    if not any(_is_linked(each, known, near, bool(whole)) for each in parts.values()):
        return Choices(frozenset(counts), {}, plain=tuple(parts))
    unseen = {part for part, rows in unknown.items() if rows > 1 and part not in near}
    named = known.union(*map(nodes_of, unseen))
    slips = [
        Slip(name, part, near.get(part) or _resembling(part, named))
        for name, each in parts.items()
        for part in each
        if part not in named
    ]
    sets = {name: tuple(part for part in each if part in named) for name, each in parts.items()}
    return Choices(frozenset({*whole, *unseen}), sets, tuple(sorted(unseen)), tuple(slips))


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a set, each once.

    >>> parts_of("tea | coffee|tea")
    ('tea', 'coffee')
    """
    return tuple(dict.fromkeys(part.strip() for part in name.split(MARK)))


def nodes_of(name: str) -> list[str]:
    """A name and the nodes above it, the highest first.

    >>> nodes_of("rec/sport")
    ['rec', 'rec/sport']
    """
    return [*(name[:end] for end, letter in enumerate(name) if letter == "/" and end), name]


def _is_linked(parts: Iterable[str], known: set[str], near: Mapping[str, str], some_whole: bool) -> bool:
    """Whether a part is a label of its own, below one, or nearly one; or one is empty beside labels without "|"."""
    return any(not known.isdisjoint(nodes_of(part)) or part in near or (some_whole and not part) for part in parts)


def _near(unknown: Iterable[str], whole: Iterable[str]) -> dict[str, str]:
    """Parts that are probably slips for a label of the column."""
    parts, names = list(unknown), list(whole)[:_MOST_NAMES]
    if len(parts) > _MOST_UNKNOWN:
        return {}
    found = {part: next((name for name in names if _is_slip(part, name)), None) for part in parts}
    return {part: name for part, name in found.items() if name is not None}


def _is_slip(part: str, name: str) -> bool:
    return plain_name(part) == plain_name(name) or are_close(part, name)


def _resembling(part: str, names: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(part, sorted(names)[:_MOST_NAMES], 1) if part else []
    return found[0] if found else None
