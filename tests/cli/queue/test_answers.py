"""Answers reach the rows they were asked for, and never change a given label."""

import json
from pathlib import Path

import polars as pl
import pytest
from helpers.queue_example import CLASSES, TEXTS, example_queue
from polars.testing import assert_frame_equal

from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of, read_table
from transduce.cli.queue import merge_answers, write_queue
from transduce.cli.queue.write import label_studio_tasks


def merged_frame(documents, column, answers, name):
    """The documents with the answers in their label column."""
    table = Table("the documents", documents, "")
    labels = labels_of(table, column).to_list()
    format = Path(name).suffix.lstrip(".")
    filled = merge_answers(table, column, labels, Table(name, answers, format), lambda _: None)
    return documents.with_columns(pl.Series(column, filled, dtype=pl.String))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_answers_reach_their_rows(tmp_path, suffix):
    table, frame = example_queue()
    target = str(tmp_path / f"queue{suffix}")
    write_queue(frame, target, CLASSES, ["the text", "body"])
    back = read_table(target)
    answers = [None if row == 6 else frame["suggested"][k] for k, row in enumerate(frame["row"])]
    filled = back.frame.with_columns(pl.Series("label", answers, dtype=pl.String))
    write_queue(filled, target, CLASSES, ["the text", "body"])  # as a spreadsheet would: the class "=sum" is marked now
    merged = merged_frame(table, "label", read_table(target).frame, target)
    expected = [None] * len(TEXTS)
    for row, answer in zip(frame["row"], answers, strict=True):
        expected[row - 1] = answer
    assert merged["label"].to_list() == expected
    assert_frame_equal(merged.drop("label"), table.drop("label"))


def test_an_export_of_label_studio_is_merged(tmp_path):
    table, frame = example_queue()
    tasks = label_studio_tasks(frame, ["the text", "body"], CLASSES)
    for number, task in enumerate(tasks, 100):
        result = task.pop("predictions")[0]["result"]
        task.update(id=number, annotations=[{"result": result, "was_cancelled": number == 103}])
    (tmp_path / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    answers = read_table(str(tmp_path / "export.json"))
    merged = merged_frame(table, "label", answers.frame, answers.name)["label"].to_list()
    given = {row: label for row, label in frame.select("row", "suggested").iter_rows() if row != frame["row"][3]}
    assert merged == [given.get(row) for row in range(1, len(TEXTS) + 1)]


def _table():
    return pl.DataFrame({"text": ["a", "b", "c"], "topic": ["tea", None, " "]})


@pytest.mark.parametrize("row", [2, 2.0, "2", " 2 ", "2.0"])
@pytest.mark.parametrize("column", ["label", "topic"])
def test_row_numbers_may_be_numbers_or_text(row, column):
    merged = merged_frame(_table(), "topic", pl.DataFrame({"row": [row], column: ["milk"]}), "a.csv")
    assert merged["topic"].to_list() == ["tea", "milk", None]


def test_numbers_as_labels_and_a_column_without_any_label():
    table = pl.DataFrame({"topic": [1.0, None, None]})
    merged = merged_frame(table, "topic", pl.DataFrame({"row": [1, 3], "label": ["1", "2"]}), "a.csv")
    assert merged["topic"].to_list() == ["1", None, "2"]
    empty = pl.DataFrame({"topic": [None, None]})
    assert merged_frame(empty, "topic", pl.DataFrame({"row": [2], "label": [7]}), "a")["topic"].to_list() == [
        None,
        "7",
    ]


def test_blank_lines_and_repeated_answers_are_accepted():
    answers = pl.DataFrame({"row": ["2", "", "2", "3"], "label": ["x", "", "x", None], "note": ["sure", "", "", "?"]})
    assert merged_frame(_table(), "topic", answers, "a.csv")["topic"].to_list() == ["tea", "x", None]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"row": [1], "label": ["milk"]}, r"row 1 has the label 'tea', but a\.csv says 'milk'"),
        ({"row": [2, 2], "label": ["x", "y"]}, r"a\.csv labels row 2 twice, 'x' and 'y'"),
        ({"row": [2, 4], "label": ["x", "y"]}, r"row 2 of a\.csv labels row 4, .*rows 1 to 3"),
        ({"row": ["0"], "label": ["x"]}, r"row 1 of a\.csv labels row 0"),
        ({"row": ["2.5"], "label": ["x"]}, r"row number in 'row', but has '2\.5'"),
        ({"row": [2.5], "label": ["x"]}, r"row number in 'row', but has '2\.5'"),
        ({"row": ["-1"], "label": ["x"]}, "row number"),
        ({"row": [None], "label": ["x"]}, "row number in 'row', but has ''"),
        ({"row": ["9" * 30], "label": ["x"]}, "row number"),
        ({"row": [2], "label": ["x"], "text": ["c"]}, r"row 2 of a\.csv has a different text in 'text'.*sorted\?"),
        ({"row": [2], "label": [""], "text": ["c"]}, "sorted"),
        ({"label": ["x"]}, "no 'row'"),
        ({"row": [2]}, "no 'topic'"),
    ],
)
def test_invalid_answers_are_refused(answers, message):
    with pytest.raises(InputError, match=message):
        merged_frame(_table(), "topic", pl.DataFrame(answers), "a.csv")


def test_a_missing_label_column_is_refused():
    with pytest.raises(InputError, match="topik"):
        merged_frame(_table(), "topik", pl.DataFrame({"row": [2], "label": ["x"]}), "a.csv")
