"""Which columns are used as text and label."""

import polars as pl
import pytest

from transduce.cli.columns import choose_label, choose_text
from transduce.cli.errors import InputError
from transduce.cli.formats import Table

LONG = "a text that is long enough to be one"


def choose(text=(), label=None, /, **columns):
    """The chosen text and label columns, and what was reported."""
    table, messages = Table("documents.csv", pl.DataFrame(columns), "csv"), []
    label = choose_label(table, label, text, messages.append)
    return choose_text(table, text, label, messages.append), label, messages


def test_names_are_found_in_any_case():
    assert choose(ID=["1", "2"], Body=[LONG, LONG], CATEGORY=["a", ""])[:2] == (("Body",), "CATEGORY")


def test_contents_decide_where_names_do_not():
    *found, messages = choose(x1=[LONG] * 6, x2=["a", "b", None, "a", "b", ""], x3=["1", "2", "3", "4", "5", "6"])
    assert found == [("x1",), "x2"]
    assert [name in line for name, line in zip(("'x2'", "'x1'"), messages, strict=True)] == [True, True]


def test_named_columns_are_not_reported():
    assert choose(["a"], "b", a=[LONG], b=["x"]) == (("a",), "b", [])


def test_result_columns_are_not_text():
    assert choose(story=[LONG] * 2, label=["x"] * 2, runner_up=["some other rather long label"] * 2)[0] == ("story",)


def test_text_that_is_not_required_is_used_but_not_reported():
    table, messages = Table("documents.csv", pl.DataFrame({"text": [LONG], "label": ["x"]}), "csv"), []
    assert choose_text(table, (), "label", messages.append, required=False) == ("text",)
    assert choose_text(Table("a.csv", pl.DataFrame({"a": [1]}), "csv"), (), None, messages.append, required=False) == ()
    assert messages == []


@pytest.mark.parametrize(
    ("columns", "text", "label", "message"),
    [
        ({"x1": [LONG], "x2": [LONG], "y": ["a"]}, (), None, "several columns .* --text"),
        ({"x1": [LONG], "x2": ["a"]}, (), None, "--label"),
        ({"text": [LONG]}, ["text"], "text", "cannot be both"),
        ({"text": [LONG], "label": ["a"]}, ["text", "text"], None, "twice"),
        ({"a": ["x"], "label": ["b"]}, (), None, "no column"),
    ],
)
def test_unclear_columns_are_refused(columns, text, label, message):
    with pytest.raises(InputError, match=message):
        choose(text, label, **columns)


def test_the_label_column_is_not_text():
    assert choose((), "x1", x1=[LONG], x2=[LONG])[0] == ("x2",)
