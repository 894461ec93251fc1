"""Entry point for writing: the file name chooses the format, and a file is written completely or not at all."""

import gzip
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import IO, Any

import polars as pl
import zstandard

from transduce.cli.formats.cells import plain_values
from transduce.cli.formats.errors import FileError
from transduce.cli.formats.file_names import split_name
from transduce.cli.formats.spreadsheet import delimited_lines
from transduce.cli.formats.table import Dialect
from transduce.io.atomic_write import atomic_write
from transduce.io.strict_json import dumps

_CHUNK_ROWS = 50_000
_OUTPUT_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_DEFAULT_DIALECT = Dialect()


def write_table(
    frame: pl.DataFrame, target: str, *, keep_formulas: bool = False, dialect: Dialect = _DEFAULT_DIALECT
) -> None:
    r"""Write a frame as CSV, TSV, JSONL or Parquet by the file name (plain, .gz or .zst); "-" is CSV to stdout.

    Text that a spreadsheet would take for a formula gets a leading apostrophe, unless `keep_formulas`. `dialect` gives
    the separator and the byte order mark of CSV output.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "out.csv")
    ...     write_table(pl.DataFrame({"text": ["=1+1", None], "score": [0.5, 1.0]}), str(path))
    ...     path.read_text()
    "text,score\n'=1+1,0.5\n,1.0\n"
    """
    format, compression = ("csv", None) if target == "-" else split_name(target)
    if format not in _OUTPUT_FORMATS:
        suffixes = ", ".join(f".{one}" for one in _OUTPUT_FORMATS)
        advice = f"Use a name that ends in {suffixes} (optionally followed by .gz or .zst)."
        raise FileError(target, f"cannot tell the output format from the file name. {advice}")
    write = _writer(frame, format, keep_formulas, dialect)
    if target == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if os.path.exists(target) and not os.path.isfile(target):
        raise FileError(target, "expected a file name, but this is a folder, a device or a pipe. Choose another name.")
    with atomic_write(target) as file, _compressed(file, compression) as body:
        write(body)


def _writer(frame: pl.DataFrame, format: str, keep_formulas: bool, dialect: Dialect) -> Callable[[IO[bytes]], None]:
    if format == "parquet":
        return partial(_write_parquet, frame)
    separator = "\t" if format == "tsv" else dialect.separator
    delimited = partial(delimited_lines, separator=separator, keep_formulas=keep_formulas)
    lines = _json_lines if format == "jsonl" else delimited
    mark = "\ufeff" if format == "csv" and dialect.byte_order_mark else ""

    def write(file: IO[bytes]) -> None:
        file.write(mark.encode())
        for number, chunk in enumerate(_chunks(frame)):
            file.write("".join(f"{line}\n" for line in lines(chunk, is_first=number == 0)).encode())

    return write


def _write_parquet(frame: pl.DataFrame, file: IO[bytes]) -> None:
    try:
        frame.write_parquet(file)
    except pl.exceptions.ComputeError as error:  # Polars raises this when the disk is full
        raise OSError(str(error)) from error


def _chunks(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for start in range(0, max(frame.height, 1), _CHUNK_ROWS):  # at least one, for the header
        yield frame.slice(start, _CHUNK_ROWS)


def _json_lines(frame: pl.DataFrame, *, is_first: bool) -> Iterator[str]:
    columns = [plain_values(column) for column in frame.iter_columns()]
    for cells in zip(*columns, strict=True):
        yield dumps(dict(zip(frame.columns, cells, strict=True)))


def _compressed(file: IO[bytes], compression: str | None) -> AbstractContextManager[Any]:
    if compression == "gz":  # without name and time, so that equal tables give equal bytes
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
    if compression == "zst":
        return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)
    return nullcontext(file)
