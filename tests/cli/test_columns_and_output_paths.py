"""Which columns are taken, and where results may go."""

import re

import polars as pl
import pytest

from transduce.cli import output_paths
from transduce.cli.classes import classes_of
from transduce.cli.columns import choose_columns
from transduce.cli.errors import InputError
from transduce.cli.formats import Table

LONG = "a text that is long enough to be one"


def table(**columns):
    return Table("pile.csv", pl.DataFrame(columns), "csv")


def test_names_are_found_in_any_case():
    found = choose_columns(table(ID=["1", "2"], Body=[LONG, LONG], CATEGORY=["a", ""]))
    assert (found.text, found.label) == (("Body",), "CATEGORY")


def test_contents_decide_where_names_do_not():
    found = choose_columns(table(x1=[LONG] * 6, x2=["a", "b", None, "a", "b", ""], x3=["1", "2", "3", "4", "5", "6"]))
    assert (found.text, found.label) == (("x1",), "x2")
    assert len(found.said) == 2


def test_what_is_asked_for_is_not_said():
    found = choose_columns(table(a=[LONG], b=["x"]), ["a"], "b")
    assert found.said == ()


def test_the_columns_of_earlier_results_are_not_text():
    found = choose_columns(table(story=[LONG] * 2, runner_up=["some other rather long label"] * 2), labels=False)
    assert found.text == ("story",)


@pytest.mark.parametrize(
    ("columns", "text", "label", "message"),
    [
        ({"x1": [LONG], "x2": [LONG]}, (), "x1", None),
        ({"x1": [LONG], "x2": [LONG], "y": ["a"]}, (), None, "--text"),
        ({"x1": [LONG], "x2": ["a"]}, (), None, "--label"),
        ({"text": [LONG]}, ["text"], "text", "cannot be both"),
        ({"a": ["x"], "label": ["b"]}, (), None, "no column"),
    ],
)
def test_what_is_not_plain_is_asked(columns, text, label, message):
    if message is None:
        assert choose_columns(table(**columns), text, label).text == ("x2",)
        return
    with pytest.raises(InputError, match=message):
        choose_columns(table(**columns), text, label)


@pytest.mark.parametrize("name", ["a/b", "rec"])
def test_paths_without_a_common_part_are_plain_names(name):
    found = classes_of([name, "x/y", None], "here")
    assert (found.classes, found.tree) == (tuple(sorted([name, "x/y"])), False)


def test_trees_and_their_troubles():
    assert classes_of(["a/b", "a/c"], "here").tree
    assert not classes_of(["a/b", "a/c"], "here", flat=True).tree
    with pytest.raises(InputError, match="empty part"):
        classes_of(["a//b", "a/c", "a/d"], "here")
    for labels, message in (([None], "no label at all"), (["a", None, "a"], "one class only")):
        with pytest.raises(InputError, match=message):
            classes_of(labels, "here")


def test_labels_that_leave_several_classes_open():
    labels = ["a/b", "a/c", "d", None, "a", "d|a/b", "d | a"]
    found = classes_of(labels, "here")
    assert found.classes == ("a/b", "a/c", "d")
    assert found.full == ("a/b", "a/c", "d", None, None, None, None)
    assert {row: sorted(names) for row, names in found.open.items()} == {
        4: ["a/b", "a/c"],
        5: ["a/b", "d"],
        6: ["a/b", "a/c", "d"],
    }
    assert found.said == ()
    flat = classes_of(labels, "here", flat=True)
    assert (flat.open, flat.said, "d|a/b" in flat.classes) == ({}, (), True)
    assert classes_of(["a/b", "a/c/d", "e", "a/c"], "here").full[3] == "a/c/d"  # one class is left: a full label
    assert classes_of(["tea", "milk", "tea|tea"], "here").full[2] == "tea"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "bankin|travel",
            "row 7 of here has 'bankin|travel', but no row is labelled 'bankin'; did you mean 'banking'?",
        ),
        ("Travel|banking", "no row is labelled 'Travel'; did you mean 'travel'?"),
        ("bankin|travl", "did you mean 'banking'?"),
        ("banking|zoo", "no row is labelled 'zoo'. Correct it, label a row so, or pass --flat"),
        ("banking|", "row 7 of here has 'banking|', a set of classes with an empty part."),
        ("|", "row 7 of here has '|', a set of classes with an empty part."),
        ("banking||travel", "an empty part"),
    ],
)
def test_a_set_with_an_unknown_part_is_no_class(label, message):
    labels = ["banking", "travel", "home"] * 2 + [label, None]
    with pytest.raises(InputError, match=re.escape(message)):
        classes_of(labels, "here")
    assert label in classes_of(labels, "here", flat=True).classes


def test_a_slip_that_is_copied_is_a_slip_all_the_same():
    with pytest.raises(InputError, match="did you mean 'banking'"):
        classes_of(["banking", "travel", "bankin|travel", "bankin|travel"], "here")


def test_a_part_that_several_rows_name_is_a_class():
    found = classes_of(["banking", "home", "banking|travel", "home|travel"], "here")
    assert found.classes == ("banking", "home", "travel")
    assert sorted(found.open[2]) == ["banking", "travel"]
    assert found.said == ("'travel' is a class known from partial labels alone",)
    branch = classes_of(["a", "b", "a/x|b", "a/x|a/y", "a/y|b"], "here")  # below a label, though none is in full
    assert (branch.classes, branch.tree, sorted(branch.open[0])) == (("a/x", "a/y", "b"), True, ["a/x", "a/y"])


def test_a_mark_that_joins_no_labels_is_part_of_names():
    found = classes_of(["black|white", "red|green", "black|green", None], "here")
    assert (found.classes, found.open) == (("black|green", "black|white", "red|green"), {})
    assert '"|" in ' in found.said[0]
    assert "label a few rows of each class in full" in found.said[0]
    assert classes_of(["x", "y", "p|q"], "here").classes == ("p|q", "x", "y")


@pytest.mark.parametrize("labels", [["a|b", "a|b", None], ["a|b", "b | a"], ["rec", "rec/x|rec/y", "rec/x|rec/y"]])
def test_partial_labels_alone_are_not_enough(labels):
    with pytest.raises(InputError, match=r"partial labels alone, such as .*; label a few rows of each class in full"):
        classes_of(labels, "here")


def test_reading_sets_takes_no_longer_a_row_in_a_column_of_texts():
    labels = ["tea", "milk", *(f"some text {n}|with a mark {n}" for n in range(20_000))]
    assert len(classes_of(labels, "here").classes) == len(labels)
    labels[2] = "tea|milk"
    with pytest.raises(InputError, match="row 4"):
        classes_of(labels, "here")


def test_targets(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("x")
    output_paths.check([str(tmp_path / "out.csv.gz"), "-", None], output_paths.TABLES, str(source))
    for name, message in (
        (str(tmp_path), "must end in"),
        (str(tmp_path / "no" / "out.csv"), "there is no folder"),
        (str(source), "nothing is lost"),
        ("out.xlsx", "must end in .csv or .tsv"),
    ):
        with pytest.raises(InputError, match=message):
            output_paths.check([name], output_paths.TABLES, str(source))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        output_paths.check([str(tmp_path / "folder.csv")], output_paths.TABLES, str(source))
    with pytest.raises(InputError, match="same name"):
        output_paths.check_different("a.csv", None, "./a.csv")
