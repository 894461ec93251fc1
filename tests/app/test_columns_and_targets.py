"""Which columns are taken, and where results may go."""

import polars as pl
import pytest

from transduce.app import targets
from transduce.app.classes import classes_of
from transduce.app.columns import choose_columns
from transduce.app.errors import InputError
from transduce.app.tables import Table

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
    labels = ["a/b", "a/c", "d", None, "a", "d|a/b", "d | a", "x|y", "a/b|e"]
    found = classes_of(labels, "here")
    assert found.classes == ("a/b", "a/b|e", "a/c", "d", "x|y")  # what names no label of another row is a name
    assert found.full == ("a/b", "a/c", "d", None, None, None, None, "x|y", "a/b|e")
    assert {row: sorted(names) for row, names in found.open.items()} == {
        4: ["a/b", "a/b|e", "a/c"],
        5: ["a/b", "d"],
        6: ["a/b", "a/b|e", "a/c", "d"],
    }
    assert classes_of(labels, "here", flat=True).open == {}
    assert classes_of(["a/b", "a/c/d", "e", "a/c"], "here").full[3] == "a/c/d"  # one class is left: a full label


def test_targets(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("x")
    targets.check([str(tmp_path / "out.csv.gz"), "-", None], targets.TABLES, str(source))
    for name, message in (
        (str(tmp_path), "must end in"),
        (str(tmp_path / "no" / "out.csv"), "there is no folder"),
        (str(source), "nothing is lost"),
        ("out.xlsx", "must end in .csv or .tsv"),
    ):
        with pytest.raises(InputError, match=message):
            targets.check([name], targets.TABLES, str(source))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        targets.check([str(tmp_path / "folder.csv")], targets.TABLES, str(source))
    with pytest.raises(InputError, match="same name"):
        targets.check_different("a.csv", None, "./a.csv")
