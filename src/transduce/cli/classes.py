"""The classes that a label column names, whether they are paths in a tree, and the candidates of partial labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.cli.candidate_syntax import (
    ADVICE,
    SEPARATOR,
    CandidateSets,
    nodes_of,
    read_candidate_sets,
    split_candidates,
)
from transduce.cli.errors import InputError
from transduce.suggest import name_list

MAX_LISTED = 4


@dataclass(frozen=True)
class ParsedLabels:
    """The labels of a table, row by row.

    classes  class names, sorted
    tree     whether the names are paths in a tree
    full     the class of each row, None where the row has no label or a partial one
    partial  the candidate classes of each row with a partial label, "rec/sport" or "a|b"
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


class ClassNames(NamedTuple):
    """Classes, sorted; whether they form a tree; the candidates of every other label; and the candidate sets."""

    classes: tuple[str, ...]
    tree: bool
    candidates: Mapping[str, frozenset[str]]
    sets: CandidateSets


def parse_labels(labels: Sequence[str | None], where: str, *, flat: bool = False) -> ParsedLabels:
    """Find the classes and the partial labels: inner nodes of the tree, and sets joined by "|".

    With `flat`, every label is a plain name. `where` names the column in errors.

    >>> parse_labels(["rec/hockey", None, "rec/chess", "sci", "rec"], "here").classes
    ('rec/chess', 'rec/hockey', 'sci')
    >>> sorted(parse_labels(["rec/hockey", "rec/chess", "sci", "rec", "sci|rec/chess"], "here").partial[4])
    ['rec/chess', 'sci']
    """
    names = read_class_names(Counter(label for label in labels if label is not None), flat=flat)
    _refuse_unknown_candidates(names.sets, labels, where)
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


def _refuse_unknown_candidates(sets: CandidateSets, labels: Sequence[str | None], where: str) -> None:
    unknown = {one.label: one for one in reversed(sets.unknown)}
    for row, label in enumerate(labels, 1) if unknown else ():
        if label in unknown:
            raise InputError(f"row {row} of {where} has {unknown[str(label)]} {ADVICE}")


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


def paths_of_classes(labels: Sequence[str | None]) -> list[str]:
    """Paths whose every part is a label of its own: perhaps they were meant as candidate sets.

    >>> paths_of_classes(["tea", "milk", "tea/milk", "tea/green", None])
    ['tea/milk']
    """
    known = {label for label in labels if label is not None}
    return sorted(name for name in known if "/" in name and known.issuperset(name.split("/")))


def read_class_names(counts: Mapping[str, int], *, flat: bool = False, tree: bool | None = None) -> ClassNames:
    """Read the distinct labels, given the number of rows of each; `tree` is detected unless given.

    >>> read_class_names({"rec/hockey": 2, "rec/chess": 2, "rec": 1}).candidates["rec"] == {"rec/hockey", "rec/chess"}
    True
    """
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


def are_paths(names: Iterable[str]) -> bool:
    """Whether names are paths in a tree: two of them share a part before a "/".

    >>> are_paths(["rec/hockey", "rec/chess", "sci"]), are_paths(["yes", "n/a"])
    (True, False)
    """
    different = set(names)
    inner = {node for name in different for node in parents_of(name)}
    below = Counter(node for name in different for node in nodes_of(name) if node in inner)
    return any(count > 1 for count in below.values())


def parents_of(name: str) -> list[str]:
    """The nodes above a name, from the top.

    >>> parents_of("rec/sport/hockey")
    ['rec', 'rec/sport']
    """
    return nodes_of(name)[:-1]
