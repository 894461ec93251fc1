"""The classes that a label column names, whether they are paths in a tree, and the candidates of partial labels.

A partial label is an inner node of the tree, such as "rec", or a set such as "tea|coffee". If any part of such a set is
a label of its own in the column, "|" joins candidates in every label, and each part is a class: one that other rows are
labelled with, or one that several sets contain. Otherwise "|" is part of plain names.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.cli.errors import InputError
from transduce.suggest import did_you_mean, find_misspelled, name_list
from transduce.taxonomy import Taxonomy

SEPARATOR = "|"
ADVICE = 'Correct it, label a row with that class, or pass --flat if "|" is part of a name.'
"""What to do about an unknown candidate."""
MAX_UNKNOWN, MAX_NAMES = 50, 300
"""Limits on the spelling comparison, so that a column of texts takes no time."""
MAX_LISTED = 4


@dataclass(frozen=True)
class ParsedLabels:
    """The labels of a table, row by row.

    classes  class names, sorted
    tree     whether the names are paths in a tree
    full     the class of each row, None where the row has no label or a partial one
    partial  the candidate classes of each row with a partial label
    notes    interpretations that the user may not have meant, as sentences
    """

    classes: tuple[str, ...]
    tree: bool
    full: tuple[str | None, ...]
    partial: Mapping[int, frozenset[str]]
    notes: tuple[str, ...] = ()

    def encode(self, labels: Iterable[str | None]) -> NDArray[np.int64]:
        """The index of each class name, -1 where it is None."""
        index = {name: k for k, name in enumerate(self.classes)}
        return np.array([-1 if label is None else index[label] for label in labels], dtype=np.int64)

    @property
    def taxonomy(self) -> Taxonomy | None:
        """The tree of the classes, None if they are flat."""
        return Taxonomy.create(self.classes) if self.tree else None


class UnknownCandidate(NamedTuple):
    """A part of a candidate set that is not a class: empty, close to a known name, or in one row only."""

    label: str
    part: str
    hint: str

    def __str__(self) -> str:
        if not self.part:
            return f"{self.label!r}, a set of candidate classes with an empty part."
        return f"{self.label!r}, but no row is labelled {self.part!r}.{self.hint}"


class CandidateSets(NamedTuple):
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


class ClassNames(NamedTuple):
    """Classes, sorted; whether they form a tree; the candidates of every other label; and the candidate sets."""

    classes: tuple[str, ...]
    tree: bool
    candidates: Mapping[str, frozenset[str]]
    sets: CandidateSets


def parse_labels(labels: Sequence[str | None], where: str, *, flat: bool = False) -> ParsedLabels:
    """Find the classes and the partial labels; with `flat`, every label is a plain name.

    `where` names the column in errors.

    >>> parse_labels(["rec/hockey", None, "rec/chess", "sci", "rec"], "here").classes
    ('rec/chess', 'rec/hockey', 'sci')
    >>> sorted(parse_labels(["rec/hockey", "rec/chess", "sci", "rec", "sci|rec/chess"], "here").partial[4])
    ['rec/chess', 'sci']
    """
    names = read_class_names(Counter(label for label in labels if label is not None), flat=flat)
    unknown = {one.label: one for one in reversed(names.sets.unknown)}
    for row, label in enumerate(labels, 1) if unknown else ():
        if label in unknown:
            raise InputError(f"row {row} of {where} has {unknown[str(label)]} {ADVICE}")
    _check_classes(names, where)
    full_names = {name: name for name in names.classes}
    full_names |= {name: min(each) for name, each in names.candidates.items() if len(each) == 1}
    full = tuple(None if label is None else full_names.get(label) for label in labels)
    partial = {
        i: names.candidates[label] for i, label in enumerate(labels) if label is not None and label not in full_names
    }
    if not any(full):
        raise InputError(_only_partial(where, min(names.candidates)))
    return ParsedLabels(names.classes, names.tree, full, partial, tuple(_notes(names.sets)))


def _check_classes(names: ClassNames, where: str) -> None:
    classes = names.classes
    if not classes:
        raise InputError(f"{where} has no labels. Fill in a few, at least one for each class.")
    if len(names.sets.plain) == len(classes) and len({frozenset(split_candidates(name)) for name in classes}) == 1:
        raise InputError(_only_partial(where, classes[0]))
    if len(classes) == 1:
        raise InputError(f"{where} has only one class, {classes[0]!r}. Label rows of at least two classes.")
    for name in classes if names.tree else ():
        if "" in name.split("/"):
            raise InputError(f"{where} has {name!r}, a path with an empty part. Correct it, or pass --flat.")


def _only_partial(where: str, label: str) -> str:
    return f"{where} has partial labels only, such as {label!r}. Label a few rows of each class in full."


def _notes(sets: CandidateSets) -> Iterator[str]:
    if sets.only_in_sets:
        verb = "is a class that occurs" if len(sets.only_in_sets) == 1 else "are classes that occur"
        yield f"{name_list(sets.only_in_sets, MAX_LISTED)} {verb} in partial labels only."
    if sets.plain:
        yield (
            f'Reading "{SEPARATOR}" in {sets.plain[0]!r} as part of a plain name, because no part of such a label is '
            "a label by itself. If it means one of several classes, label a few rows of each class in full."
        )


def read_class_names(counts: Mapping[str, int], *, flat: bool = False, tree: bool | None = None) -> ClassNames:
    """Read the distinct labels, given the number of rows of each; `tree` is detected unless given."""
    sets = read_candidate_sets(counts, flat=flat)
    if tree is None:
        tree = not flat and are_paths(sets.names)
    inner = {node for name in sets.names for node in parents_of(name)} if tree else set()
    classes = tuple(sorted(sets.names - inner))
    others = counts.keys() - set(classes)
    candidates = {name: frozenset(_under(sets.candidates.get(name, (name,)), classes)) for name in others}
    return ClassNames(classes, tree, candidates, sets)


def _under(parts: Iterable[str], classes: Sequence[str]) -> Iterator[str]:
    """Classes that are one of the parts, or under one of them."""
    return (each for each in classes if any(each == part or each.startswith(f"{part}/") for part in parts))


def read_candidate_sets(counts: Mapping[str, int], *, flat: bool = False) -> CandidateSets:
    """Distinguish sets from plain names, given the number of rows of each label; with `flat`, all are plain names.

    >>> sets = read_candidate_sets({"tea": 9, "coffee": 9, "tea|coffee": 1, "tea|milk": 2, "tea|cofee": 1})
    >>> sets.only_in_sets, [(one.part, one.hint) for one in sets.unknown]
    (('milk',), [('cofee', " Did you mean 'coffee'?")])
    """
    sets = {} if flat else {name: split_candidates(name) for name in counts if SEPARATOR in name}
    single = [name for name in counts if name not in sets]
    known = {node for name in single for node in nodes_of(name)}
    rows: Counter[str] = Counter()
    for name, parts in sets.items():
        rows.update({part: counts[name] for part in parts if part and part not in known})
    near = misspelled_names(rows, sorted(single, key=lambda name: -counts[name]))
    if not any(_is_set(parts, known, near, bool(single)) for parts in sets.values()):
        return CandidateSets(frozenset(counts), {}, plain=tuple(sets))
    only_in_sets = {part for part, n_rows in rows.items() if n_rows > 1 and part not in near}
    known = known.union(*map(nodes_of, only_in_sets))
    unknown = [
        UnknownCandidate(name, part, did_you_mean(part, [near[part]] if part in near else sorted(known)[:MAX_NAMES]))
        for name, parts in sets.items()
        for part in parts
        if part not in known
    ]
    candidates = {name: tuple(part for part in parts if part in known) for name, parts in sets.items()}
    names = frozenset({*single, *only_in_sets})
    return CandidateSets(names, candidates, tuple(sorted(only_in_sets)), tuple(unknown))


def _is_set(parts: Iterable[str], known: set[str], near: Mapping[str, str], any_single: bool) -> bool:
    """Whether a part is a label, below one or a misspelling of one, or is empty beside labels without "|"."""
    return any(not known.isdisjoint(nodes_of(part)) or part in near or (any_single and not part) for part in parts)


def misspelled_names(parts: Collection[str], names: list[str]) -> dict[str, str]:
    """Names that are probably misspellings, with the label that was probably meant."""
    if len(parts) > MAX_UNKNOWN:
        return {}
    found = {part: find_misspelled(part, names[:MAX_NAMES]) for part in parts}
    return {part: name for part, name in found.items() if name is not None}


def split_candidates(name: str) -> tuple[str, ...]:
    """The distinct parts of a set."""
    return tuple(dict.fromkeys(part.strip() for part in name.split(SEPARATOR)))


def nodes_of(name: str) -> list[str]:
    """A name and the nodes above it, from the top.

    >>> nodes_of("rec/sport"), parents_of("rec/sport")
    (['rec', 'rec/sport'], ['rec'])
    """
    return [*(name[:end] for end, letter in enumerate(name) if letter == "/" and end), name]


def parents_of(name: str) -> list[str]:
    """The nodes above a name, from the top."""
    return nodes_of(name)[:-1]


def are_paths(names: Iterable[str]) -> bool:
    """Whether names are paths in a tree: two of them share a part before a "/"."""
    n_names = Counter(node for name in set(names) for node in nodes_of(name))
    return any(count > 1 for count in n_names.values())


def paths_of_classes(labels: Sequence[str | None]) -> list[str]:
    """Paths whose every part is a label of its own: perhaps they were meant as candidate sets."""
    known = {label for label in labels if label is not None}
    return sorted(name for name in known if "/" in name and known.issuperset(name.split("/")))
