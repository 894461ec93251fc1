"""Encoded labels: class indices, allowed classes, full labels, and labels that cannot be used."""

import numpy as np
import pytest

from transduce.errors import LabelError, LabelErrorKind
from transduce.labels.classes import as_objects, find_classes
from transduce.labels.encode import check_labels, encode_labels, find_full_labels
from transduce.labels.missing import find_labeled
from transduce.labels.partial import RuledOut

TREE = ["hot/tea", "hot/coffee", "cold/milk"]


def encode(y, taxonomy=None, class_prior="estimate"):
    values, labeled = find_labeled(y)
    classes, tree = find_classes(values, labeled, class_prior, taxonomy)
    return classes.tolist(), encode_labels(as_objects(values), labeled, classes.tolist(), tree, taxonomy is not None)


def test_full_labels_are_class_indices_and_others_minus_one():
    classes, encoded = encode(["tea", "", "milk", None, "tea"])
    assert classes == ["milk", "tea"]
    assert encoded.codes.tolist() == [1, -1, 0, -1, 1]
    assert not encoded.partial.any()
    assert encoded.allowed is None


def test_partial_labels_allow_some_classes_and_ruled_out_labels_the_others():
    classes, encoded = encode(["tea", "milk", "cocoa", {"tea", "milk"}, RuledOut("tea"), "", {"tea"}])
    assert classes == ["cocoa", "milk", "tea"]
    assert encoded.codes.tolist() == [2, 1, 0, -1, -1, -1, 2]
    assert encoded.partial.tolist() == [False, False, False, True, False, False, False]
    assert encoded.allowed[3:6].astype(int).tolist() == [[0, 1, 1], [1, 1, 0], [1, 1, 1]]


def test_an_inner_node_allows_all_leaves_under_it():
    classes, encoded = encode(["hot/tea", "cold/milk", "hot", "cold"], TREE)
    assert classes == ["cold/milk", "hot/coffee", "hot/tea"]
    assert encoded.codes.tolist() == [2, 0, -1, 0]
    assert encoded.allowed[2].tolist() == [False, True, True]


def test_classes_keep_the_type_of_the_labels():
    for y, dtype in ((np.array([3, 1, -1], np.int8), np.int8), ([2.0, np.nan, 5.0], np.float64)):
        values, labeled = find_labeled(y)
        assert find_classes(values, labeled, "estimate", None)[0].dtype == dtype
    assert encode(["b", "a", ""], class_prior={"a": 0.2, "b": 0.3, "c": 0.5})[0] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("n_rows", "y", "kind"),
    [
        (3, [0, 1], "LENGTH"),
        (2, [-1, -1], "NOTHING_LABELED"),
        (2, [np.inf, 1.0], "INFINITE"),
        (2, [0.5, 1.0], "CONTINUOUS"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(n_rows, y, kind):
    with pytest.raises(LabelError) as caught:
        check_labels(n_rows, *find_labeled(y))
    assert caught.value.kind is LabelErrorKind[kind]


def test_a_node_over_one_leaf_is_a_full_label():
    entries, full = find_full_labels(["hot", "cold", {"cold", "hot/tea"}, "hot/tea", ""], taxonomy=TREE)
    assert full.tolist() == [False, True, False, True, False]
    assert entries[1] == "cold/milk"
