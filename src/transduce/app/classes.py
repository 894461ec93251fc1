"""The classes that labels name, and whether their names are paths in a tree; every command reads them alike."""

from collections import Counter
from collections.abc import Iterable, Sequence

from transduce.app.errors import InputError


def classes_of(labels: Sequence[str | None], where: str, *, flat: bool = False) -> tuple[tuple[str, ...], bool]:
    """The classes, sorted, and whether their names are paths in a tree.

    >>> classes_of(["rec/hockey", None, "rec/chess", "sci"], "here")
    (('rec/chess', 'rec/hockey', 'sci'), True)
    """
    classes = tuple(sorted({label for label in labels if label is not None}))
    if not classes:
        raise InputError(f"{where} has no label at all; fill in a few, for every class at least one.")
    if len(classes) == 1:
        raise InputError(f"{where} has one class only, {classes[0]!r}; label rows of at least two.")
    if flat or not are_paths(classes):
        return classes, False
    inner = {node for name in classes for node in parents_of(name)}
    for name in classes:
        if name in inner:
            raise InputError(
                f"{where} has {name!r} both as a class and as the beginning of others; give it a part of its own, such "
                f"as {name + '/other'!r}, or read all labels as they are by --flat."
            )
        if "" in name.split("/"):
            raise InputError(f"{where} has {name!r}, a path with an empty part; mend it, or pass --flat.")
    return classes, True


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
