"""Tables as fuzz targets: every cell of an accepted file is as it was written."""

import csv
import gzip
import io
from contextlib import suppress
from pathlib import Path

import polars as pl
import zstandard

from benchmarks.fuzz.target import Read, target
from transduce.cli.formats import delimited, labels_of, read_table, texts_of, write_table
from transduce.errors import InputError

CSV = 'text,label\n"a ""b""\nc",x\nü,\n=1+1,"-y"\n'.encode()
JSON_LINES = b'{"text": "\\ud83d\\ude00", "n": [1, 2.5e3], "o": {"k": null}}\n{"text": "b", "label": ["x", "y"]}\n'
TASKS = b'[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"value": {"choices": ["a"]}}]}]}]'
MAX_COLUMNS, MAX_WIDTH = 20, 1000
"""Columns that are read as texts and labels, and those of tables that are written, which takes more than reading."""
SVM = b"1 1:0.5 3:-2e1 # c\n-1 qid:3 2:1\n0 1:1\n"


def _parquet() -> list[bytes]:
    file = io.BytesIO()
    pl.DataFrame({"a": ["x", "y"], "f": [0.5, 1e300], "l": [[1.0], [2.0]]}).write_parquet(file)
    return [file.getvalue()]


def _table(suffix: str) -> Read:
    def read(data: bytes, folder: Path) -> None:
        path = folder / f"in.{suffix}"
        path.write_bytes(data)
        table = read_table(str(path))
        frame = table.frame
        assert frame.height > 0
        for column in frame.columns[:MAX_COLUMNS]:
            assert len(texts_of(table, [column])) == frame.height
            with suppress(InputError):  # an object is no label
                assert len(labels_of(table, column)) == frame.height
        if frame.width <= MAX_WIDTH and all(dtype == pl.String for dtype in frame.dtypes):
            for name, same in (("out.jsonl", frame), ("out.csv", frame.fill_null(""))):  # CSV knows no missing cells
                write_table(frame, str(folder / name), keep_formulas=True)
                assert read_table(str(folder / name)).frame.rows() == same.rows(), "a cell was altered"
        if suffix in ("csv", "tsv"):
            assert _cells(data, suffix) == frame.rows(), "a cell was not read as written"

    return read


def _cells(data: bytes, suffix: str) -> list[tuple[str, ...]]:
    """Cells of a table below its header, by the csv module; the separator is that of the first line."""
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    separator = "\t" if suffix == "tsv" else delimited._separator(text)
    rows = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    return rows[1:]


def _zst_size(data: bytes) -> int:
    """Bytes of all that can be decompressed."""
    n_bytes, stream = 0, zstandard.ZstdDecompressor().decompressobj()
    with suppress(zstandard.ZstdError):
        for begin in range(0, len(data), 256):
            n_bytes += len(stream.decompress(data[begin : begin + 256]))
    return n_bytes


target("csv", [CSV, b"a;b\n1;2\n", "\ufeffa,b\n1,2\n".encode("utf-16")])(_table("csv"))
target("tsv", [CSV.replace(b",", b"\t")])(_table("tsv"))
target("jsonl", [JSON_LINES])(_table("jsonl"))
target("json", [TASKS, b"[" + JSON_LINES.replace(b"\n", b",", 1) + b"]"])(_table("json"))
target("svm", [SVM])(_table("svm"))
target("csv.gz", lambda: [gzip.compress(CSV, mtime=0), gzip.compress(b"a" * 100_000, mtime=0)])(_table("csv.gz"))
target("csv.zst", lambda: [zstandard.compress(CSV), zstandard.compress(b"a" * 10**6)], size=_zst_size)(
    _table("csv.zst")
)
target("parquet", _parquet, share=0.01)(_table("parquet"))
