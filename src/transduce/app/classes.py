"""The classes that labels name, whether their names are paths in a tree, and labels that leave several classes open."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transduce.app.errors import InputError


@dataclass(frozen=True)
class Named:
    """What the labels of a table name.

    classes  sorted
    tree     whether their names are paths in a tree
    full     the class of each row, None where there is none or no single one
    open     for rows with a partial label, "rec/sport" or "a|b", the classes that it leaves open
    """

    classes: tuple[str, ...]
    tree: bool
    full: tuple[str | None, ...]
    open: Mapping[int, frozenset[str]]


def classes_of(labels: Sequence[str | None], where: str, *, flat: bool = False) -> Named:
    """Classes and partial labels.

    A name that others go on from, or several joined by "|", leaves several classes open; `flat` takes all as they are.

    >>> classes_of(["rec/hockey", None, "rec/chess", "sci", "rec"], "here").classes
    ('rec/chess', 'rec/hockey', 'sci')
    >>> sorted(classes_of(["rec/hockey", "rec/chess", "sci", "rec", "sci|rec/chess"], "here").open[4])
    ['rec/chess', 'sci']
    """
    classes, tree, meant = read_names({label for label in labels if label is not None}, flat=flat)
    if not classes:
        raise InputError(f"{where} has no label at all; fill in a few, for every class at least one.")
    if len(classes) == 1:
        raise InputError(f"{where} has one class only, {classes[0]!r}; label rows of at least two.")
    for name in classes if tree else ():
        if "" in name.split("/"):
            raise InputError(f"{where} has {name!r}, a path with an empty part; mend it, or pass --flat.")
    sure = {name: name for name in classes} | {name: min(each) for name, each in meant.items() if len(each) == 1}
    full = tuple(None if label is None else sure.get(label) for label in labels)
    open_rows = {i: meant[label] for i, label in enumerate(labels) if label is not None and label not in sure}
    return Named(classes, tree, full, open_rows)


def read_names(
    names: set[str], *, flat: bool = False, tree: bool | None = None
) -> tuple[tuple[str, ...], bool, dict[str, frozenset[str]]]:
    """Classes among the names that labels have, sorted; whether they are a tree, if not known; and what others mean.

    >>> read_names({"rec/hockey", "rec/chess", "rec"})[2] == {"rec": {"rec/hockey", "rec/chess"}}
    True
    """
    single = names if flat else {name for name in names if not _is_choice(name, names)}
    if tree is None:
        tree = not flat and are_paths(single)
    inner = {node for name in single for node in parents_of(name)} if tree else set()
    classes = tuple(sorted(single - inner))
    return classes, tree, {name: frozenset(_meant(name, classes)) for name in names - set(classes)}


def _is_choice(name: str, names: set[str]) -> bool:
    """Whether a name joins others by "|"; each must be a label of some row, or the beginning of one."""
    parts = [part.strip() for part in name.split("|")]
    return len(parts) > 1 and all(part in names or any(n.startswith(f"{part}/") for n in names) for part in parts)


def _meant(name: str, classes: Sequence[str]) -> Iterator[str]:
    """Classes that a partial label leaves open."""
    parts = [part.strip() for part in name.split("|")]
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
    return [name[:end] for end, letter in enumerate(name) if letter == "/" and end]
