"""JSON lists and Label Studio exports."""

import json

import pytest
from helpers.tables import assert_refused, read

from transduce.cli.formats import labels_of


def tasks(*results, **more):
    annotations = [{"result": [{"value": value}]} for value in results]
    return json.dumps([{"id": 1, "data": {"text": "a"}, "annotations": annotations, **more}])


def test_last_annotation_that_was_not_cancelled_is_used(tmp_path):
    export = [
        {"id": 7, "data": {"text": "a", "meta": {"k": 1}}, "annotations": [
            {"result": [{"value": {"choices": ["old"]}}]},
            {"result": [{"value": {"rating": 3}}, {"value": {"choices": ["new"]}}], "was_cancelled": False},
            {"result": [{"value": {"choices": ["cancelled"]}}], "was_cancelled": True},
        ]},
        {"id": 8, "data": {"text": "b"}, "completions": [{"result": [{"value": {"taxonomy": [["rec", "hockey"]]}}]}]},
        {"id": 9, "data": {"text": "c", "more": "late"}, "annotations": []},
        {"id": 10, "data": {"text": "d"}, "annotations": [{"result": []}]},
    ]  # fmt: skip
    table = read(tmp_path, "export.json", json.dumps(export))
    assert (table.format, table.label, table.text) == ("label-studio", "label", None)
    assert table.frame.columns == ["text", "meta", "more", "id", "label"]
    assert table.frame["id"].to_list() == [7, 8, 9, 10]
    assert labels_of(table, "label").to_list() == ["new", "rec/hockey", None, None]


def test_column_names_of_the_data_are_kept(tmp_path):
    data = tasks({"choices": ["x"]}, data={"label": "mine", "id": "own"})
    table = read(tmp_path, "export.json", data)
    assert table.label == "label_2"
    assert table.frame.to_dicts() == [{"label": "mine", "id": "own", "id_2": 1, "label_2": "x"}]


def test_tasks_without_annotations_are_read_on_request(tmp_path):
    table = read(tmp_path, "a.json", '[{"data": {"text": "a"}}]', "label-studio")
    assert table.frame.to_dicts() == [{"text": "a", "label": None}]


def test_json_min_export_is_a_plain_list(tmp_path):
    table = read(tmp_path, "a.json", '[{"text": "a", "id": 1, "topic": "x"}, {"text": "b", "id": 2}]')
    assert table.format == "jsonl"
    assert labels_of(table, "topic").to_list() == ["x", None]


DEEP = "[" * 100_000


BAD = {
    "text for a list": ("a.json", '"a"', "line 1: expected a JSON list of objects"),
    "an empty list": ("a.json", " [ ] ", "there are no objects in it"),
    "numbers in the list": (
        "a.json",
        '[{"a": 1},\n 2]',
        "line 2, row 2: expected a JSON object, but the JSON value is a number",
    ),
    "an open list": ("a.json", '[{"a": 1}', 'line 1, row 1: expected "," or "]"'),
    "a trailing comma": ("a.json", '[{"a": 1},\n]', "line 2, row 2: .*invalid"),
    "more after the list": ("a.json", '[{"a": 1}]\n[]', "line 2: expected the end of the file"),
    "a key twice in the list": ("a.json", '[{"a": 1},\n\n{"a": 1, "a": 2}]', 'line 3, row 2: .*the key "a"'),
    "a list without end": ("a.json", DEEP, "line 1, row 1: .*deeper than 100 levels"),
    "two choices": (
        "a.json",
        tasks({"choices": ["x", "y"]}),
        'row 1: expected one choice per task, but found 2: "x" and "y"',
    ),
    "two paths": ("a.json", tasks({"taxonomy": [["x"], ["y", "z"]]}), "row 1: expected one choice per task"),
    "a choice that is no list": ("a.json", tasks({"choices": "x"}), 'row 1: expected a list of texts in "choices"'),
    "a path that is no list": ("a.json", tasks({"taxonomy": ["x"]}), 'row 1: expected a list of paths in "taxonomy"'),
    "a taxonomy that is no list": ("a.json", tasks({"taxonomy": "x"}), 'row 1: expected a list of paths in "taxonomy"'),
    "a slash in a step": ("a.json", tasks({"taxonomy": [["a/b"]]}), 'row 1: a taxonomy path has the part "a/b"'),
    "numbers for annotations": (
        "a.json",
        tasks(annotations=[17]),
        'row 1: expected a list of objects in "annotations"',
    ),
    "a task without data": (
        "a.json",
        '[{"data": {"a": 1}, "annotations": []}, {"text": "a"}]',
        'row 2: expected a Label Studio task with an object "data"',
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_position(tmp_path, case):
    assert_refused(tmp_path, *BAD[case])
