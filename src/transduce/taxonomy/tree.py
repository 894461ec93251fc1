"""The class hierarchy: every class is a leaf of a tree, reached by one path of names from the top.

    distances[k, l] = length of path k + length of path l − 2 · number of nodes on both

The root is not stored, so classes without a hierarchy are a tree of K top nodes. A node is its whole path: the same
name below two parents is two nodes. Nodes are numbered in the order in which the leaf paths first reach them: parents
come before children, and node k of a flat tree is leaf k.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.arrays import FloatArray, IntArray
from transduce.suggest import did_you_mean, name_list, short_repr
from transduce.taxonomy.parse import Path, as_list, check_path, parse_taxonomy


@dataclass(frozen=True)
class Taxonomy:
    """Tree of classes; usually made by `Taxonomy.create` or `Taxonomy.flat`.

    Parameters
    ----------
    labels : tuple of hashable
        Label of each leaf, K in all.
    leaf_paths : tuple of tuple of str
        Path of each leaf from the top.
    separator : str, default="/"
        String that joins the names of a path.

    Examples
    --------
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
        if not (isinstance(self.labels, tuple) and isinstance(self.leaf_paths, tuple)):
            raise TypeError("labels and leaf_paths must be tuples. Use Taxonomy.create, which reads other forms.")
        if len(self.labels) != len(self.leaf_paths):
            raise ValueError(
                f"labels and leaf_paths must have one entry for each class, but have {len(self.labels)} and "
                f"{len(self.leaf_paths)}. Use Taxonomy.create."
            )
        if not self.leaf_paths:
            raise ValueError("a taxonomy needs at least one class. Name some, or leave it out.")
        for _, path in zip(self.labels, self.leaf_paths, strict=True):
            check_path(path, self.separator)
        for name, uses in [*Counter(self.labels).items(), *Counter(self.leaf_paths).items()]:
            if uses > 1:
                raise ValueError(f"class {name!r} is in the taxonomy twice. Remove or rename one of them.")
        for k in np.flatnonzero(np.isin(self.leaf_nodes, self.parent)):
            name = self.separator.join(self.leaf_paths[k])
            child = f"{name}{self.separator}other"
            raise ValueError(f"{name!r} is both a class and a parent. Make the class a child, such as {child!r}.")

    @classmethod
    def create(cls, spec: object, separator: str = "/") -> "Taxonomy":
        """Read a class hierarchy.

        Parameters
        ----------
        spec : Taxonomy, list of str, list of list of str, or dict
            "a/b" names, which are the labels; paths, which are the labels as tuples; a dict from child to parent, None
            for a top node; or nested dicts, with a list of names or None at the lowest level. The labels of dicts are
            the names of the leaves, or joined paths where two leaves have the same name.
        separator : str, default="/"
            String at which names are split.

        Returns
        -------
        Taxonomy

        Examples
        --------
        >>> Taxonomy.create({"hockey": "rec", "baseball": "rec"}) == Taxonomy.create({"rec": ["hockey", "baseball"]})
        True
        >>> Taxonomy.create({"rec": {"sport": ["hockey", "misc"], "autos": None}, "sci": ["misc"]}).labels
        ('hockey', 'rec/sport/misc', 'autos', 'sci/misc')
        """
        return spec if isinstance(spec, Taxonomy) else cls(*parse_taxonomy(spec, separator), separator)

    @classmethod
    def flat(cls, labels: Iterable[Hashable]) -> "Taxonomy":
        """Return a tree in which every class is a top node, named by its label as a string.

        Parameters
        ----------
        labels : iterable of hashable
            Label of each class.
        """
        labels = tuple(labels if isinstance(labels, str) else as_list(labels))
        for label in labels:
            if not isinstance(label, Hashable) or (isinstance(label, tuple) and not label):
                raise TypeError(f"a class must be a name, a number or a tuple, but is {short_repr(label)}. Convert it.")
        return cls(labels, tuple((str(label),) for label in labels))

    @property
    def n_classes(self) -> int:
        """Number of leaves, K."""
        return len(self.leaf_paths)

    @property
    def n_nodes(self) -> int:
        """Number of nodes without the root, M."""
        return len(self.nodes)

    @property
    def is_flat(self) -> bool:
        """Whether every class is a top node."""
        return self.n_nodes == self.n_classes

    @cached_property
    def nodes(self) -> tuple[Path, ...]:
        """Path of each node, parents before children."""
        return tuple(dict.fromkeys(node for path in self.leaf_paths for node in _prefixes(path)))

    @cached_property
    def _numbers(self) -> dict[Path, int]:
        return {node: j for j, node in enumerate(self.nodes)}

    @cached_property
    def parent(self) -> IntArray:
        """Parent of each node (M,), -1 for a top node."""
        return _read_only(np.array([self._numbers.get(node[:-1], -1) for node in self.nodes], np.int64))

    @cached_property
    def leaf_nodes(self) -> IntArray:
        """Node of each leaf (K,)."""
        return _read_only(np.array([self._numbers[path] for path in self.leaf_paths], np.int64))

    @cached_property
    def paths(self) -> NDArray[np.bool_]:
        """Whether leaf k passes through node j (K, M)."""
        passes = np.zeros((self.n_classes, self.n_nodes), dtype=np.bool_)
        for k, path in enumerate(self.leaf_paths):
            passes[k, [self._numbers[node] for node in _prefixes(path)]] = True
        return _read_only(passes)

    @cached_property
    def distances(self) -> FloatArray:
        """Number of edges between two leaves (K, K).

        In sorted order, two leaves share as many nodes as the fewest that neighbours between them share.
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
        """Return the distances divided by the largest, so that classes of a flat tree have margin 1."""
        return self.distances / max(float(self.distances.max()), 1.0)

    def leaf_of(self, label: object) -> int:
        """Return the leaf with a label, a path, a joined path, or a name that no other leaf has.

        Parameters
        ----------
        label : object
            Label, path or name.

        Examples
        --------
        >>> tree = Taxonomy.create(["rec/hockey", "rec/misc", "sci/misc"])
        >>> tree.leaf_of("rec/misc"), tree.leaf_of(["sci", "misc"]), tree.leaf_of("hockey")
        (1, 2, 0)
        """
        found = self._leaves_by_name.get(_key(label), [])
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(f"label {label!r} may mean several classes. Use one of {self._some(found)}.")
        if inner := self._inner_by_name.get(_key(label)):
            below = np.flatnonzero(self.paths[:, inner].any(axis=1))
            raise ValueError(f"label {label!r} is an inner node, not a class. Use one of {self._some(below)}.")
        raise self._unknown("label", label, f"Add it, or use one of {self._some(range(self.n_classes))}.")

    def is_inner(self, name: object) -> bool:
        """Return whether a name, path or joined path is that of an inner node, and of no leaf; see `Taxonomy.below`."""
        return _key(name) not in self._leaves_by_name and _key(name) in self._inner_by_name

    def below(self, name: object) -> NDArray[np.bool_]:
        """Return a mask (K,) of the leaves below an inner node.

        Parameters
        ----------
        name : object
            Name, path or joined path of the node.

        Examples
        --------
        >>> Taxonomy.create(["rec/hockey", "rec/misc", "sci/misc"]).below("rec")
        array([ True,  True, False])
        """
        found = self._inner_by_name.get(_key(name), [])
        if len(found) == 1:
            return np.asarray(self.paths[:, found[0]])
        if found:
            raise ValueError(f"node {name!r} may mean several inner nodes. Use one of {self._some_nodes(found)}.")
        inner = sorted({j for numbers in self._inner_by_name.values() for j in numbers})
        advice = f"Use one of {self._some_nodes(inner)}." if inner else "This taxonomy has no inner node."
        if _key(name) in self._leaves_by_name:
            raise ValueError(f"node {name!r} is a class, and no class is below it. {advice}")
        raise self._unknown("node", name, advice)

    def reorder(self, labels: Iterable[object]) -> "Taxonomy":
        """Return the tree of these leaves, in this order, and the nodes above them.

        Parameters
        ----------
        labels : iterable
            Leaves, as in `leaf_of`.

        Examples
        --------
        >>> Taxonomy.create(["rec/hockey", "rec/autos", "sci/med"]).reorder(["med", "hockey"]).labels
        ('sci/med', 'rec/hockey')
        """
        leaves = [self.leaf_of(label) for label in as_list(labels)]
        paths = tuple(self.leaf_paths[k] for k in leaves)
        return Taxonomy(tuple(self.labels[k] for k in leaves), paths, self.separator)

    def __reduce__(self) -> tuple[Any, ...]:
        return Taxonomy, (self.labels, self.leaf_paths, self.separator)  # cached arrays would become writeable

    @cached_property
    def _leaves_by_name(self) -> dict[object, list[int]]:
        """Leaves by name, joined path, path and label; a label takes precedence over a path, a path over a name."""
        by_label = {label: [k] for k, label in enumerate(self.labels)}
        return _by_name(list(enumerate(self.leaf_paths)), self.separator) | by_label

    @cached_property
    def _inner_by_name(self) -> dict[object, list[int]]:
        """Inner nodes by name, joined path and path."""
        leaves = set(self.leaf_nodes.tolist())
        return _by_name([(j, path) for j, path in enumerate(self.nodes) if j not in leaves], self.separator)

    def _unknown(self, what: str, name: object, advice: str) -> ValueError:
        hint = did_you_mean(name, [*self._leaves_by_name, *self._inner_by_name])
        return ValueError(f"{what} {name!r} is not in the taxonomy.{hint} {advice}")

    def _some(self, leaves: Iterable[int]) -> str:
        return name_list((self.labels[k] for k in leaves), most=5)

    def _some_nodes(self, nodes: Iterable[int]) -> str:
        return name_list((self.separator.join(self.nodes[j]) for j in nodes), most=5)


def _prefixes(path: Path) -> Iterable[Path]:
    return (path[: length + 1] for length in range(len(path)))


def _key(name: object) -> object:
    """Return the dictionary key of a name or path; an empty tuple, which is no path, if it cannot be one."""
    key = tuple(name) if isinstance(name, list) else name
    try:
        hash(key)
    except TypeError:
        return ()
    return key


def _by_name(paths: list[tuple[int, Path]], separator: str) -> dict[object, list[int]]:
    """Index numbered paths by name, joined path and path; where these coincide the later kind takes precedence."""
    found: dict[object, list[int]] = {}
    for key in (itemgetter(-1), separator.join, tuple):
        numbers: dict[object, list[int]] = {}
        for number, path in paths:
            numbers.setdefault(key(path), []).append(number)
        found |= numbers
    return found


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
