"""Classes in a tree: every class is a leaf, and exactly one path of names leads from the top to it.

    distances[k, l] = length of path k + length of path l − 2 · number of nodes on both

The root is never stored, so classes without a hierarchy are a tree of K top nodes. A node is its whole path: the same
name under two parents is two nodes. Nodes are numbered as the paths of the leaves come to them, which puts parents
before children and makes node k of a flat tree its leaf k.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.suggest import did_you_mean, name_list

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Path: TypeAlias = tuple[str, ...]

_NAMED_IN_ERRORS = 5


@dataclass(frozen=True)
class Taxonomy:
    """The label of each leaf and its path from the top; nodes, their parents and distances follow from these.

    >>> tree = Taxonomy.create(["rec/hockey", "rec/baseball", "sci"])
    >>> tree.nodes
    (('rec',), ('rec', 'hockey'), ('rec', 'baseball'), ('sci',))
    >>> tree.parent, tree.leaf_nodes
    (array([-1,  0,  0, -1]), array([1, 2, 3]))
    """

    labels: tuple[Hashable, ...]
    leaf_paths: tuple[Path, ...]
    separator: str = "/"

    def __post_init__(self) -> None:
        if not self.leaf_paths:
            raise ValueError("a taxonomy needs at least one class, but none came; name the classes.")
        for _, path in zip(self.labels, self.leaf_paths, strict=True):
            _check_path(path, self.separator)
        for repeated in _repeated(self.labels) + _repeated(self.leaf_paths):
            raise ValueError(f"class {repeated!r} is given twice; leave one of them out, or rename it.")
        for k in np.flatnonzero(np.isin(self.leaf_nodes, self.parent)):
            name, other = (self.separator.join((*self.leaf_paths[k], *more)) for more in ((), ("other",)))
            raise ValueError(f"{name!r} is a class and a parent; give it a child of its own, such as {other!r}.")

    @classmethod
    def create(cls, spec: object) -> "Taxonomy":
        """Read a taxonomy, "a/b" names, lists of names, a dict from child to parent, or a nested dict.

        >>> Taxonomy.create({"hockey": "rec", "baseball": "rec"}) == Taxonomy.create({"rec": ["hockey", "baseball"]})
        True
        """
        if isinstance(spec, Taxonomy):
            return spec
        if isinstance(spec, Mapping):
            to_parents = all(value is None or isinstance(value, str) for value in spec.values())
            return cls.from_parents(spec.items()) if to_parents else cls.from_nested(spec)
        if isinstance(spec, Sequence | np.ndarray) and not isinstance(spec, str | bytes):
            members = _members(spec)
            if all(isinstance(member, str) for member in members):
                return cls.from_names(members)
            if all(isinstance(member, list | tuple) for member in members):
                return cls.from_paths(members)
        raise TypeError(
            "a taxonomy must be a list of 'a/b' names, a list of paths, a dict from child to parent or a nested dict, "
            f"but came as {type(spec).__name__}; rewrite it, or use Taxonomy.flat for classes without a hierarchy."
        )

    @classmethod
    def flat(cls, labels: Iterable[Hashable]) -> "Taxonomy":
        """Put every class at the top, named by its label as a string.

        >>> Taxonomy.flat([3, 7]).leaf_paths
        (('3',), ('7',))
        """
        labels = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        return cls(labels, tuple((str(label),) for label in labels))

    @classmethod
    def from_names(cls, names: Iterable[str], separator: str = "/") -> "Taxonomy":
        """Split each name into its path; the label is the name as given.

        >>> Taxonomy.from_names(["rec.autos", "sci.med"], separator=".").leaf_paths
        (('rec', 'autos'), ('sci', 'med'))
        """
        names = tuple(_members(names))
        paths = (tuple(name.split(separator)) if isinstance(name, str) else (name,) for name in names)
        return cls(names, tuple(paths), separator)

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[str]]) -> "Taxonomy":
        """Take each path, a list or tuple of names from the top; the label is the path as a tuple.

        >>> Taxonomy.from_paths([["rec", "autos"], ["sci"]]).labels
        (('rec', 'autos'), ('sci',))
        """
        leaf_paths = tuple(tuple(path) if isinstance(path, list) else path for path in _members(paths))
        return cls(leaf_paths, leaf_paths)

    @classmethod
    def from_parents(cls, pairs: Iterable[tuple[str, str | None]]) -> "Taxonomy":
        """Read (child, parent) pairs, where a name is one node wherever it stands; the label is the leaf's name.

        A node whose parent is None or "", and a parent that is never a child, stand at the top.

        >>> Taxonomy.from_parents([("rec", None), ("autos", "rec"), ("med", "sci")]).leaf_paths
        (('rec', 'autos'), ('sci', 'med'))
        """
        checked = [_as_pair(pair) for pair in _members(pairs)]
        parent_of = _single_parents(checked)
        _refuse_cycles(parent_of)
        inner = set(parent_of.values())
        leaves = tuple(child for child, _ in checked if child not in inner)
        return cls(leaves, tuple(_climb(leaf, parent_of) for leaf in leaves))

    @classmethod
    def from_nested(cls, tree: object) -> "Taxonomy":
        """Read nested dicts; below a name stands a dict, a list of names and dicts, or None for a leaf.

        The label is the leaf's name where no other leaf has it, otherwise the path joined by "/".

        >>> Taxonomy.from_nested({"rec": {"sport": ["hockey", "misc"], "autos": None}, "sci": ["misc"]}).labels
        ('hockey', 'rec/sport/misc', 'autos', 'sci/misc')
        """
        paths = _nested_paths(tree)
        uses = Counter(path[-1] for path in paths)
        return cls(tuple(path[-1] if uses[path[-1]] == 1 else "/".join(map(str, path)) for path in paths), paths)

    @property
    def n_classes(self) -> int:
        """Leaves, K."""
        return len(self.leaf_paths)

    @property
    def n_nodes(self) -> int:
        """Nodes without the root, M."""
        return len(self.parent)

    @cached_property
    def depth(self) -> int:
        """Length of the longest path."""
        return max(len(path) for path in self.leaf_paths)

    @property
    def is_flat(self) -> bool:
        """Whether every class stands at the top."""
        return self.depth == 1

    @cached_property
    def nodes(self) -> tuple[Path, ...]:
        """Every node as its full path, parents before children."""
        nodes: list[Path] = []
        for parent, name in self._tree[0]:
            nodes.append((name,) if parent < 0 else (*nodes[parent], name))
        return tuple(nodes)

    @cached_property
    def parent(self) -> IntArray:
        """The parent of each node (M,), −1 at the top."""
        return _read_only(np.array([parent for parent, _ in self._tree[0]], dtype=np.int64))

    @cached_property
    def leaf_nodes(self) -> IntArray:
        """The node of each leaf (K,)."""
        return _read_only(np.array(self._tree[1], dtype=np.int64))

    @cached_property
    def paths(self) -> NDArray[np.bool_]:
        """Whether leaf k passes through node j (K, M)."""
        passes = np.zeros((self.n_classes, self.n_nodes), dtype=np.bool_)
        leaves, here = np.arange(self.n_classes), self.leaf_nodes
        while leaves.size:
            passes[leaves, here] = True
            above = self.parent[here]
            leaves, here = leaves[above >= 0], above[above >= 0]
        return _read_only(passes)

    @cached_property
    def distances(self) -> FloatArray:
        """Number of edges between two leaves (K, K).

        In sorted order two leaves share as many nodes as the least that neighbours between them share.
        """
        order = sorted(range(self.n_classes), key=self.leaf_paths.__getitem__)
        lengths = np.array([len(self.leaf_paths[k]) for k in order])
        neighbours = (self.paths[order[:-1]] & self.paths[order[1:]]).sum(axis=1)
        shared = np.diag(lengths)
        for k in range(self.n_classes - 1):
            shared[k, k + 1 :] = shared[k + 1 :, k] = np.minimum.accumulate(neighbours[k:])
        distances = np.empty(shared.shape)
        distances[np.ix_(order, order)] = lengths[:, None] + lengths - 2 * shared
        return _read_only(distances)

    def margins(self) -> FloatArray:
        """Divide the distances by the largest, so that a flat tree has margin 1 between any two classes."""
        return self.distances / max(float(self.distances.max()), 1.0)

    def leaf_of(self, label: object) -> int:
        """Find the leaf meant by a label, a path, a joined path, or a name that only one leaf has.

        >>> tree = Taxonomy.create(["rec/hockey", "rec/misc", "sci/misc"])
        >>> tree.leaf_of("rec/misc"), tree.leaf_of(["sci", "misc"]), tree.leaf_of("hockey")
        (1, 2, 0)
        """
        key = tuple(label) if isinstance(label, list) else label
        try:
            leaves = self._meanings.get(key, [])
        except TypeError:  # not hashable, so not a label
            key, leaves = None, []
        if len(leaves) != 1:
            raise ValueError(f"label {label!r} {self._complaint(key, leaves)}.")
        return leaves[0]

    def is_inner(self, name: object) -> bool:
        """Whether a name, a path or a joined path is that of an inner node, and of no leaf.

        >>> tree = Taxonomy.create(["rec/hockey", "rec/misc", "sci/misc"])
        >>> tree.is_inner("rec"), tree.is_inner("hockey"), tree.is_inner("art")
        (True, False, False)
        """
        key = tuple(name) if isinstance(name, list) else name
        return key not in self._meanings and key in self._inner

    def below(self, name: object) -> NDArray[np.bool_]:
        """Which leaves (K,) stand under an inner node.

        >>> Taxonomy.create(["rec/hockey", "rec/misc", "sci/misc"]).below("rec")
        array([ True,  True, False])
        """
        key = tuple(name) if isinstance(name, list) else name
        nodes = self._inner.get(key, []) if isinstance(key, (str, tuple)) else []
        if len(nodes) != 1:
            raise ValueError(f"label {name!r} {self._complaint(key, [])}.")
        return np.asarray(self.paths[:, nodes[0]])

    def reorder(self, labels: Iterable[object]) -> "Taxonomy":
        """Keep the leaves named, in the order named, and the nodes above them.

        >>> Taxonomy.create(["rec/hockey", "rec/autos", "sci/med"]).reorder(["med", "hockey"]).labels
        ('sci/med', 'rec/hockey')
        """
        leaves = [self.leaf_of(label) for label in _members(labels)]
        paths = tuple(self.leaf_paths[k] for k in leaves)
        return Taxonomy(tuple(self.labels[k] for k in leaves), paths, self.separator)

    def __reduce__(self) -> tuple[Any, ...]:
        return Taxonomy, (self.labels, self.leaf_paths, self.separator)  # what is cached would come back writeable

    @cached_property
    def _tree(self) -> tuple[list[tuple[int, str]], list[int]]:
        """The parent and the name of each node, and the node at the end of each path."""
        numbers: dict[tuple[int, str], int] = {}
        ends = []
        for path in self.leaf_paths:
            node = -1
            for name in path:
                node = numbers.setdefault((node, name), len(numbers))
            ends.append(node)
        return list(numbers), ends

    @cached_property
    def _meanings(self) -> dict[object, list[int]]:
        """Leaves by own name, joined path, path and label; where two of these say different things the later holds."""
        names = _positions(path[-1] for path in self.leaf_paths)
        joined = _positions(map(self.separator.join, self.leaf_paths))
        return {**names, **joined, **_positions(self.leaf_paths), **_positions(self.labels)}

    @cached_property
    def _inner(self) -> dict[object, list[int]]:
        """Inner nodes by own name, joined path and path; where two of these say different things the later holds."""
        inner = sorted(set(range(self.n_nodes)) - set(self.leaf_nodes.tolist()))
        found: dict[object, list[int]] = {}
        for meaning in (lambda path: path[-1], self.separator.join, lambda path: path):
            said: dict[object, list[int]] = {}
            for node in inner:
                said.setdefault(meaning(self.nodes[node]), []).append(node)
            found.update(said)
        return found

    def _complaint(self, key: object, leaves: list[int]) -> str:
        if leaves:
            return f"may mean several classes; use one of {self._some(leaves)}"
        inner = [isinstance(key, str | tuple) and key in (n, n[-1], self.separator.join(n)) for n in self.nodes]
        if any(inner):
            below = np.flatnonzero(self.paths[:, inner].any(axis=1))
            return f"is an inner node, not a class; use one of {self._some(below)}"
        asked = did_you_mean(key, [*self._meanings, *self._inner]).strip().replace("Did", "did")
        advice = f"add it, or use one of {self._some(range(self.n_classes))}"
        return f"is not in the taxonomy; {f'{asked} Else {advice}' if asked else advice}"

    def _some(self, leaves: Sequence[int] | IntArray) -> str:
        return name_list((self.labels[k] for k in leaves), _NAMED_IN_ERRORS)


def _members(values: Any) -> list[Any]:
    if isinstance(values, str | bytes):
        raise TypeError(f"a taxonomy needs a list of classes, but {values!r} came; put it into a list.")
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _positions(values: Iterable[object]) -> dict[object, list[int]]:
    positions: dict[object, list[int]] = {}
    for k, value in enumerate(values):
        positions.setdefault(value, []).append(k)
    return positions


def _repeated(values: Iterable[Any]) -> list[Any]:
    return [value for value, uses in Counter(values).items() if uses > 1]


def _check_path(path: Path, separator: str) -> None:
    if not isinstance(path, tuple) or not all(isinstance(name, str) for name in path):
        raise TypeError(f"a path must be a list of names, each a string, but {path!r} came; rewrite it as one.")
    if not path or not all(name.strip() for name in path):
        joined = separator.join(path)
        raise ValueError(f"every node needs a name, but one in {joined!r} is empty; name it, or leave its level out.")


def _as_pair(pair: Any) -> tuple[str, str | None]:
    if not isinstance(pair, list | tuple) or [isinstance(name, str | None) for name in pair] != [True, True]:
        raise TypeError(f"a parent must come as a pair of strings, (child, parent), but {pair!r} came; rewrite it.")
    return pair[0] or "", pair[1] or None


def _single_parents(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    parent_of: dict[str, str | None] = {}
    for child, parent in pairs:
        known = parent_of.setdefault(child, parent)
        if known != parent:
            both = " and ".join("the top" if name is None else repr(name) for name in (known, parent))
            raise ValueError(f"{child!r} stands under {both}; keep one parent, or use paths to have it twice.")
    return parent_of


def _refuse_cycles(parent_of: Mapping[str, str | None]) -> None:
    clear: set[str] = set()
    for start in parent_of:
        climbed: set[str] = set()
        node: str | None = start
        while node is not None and node not in clear:
            if node in climbed:
                raise ValueError(f"the parents of {node!r} lead back to it in a cycle; correct one of their pairs.")
            climbed.add(node)
            node = parent_of.get(node)
        clear |= climbed


def _climb(leaf: str, parent_of: Mapping[str, str | None]) -> Path:
    upwards = [leaf]
    while (parent := parent_of.get(upwards[-1])) is not None:
        upwards.append(parent)
    return tuple(reversed(upwards))


def _nested_paths(tree: object) -> tuple[Path, ...]:
    """Walk a nested tree in its own order, with a list in place of recursion, so that no depth is too deep."""
    paths: list[Path] = []
    seen: dict[int, object] = {}
    todo: list[tuple[Path, object]] = [((), tree)]
    while todo:
        path, below = todo.pop()
        seen[id(below)] = below
        if len(path) > len(seen):  # more levels than objects: one of them holds itself
            raise ValueError(f"what stands below {path[-1]!r} holds itself in a cycle; take it out of itself.")
        children = _children(below, path)
        if path and not children:
            paths.append(path)
        todo.extend(((*path, name), child) for name, child in reversed(children))
    return tuple(paths)


def _children(below: object, path: Path) -> list[tuple[str, object]]:
    if below is None:
        return []
    if isinstance(below, Mapping):
        return list(below.items())
    if isinstance(below, list | tuple) and all(isinstance(member, str | Mapping) for member in below):
        listed = ({member: None} if isinstance(member, str) else member for member in below)
        return [child for members in listed for child in members.items()]
    where = repr("/".join(map(str, path))) if path else "the root"
    raise TypeError(f"below {where} must stand a dict, a list of names or None, but {below!r} came; rewrite it as one.")
