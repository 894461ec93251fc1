"""A queue as a table and as tasks for Label Studio."""

import json
from xml.etree import ElementTree

import polars as pl
import pytest
from helpers.queue_example import CLASSES, example_queue

from transduce.cli.errors import InputError
from transduce.cli.queue import check_names, queue_frame, write_queue
from transduce.cli.queue.write import label_studio_config, label_studio_tasks
from transduce.io.atomic_write import WriteError


def test_a_queue_has_row_numbers_empty_labels_and_texts():
    table, frame = example_queue()
    assert frame.columns == ["row", "label", "suggested", "confidence", "the text", "body"]
    assert frame["row"].to_list() == [8, 1, 4, 6, 2, 10]
    assert set(frame["label"]) == {""}
    assert all(table["body"][row - 1] == text for row, text in frame.select("row", "body").iter_rows())
    assert queue_frame(table, [], [], [], ["body"]).height == 0
    assert queue_frame(table, [1], ["x"], [0.5], []).columns == frame.columns[:4]


def test_a_text_column_named_like_a_queue_column_is_refused():
    with pytest.raises(InputError, match="'row' has the name of a column of the queue"):
        check_names(["row"], ["x"], "queue.csv")


def test_label_studio_shows_every_text_and_knows_every_choice(tmp_path):
    _, frame = example_queue()
    write_queue(frame, str(tmp_path / "queue.json"), CLASSES, ["the text", "body"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queue.json", "queue.xml"]
    tasks = json.loads((tmp_path / "queue.json").read_text("utf-8"))
    assert tasks == label_studio_tasks(frame, ["the text", "body"], CLASSES)
    view = ElementTree.fromstring((tmp_path / "queue.xml").read_text("utf-8"))
    choices = [choice.get("value") for choice in view.iter("Choice")]
    assert choices == CLASSES
    variables = [text.get("value") for text in view.iter("Text")]
    for task, entry in zip(tasks, frame.iter_rows(named=True), strict=True):
        assert [task["data"][variable.removeprefix("$")] for variable in variables] == [
            entry["the text"],
            entry["body"],
        ]
        (prediction,) = task["predictions"]
        (result,) = prediction["result"]
        assert result["value"]["choices"] == [entry["suggested"]]
        assert prediction["score"] == entry["confidence"]
        assert view.find(f".//Choices[@name='{result['from_name']}']").get("toName") == result["to_name"]
        assert view.find(f".//Text[@name='{result['to_name']}']") is not None
    assert all(variable.removeprefix("$").isidentifier() for variable in variables)


def test_an_unknown_suggestion_is_not_a_prediction():
    frame = queue_frame(pl.DataFrame({"text": ["a"]}), [0], ["milk"], [0.5], ["text"])
    assert "predictions" not in label_studio_tasks(frame, ["text"], ["tea"])[0]


def test_without_texts_label_studio_shows_the_row():
    assert 'value="$row"' in label_studio_config(["tea"], [])


def test_a_class_that_xml_cannot_hold_is_refused(tmp_path):
    frame = queue_frame(pl.DataFrame({"text": ["a"]}), [0], ["a\x01"], [0.5], ["text"])
    with pytest.raises(InputError, match=r"class 'a\\x01'"):
        write_queue(frame, str(tmp_path / "queue.json"), ["a\x01"], ["text"])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_reported(tmp_path):
    _, frame = example_queue()
    for name in ("queue.json", "queue.csv"):
        with pytest.raises((InputError, WriteError), match=r"missing.*queue"):
            write_queue(frame, str(tmp_path / "missing" / name), CLASSES, ["body"])


def test_another_file_in_the_place_of_the_interface_is_kept(tmp_path):
    _, frame = example_queue()
    target, other = str(tmp_path / "ask.json"), tmp_path / "ask.xml"
    other.write_text("<mine/>")
    with pytest.raises(InputError, match=r"ask\.xml, which belongs to .*ask\.json, would replace another file"):
        write_queue(frame, target, CLASSES, ["body"])
    assert [path.name for path in tmp_path.iterdir()] == ["ask.xml"]
    assert other.read_text() == "<mine/>"
    other.unlink()
    write_queue(frame, target, CLASSES, ["body"])
    write_queue(frame.head(2), target, CLASSES[:2], ["body"])  # its own interface is replaced
    assert len(ElementTree.parse(other).findall(".//Choice")) == 2
