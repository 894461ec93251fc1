import datetime as dt
import gzip
import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard
from helpers.growth import QUADRATIC, growth
from polars.testing import assert_frame_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of, read_table, texts_of, write_table
from transduce.cli.formats import parquet as parquet_module
from transduce.cli.formats import write as writing_module
from transduce.io.atomic_write import WriteError

COMPRESS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


def parquet_bytes(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def read(tmp_path, name, data, format=None):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_table(str(path), format)


def tasks(*results, **more):
    annotations = [{"result": [{"value": value}]} for value in results]
    return json.dumps([{"id": 1, "data": {"text": "a"}, "annotations": annotations, **more}])


# --- reading what is right ------------------------------------------------------------------------------------------

TWO_ROWS = [("a", "x"), ("b", "y")]
SAME_TABLE = {
    "csv": b"text,label\na,x\nb,y\n",
    "CSV": b"text,label\r\na,x\r\nb,y",
    "tsv": b"text\tlabel\na\tx\nb\ty\n",
    "tab": b"text\tlabel\na\tx\nb\ty\n",
    "jsonl": b'{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n',
    "ndjson": b'{"text": "a", "label": "x"}\r\n\r\n{"text": "b", "label": "y"}',
    "json": b'[{"text": "a", "label": "x"},\n {"text": "b", "label": "y"}]\n',
    "Json": b'{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n',
    "parquet": parquet_bytes(pl.DataFrame(TWO_ROWS, schema=["text", "label"], orient="row")),
    "pq": parquet_bytes(pl.DataFrame(TWO_ROWS, schema=["text", "label"], orient="row")),
}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("suffix", SAME_TABLE)
def test_every_format_and_compression_gives_the_same_table(tmp_path, suffix, compression):
    table = read(tmp_path, f"data.{suffix}{compression.upper()}", COMPRESS[compression](SAME_TABLE[suffix]))
    assert table.frame.columns == ["text", "label"]
    assert table.frame.rows() == TWO_ROWS
    assert table.name == str(tmp_path / f"data.{suffix}{compression.upper()}")


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_standard_input_is_known_by_its_first_bytes(monkeypatch, suffix, compression):
    data = COMPRESS[compression](SAME_TABLE[suffix])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    table = read_table("-")
    assert (table.name, table.frame.rows()) == ("standard input", TWO_ROWS)


def test_a_pipe_without_a_name_is_known_by_its_bytes():
    script = "import sys; from transduce.cli.formats import read_table; print(read_table('/dev/stdin').frame.rows())"
    done = subprocess.run([sys.executable, "-c", script], input=SAME_TABLE["tsv"], capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(TWO_ROWS)


def test_compression_shows_in_the_bytes_even_if_the_name_is_silent(tmp_path):
    assert read(tmp_path, "a.csv", gzip.compress(SAME_TABLE["csv"])).frame.rows() == TWO_ROWS
    assert read(tmp_path, "b.csv", zstandard.compress(SAME_TABLE["csv"])).frame.rows() == TWO_ROWS


def test_zstd_of_several_frames_of_unknown_size_is_read_to_its_end(tmp_path):
    def frame(part):
        packer = zstandard.ZstdCompressor().compressobj()
        return packer.compress(part) + packer.flush()

    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    data = frame(b"text,label\na") + skippable + frame(b",x\nb,y\n")
    assert read(tmp_path, "a.csv.zst", data).frame.rows() == TWO_ROWS


def test_the_format_asked_for_overrides_the_name(tmp_path):
    assert read(tmp_path, "notes.txt", SAME_TABLE["csv"], "csv").frame.rows() == TWO_ROWS
    assert read(tmp_path, "data.csv", SAME_TABLE["jsonl"], "jsonl").format == "jsonl"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_unicode_encodings(tmp_path, encoding, suffix):
    text = {"csv": 'text,größe\n"a\n😀",ß\n', "jsonl": '{"text": "a\\n😀", "größe": "ß"}\n'}[suffix]
    mark = "\ufeff" if encoding[-3:] in ("-le", "-be") else ""
    table = read(tmp_path, f"a.{suffix}", (mark + text).encode(encoding))
    assert table.frame.to_dict(as_series=False) == {"text": ["a\n😀"], "größe": ["ß"]}


@pytest.mark.parametrize(
    ("data", "columns", "rows"),
    [
        ("id,n\n007, 1.0 \n", ["id", "n"], [("007", " 1.0 ")]),
        ('a,b\n"x\r\ny","say ""hi"""\n', ["a", "b"], [("x\r\ny", 'say "hi"')]),
        ("a,b\n,\n", ["a", "b"], [("", "")]),
        ("a;b\n1,5;2\n", ["a", "b"], [("1,5", "2")]),
        ('"a;b",c\n1,2\n', ["a;b", "c"], [("1", "2")]),
        ('"a;b;c",d\n1,2\n', ["a;b;c", "d"], [("1", "2")]),
        ("\n\na,b\n\n1,2\n\n", ["a", "b"], [("1", "2")]),
        (",a,,b\n1,2,3,4\n", ["column_1", "a", "column_3", "b"], [("1", "2", "3", "4")]),
        ("column_2,\n1,2\n", ["column_2", "column_2_2"], [("1", "2")]),
        ('a\n""\nx\n', ["a"], [("",), ("x",)]),
        ("a,b\rx,y\r", ["a", "b"], [("x", "y")]),
        ("a,b\n6\" disk,it's\n", ["a", "b"], [('6" disk', "it's")]),
        ("a\n" + "x" * 300_000 + "\n", ["a"], [("x" * 300_000,)]),
        ("a,b\nx\u2028y,z\x0c\n", ["a", "b"], [("x\u2028y", "z\x0c")]),
    ],
)
def test_csv_cells_are_kept_exactly(tmp_path, data, columns, rows):
    frame = read(tmp_path, "a.csv", data).frame
    assert frame.columns == columns
    assert frame.rows() == rows
    assert set(frame.dtypes) == {pl.String}


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


def test_json_lines_come_back_as_they_were(tmp_path):
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


def test_numbers_of_json_stay_numbers(tmp_path):
    frame = read(tmp_path, "a.jsonl", '{"i": 1, "f": 1}\n{"i": null, "f": 0.5}\n{"i": 2, "f": null}').frame
    assert frame.schema == {"i": pl.Int64, "f": pl.Float64}


def test_a_list_nested_as_deep_as_allowed_can_be_written_again(tmp_path):
    nested = "[" * 99 + "]" * 99
    frame = read(tmp_path, "a.jsonl", f'{{"a": {nested}}}').frame
    write_table(frame, str(tmp_path / "b.jsonl"))
    assert json.loads((tmp_path / "b.jsonl").read_text()) == {"a": json.loads(nested)}


def test_label_studio_takes_the_last_annotation_that_was_not_cancelled(tmp_path):
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


def test_label_studio_leaves_the_data_its_own_names(tmp_path):
    data = tasks({"choices": ["x"]}, data={"label": "mine", "id": "own"})
    table = read(tmp_path, "export.json", data)
    assert table.label == "label_2"
    assert table.frame.to_dicts() == [{"label": "mine", "id": "own", "id_2": 1, "label_2": "x"}]


def test_tasks_without_annotations_are_tasks_if_the_user_says_so(tmp_path):
    table = read(tmp_path, "a.json", '[{"data": {"text": "a"}}]', "label-studio")
    assert table.frame.to_dicts() == [{"text": "a", "label": None}]


def test_the_small_export_of_label_studio_is_a_plain_list(tmp_path):
    table = read(tmp_path, "a.json", '[{"text": "a", "id": 1, "topic": "x"}, {"text": "b", "id": 2}]')
    assert table.format == "jsonl"
    assert labels_of(table, "topic").to_list() == ["x", None]


@pytest.mark.parametrize("zero_based", [False, True])
def test_svmlight_agrees_with_scikit_learn(tmp_path, zero_based):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)) * (rng.random((200, 30)) < 0.2)
    X[0, 0] = 1.0
    y = rng.integers(-1, 4, 200)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment="héllo", query_id=np.arange(200))
    table = read_table(str(path))
    expected, targets = load_svmlight_file(str(path), zero_based=True)
    assert table.vectors.shape == expected.shape
    np.testing.assert_array_equal(table.vectors.toarray(), expected.toarray())
    assert labels_of(table, "label").to_list() == [None if t == 0 else str(int(t)) for t in targets]
    assert table.frame["row"].to_list() == list(range(1, 201))


def test_svmlight_columns_do_not_depend_on_the_smallest_index(tmp_path):
    both = [read(tmp_path, name, text) for name, text in (("a.svm", "1 0:1 2:3\n"), ("b.svm", "1 2:3\n"))]
    assert [table.vectors.toarray()[0, 2] for table in both] == [3, 3]


def test_svmlight_targets_and_rows_without_features(tmp_path):
    table = read(
        tmp_path, "a.libsvm", "# head\r\n+1 1:1e-3\r\n-1\r\n\r\n3.0 2:.5 #c\r\n0.5 3:5.\r\n-0 1:0\r\n1e300 qid:4 1:1"
    )
    assert table.frame["label"].to_list() == ["1", "-1", "3", "0.5", None, "1e+300"]
    np.testing.assert_array_equal(table.vectors.toarray()[:4], [[0, 1e-3, 0, 0], [0] * 4, [0, 0, 0.5, 0], [0, 0, 0, 5]])


@pytest.mark.alone
def test_the_work_of_svmlight_grows_with_the_rows_and_not_with_their_square(tmp_path):
    line = "1 " + " ".join(f"{i}:0.{i}" for i in range(1, 31))
    small, large = ("\n".join([line] * n_rows) for n_rows in (10_000, 40_000))
    assert read(tmp_path, "a.svm", large).vectors.nnz == 1_200_000
    assert growth(lambda text: read(tmp_path, "a.svm", text), small, large) < 0.6 * QUADRATIC


def make_folder(root, files):
    for file, text in files.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(root)


def test_a_folder_for_each_class(tmp_path):
    files = {
        "rec/hockey/b.txt": "puck\r\n", "rec/hockey/a": "\ufeffice", "rec/x.txt": "rec", "sci/é.md": "",
        "unlabelled/1": "u1", "Unlabeled/1": "u2", "unlabelled_more/deep/1": "u3", "unsup/1": "u4", "loose.txt": "u5",
        ".git/config": b"\xff", "rec/.DS_Store": b"\x00", "sci/unlabelled/1": "s",
    }  # fmt: skip
    table = read_table(make_folder(tmp_path, files))
    assert (table.format, table.text, table.label) == ("folder", "text", "label")
    assert table.frame.columns == ["file", "text", "label"]
    rows = {file: (text, label) for file, text, label in table.frame.rows()}
    assert list(rows) == sorted(file for file in files if "/." not in f"/{file}")
    assert rows["rec/hockey/a"] == ("ice", "rec/hockey")
    assert rows["rec/hockey/b.txt"] == ("puck\r\n", "rec/hockey")
    assert rows["rec/x.txt"] == ("rec", "rec")
    assert rows["sci/unlabelled/1"] == ("s", "sci/unlabelled")
    assert [rows[file][1] for file in files if rows.get(file, ("", ""))[0].startswith("u")] == [None] * 5


def test_links_inside_a_folder_are_read_and_those_to_folders_are_not_walked_twice(tmp_path):
    root = tmp_path / "pile"
    make_folder(root, {"a/1": "one", "b/2": "two"})
    (root / "b" / "link").symlink_to(root / "a" / "1")
    (root / "loop").symlink_to(root)
    assert read_table(str(root)).frame["file"].to_list() == ["a/1", "b/2", "b/link"]


@pytest.mark.parametrize("link", ["file", "folder", "hidden_parent"])
def test_links_out_of_a_folder_are_not_followed(tmp_path, link):
    make_folder(tmp_path / "secret", {"key": "private"})
    root = tmp_path / "pile"
    make_folder(root, {"a/1": "one"})
    target = {"file": "../secret/key", "folder": "../secret", "hidden_parent": "../../secret/key"}[link]
    (root / ("a/out" if link == "hidden_parent" else "out")).symlink_to(target)
    with pytest.raises(InputError, match=r'"(a/)?out" is a link that leads out of the folder'):
        read_table(str(root))


# --- labels and texts -----------------------------------------------------------------------------------------------


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
def test_labels_of_every_kind_of_column(values, expected):
    labels = labels_of(Table("t", pl.DataFrame({"y": values}, strict=False), "parquet"), "y")
    assert labels.dtype == pl.String
    assert labels.to_list() == expected


def test_labels_of_a_mixed_json_column(tmp_path):
    lines = ['{"y": 3}', '{"y": "x"}', '{"y": 2.0}', '{"y": ["a", "b"]}', '{"y": true}', '{"y": null}', '{"y": ""}']
    table = read(tmp_path, "a.jsonl", "\n".join(lines))
    assert labels_of(table, "y").to_list() == ["3", "x", "2", "a/b", "true", None, None]


def test_categories_and_fixed_lists_are_labels_too():
    frame = pl.DataFrame(
        {
            "c": pl.Series(["x", None], dtype=pl.Categorical),
            "a": pl.Series([["r", "s"], None], dtype=pl.Array(pl.String, 2)),
        }
    )
    table = Table("t", frame, "parquet")
    assert labels_of(table, "c").to_list() == ["x", None]
    assert labels_of(table, "a").to_list() == ["r/s", None]


def test_texts_join_columns_of_every_kind():
    frame = pl.DataFrame(
        {"s": ["a", None], "i": [1, None], "f": [0.5, float("nan")], "b": [True, None], "l": [["x"], None]}
    )
    assert texts_of(Table("t", frame, "parquet"), list("sifbl")).to_list() == ['a\n1\n0.5\ntrue\n["x"]', "\n\n\n\n"]
    assert texts_of(Table("t", frame, "parquet"), ["s"]).to_list() == ["a", ""]


TABLE = Table("data.csv", pl.DataFrame({"text": ["a"], "Label": ["x"]}), "csv")


@pytest.mark.parametrize("ask", [lambda column: labels_of(TABLE, column), lambda column: texts_of(TABLE, [column])])
@pytest.mark.parametrize(("column", "hint"), [("label", "Label"), ("texts", "text"), ("TEXT", "text"), ("zzz", None)])
def test_an_unknown_column_is_answered_with_the_nearest(ask, column, hint):
    with pytest.raises(InputError) as caught:
        ask(column)
    message = str(caught.value)
    assert message.startswith(f'data.csv: there is no column "{column}".')
    assert message.endswith("It has: text, Label.")
    assert (f'Did you mean "{hint}"?' in message) == (hint is not None)


def test_no_text_column_is_refused():
    with pytest.raises(InputError, match=r"data\.csv: no text column"):
        texts_of(TABLE, [])


@pytest.mark.parametrize("values", [[["a"], ["a/b"]], [["a"], ["a", ""]], [["a"], ["a", None]], [["a"], [" "]]])
def test_a_step_of_a_path_is_one_name(values):
    with pytest.raises(InputError, match=r't, row 2: column "y" holds a path with the step'):
        labels_of(Table("t", pl.DataFrame({"y": values}), "jsonl"), "y")


def test_infinity_is_no_label():
    with pytest.raises(InputError, match='t, row 2: column "y" holds infinity'):
        labels_of(Table("t", pl.DataFrame({"y": [1.0, float("-inf")]}), "parquet"), "y")


def test_an_object_is_no_label(tmp_path):
    table = read(tmp_path, "a.jsonl", '{"y": "x"}\n{"y": {"a": 1}}')
    with pytest.raises(InputError, match='row 2: column "y" holds an object'):
        labels_of(table, "y")


# --- reading what is wrong ------------------------------------------------------------------------------------------

GOOD_PARQUET = SAME_TABLE["parquet"]
DEEP = "[" * 100_000

BAD = {
    # CSV and TSV
    "empty file": ("a.csv", "", "the file is empty"),
    "only line ends": ("a.csv", "\n\r\n\n", "the file is empty"),
    "only a mark": ("a.csv", b"\xef\xbb\xbf", "the file is empty"),
    "no rows": ("a.csv", "text,label\n", "a header but no row"),
    "nameless header": ("a.csv", "\n, ,\n1,2,3\n", "line 2: the header names no column"),
    "a name twice": ("a.csv", "text,x,text\n1,2,3\n", 'line 1: the header names the column "text" twice'),
    "too few cells": ("a.csv", 'a,b\n"x\n\ny",2\n1\n', "line 5: expected 2 cells as in the header, found 1"),
    "too many cells": ("a.csv", "a,b\n1,2\n1,2,3\n", "line 3: expected 2 cells as in the header, found 3"),
    "too many cells in TSV": ("a.tsv", "a\tb\n1\t2\t3\n", "line 2: expected 2 cells as in the header, found 3"),
    "too few cells after semicolons": ("a.csv", "a;b\n1,2\n", "line 2: expected 2 cells as in the header, found 1"),
    "unclosed quote": ("a.csv", 'a,b\n1,2\n1,"x\n1,2\n', "line 3: a quote opens here and is never closed"),
    "unclosed quote in the header": ("a.csv", 'a,"b\n1,2\n', "line 1: a quote opens here and is never closed"),
    "text after a quote": ("a.csv", 'a,b\n1,"x" y\n', "line 2: a quoted cell goes on after its closing quote"),
    "NUL": ("a.csv", "a,b\n1,2\n1,\0\n", "line 3: expected text, but there is a NUL"),
    "UTF-16 without a mark": ("a.csv", "a,b\n1,2\n".encode("utf-16-le"), "line 1: expected text, but there is a NUL"),
    "Latin-1": ("a.csv", "a,b\n1,2\ngrün,2\n".encode("latin-1"), "line 3: expected UTF-8 text.*Save the file as UTF-8"),
    "Latin-1 header": ("a.tsv", "größe\tb\n".encode("latin-1"), "line 1: expected UTF-8 text"),
    "half a UTF-16 character": ("a.csv", "\ufeffa,b\n1,2".encode("utf-16-le") + b"\n", "line 2: expected UTF-16 text"),
    "lone surrogate in UTF-16": ("a.csv", b"\xff\xfea\x00\n\x00\x00\xd8\n\x00", "line 2: expected UTF-16 text"),
    "gzip cut short": ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 50)[:-9], "expected a whole gzip file"),
    "gzip with a wrong sum": ("a.csv.gz", gzip.compress(b"a\n1\n")[:-8] + b"12345678", "expected a whole gzip file"),
    "no gzip": ("a.csv.gz", "a,b\n1,2\n", "expected a whole gzip file"),
    "zstd cut short": ("a.csv.zst", zstandard.compress(b"a,b\n1,2\n" * 50)[:-3], "expected a whole zstd file"),
    "no zstd": ("a.jsonl.zst", "a,b\n1,2\n", "expected a whole zstd file"),
    "zstd and more": ("a.csv.zst", zstandard.compress(b"a\n1\n") + b"more", "expected a whole zstd file"),
    # JSON lines
    "no objects": ("a.jsonl", " \n\n", "there is no object in it"),
    "empty objects": ("a.jsonl", "{}\n{}\n", "row 1 too"),
    "broken JSON": ("a.jsonl", '{"a": 1}\n\n{"a": \n', "line 3: expected one JSON object, but the JSON is invalid"),
    "a list on a line": (
        "a.jsonl",
        '{"a": 1}\n[1]\n',
        "line 2: expected one JSON object, but the JSON value is a list",
    ),
    "a number on a line": ("a.jsonl", "7\n", "line 1: expected one JSON object, but the JSON value is a number"),
    "null on a line": ("a.jsonl", '{"a": 1}\nnull\n', "line 2: expected one JSON object, but the JSON value is null"),
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
    # JSON lists and Label Studio
    "text for a list": ("a.json", '"a"', "line 1: expected a JSON list of objects"),
    "an empty list": ("a.json", " [ ] ", "there is no object in it"),
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
        'row 1: expected one choice a task, but found 2: "x" and "y"',
    ),
    "two paths": ("a.json", tasks({"taxonomy": [["x"], ["y", "z"]]}), "row 1: expected one choice a task"),
    "a choice that is no list": ("a.json", tasks({"choices": "x"}), 'row 1: expected a list of texts in "choices"'),
    "a path that is no list": ("a.json", tasks({"taxonomy": ["x"]}), 'row 1: expected a list of texts in "taxonomy"'),
    "a taxonomy that is no list": ("a.json", tasks({"taxonomy": "x"}), 'row 1: expected a list of paths as "taxonomy"'),
    "a slash in a step": ("a.json", tasks({"taxonomy": [["a/b"]]}), "row 1: a step of a taxonomy path"),
    "numbers for annotations": (
        "a.json",
        tasks(annotations=[17]),
        'row 1: expected a list of objects as "annotations"',
    ),
    "a task without data": (
        "a.json",
        '[{"data": {"a": 1}, "annotations": []}, {"text": "a"}]',
        'row 2: expected a Label Studio task with an object "data"',
    ),
    # Parquet
    "empty Parquet": ("a.parquet", b"", "expected a whole Parquet file"),
    "Parquet cut short": ("a.parquet", GOOD_PARQUET[:-20], "expected a whole Parquet file"),
    "Parquet without a middle": ("a.parquet", b"PAR1" + b"\xff" * 40 + b"PAR1", "expected a whole Parquet file"),
    "CSV called Parquet": ("a.pq", "a,b\n1,2\n", "expected a whole Parquet file"),
    "Parquet without rows": ("a.parquet", parquet_bytes(pl.DataFrame({"a": []})), "no row in it"),
    "infinity in Parquet": (
        "a.parquet",
        parquet_bytes(pl.DataFrame({"a": [1.0, float("inf")]})),
        'row 2: column "a" holds a number that is not finite',
    ),
    "NaN in a vector": (
        "a.parquet",
        parquet_bytes(pl.DataFrame({"v": [[1.0], None, [0.0, float("nan")]]})),
        'row 3: column "v" holds a number that is not finite',
    ),
    # svmlight
    "no svmlight rows": ("a.svm", "# nothing\n", "no row in it"),
    "no features": ("a.svm", "\n1\n2\n", "line 2: no row has a feature"),
    "a word as target": ("a.svm", "1 1:1\nx 1:1\n", 'line 2: expected a number as target, but found "x"'),
    "several targets": ("a.svm", "1,2 1:1\n", 'line 1: .*found "1,2". Keep one label a row'),
    "NaN target": ("a.svm", "nan 1:1\n", "line 1: expected a number as target"),
    "infinite target": ("a.svm", "# c\n1e999 1:1\n", "line 2: the target is too large"),
    "NaN value": ("a.svm", "1 1:1\n1 1:nan\n", 'line 2: expected index:value, two finite numbers, but found "1:nan"'),
    "infinite value": ("a.svm", "1 1:inf\n", 'line 1: .*found "1:inf"'),
    "overflowing value": ("a.svm", "1 1:1\n\n1 1:1 2:1e999\n", "line 3: a value is too large"),
    "no colon": ("a.svm", "1 1:1 2\n", 'line 1: expected index:value.*found "2"'),
    "two colons": ("a.svm", "1 1:2:3 4\n", 'line 1: expected index:value.*found "1:2:3"'),
    "underscores": ("a.svm", "1 1_0:1\n", 'line 1: expected index:value.*found "1_0:1"'),
    "negative index": ("a.svm", "1 -1:1\n", 'line 1: expected index:value.*found "-1:1"'),
    "late qid": ("a.svm", "1 1:1 qid:1\n", 'line 1: expected index:value.*found "qid:1"'),
    "falling indices": ("a.svm", "1 1:1\n1 2:1 1:1\n", "line 2: expected indices that rise"),
    "an index twice": ("a.svm", "1 1:1\n1 2:1 2:1\n", "line 2: expected indices that rise"),
    "large index": ("a.svm", "1 1:1\n1 2147483648:1\n", "line 2: expected feature indices up to 2147483647"),
    "huge index": ("a.svm", "1 99999999999999999999:1\n", "line 1: expected feature indices up to 2147483647"),
    "digits without end": ("a.svm", "1 1:" + "1" * 50_000 + "x\n", "line 1: expected index:value"),
    # names
    "no suffix": ("notes", "a,b\n1,2\n", "the name does not tell the format"),
    "unknown suffix": ("notes.xlsx.gz", "a,b\n1,2\n", "the name does not tell the format"),
    "a name of two lines": ("no\ntes.csv", "a,b\n1\n", "line 2: expected 2 cells"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_with_the_file_and_the_place(tmp_path, case):
    name, data, what = BAD[case]
    with pytest.raises(InputError, match=what) as caught:
        read(tmp_path, name, data)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / name).replace("\n", "\\n"))
    assert message.isprintable()
    assert len(message) < 400 + len(str(tmp_path))
    assert message.endswith((".", ")."))


def test_a_reader_that_dies_of_a_corrupt_parquet_file_takes_nobody_with_it(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(parquet_module, "_TRIAL", "import os; os.write(2, b'panicked'); os.abort()")
    with pytest.raises(InputError, match="expected a whole Parquet file"):
        read(tmp_path, "a.parquet", GOOD_PARQUET)
    assert capfd.readouterr().err == ""


BAD_FOLDERS = {
    "empty": ({}, "there is no file in the folder"),
    "hidden only": ({".a/1": "x", ".b": "y"}, "there is no file in the folder"),
    "not text": ({"x/a": "fine", "x/b": b"\x89PNG\xff"}, "x/b, line 1: expected UTF-8 text"),
    "binary": ({"x/a.bin": b"a\n\x00\x01"}, "x/a.bin, line 2: expected text, but there is a NUL"),
}


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_bad_folders(tmp_path, case):
    files, what = BAD_FOLDERS[case]
    with pytest.raises(InputError, match=what) as caught:
        read_table(make_folder(tmp_path, files))
    assert str(caught.value).startswith(str(tmp_path))


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match='"pipe" is not a plain file'):
        read_table(str(tmp_path))


def test_a_file_name_that_is_not_unicode_is_named(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    with pytest.raises(InputError, match="is not UTF-8") as caught:
        read_table(str(tmp_path))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("source", "format", "what"),
    [
        ("missing.csv", None, "missing.csv: there is no such file"),
        ("missing", None, "missing: there is no such file"),
        ("missing", "folder", "missing: expected a folder"),
        ("a.csv", "excel", 'format: "excel" is not known. Choose one of csv, folder'),
        ("a.csv/b.csv", None, "a.csv/b.csv: the file cannot be read"),
        ("a\0.csv", None, r"a\\x00.csv: the file cannot be read"),
        ("sub", "csv", "sub: expected a csv file, but it is a folder"),
        ("-", "folder", "standard input: folder cannot come from standard input"),
    ],
)
def test_what_is_not_there(tmp_path, monkeypatch, source, format, what):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    Path("a.csv").write_text("a\n1\n")
    Path("sub").mkdir()
    with pytest.raises(InputError, match=f"^{what}"):
        read_table(source, format)


# --- writing --------------------------------------------------------------------------------------------------------

FRAME = pl.DataFrame(
    {"text": ["ü,\"'\n", None], "n": [1, None], "x": [0.5, float("nan")], "ok": [True, None], "l": [["a"], None]}
)
FORMULAS = ["=1", "+a", "-a", "@x", "\tx", "\rx", "-1+1", "- item", "=-1", "+", "-", "-1e5x"]
HARMLESS = ["-3.5", "+4", "-,5", "-1e-5", "+.5", "a=1", "'=1", "", " =1", "1-2", "x@y", "3\n=2"]


def test_csv_as_written(tmp_path):
    write_table(FRAME, str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_bytes().decode() == 'text,n,x,ok,l\n"ü,""\'\n",1,0.5,true,"[""a""]"\n,,,,\n'


def test_json_lines_as_written(tmp_path):
    write_table(FRAME, str(tmp_path / "a.jsonl"))
    lines = (tmp_path / "a.jsonl").read_bytes().decode().split("\n")
    assert lines[0] == '{"text": "ü,\\"\'\\n", "n": 1, "x": 0.5, "ok": true, "l": ["a"]}'
    assert json.loads(lines[1]) == dict.fromkeys(FRAME.columns)
    assert lines[2:] == [""]


def test_standard_output_is_csv(capfdbinary):
    write_table(pl.DataFrame({"a": ["=1", "ü"]}), "-")
    assert capfdbinary.readouterr().out == "a\n'=1\nü\n".encode()


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_formulas_are_disarmed_and_nothing_else_is_touched(tmp_path, suffix):
    target = str(tmp_path / f"a.{suffix}")
    frame = pl.DataFrame(
        {"=head": FORMULAS + HARMLESS, "n": [-1] * 24, "c": pl.Series(["=c"] * 24, dtype=pl.Categorical)}
    )
    write_table(frame, target)
    back = read_table(target).frame
    assert back.columns == ["'=head", "n", "c"]
    assert back["'=head"].to_list() == [f"'{cell}" for cell in FORMULAS] + HARMLESS
    assert back["n"].to_list() == ["-1"] * 24
    assert back["c"].to_list() == ["'=c"] * 24
    write_table(frame, target, keep_formulas=True)
    assert read_table(target).frame["=head"].to_list() == FORMULAS + HARMLESS


def test_every_kind_of_column_can_be_written_everywhere(tmp_path):
    frame = pl.DataFrame(
        {
            "date": [dt.date(2024, 1, 2)], "time": [dt.datetime(2024, 1, 2, 3, 4, 5)], "clock": [dt.time(1, 2)],
            "span": [dt.timedelta(days=1)], "money": [Decimal("1.50")], "bytes": [b"ok"], "raw": [b"\xff"],
            "struct": [{"a": float("inf"), "b": [dt.date(2024, 1, 2)]}], "none": [None],
            "array": pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float32, 2)),
            "small": pl.Series([0.1], dtype=pl.Float32),
            "inf": [float("-inf")],
        }
    )  # fmt: skip
    for suffix in ("csv", "tsv", "jsonl"):
        write_table(frame, str(tmp_path / f"a.{suffix}"))
    row = read_table(str(tmp_path / "a.csv")).frame.to_dicts()[0]
    assert (row["date"], row["money"], row["bytes"], row["raw"]) == ("2024-01-02", "1.50", "ok", "/w==")
    assert (row["inf"], row["none"], row["small"], row["array"]) == ("", "", "0.1", "[1.0, 2.0]")
    line = json.loads((tmp_path / "a.jsonl").read_text())
    assert line["struct"] == {"a": None, "b": ["2024-01-02"]}
    assert (line["inf"], line["time"]) == (None, "2024-01-02T03:04:05")


def test_a_struct_that_only_looks_like_kept_json_is_written_as_it_is(tmp_path):
    write_table(pl.DataFrame({"a": [{"json": "not JSON"}, {"json": "1 2"}]}), str(tmp_path / "a.jsonl"))
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["a"] for line in lines] == [{"json": "not JSON"}, {"json": "1 2"}]


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "jsonl.zst", "parquet"])
def test_rows_keep_their_order_over_many_slices(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(writing_module, "_ROWS_AT_ONCE", 7)
    frame = pl.DataFrame({"n": [str(n) for n in range(100)]})
    write_table(frame, str(tmp_path / f"a.{suffix}"))
    assert_frame_equal(read_table(str(tmp_path / f"a.{suffix}")).frame, frame)


def test_a_frame_without_rows_has_its_header(tmp_path):
    write_table(pl.DataFrame({"a": [], "b": []}), str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zst", "parquet"])
def test_the_same_table_gives_the_same_bytes(tmp_path, suffix):
    targets = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for target in targets:
        write_table(FRAME, str(target))
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_other_programs_read_what_is_compressed(tmp_path):
    write_table(pl.DataFrame({"a": ["x"]}), str(tmp_path / "a.csv.zst"))
    assert pl.read_csv(tmp_path / "a.csv.zst").rows() == [("x",)]


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("a.txt", "a.txt: the name does not tell a format"),
        ("a", "a: the name does not tell a format"),
        ("a.json", "a.json: the name does not tell a format"),
        ("a.svm", "a.svm: the name does not tell a format"),
        ("no/a.csv", "no/a.csv: the folder to write to does not exist"),
        ("dir.csv", "dir.csv: expected the name of a file, but it is a folder"),
        ("pipe.csv", "pipe.csv: expected the name of a plain file"),
    ],
)
def test_targets_that_cannot_be_written(tmp_path, monkeypatch, target, what):
    monkeypatch.chdir(tmp_path)
    Path("dir.csv").mkdir()
    os.mkfifo("pipe.csv")
    with pytest.raises(InputError, match=f"^{what}") as caught:
        write_table(FRAME, target)
    assert str(caught.value).isprintable()
    assert sorted(os.listdir()) == ["dir.csv", "pipe.csv"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError])
@pytest.mark.parametrize("moment", ["while writing", "at the end"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl.gz", "csv.zst", "parquet"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure, moment, suffix):
    target = tmp_path / f"a.{suffix}"
    target.write_bytes(b"precious")

    def fail(*_args, **_more):
        raise failure

    if moment == "at the end":
        monkeypatch.setattr(os, "replace", fail)
    elif suffix == "parquet":
        monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    else:
        monkeypatch.setattr(
            writing_module, "_slices", lambda frame: (fail() if part is None else part for part in (frame, None))
        )
    with pytest.raises(failure if isinstance(failure, type) else WriteError):
        write_table(FRAME, str(target))
    assert os.listdir(tmp_path) == [target.name]
    assert target.read_bytes() == b"precious"


def test_links_and_permissions_of_the_target_are_kept(tmp_path):
    real = tmp_path / "real.csv"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(real)
    write_table(pl.DataFrame({"a": ["x"]}), str(tmp_path / "link.csv"))
    assert (tmp_path / "link.csv").is_symlink()
    assert real.read_text() == "a\nx\n"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_disk_that_is_full_for_parquet_is_told(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise pl.exceptions.ComputeError("no space left")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(WriteError, match=r"out\.parquet cannot be written \(no space left\)\. Free some space"):
        write_table(pl.DataFrame({"a": [1]}), str(tmp_path / "out.parquet"))
    assert not list(tmp_path.iterdir())
