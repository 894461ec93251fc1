"""Classes, trees and candidate sets in a label column."""

import re

import pytest

from transduce.cli.classes import parse_labels
from transduce.cli.errors import InputError


@pytest.mark.parametrize("name", ["a/b", "rec"])
def test_paths_without_a_common_part_are_plain_names(name):
    found = parse_labels([name, "x/y", None], "here")
    assert (found.classes, found.tree) == (tuple(sorted([name, "x/y"])), False)


def test_invalid_trees_are_refused():
    assert parse_labels(["a/b", "a/c"], "here").tree
    assert not parse_labels(["a/b", "a/c"], "here", flat=True).tree
    with pytest.raises(InputError, match="empty part"):
        parse_labels(["a//b", "a/c", "a/d"], "here")
    for labels, message in (([None], "no labels"), (["a", None, "a"], "only one class")):
        with pytest.raises(InputError, match=message):
            parse_labels(labels, "here")


def test_inner_nodes_and_sets_are_partial_labels():
    labels = ["a/b", "a/c", "d", None, "a", "d|a/b", "d | a"]
    found = parse_labels(labels, "here")
    assert found.classes == ("a/b", "a/c", "d")
    assert found.full == ("a/b", "a/c", "d", None, None, None, None)
    assert {row: sorted(names) for row, names in found.partial.items()} == {
        4: ["a/b", "a/c"],
        5: ["a/b", "d"],
        6: ["a/b", "a/c", "d"],
    }
    assert found.notes == ()
    flat = parse_labels(labels, "here", flat=True)
    assert (flat.partial, flat.notes, "d|a/b" in flat.classes) == ({}, (), True)
    assert parse_labels(["a/b", "a/c/d", "e", "a/c"], "here").full[3] == "a/c/d"  # one class is left: a full label
    assert parse_labels(["tea", "milk", "tea|tea"], "here").full[2] == "tea"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "bankin|travel",
            "row 7 of here has 'bankin|travel', but no row is labelled 'bankin'. Did you mean 'banking'?",
        ),
        ("Travel|banking", "no row is labelled 'Travel'. Did you mean 'travel'?"),
        ("bankin|travl", "Did you mean 'banking'?"),
        ("banking|zoo", "no row is labelled 'zoo'. Correct it, label a row with that class, or pass --flat"),
        ("banking|", "row 7 of here has 'banking|', a set of candidate classes with an empty part."),
        ("|", "row 7 of here has '|', a set of candidate classes with an empty part."),
        ("banking||travel", "an empty part"),
    ],
)
def test_a_set_with_an_unknown_candidate_is_refused(label, message):
    labels = ["banking", "travel", "home"] * 2 + [label, None]
    with pytest.raises(InputError, match=re.escape(message)):
        parse_labels(labels, "here")
    assert label in parse_labels(labels, "here", flat=True).classes


def test_a_repeated_misspelling_is_refused():
    with pytest.raises(InputError, match="Did you mean 'banking'"):
        parse_labels(["banking", "travel", "bankin|travel", "bankin|travel"], "here")


def test_a_candidate_of_several_rows_is_a_class():
    found = parse_labels(["banking", "home", "banking|travel", "home|travel"], "here")
    assert found.classes == ("banking", "home", "travel")
    assert sorted(found.partial[2]) == ["banking", "travel"]
    assert found.notes == ("'travel' is a class that occurs in partial labels only.",)
    branch = parse_labels(["a", "b", "a/x|b", "a/x|a/y", "a/y|b"], "here")  # below a label, though none is in full
    assert (branch.classes, branch.tree, sorted(branch.partial[0])) == (("a/x", "a/y", "b"), True, ["a/x", "a/y"])


def test_a_separator_that_joins_no_labels_is_part_of_names():
    found = parse_labels(["black|white", "red|green", "black|green", None], "here")
    assert (found.classes, found.partial) == (("black|green", "black|white", "red|green"), {})
    assert '"|" in ' in found.notes[0]
    assert "label a few rows of each class in full" in found.notes[0]
    assert parse_labels(["x", "y", "p|q"], "here").classes == ("p|q", "x", "y")


@pytest.mark.parametrize("labels", [["a|b", "a|b", None], ["a|b", "b | a"], ["rec", "rec/x|rec/y", "rec/x|rec/y"]])
def test_partial_labels_only_are_refused(labels):
    with pytest.raises(InputError, match=r"partial labels only, such as .*\. Label a few rows of each class in full"):
        parse_labels(labels, "here")


def test_a_column_of_texts_is_read_without_comparing_all_names():
    labels = ["tea", "milk", *(f"some text {n}|with a mark {n}" for n in range(20_000))]
    assert len(parse_labels(labels, "here").classes) == len(labels)
    labels[2] = "tea|milk"
    with pytest.raises(InputError, match="row 4"):
        parse_labels(labels, "here")
