"""Entry point for writing: the file name chooses the format, and a file is written completely or not at all."""

import gzip
import os
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import IO, Any

import polars as pl
import zstandard

from transduce.cli.formats.decoding import split_name
from transduce.cli.formats.delimited import delimited_lines, guard_pattern
from transduce.cli.formats.errors import FileError
from transduce.cli.formats.json_lines import json_lines
from transduce.cli.formats.parquet import write_parquet
from transduce.cli.formats.table import Dialect
from transduce.io.atomic_write import atomic_write

_CHUNK_ROWS = 50_000
_OUTPUT_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_DEFAULT_DIALECT = Dialect()


def write_table(
    frame: pl.DataFrame,
    target: str,
    *,
    keep_formulas: bool = False,
    dialect: Dialect = _DEFAULT_DIALECT,
    class_columns: Container[str] = (),
) -> None:
    r"""Write a frame as CSV, TSV, JSONL or Parquet by the file name (plain, .gz or .zst); "-" is CSV to stdout.

    Text that a spreadsheet would take for a formula gets a leading apostrophe, unless `keep_formulas`; in
    columns of classes this can be undone for every class. `dialect` gives the separator and the byte order mark of CSV.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pl.DataFrame({"text": ["=1+1", None], "score": [0.5, 1.0]}), f"{folder}/out.csv")
    ...     pathlib.Path(folder, "out.csv").read_text()
    "text,score\n'=1+1,0.5\n,1.0\n"
    """
    format, compression = ("csv", None) if target == "-" else split_name(target)
    if format not in _OUTPUT_FORMATS:
        suffixes = ", ".join(f".{one}" for one in _OUTPUT_FORMATS)
        advice = f"Use a name that ends in {suffixes} (optionally followed by .gz or .zst)."
        raise FileError(target, f"cannot tell the output format from the file name. {advice}")
    guards = (lambda _: None) if keep_formulas else partial(guard_pattern, class_columns=class_columns)
    if target == "-":
        _write(frame, sys.stdout.buffer, format, guards, dialect)
        sys.stdout.buffer.flush()
        return
    if os.path.exists(target) and not os.path.isfile(target):
        raise FileError(target, "expected a file name, but this is a folder, a device or a pipe. Choose another name.")
    with open_output(target, compression) as body:
        _write(frame, body, format, guards, dialect)


@contextmanager
def open_output(target: str, compression: str | None) -> Iterator[IO[bytes]]:
    """Open a file that is written completely or not at all, and compressed as gzip ("gz") or zstd ("zst")."""
    with atomic_write(target) as file, _compressed(file, compression) as body:
        yield body


def _write(
    frame: pl.DataFrame, file: IO[bytes], format: str, guards: Callable[[str], str | None], dialect: Dialect
) -> None:
    if format == "parquet":
        write_parquet(frame, file)
        return
    if format == "csv" and dialect.byte_order_mark:
        file.write("\ufeff".encode())
    lines = json_lines
    if format != "jsonl":
        separator = "\t" if format == "tsv" else dialect.separator
        lines = partial(delimited_lines, separator=separator, guards=guards)
    for number, part in enumerate(_chunks(frame)):
        file.write("".join(f"{line}\n" for line in lines(part, is_first=number == 0)).encode())


def _chunks(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for start in range(0, max(frame.height, 1), _CHUNK_ROWS):  # at least one, for the header
        yield frame.slice(start, _CHUNK_ROWS)


def _compressed(file: IO[bytes], compression: str | None) -> AbstractContextManager[Any]:
    if compression == "gz":  # without name and time, so that equal tables give equal bytes
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
    if compression == "zst":
        return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)
    return nullcontext(file)
