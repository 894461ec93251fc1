"""Format detection, compression, encodings and file names."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import zstandard
from helpers.tables import assert_refused, parquet_bytes, read

from transduce.cli.errors import InputError
from transduce.cli.formats import read_table
from transduce.cli.formats.decoding import expansion_limit
from transduce.cli.formats.errors import FileError

COMPRESS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


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
def test_format_of_standard_input_is_guessed_from_its_first_bytes(monkeypatch, suffix, compression):
    data = COMPRESS[compression](SAME_TABLE[suffix])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    table = read_table("-")
    assert (table.name, table.frame.rows()) == ("standard input", TWO_ROWS)


def test_format_of_a_pipe_is_guessed_from_its_first_bytes():
    script = "import sys; from transduce.cli.formats import read_table; print(read_table('/dev/stdin').frame.rows())"
    done = subprocess.run([sys.executable, "-c", script], input=SAME_TABLE["tsv"], capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(TWO_ROWS)


def test_compression_is_detected_without_a_suffix(tmp_path):
    assert read(tmp_path, "a.csv", gzip.compress(SAME_TABLE["csv"])).frame.rows() == TWO_ROWS
    assert read(tmp_path, "b.csv", zstandard.compress(SAME_TABLE["csv"])).frame.rows() == TWO_ROWS


def test_zstd_with_several_frames(tmp_path):
    def frame(part):
        packer = zstandard.ZstdCompressor().compressobj()
        return packer.compress(part) + packer.flush()

    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    data = frame(b"text,label\na") + skippable + frame(b",x\nb,y\n")
    assert read(tmp_path, "a.csv.zst", data).frame.rows() == TWO_ROWS


def test_requested_format_overrides_the_file_name(tmp_path):
    assert read(tmp_path, "notes.txt", SAME_TABLE["csv"], "csv").frame.rows() == TWO_ROWS
    assert read(tmp_path, "data.csv", SAME_TABLE["jsonl"], "jsonl").format == "jsonl"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_unicode_encodings(tmp_path, encoding, suffix):
    text = {"csv": 'text,größe\n"a\n😀",ß\n', "jsonl": '{"text": "a\\n😀", "größe": "ß"}\n'}[suffix]
    mark = "\ufeff" if encoding[-3:] in ("-le", "-be") else ""
    table = read(tmp_path, f"a.{suffix}", (mark + text).encode(encoding))
    assert table.frame.to_dict(as_series=False) == {"text": ["a\n😀"], "größe": ["ß"]}


BAD = {
    "gzip cut short": ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 50)[:-9], "expected a complete gzip file"),
    "gzip with a wrong sum": ("a.csv.gz", gzip.compress(b"a\n1\n")[:-8] + b"12345678", "expected a complete gzip file"),
    "no gzip": ("a.csv.gz", "a,b\n1,2\n", "expected a complete gzip file"),
    "zstd cut short": ("a.csv.zst", zstandard.compress(b"a,b\n1,2\n" * 50)[:-3], "expected a complete zstd file"),
    "no zstd": ("a.jsonl.zst", "a,b\n1,2\n", "expected a complete zstd file"),
    "zstd and more": ("a.csv.zst", zstandard.compress(b"a\n1\n") + b"more", "expected a complete zstd file"),
    "no suffix": ("notes", "a,b\n1,2\n", "cannot tell the format from the file name"),
    "unknown suffix": ("notes.xlsx.gz", "a,b\n1,2\n", "cannot tell the format from the file name"),
    "a name of two lines": ("no\ntes.csv", "a,b\n1\n", "line 2: expected 2 cells"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_position(tmp_path, case):
    assert_refused(tmp_path, *BAD[case])


@pytest.mark.parametrize(
    ("source", "format", "what"),
    [
        ("missing.csv", None, "missing.csv: there is no such file"),
        ("missing", None, "missing: there is no such file"),
        ("missing", "folder", "missing: expected a folder"),
        ("a.csv", "excel", 'unknown format "excel". Choose one of csv, folder'),
        ("a.csv/b.csv", None, "a.csv/b.csv: the file cannot be read"),
        ("a\0.csv", None, r"a\\x00.csv: the file cannot be read"),
        ("sub", "csv", "sub: expected a csv file, but this is a folder"),
        ("-", "folder", "standard input: cannot read a folder from standard input"),
    ],
)
def test_missing_files_and_wrong_kinds(tmp_path, monkeypatch, source, format, what):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    Path("a.csv").write_text("a\n1\n")
    Path("sub").mkdir()
    with pytest.raises(InputError, match=f"^{what}"):
        read_table(source, format)


BOMBS = {
    "csv.gz": lambda: gzip.compress(b"text,label\n" + b"a" * 150_000_000),
    "csv.zst": lambda: zstandard.compress(b"text,label\n" + b"a" * 150_000_000),
    "jsonl": lambda: b"".join(b'{"key %d": 1}\n' % number for number in range(5000)),
    "json": lambda: b"[" + b",".join(b'{"key %d": 1}' % number for number in range(5000)) + b"]",
}


@pytest.mark.parametrize("suffix", BOMBS)
def test_small_files_that_become_huge_are_refused_unless_allowed(suffix, tmp_path):
    path = tmp_path / f"bomb.{suffix}"
    path.write_bytes(BOMBS[suffix]())
    with pytest.raises(
        FileError, match=r"(expands to more than 100 MB|5000 different keys).*allow more with --max-size"
    ):
        read_table(str(path))
    if suffix == "jsonl":
        assert read_table(str(path), limit=500_000_000).frame.shape == (5000, 5000)


def test_a_large_file_may_expand_a_hundred_times():
    assert expansion_limit(1000) == 100_000_000
    assert expansion_limit(2_000_000) == 200_000_000
