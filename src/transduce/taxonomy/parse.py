"""From a class hierarchy as users write it to the label and the path of each leaf."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from transduce.suggest import short_repr

Path: TypeAlias = tuple[str, ...]
Leaves: TypeAlias = tuple[tuple[Hashable, ...], tuple[Path, ...]]
"""Labels of the leaves, and their paths from the top."""


def parse_taxonomy(spec: object, separator: str) -> Leaves:
    """Read joined names, paths, a dict from child to parent or a nested dict.

    >>> parse_taxonomy({"hockey": "rec", "misc": None}, "/")
    (('hockey', 'misc'), (('rec', 'hockey'), ('misc',)))
    """
    if isinstance(spec, Mapping):
        is_parents = all(value is None or isinstance(value, str) for value in spec.values())
        return _from_parents(spec) if is_parents else _from_nested(spec)
    if isinstance(spec, Sequence | np.ndarray) and not isinstance(spec, str | bytes):
        members = as_list(spec)
        if all(isinstance(member, str) for member in members):
            return tuple(members), tuple(tuple(name.split(separator)) for name in members)
        if all(isinstance(member, list | tuple) for member in members):
            paths = tuple(tuple(path) for path in members)
            return paths, paths
    raise TypeError(
        "a taxonomy must be a list of 'a/b' names, a list of paths, a dict from child to parent or a nested dict, "
        f"but is of type {type(spec).__name__}: {short_repr(spec)}. Use Taxonomy.flat for classes without a hierarchy."
    )


def as_list(values: Any) -> list[Any]:
    """List the members of an array or iterable, with Python scalars in place of NumPy ones."""
    if isinstance(values, str | bytes):
        raise TypeError(f"expected a list of classes, but got {values!r}. Put it into a list.")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"expected a list of classes, but got {short_repr(values)}. Pass a list.")
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def check_path(path: Path, separator: str) -> None:
    """Raise an error unless a path is a tuple of names, none of them blank."""
    if not isinstance(path, tuple) or not all(isinstance(name, str) for name in path):
        raise TypeError(f"a path in a taxonomy must be a list of strings, but is {path!r}.")
    if not path or not all(name.strip() for name in path):
        joined = separator.join(path)
        raise ValueError(f"every node of a taxonomy needs a name, but one in {joined!r} is empty. Name or remove it.")


def _from_parents(parent_of: Mapping[str, str | None]) -> Leaves:
    """Read a dict from child to parent, in which each name is one node; a top node has no parent, None or ""."""
    for child in parent_of:
        if not isinstance(child, str):
            raise TypeError(f"a taxonomy must map each child, a string, to its parent, but has {child!r}.")
    paths = {child: _path_to(child, parent_of) for child in parent_of}
    inner = set(parent_of.values())
    leaves = tuple(child for child in parent_of if child not in inner)
    return leaves, tuple(paths[leaf] for leaf in leaves)


def _path_to(node: str, parent_of: Mapping[str, str | None]) -> Path:
    upwards = {node: None}
    while parent := parent_of.get(node):
        if parent in upwards:
            raise ValueError(f"the parents of {parent!r} in a taxonomy form a cycle. Correct one of them.")
        upwards[parent] = None
        node = parent
    return tuple(reversed(upwards))


def _from_nested(tree: object) -> Leaves:
    """Read nested dicts; a leaf is labelled by its name, or by its joined path if another leaf has that name too."""
    paths = _nested_paths(tree)
    uses = Counter(path[-1] for path in paths)
    return tuple(path[-1] if uses[path[-1]] == 1 else "/".join(map(str, path)) for path in paths), paths


def _nested_paths(tree: object) -> tuple[Path, ...]:
    """Walk a nested tree depth first, with a stack instead of recursion so that it may be of any depth."""
    paths: list[Path] = []
    seen: dict[int, object] = {}
    stack: list[tuple[Path, object]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        seen[id(node)] = node
        if len(path) > len(seen):  # more levels than objects: one of them contains itself
            raise ValueError(f"the taxonomy below {path[-1]!r} contains itself in a cycle. Correct it.")
        children = _children(node, path)
        if path and not children:
            paths.append(path)
        stack.extend(((*path, name), child) for name, child in reversed(children))
    return tuple(paths)


def _children(node: object, path: Path) -> list[tuple[str, object]]:
    if node is None:
        return []
    if isinstance(node, Mapping):
        return list(node.items())
    if isinstance(node, list | tuple) and all(isinstance(member, str | Mapping) for member in node):
        return [child for name in node for child in ([(name, None)] if isinstance(name, str) else name.items())]
    where = repr("/".join(map(str, path)))
    raise TypeError(f"below {where} of a taxonomy must be a dict, a list of names or None, but is {node!r}.")
