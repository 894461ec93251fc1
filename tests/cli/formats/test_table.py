"""Labels and texts of columns of every type."""

import polars as pl
import pytest
from helpers.tables import read

from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of, texts_of, unused_name


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([" x ", "", " \t", None, "rec/a b"], ["x", None, None, None, "rec/a b"]),
        ([1, None, -3], ["1", None, "-3"]),
        ([1.0, 2.5, None, float("nan"), -3.0], ["1", "2.5", None, None, "-3"]),
        ([True, False, None], ["true", "false", None]),
        ([["rec", " sport "], ["a"], [], None], ["rec/sport", "a", None, None]),
        ([[1, 2], [3]], ["1/2", "3"]),
        ([None, None], [None, None]),
    ],
)
def test_labels_of_every_column_type(values, expected):
    labels = labels_of(Table("t", pl.DataFrame({"y": values}, strict=False), "parquet"), "y")
    assert labels.dtype == pl.String
    assert labels.to_list() == expected


def test_labels_of_a_mixed_json_column(tmp_path):
    lines = ['{"y": 3}', '{"y": "x"}', '{"y": 2.0}', '{"y": ["a", "b"]}', '{"y": true}', '{"y": null}', '{"y": ""}']
    table = read(tmp_path, "a.jsonl", "\n".join(lines))
    assert labels_of(table, "y").to_list() == ["3", "x", "2", "a/b", "true", None, None]


def test_labels_of_categories_and_arrays():
    frame = pl.DataFrame(
        {
            "c": pl.Series(["x", None], dtype=pl.Categorical),
            "a": pl.Series([["r", "s"], None], dtype=pl.Array(pl.String, 2)),
        }
    )
    table = Table("t", frame, "parquet")
    assert labels_of(table, "c").to_list() == ["x", None]
    assert labels_of(table, "a").to_list() == ["r/s", None]


def test_texts_join_columns_of_every_type():
    frame = pl.DataFrame(
        {"s": ["a", None], "i": [1, None], "f": [0.5, float("nan")], "b": [True, None], "l": [["x"], None]}
    )
    assert texts_of(Table("t", frame, "parquet"), list("sifbl")).to_list() == ['a\n1\n0.5\ntrue\n["x"]', "\n\n\n\n"]
    assert texts_of(Table("t", frame, "parquet"), ["s"]).to_list() == ["a", ""]


TABLE = Table("data.csv", pl.DataFrame({"text": ["a"], "Label": ["x"]}), "csv")


@pytest.mark.parametrize("ask", [lambda column: labels_of(TABLE, column), lambda column: texts_of(TABLE, [column])])
@pytest.mark.parametrize(("column", "hint"), [("label", "Label"), ("texts", "text"), ("TEXT", "text"), ("zzz", None)])
def test_unknown_column_suggests_the_nearest(ask, column, hint):
    with pytest.raises(InputError) as caught:
        ask(column)
    message = str(caught.value)
    assert message.startswith(f'data.csv: there is no column "{column}".')
    assert message.endswith("The columns are: text, Label.")
    assert (f'Did you mean "{hint}"?' in message) == (hint is not None)


def test_no_text_column_is_refused():
    with pytest.raises(InputError, match=r"data\.csv: no text column was given"):
        texts_of(TABLE, [])


@pytest.mark.parametrize("values", [[["a"], ["a/b"]], [["a"], ["a", ""]], [["a"], ["a", None]], [["a"], [" "]]])
def test_invalid_path_parts_are_refused(values):
    with pytest.raises(InputError, match=r't, row 2: column "y" has a path with the part'):
        labels_of(Table("t", pl.DataFrame({"y": values}), "jsonl"), "y")


def test_infinity_is_not_a_label():
    with pytest.raises(InputError, match='t, row 2: column "y" has infinity'):
        labels_of(Table("t", pl.DataFrame({"y": [1.0, float("-inf")]}), "parquet"), "y")


def test_an_object_is_not_a_label(tmp_path):
    table = read(tmp_path, "a.jsonl", '{"y": "x"}\n{"y": {"a": 1}}')
    with pytest.raises(InputError, match='row 2: column "y" has an object'):
        labels_of(table, "y")


def test_a_name_that_is_taken_gets_the_first_free_number():
    assert [unused_name("label", taken) for taken in ((), {"label", "label_2"})] == ["label", "label_3"]
