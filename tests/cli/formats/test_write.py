"""Writing tables: exact output, formulas, failures."""

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from transduce.cli.errors import InputError
from transduce.cli.formats import read_table, write_table
from transduce.cli.formats import write as writing_module
from transduce.io.atomic_write import WriteError

FRAME = pl.DataFrame(
    {"text": ["ü,\"'\n", None], "n": [1, None], "x": [0.5, float("nan")], "ok": [True, None], "l": [["a"], None]}
)


FORMULAS = ["=1", "+a", "-a", "@x", "\tx", "\rx", "-1+1", "- item", "=-1", "+", "-", "-1e5x"]


HARMLESS = ["-3.5", "+4", "-,5", "-1e-5", "+.5", "a=1", "'=1", "", " =1", "1-2", "x@y", "3\n=2"]


def test_csv_output(tmp_path):
    write_table(FRAME, str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_bytes().decode() == 'text,n,x,ok,l\n"ü,""\'\n",1,0.5,true,"[""a""]"\n,,,,\n'


def test_json_lines_output(tmp_path):
    write_table(FRAME, str(tmp_path / "a.jsonl"))
    lines = (tmp_path / "a.jsonl").read_bytes().decode().split("\n")
    assert lines[0] == '{"text": "ü,\\"\'\\n", "n": 1, "x": 0.5, "ok": true, "l": ["a"]}'
    assert json.loads(lines[1]) == dict.fromkeys(FRAME.columns)
    assert lines[2:] == [""]


def test_standard_output_is_csv(capfdbinary):
    write_table(pl.DataFrame({"a": ["=1", "ü"]}), "-")
    assert capfdbinary.readouterr().out == "a\n'=1\nü\n".encode()


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_formulas_are_escaped_and_nothing_else(tmp_path, suffix):
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


def test_every_column_type_can_be_written_to_every_format(tmp_path):
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


def test_a_struct_that_looks_like_raw_json_is_written_unchanged(tmp_path):
    write_table(pl.DataFrame({"a": [{"json": "not JSON"}, {"json": "1 2"}]}), str(tmp_path / "a.jsonl"))
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["a"] for line in lines] == [{"json": "not JSON"}, {"json": "1 2"}]


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "jsonl.zst", "parquet"])
def test_rows_keep_their_order_over_many_chunks(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(writing_module, "_CHUNK_ROWS", 7)
    frame = pl.DataFrame({"n": [str(n) for n in range(100)]})
    write_table(frame, str(tmp_path / f"a.{suffix}"))
    assert_frame_equal(read_table(str(tmp_path / f"a.{suffix}")).frame, frame)


def test_a_frame_without_rows_has_a_header(tmp_path):
    write_table(pl.DataFrame({"a": [], "b": []}), str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zst", "parquet"])
def test_output_is_deterministic(tmp_path, suffix):
    targets = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for target in targets:
        write_table(FRAME, str(target))
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_compressed_output_is_read_by_polars(tmp_path):
    write_table(pl.DataFrame({"a": ["x"]}), str(tmp_path / "a.csv.zst"))
    assert pl.read_csv(tmp_path / "a.csv.zst").rows() == [("x",)]


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("a.txt", "a.txt: cannot tell the output format"),
        ("a", "a: cannot tell the output format"),
        ("a.json", "a.json: cannot tell the output format"),
        ("a.svm", "a.svm: cannot tell the output format"),
        ("dir.csv", "dir.csv: expected a file name, but this is a folder"),
        ("pipe.csv", "pipe.csv: expected a file name"),
    ],
)
def test_bad_targets_are_refused(tmp_path, monkeypatch, target, what):
    monkeypatch.chdir(tmp_path)
    Path("dir.csv").mkdir()
    os.mkfifo("pipe.csv")
    with pytest.raises(InputError, match=f"^{what}") as caught:
        write_table(FRAME, target)
    assert str(caught.value).isprintable()
    with pytest.raises(WriteError, match=r"no/a\.csv cannot be written"):
        write_table(FRAME, "no/a.csv")
    assert sorted(os.listdir()) == ["dir.csv", "pipe.csv"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError])
@pytest.mark.parametrize("moment", ["while writing", "at the end"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl.gz", "csv.zst", "parquet"])
def test_a_failure_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path, monkeypatch, failure, moment, suffix):
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
            writing_module, "_chunks", lambda frame: (fail() if part is None else part for part in (frame, None))
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


def test_full_disk_while_writing_parquet(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise pl.exceptions.ComputeError("no space left")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(WriteError, match=r"out\.parquet cannot be written \(no space left\)\. Free some space"):
        write_table(pl.DataFrame({"a": [1]}), str(tmp_path / "out.parquet"))
    assert not list(tmp_path.iterdir())


def test_writing_a_table_twice_changes_texts_once(tmp_path):
    path = str(tmp_path / "a.csv")
    frame = pl.DataFrame({"=text": ["- item", "'=1"]})
    for _ in range(3):
        write_table(frame, path)
        frame = read_table(path).frame
    assert frame.to_dict(as_series=False) == {"'=text": ["'- item", "'=1"]}


def test_a_wide_table_takes_no_more_queries_than_a_narrow_one(tmp_path, monkeypatch):
    """A query a column took half a minute for 40 000 columns."""
    queries, select = [], pl.DataFrame.select
    monkeypatch.setattr(pl.DataFrame, "select", lambda frame, *args: (queries.append(1), select(frame, *args))[1])
    frame = pl.DataFrame({f"c{k}": ["=1", None, 'a "b", c'] if k % 2 else [k, None, 2] for k in range(300)})
    write_table(frame, str(tmp_path / "wide.csv"))
    assert len(queries) < 10
    monkeypatch.undo()
    found = read_table(str(tmp_path / "wide.csv")).frame
    assert found["c1"].to_list() == ["'=1", "", 'a "b", c']
    assert found["c298"].to_list() == ["298", "", "2"]
