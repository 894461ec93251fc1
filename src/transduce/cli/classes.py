"""The classes that labels name, whether their names are paths in a tree, and labels that leave several classes open."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transduce.cli.candidate_syntax import ADVICE, MARK, Choices, nodes_of, parts_of, read_choices
from transduce.cli.errors import InputError

_SHOWN = 4


@dataclass(frozen=True)
class Named:
    """What the labels of a table name.

    classes  sorted
    tree     whether their names are paths in a tree
    full     the class of each row, None where there is none or no single one
    open     for rows with a partial label, "rec/sport" or "a|b", the classes that it leaves open
    said     what was taken to be so, each to go on after "Took it that "
    """

    classes: tuple[str, ...]
    tree: bool
    full: tuple[str | None, ...]
    open: Mapping[int, frozenset[str]]
    said: tuple[str, ...] = ()


class Names(NamedTuple):
    """Classes, sorted; whether they are a tree; the classes that each other label leaves open; and what sets name."""

    classes: tuple[str, ...]
    tree: bool
    meant: Mapping[str, frozenset[str]]
    choices: Choices


def classes_of(labels: Sequence[str | None], where: str, *, flat: bool = False) -> Named:
    """Classes and partial labels.

    A name that others go on from, or several joined by "|", leaves several classes open; `flat` takes all as they are.

    >>> classes_of(["rec/hockey", None, "rec/chess", "sci", "rec"], "here").classes
    ('rec/chess', 'rec/hockey', 'sci')
    >>> sorted(classes_of(["rec/hockey", "rec/chess", "sci", "rec", "sci|rec/chess"], "here").open[4])
    ['rec/chess', 'sci']
    """
    names = read_names(Counter(label for label in labels if label is not None), flat=flat)
    classes, tree, meant, choices = names
    if choices.slips:
        of_label = {slip.label: slip for slip in reversed(choices.slips)}
        row, label = next((row, label) for row, label in enumerate(labels, 1) if label in of_label)
        raise InputError(f"row {row} of {where} has {of_label[str(label)]} {ADVICE}")
    _check_classes(names, where)
    sure = {name: name for name in classes} | {name: min(each) for name, each in meant.items() if len(each) == 1}
    full = tuple(None if label is None else sure.get(label) for label in labels)
    open_rows = {i: meant[label] for i, label in enumerate(labels) if label is not None and label not in sure}
    if not any(full):
        raise InputError(_only_partial(where, min(meant)))
    return Named(classes, tree, full, open_rows, tuple(_taken(choices)))


def _check_classes(names: Names, where: str) -> None:
    classes, tree, _, choices = names
    if not classes:
        raise InputError(f"{where} has no label at all; fill in a few, for every class at least one.")
    if len(choices.plain) == len(classes) and len({frozenset(parts_of(name)) for name in classes}) == 1:
        raise InputError(_only_partial(where, classes[0]))
    if len(classes) == 1:
        raise InputError(f"{where} has one class only, {classes[0]!r}; label rows of at least two.")
    for name in classes if tree else ():
        if "" in name.split("/"):
            raise InputError(f"{where} has {name!r}, a path with an empty part; mend it, or pass --flat.")


def _only_partial(where: str, label: str) -> str:
    return f"{where} has partial labels alone, such as {label!r}; label a few rows of each class in full."


def _taken(choices: Choices) -> Iterable[str]:
    """Readings that a user may not have meant."""
    if choices.unseen:
        listed = ", ".join(map(repr, choices.unseen[:_SHOWN])) + (" and others" if len(choices.unseen) > _SHOWN else "")
        yield f"{listed} {'is a class' if len(choices.unseen) == 1 else 'are classes'} known from partial labels alone"
    if choices.plain:
        yield (
            f'"{MARK}" in {choices.plain[0]!r} is part of a plain name, since no part of such a label is a label by '
            "itself; if it means one of several, label a few rows of each class in full"
        )


def paths_of_classes(labels: Sequence[str | None]) -> list[str]:
    """Paths whose every part is a label of its own: perhaps they were meant as sets.

    >>> paths_of_classes(["tea", "milk", "tea/milk", "tea/green", None])
    ['tea/milk']
    """
    known = {label for label in labels if label is not None}
    return sorted(name for name in known if "/" in name and known.issuperset(name.split("/")))


def read_names(counts: Mapping[str, int], *, flat: bool = False, tree: bool | None = None) -> Names:
    """Read labels, given the rows that each one has; whether they are a tree is found out, if not known.

    >>> read_names({"rec/hockey": 2, "rec/chess": 2, "rec": 1}).meant == {"rec": {"rec/hockey", "rec/chess"}}
    True
    """
    choices = read_choices(counts, flat=flat)
    if tree is None:
        tree = not flat and are_paths(choices.single)
    inner = {node for name in choices.single for node in parents_of(name)} if tree else set()
    classes = tuple(sorted(choices.single - inner))
    others = counts.keys() - set(classes)
    meant = {name: frozenset(_meant(choices.parts.get(name, (name,)), classes)) for name in others}
    return Names(classes, tree, meant, choices)


def _meant(parts: Iterable[str], classes: Sequence[str]) -> Iterable[str]:
    """Classes that a partial label leaves open."""
    return (each for each in classes if any(each == part or each.startswith(f"{part}/") for part in parts))


def are_paths(names: Iterable[str]) -> bool:
    """Whether names are paths in a tree: they are when some part before a "/" is common to two of them.

    >>> are_paths(["rec/hockey", "rec/chess", "sci"]), are_paths(["yes", "n/a"])
    (True, False)
    """
    different = set(names)
    inner = {node for name in different for node in parents_of(name)}
    below = Counter(node for name in different for node in (*parents_of(name), name) if node in inner)
    return any(count > 1 for count in below.values())


def parents_of(name: str) -> list[str]:
    """The nodes above a name, the highest first.

    >>> parents_of("rec/sport/hockey")
    ['rec', 'rec/sport']
    """
    return nodes_of(name)[:-1]
