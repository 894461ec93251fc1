"""Taxonomy: its properties follow from their definitions, on small trees written by hand and on random ones."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from transduce.taxonomy import Taxonomy

NESTED = {"rec": {"sport": ["hockey", "baseball"], "autos": None}, "sci": ["med"], "misc": None}
PATHS = [("rec", "sport", "hockey"), ("rec", "sport", "baseball"), ("rec", "autos"), ("sci", "med"), ("misc",)]
NAMES = ["/".join(path) for path in PATHS]
PARENTS = {"hockey": "sport", "baseball": "sport", "sport": "rec", "autos": "rec", "med": "sci", "misc": None}


def random_paths(seed, n_leaves=40, distinct_names=False):
    """Grow a tree by hanging each new node below a random earlier one; return the paths of its leaves."""
    rng = np.random.default_rng(seed)
    nodes, inner = [()], set()
    while len(nodes) - len(inner) <= n_leaves:
        above = nodes[rng.integers(len(nodes))]
        child = (*above, f"n{len(nodes)}" if distinct_names else f"n{sum(node[:-1] == above for node in nodes)}")
        inner.add(above)
        nodes.append(child)
    return sorted(node for node in nodes if node not in inner)


def nested(paths):
    tree = {}
    for path in paths:
        here = tree
        for name in path:
            here = here.setdefault(name, {})
    return tree


def parents(paths):
    return {name: parent for path in paths for name, parent in zip(path, (None, *path), strict=False)}


def edges_between(one, other):
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return len(one) + len(other) - 2 * shared


TREES = {
    "hand": PATHS,
    "flat": [("a",), ("c",), ("b",)],
    "one class": [("a", "b")],
    "same name": [("a", "x"), ("b", "x"), ("b", "y"), ("x",)],
    "interleaved": [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y", "z")],
    **{f"random {seed}": random_paths(seed) for seed in range(5)},
}


@pytest.fixture(params=TREES.values(), ids=TREES.keys())
def tree(request):
    return Taxonomy.create(request.param)


def test_nodes_are_the_prefixes_of_the_leaf_paths_in_order_of_first_appearance(tree):
    prefixes = [path[: length + 1] for path in tree.leaf_paths for length in range(len(path))]
    assert tree.nodes == tuple(dict.fromkeys(prefixes))
    assert tree.n_nodes == len(tree.nodes)
    assert tree.n_classes == len(tree.labels) == len(tree.leaf_paths)


def test_a_parent_is_the_path_without_its_last_name_and_stands_before_its_children(tree):
    assert tree.parent.dtype == tree.leaf_nodes.dtype == np.int64
    for j, (node, parent) in enumerate(zip(tree.nodes, tree.parent, strict=True)):
        assert parent < j
        assert node[:-1] == (tree.nodes[parent] if parent >= 0 else ())
    assert [tree.nodes[j] for j in tree.leaf_nodes] == list(tree.leaf_paths)


def test_paths_hold_a_node_exactly_where_it_is_a_prefix_of_the_leaf(tree):
    expected = [[path[: len(node)] == node for node in tree.nodes] for path in tree.leaf_paths]
    np.testing.assert_array_equal(tree.paths, expected)
    assert tree.paths.sum(axis=1).tolist() == [len(path) for path in tree.leaf_paths]


def test_distances_count_the_edges_between_leaves(tree):
    expected = [[edges_between(one, other) for other in tree.leaf_paths] for one in tree.leaf_paths]
    assert tree.distances.dtype == np.float64
    np.testing.assert_array_equal(tree.distances, expected)


def test_margins_are_distances_up_to_a_largest_of_one(tree):
    margins = tree.margins()
    np.testing.assert_allclose(margins * tree.distances.max(), tree.distances)
    assert margins.max() == (1.0 if tree.n_classes > 1 else 0.0)


def test_reordering_keeps_every_leaf_and_permutes_its_distances(tree):
    order = np.random.default_rng(0).permutation(tree.n_classes)
    moved = tree.reorder([tree.labels[k] for k in order])
    assert moved.leaf_paths == tuple(tree.leaf_paths[k] for k in order)
    assert set(moved.nodes) == set(tree.nodes)
    np.testing.assert_array_equal(moved.distances, tree.distances[np.ix_(order, order)])
    assert moved.reorder(tree.labels) == tree


def test_a_subset_drops_nodes_without_leaves(tree):
    kept = tree.labels[::2]
    part = tree.reorder(kept)
    assert part.labels == kept
    assert set(part.nodes) == {node for node in tree.nodes if any(path[: len(node)] == node for path in kept)}


def test_every_leaf_is_found_by_label_path_and_joined_path(tree):
    for k, path in enumerate(tree.leaf_paths):
        assert tree.leaf_of(tree.labels[k]) == tree.leaf_of(path) == tree.leaf_of(list(path)) == k
        assert tree.leaf_of("/".join(path)) == k


def test_copies_are_equal_have_the_same_hash_and_stay_read_only(tree):
    _ = tree.distances  # so that there is something cached to copy
    for twin in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
        assert twin == tree
        assert hash(twin) == hash(tree)
        assert twin.nodes == tree.nodes
        for array in (twin.parent, twin.leaf_nodes, twin.paths, twin.distances):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_fields_cannot_be_set(tree):
    with pytest.raises(FrozenInstanceError):
        tree.labels = ()


@pytest.mark.parametrize(
    ("read", "labels"),
    [
        (Taxonomy.create(NAMES), tuple(NAMES)),
        (Taxonomy.create([".".join(path) for path in PATHS], separator="."), tuple(".".join(p) for p in PATHS)),
        (Taxonomy.create([list(path) for path in PATHS]), tuple(PATHS)),
        (Taxonomy.create(np.array(NAMES)), tuple(NAMES)),
        (Taxonomy.create(PARENTS), tuple(path[-1] for path in PATHS)),
        (Taxonomy.create(NESTED), tuple(path[-1] for path in PATHS)),
        (Taxonomy.create({"misc": None, "sci": ("med",)}).reorder(["med", "misc"]), ("med", "misc")),
    ],
)
def test_every_form_describes_the_same_tree_with_its_own_labels(read, labels):
    assert read.leaf_paths == tuple(PATHS[-len(labels) :])
    assert read.nodes == Taxonomy.create(PATHS[-len(labels) :]).nodes
    assert read.labels == labels


@pytest.mark.parametrize("seed", range(10))
def test_random_trees_are_the_same_in_every_form(seed):
    paths = random_paths(seed, distinct_names=True)
    read = {
        Taxonomy.create(paths).leaf_paths,
        Taxonomy.create(list(map("/".join, paths))).leaf_paths,
        Taxonomy.create(parents(paths)).leaf_paths,
        Taxonomy.create(nested(paths)).leaf_paths,
    }
    assert read == {tuple(paths)}


def test_a_taxonomy_is_returned_as_it_is():
    tree = Taxonomy.create(NAMES)
    assert Taxonomy.create(tree) is tree


@pytest.mark.parametrize("labels", ["bac", [3, 1, 2], np.array([10, 9]), ["a/b", "a"], [("x", "y"), None]])
def test_flat_classes_are_their_own_nodes_at_distance_two(labels):
    tree = Taxonomy.flat(labels)
    assert tree.is_flat
    assert tree.labels == tuple(labels)
    np.testing.assert_array_equal(tree.paths, np.eye(len(labels)))
    np.testing.assert_array_equal(tree.parent, -1)
    np.testing.assert_array_equal(tree.distances, 2 * (1 - np.eye(len(labels))))
    np.testing.assert_array_equal(tree.margins(), 1 - np.eye(len(labels)))
    assert [tree.leaf_of(label) for label in labels] == list(range(len(labels)))


def test_a_tree_with_an_inner_node_is_not_flat():
    assert not Taxonomy.create(["a", "b/c"]).is_flat


def test_a_parent_may_be_empty_none_or_have_no_parent_entry():
    spec = {"a": "top", "top": None, "b": "other", "c": "", "d": "top"}
    assert Taxonomy.create(spec).leaf_paths == (("top", "a"), ("other", "b"), ("c",), ("top", "d"))


def test_a_leaf_name_used_twice_is_labelled_by_its_path():
    tree = Taxonomy.create({"a": ["x", "y"], "b": {"x": None}})
    assert tree.labels == ("a/x", "y", "b/x")
    assert tree.leaf_of("y") == 1


def test_what_is_below_two_names_may_be_one_object():
    shared = {"x": None, "y": None}
    assert Taxonomy.create({"a": shared, "b": {"c": shared}}).n_classes == 4


def test_a_label_wins_over_a_path_and_a_path_over_a_name():
    assert Taxonomy.create([("a", "b"), ("b",)]).leaf_of("b") == 1
    assert Taxonomy.create({"a": ["b"], "c": ["a/b"]}).leaf_of("a/b") == 1


CYCLIC = {"inner": {}}
CYCLIC["inner"]["again"] = CYCLIC


@pytest.mark.parametrize(
    ("make", "patterns"),
    [
        (lambda: Taxonomy.create({"a": "b", "b": "c", "c": "b"}), ["'[bc]'", "cycle"]),
        (lambda: Taxonomy.create({"x": None, "b": "c", "c": "b"}), ["'[bc]'", "cycle"]),
        (lambda: Taxonomy.create({"self": "self"}), ["'self'", "cycle"]),
        (lambda: Taxonomy.create(CYCLIC), ["'inner'|'again'", "cycle"]),
        (lambda: Taxonomy.create({"": "a"}), ["'a/'", "empty"]),
        (lambda: Taxonomy.create({"a": " "}), ["' /a'", "empty"]),
        (lambda: Taxonomy.create(["a//b"]), ["'a//b'", "empty"]),
        (lambda: Taxonomy.create(["/a"]), ["'/a'", "empty"]),
        (lambda: Taxonomy.create(["b", "a/"]), ["'a/'", "empty"]),
        (lambda: Taxonomy.create(["a.. .b"], separator="."), [r"'a\.\. \.b'", "empty"]),
        (lambda: Taxonomy.create([""]), ["''", "empty"]),
        (lambda: Taxonomy.create([["a"], []]), ["''", "empty"]),
        (lambda: Taxonomy.create([["a", "\n"]]), [r"'a/\\n'", "empty"]),
        (lambda: Taxonomy.create({"a": [" "]}), ["'a/ '", "empty"]),
        (lambda: Taxonomy.flat(["a", ""]), ["''", "empty"]),
        (lambda: Taxonomy.create(["a/b", "c", "a/b"]), ["'a/b'", "twice"]),
        (lambda: Taxonomy.create([("a", "b"), ["a", "b"]]), ["'a', 'b'", "twice"]),
        (lambda: Taxonomy.create({"a": ["b", "b"]}), ["'a/b'", "twice"]),
        (lambda: Taxonomy.flat([1, "1"]), ["'1'", "twice"]),
        (lambda: Taxonomy.flat([True, 1]), ["True", "twice"]),
        (lambda: Taxonomy.create(["a", "a/b"]), ["'a'", "parent", "'a/other'"]),
        (lambda: Taxonomy.create(["a.b.c", "a.b"], separator="."), ["'a.b'", "parent", "'a.b.other'"]),
        (lambda: Taxonomy.create({"r": ["a", {"a": ["b"]}]}), ["'r/a'", "parent", "'r/a/other'"]),
        (lambda: Taxonomy.flat([]), ["at least one class"]),
        (lambda: Taxonomy.create([]), ["at least one class"]),
        (lambda: Taxonomy.create({}), ["at least one class"]),
        (lambda: Taxonomy.create(NAMES).reorder([]), ["at least one class"]),
        (lambda: Taxonomy.create(NAMES).reorder(["med", "sci/med"]), ["'sci/med'", "twice"]),
        (lambda: Taxonomy.create(NAMES).leaf_of("knitting"), ["'knitting'", "not in", "'rec/sport/hockey', "]),
        (lambda: Taxonomy.create(NAMES).leaf_of(["rec", 3]), [r"\['rec', 3\]", "not in"]),
        (lambda: Taxonomy.create(NAMES).leaf_of({}), ["{}", "not in"]),
        (
            lambda: Taxonomy.create(NAMES).leaf_of("rec/sport"),
            ["'rec/sport'", "inner", "hockey' and .*baseball'.$"],
        ),
        (lambda: Taxonomy.create(NAMES).leaf_of(("sci",)), [r"\('sci',\)", "inner", "of 'sci/med'.$"]),
        (lambda: Taxonomy.create(NAMES).leaf_of("sport"), ["'sport'", "inner", "baseball'"]),
        (lambda: Taxonomy.create([f"a/{k}" for k in range(8)]).leaf_of("a"), ["inner", "'a/4' and 3 more.$"]),
        (lambda: Taxonomy.create(["a/x", "b/x"]).leaf_of("x"), ["'x'", "several", "'a/x' and 'b/x'.$"]),
        (lambda: Taxonomy.create([("a/b", "c"), ("a", "b/c")]).leaf_of("a/b/c"), ["several", r"\('a', 'b/c'\)"]),
        (
            lambda: Taxonomy.create(["rec/hockey", "sci/med", "sci/space"]).below("hockey"),
            ["node 'hockey'", "is a class, and no class is below it", "Use one of 'rec' and 'sci'.$"],
        ),
        (lambda: Taxonomy.create(["a/x", "b/x"]).below("x"), ["'x'", "is a class", "'a' and 'b'.$"]),
        (lambda: Taxonomy.flat(["tea", "coffee"]).below("tea"), ["'tea'", "is a class", "has no inner node.$"]),
        (lambda: Taxonomy.create(["a/x/1", "b/x/2"]).below("x"), ["'x'", "several inner", "'a/x' and 'b/x'.$"]),
        (lambda: Taxonomy.create(["rec/hockey"]).below("rce"), ["'rce'", "not in", "mean 'rec'.* one of 'rec'.$"]),
        (lambda: Taxonomy.flat(["tea"]).below({}), ["{}", "not in the taxonomy. This taxonomy has no inner node.$"]),
    ],
)
def test_an_error_names_the_node(make, patterns):
    with pytest.raises(ValueError, match=patterns[0]) as error:
        make()
    check_message(error, patterns)


@pytest.mark.parametrize(
    ("make", "patterns"),
    [
        (lambda: Taxonomy.create([["a", 3]]), ["'a', 3"]),
        (lambda: Taxonomy.create({3: "a"}), ["a string", "3"]),
        (lambda: Taxonomy.create(NAMES).reorder("med"), ["'med'", "into a list"]),
        (lambda: Taxonomy.create({"a": {"b": 3}}), ["'a/b'", "3"]),
        (lambda: Taxonomy.create({"a": ["b", ["c"]]}), ["'a'", r"\['c'\]"]),
        (lambda: Taxonomy.create({"a": [{1: None}], "b": {1: None}}), ["'a', 1"]),
        (lambda: Taxonomy.create("a/b"), ["str"]),
        (lambda: Taxonomy.create(["a/b", ("a", "c")]), ["list"]),
        (lambda: Taxonomy.create([1, 2]), ["Taxonomy.flat"]),
        (lambda: Taxonomy.create({"a", "b"}), ["set"]),
        (lambda: Taxonomy.create(None), ["NoneType"]),
    ],
)
def test_a_wrong_type_is_an_error_that_shows_it(make, patterns):
    with pytest.raises(TypeError, match=patterns[0]) as error:
        make()
    check_message(error, patterns)


def check_message(error, patterns):
    for pattern in patterns:
        assert error.match(pattern)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")


def test_a_deep_chain_needs_no_recursion():
    chain = [f"n{k}" for k in range(2000)]
    for spec in (dict(zip(reversed(chain[1:]), reversed(chain[:-1]), strict=True)), [chain], nested([chain])):
        tree = Taxonomy.create(spec)
        assert tree.leaf_paths == (tuple(chain),)
        assert tree.n_nodes == 2000
        assert tree.nodes[-1] == tuple(chain)
        assert tree.paths.all()


def test_a_leaf_at_every_level_of_a_deep_chain():
    pairs = [(f"{kind}{k + 1}", f"inner{k}") for k in range(300) for kind in ("leaf", "inner")]
    tree = Taxonomy.create(dict(pairs))
    levels = np.array([len(path) for path in tree.leaf_paths])
    expected = np.abs(levels[:, None] - levels) + 2  # up to the parent, along the chain, down again
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(tree.distances, expected)


def test_ten_thousand_nodes():
    paths = [(f"a{i}", f"b{j}", f"c{k}") for i in range(9) for j in range(100) for k in range(10)]
    tree = Taxonomy.create(paths)
    assert tree.n_nodes == 9 + 900 + 9000
    assert Taxonomy.create({"/".join(n): "/".join(n[:-1]) for n in tree.nodes}).n_nodes == tree.n_nodes
    assert tree.leaf_of("a8/b99/c9") == 8999
