"""Writing a table: the format is what the name says, and the file is whole or it is not there (see `replacing`)."""

import gzip
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

import polars as pl
import zstandard

from transduce.cli.formats.cells import plain_values
from transduce.cli.formats.errors import fault
from transduce.cli.formats.file_names import split_name
from transduce.cli.formats.spreadsheet import delimited_lines
from transduce.cli.formats.table import Dialect
from transduce.io.atomic_write import atomic_write
from transduce.io.strict_json import dumps

_ROWS_AT_ONCE = 50_000
_WRITTEN = ("csv", "tsv", "jsonl", "parquet")
_PLAIN = Dialect()

Write = Callable[[IO[bytes]], None]


def write_table(frame: pl.DataFrame, target: str, *, keep_formulas: bool = False, dialect: Dialect = _PLAIN) -> None:
    r"""Write a frame as CSV, TSV, JSONL or Parquet, as the name says (plain, .gz or .zst); "-" is CSV to stdout.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, unless `keep_formulas`.
    `dialect` is that of the CSV which the frame came from: separator and mark of another CSV are the same.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "out.csv")
    ...     write_table(pl.DataFrame({"text": ["=1+1", None], "score": [0.5, 1.0]}), str(path))
    ...     path.read_text()
    "text,score\n'=1+1,0.5\n,1.0\n"
    """
    format, compression = ("csv", None) if target == "-" else split_name(target)
    if format not in _WRITTEN:
        known = ", ".join(f".{one}" for one in _WRITTEN)
        raise fault(
            target, f"the name does not tell a format to write. End it in {known} (then .gz or .zst, if wanted)."
        )
    write = _writer(frame, format, keep_formulas, dialect)
    if target == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    _check(target)
    with atomic_write(target) as file, _compressing(file, compression) as body:
        write(body)


def _writer(frame: pl.DataFrame, format: str, keep_formulas: bool, dialect: Dialect) -> Write:
    if format == "parquet":
        return partial(_write_parquet, frame)
    separator = "\t" if format == "tsv" else dialect.separator
    lines = (
        _json_lines if format == "jsonl" else partial(delimited_lines, separator=separator, keep_formulas=keep_formulas)
    )
    mark = "\ufeff" if format == "csv" and dialect.marked else ""

    def write(file: IO[bytes]) -> None:
        file.write(mark.encode())
        for first, part in enumerate(_slices(frame)):
            file.write("".join(f"{line}\n" for line in lines(part, is_first=first == 0)).encode())

    return write


def _write_parquet(frame: pl.DataFrame, file: IO[bytes]) -> None:
    try:
        frame.write_parquet(file)
    except pl.exceptions.ComputeError as error:  # what Polars makes of a full disk
        raise OSError(str(error)) from error


def _slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield frame.head(_ROWS_AT_ONCE)  # also of an empty frame, for its header
    for begin in range(_ROWS_AT_ONCE, frame.height, _ROWS_AT_ONCE):
        yield frame.slice(begin, _ROWS_AT_ONCE)


def _json_lines(frame: pl.DataFrame, *, is_first: bool) -> Iterator[str]:
    columns = [plain_values(column) for column in frame.iter_columns()]
    for cells in zip(*columns, strict=True):
        yield dumps(dict(zip(frame.columns, cells, strict=True)))


def _check(target: str) -> None:
    """See that there is a place to write to, and that it is no other kind of thing."""
    path = Path(os.path.realpath(target))
    if path.is_dir():
        raise fault(target, "expected the name of a file, but it is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise fault(target, "the folder to write to does not exist. Make it first, or name another.")
    if path.exists() and not path.is_file():
        raise fault(target, "expected the name of a plain file, but it is a device or a pipe. Name another.")


def _compressing(file: IO[bytes], compression: str | None) -> AbstractContextManager[Any]:
    if compression == "gz":  # no name and no time in it: the same table gives the same bytes
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
    if compression == "zst":
        return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)
    return nullcontext(file)
