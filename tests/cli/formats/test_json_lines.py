"""JSON lines."""

import json

import polars as pl
import pytest
from helpers.tables import assert_refused, read
from polars.testing import assert_frame_equal

from transduce.cli.formats import read_table, write_table

JSON_OBJECTS = [
    {
        "text": "a",
        "n": 1,
        "x": 0.1,
        "ok": True,
        "path": ["rec", "sport"],
        "vec": [1, 2.5],
        "deep": {"k": [1, {"z": None}]},
    },
    {"text": "b", "n": -2, "x": 3, "ok": False, "path": [], "vec": [], "deep": {"other": "ü"}, "mixed": "=1"},
    {"text": None, "mixed": 3, "big": 2**70, "list": [[1], [2, "x"]], "bools": [True, None], "json": {"json": "1"}},
    {"mixed": {"a": 1}, "big": 1, "list": [], "late": "\u0000\u2028", "intish": 2**60},
    {"intish": 0.5, "mixed": "[1]", "n": None, "text": '{"looks": "like JSON"}'},
]


def test_json_lines_round_trip(tmp_path):
    keys = list(dict.fromkeys(key for record in JSON_OBJECTS for key in record))
    frame = read(tmp_path, "a.jsonl", "\n".join(map(json.dumps, JSON_OBJECTS))).frame
    assert frame.columns == keys
    for name in ("b.jsonl", "b.jsonl.zst", "b.csv", "b.tsv.gz", "b.parquet"):
        write_table(frame, str(tmp_path / name))
    written = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert written == [{key: record.get(key) for key in keys} for record in JSON_OBJECTS]
    assert list(written[0]) == keys
    for other in ("b.jsonl.zst", "b.parquet"):
        assert_frame_equal(read_table(str(tmp_path / other)).frame, frame)
    in_csv = read_table(str(tmp_path / "b.csv")).frame
    assert in_csv["deep"][0] == '{"k": [1, {"z": null}]}'
    assert in_csv["mixed"].to_list() == ["", "'=1", "3", '{"a": 1}', "[1]"]
    assert in_csv["late"][3] == "\ufffd\u2028"


def test_json_numbers_stay_numbers(tmp_path):
    frame = read(tmp_path, "a.jsonl", '{"i": 1, "f": 1}\n{"i": null, "f": 0.5}\n{"i": 2, "f": null}').frame
    assert frame.schema == {"i": pl.Int64, "f": pl.Float64}


def test_maximum_nesting_can_be_written_again(tmp_path):
    nested = "[" * 99 + "]" * 99
    frame = read(tmp_path, "a.jsonl", f'{{"a": {nested}}}').frame
    write_table(frame, str(tmp_path / "b.jsonl"))
    assert json.loads((tmp_path / "b.jsonl").read_text()) == {"a": json.loads(nested)}


DEEP = "[" * 100_000


BAD = {
    "no objects": ("a.jsonl", " \n\n", "there are no objects in it"),
    "empty objects": ("a.jsonl", "{}\n{}\n", "row 1: all objects are empty"),
    "broken JSON": ("a.jsonl", '{"a": 1}\n\n{"a": \n', "line 3: expected a JSON object, but the JSON is invalid"),
    "a list on a line": (
        "a.jsonl",
        '{"a": 1}\n[1]\n',
        "line 2: expected a JSON object, but the JSON value is a list",
    ),
    "a number on a line": ("a.jsonl", "7\n", "line 1: expected a JSON object, but the JSON value is a number"),
    "null on a line": ("a.jsonl", '{"a": 1}\nnull\n', "line 2: expected a JSON object, but the JSON value is null"),
    "two objects on a line": ("a.jsonl", '{"a": 1}\n{"a": 1} {"a": 2}\n', "line 2: .*more after it"),
    "a key twice": ("a.jsonl", '{"a": 1, "b": 2, "a": 3}\n', 'line 1: .*the key "a" appears twice'),
    "a nested key twice": ("a.jsonl", '{"b": {"a\\n": 1, "a\\n": 3}}\n', r'line 1: .*the key "a\\n" appears twice'),
    "NaN": ("a.jsonl", '{"a": 1}\n{"a": NaN}\n', "line 2: .*NaN is not a JSON number"),
    "Infinity": ("a.jsonl", '{"a": [-Infinity]}\n', "line 1: .*-Infinity is not a JSON number"),
    "overflow": ("a.jsonl", '{"a": 1}\n{"a": {"b": 1e400}}\n', "line 2: .*the number 1e400 is too large"),
    "overflow by digits": ("a.jsonl", '{"a": ' + "9" * 400 + ".0}", "line 1: .*is too large"),
    "a number without end": ("a.jsonl", '{"a": ' + "9" * 5000 + "}", "line 1: .*too many digits"),
    "half a pair": ("a.jsonl", '{"a": "\\ud83d"}\n', "line 1: .*half of a surrogate pair"),
    "half a pair in a key": ("a.jsonl", '{"a\\uDC00": 1}\n', "line 1: .*half of a surrogate pair"),
    "nested without end": ("a.jsonl", '{"a": 1}\n{"a": ' + DEEP + "\n", "line 2: .*deeper than 100 levels"),
    "nested too deep": ("a.jsonl", '{"a": ' + "[" * 150 + "]" * 150 + "}", "line 1: .*deeper than 100 levels"),
    "a control character": ("a.jsonl", '{"a": "\t"}\n', "line 1: .*invalid"),
    "Latin-1 in JSON": ("a.jsonl", '{"a": 1}\n{"a": "ü"}'.encode("latin-1"), "line 2: expected UTF-8 text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_position(tmp_path, case):
    assert_refused(tmp_path, *BAD[case])
