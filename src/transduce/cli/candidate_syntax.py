"""Partial labels such as "tea|coffee": whether "|" joins candidate classes, which ones, and which look misspelled.

If any part of such a label is a label of its own in the column, "|" joins candidates in every label, and each part is a
class: one that other rows are labelled with, or one that several sets contain. Otherwise "|" is part of plain names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from transduce.suggest import did_you_mean, find_misspelled

SEPARATOR = "|"
ADVICE = 'Correct it, label a row with that class, or pass --flat if "|" is part of a name.'
"""What to do about an unknown candidate."""
MAX_UNKNOWN, MAX_NAMES = 50, 300
"""Limits on the spelling comparison, so that a column of texts takes no time."""


@dataclass(frozen=True)
class UnknownCandidate:
    """A part of a candidate set that is not a class: empty, close to a known name, or in one row only."""

    label: str
    part: str
    hint: str

    def __str__(self) -> str:
        """Describe the problem, to follow "row 3 has "."""
        if not self.part:
            return f"{self.label!r}, a set of candidate classes with an empty part."
        return f"{self.label!r}, but no row is labelled {self.part!r}.{self.hint}"


@dataclass(frozen=True)
class CandidateSets:
    """The names and candidate sets in a label column.

    names         labels that are not sets, and classes that occur in sets only
    candidates    for every set, its known candidates
    only_in_sets  classes that occur in sets only, sorted
    unknown       parts of sets that are not classes, in the order of the labels
    plain         labels that contain "|" but are plain names
    """

    names: frozenset[str]
    candidates: Mapping[str, tuple[str, ...]]
    only_in_sets: tuple[str, ...] = ()
    unknown: tuple[UnknownCandidate, ...] = ()
    plain: tuple[str, ...] = ()


def read_candidate_sets(counts: Mapping[str, int], *, flat: bool = False) -> CandidateSets:
    """Distinguish sets from plain names, given the number of rows of each label; with `flat`, all are plain names.

    >>> sets = read_candidate_sets({"tea": 9, "coffee": 9, "tea|coffee": 1, "tea|milk": 2, "tea|cofee": 1})
    >>> sets.only_in_sets, [(one.part, one.hint) for one in sets.unknown]
    (('milk',), [('cofee', " Did you mean 'coffee'?")])
    >>> read_candidate_sets({"black|white": 3, "red|green": 3}).plain
    ('black|white', 'red|green')
    """
    sets = {} if flat else {name: split_candidates(name) for name in counts if SEPARATOR in name}
    single = [name for name in counts if name not in sets]
    known = {node for name in single for node in nodes_of(name)}
    rows: Counter[str] = Counter()
    for name, parts in sets.items():
        rows.update({part: counts[name] for part in parts if part and part not in known})
    near = _misspelled(rows, sorted(single, key=lambda name: -counts[name]))
    if not any(_is_set(parts, known, near, bool(single)) for parts in sets.values()):
        return CandidateSets(frozenset(counts), {}, plain=tuple(sets))
    only_in_sets = {part for part, n_rows in rows.items() if n_rows > 1 and part not in near}
    known = known.union(*map(nodes_of, only_in_sets))
    unknown = [
        UnknownCandidate(name, part, _hint(part, near.get(part), known))
        for name, parts in sets.items()
        for part in parts
        if part not in known
    ]
    candidates = {name: tuple(part for part in parts if part in known) for name, parts in sets.items()}
    names = frozenset({*single, *only_in_sets})
    return CandidateSets(names, candidates, tuple(sorted(only_in_sets)), tuple(unknown))


def split_candidates(name: str) -> tuple[str, ...]:
    """The distinct parts of a set.

    >>> split_candidates("tea | coffee|tea")
    ('tea', 'coffee')
    """
    return tuple(dict.fromkeys(part.strip() for part in name.split(SEPARATOR)))


def nodes_of(name: str) -> list[str]:
    """A name and the nodes above it, from the top.

    >>> nodes_of("rec/sport")
    ['rec', 'rec/sport']
    """
    return [*(name[:end] for end, letter in enumerate(name) if letter == "/" and end), name]


def _is_set(parts: Iterable[str], known: set[str], near: Mapping[str, str], any_single: bool) -> bool:
    """Whether a part is a label, below one or a misspelling of one, or is empty beside labels without "|"."""
    return any(not known.isdisjoint(nodes_of(part)) or part in near or (any_single and not part) for part in parts)


def _misspelled(parts: Mapping[str, int], names: list[str]) -> dict[str, str]:
    """Parts that are probably misspellings, with the label that was probably meant."""
    if len(parts) > MAX_UNKNOWN:
        return {}
    found = {part: find_misspelled(part, names[:MAX_NAMES]) for part in parts}
    return {part: name for part, name in found.items() if name is not None}


def _hint(part: str, near: str | None, known: Iterable[str]) -> str:
    return did_you_mean(part, sorted(known)[:MAX_NAMES]) if near is None else f" Did you mean {near!r}?"
