"""Parquet: columns as stored, except that NaN, which pandas writes for a missing number, becomes null.

A corrupt file can make the Parquet reader abort the whole process, so every file is first read in a child process
whose memory and time are limited.
"""

import io
import os
import subprocess
import sys
from typing import IO

import polars as pl

from transduce.cli.formats.decoding import expansion_limit
from transduce.cli.formats.errors import ContentError, quoted

READ_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError)
CORRUPT = (
    "expected a complete Parquet file, but it is truncated or corrupt, or expands too much. Download or write it "
    "again, or allow more with --max-size."
)
_SPARE_MEMORY = 4_000_000_000
"""Bytes of address space that Python and Polars take before they read anything."""
_SPARE_SECONDS, _BYTES_A_SECOND = 60, 10_000_000
_LIMITS = """
import sys
try:
    import resource
except ImportError:  # Windows
    pass
else:
    for name, wanted in (("RLIMIT_AS", int(sys.argv[1])), ("RLIMIT_CPU", int(sys.argv[2]))):
        try:
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (limit, hard))
        except (AttributeError, OSError, ValueError):  # not every system has every limit
            pass
del sys.argv[1:3]
"""
_MAGIC = b"PAR1"
_TRIAL = "import sys, polars; polars.read_parquet(sys.stdin.buffer.read())"


def read_parquet(data: bytes, limit: int | None = None) -> pl.DataFrame:
    """Read a Parquet file with at least one row and no infinite number; the limit is that of `read_table`."""
    limit = expansion_limit(len(data)) if limit is None else limit
    if not (data.startswith(_MAGIC) and data.endswith(_MAGIC) and succeeds(_TRIAL, data, limit=limit)):
        raise ContentError(CORRUPT)
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except READ_ERRORS:
        raise ContentError(CORRUPT) from None
    if frame.height == 0 or frame.width == 0:
        raise ContentError("the file has no rows. Write one row per document.")
    return frame.with_columns(map(_finite, frame.iter_columns()))


def succeeds(script: str, data: bytes, *arguments: str, limit: int) -> bool:
    """Whether a script that reads `data` from standard input ends well; its output and its crash stay hidden.

    It may take `limit` bytes of memory beside what Polars needs, and processor time in proportion to it.
    """
    if not sys.executable:
        return True
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "POLARS_MAX_THREADS": "2"}
    memory, seconds = limit + _SPARE_MEMORY, _SPARE_SECONDS + limit // _BYTES_A_SECOND
    limits = str(memory), str(seconds)
    command = [sys.executable, "-P", "-c", _LIMITS + script, *limits, *arguments]  # -P: no polars.py of the user
    return subprocess.run(command, input=data, env=environment, capture_output=True, check=False).returncode == 0


def _finite(column: pl.Series) -> pl.Series:
    if column.dtype.is_float():
        column = column.fill_nan(None)
        wrong = column.is_infinite().arg_true()
    elif isinstance(column.dtype, pl.List | pl.Array) and column.dtype.inner.is_float():
        lists = column.cast(pl.List(pl.Float64))
        wrong = lists.list.eval(~pl.element().is_finite()).list.any().arg_true()
    else:
        return column
    if len(wrong):
        problem = f"column {quoted(column.name)} has a number that is not finite. Replace it, or drop the column."
        raise ContentError(problem, row=int(wrong[0]) + 1)
    return column


def write_parquet(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """Write a frame; any failure is an OSError."""
    try:
        frame.write_parquet(file)
    except pl.exceptions.ComputeError as error:  # Polars raises this when the disk is full
        raise OSError(str(error)) from error
