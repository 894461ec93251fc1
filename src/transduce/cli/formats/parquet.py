"""Parquet: the columns as they are stored, except that NaN, which pandas writes for a missing number, is null.

A corrupt file can make the reader ask for more memory than any machine has, which ends the process without an exception
to catch; so a process of its own reads the file first.
"""

import io
import os
import subprocess
import sys

import polars as pl

from transduce.cli.formats.errors import fault, quoted

_MAGIC = b"PAR1"
_SHORTEST = 12
_TRIAL = "import sys, polars; polars.read_parquet(sys.stdin.buffer.read())"
_CORRUPT = "expected a whole Parquet file, but it is cut short or corrupt. Fetch or write it again."


def read_parquet(data: bytes, name: str) -> pl.DataFrame:
    """Read a Parquet file with at least one row and no infinite number.

    >>> file = io.BytesIO()
    >>> pl.DataFrame({"text": ["a"], "score": [float("nan")]}).write_parquet(file)
    >>> read_parquet(file.getvalue(), "data.parquet").rows()
    [('a', None)]
    """
    if len(data) < _SHORTEST or not (data.startswith(_MAGIC) and data.endswith(_MAGIC)) or not _is_readable(data):
        raise fault(name, _CORRUPT)
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError):
        raise fault(name, _CORRUPT) from None
    if frame.height == 0 or frame.width == 0:
        raise fault(name, "there is no row in it. Give one row a document.")
    return frame.with_columns(_finite(column, name) for column in frame.iter_columns())


def _is_readable(data: bytes) -> bool:
    """Try in a child process, whose crash and complaints nobody sees; where none can be started, hope."""
    if not sys.executable:
        return True
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _TRIAL]  # -P: a polars.py in the user's folder is not ours to run
    return subprocess.run(command, input=data, env=path, capture_output=True, check=False).returncode == 0


def _finite(column: pl.Series, name: str) -> pl.Series:
    if column.dtype.is_float():
        column = column.fill_nan(None)
        wrong = column.is_infinite().arg_true()
    elif isinstance(column.dtype, pl.List | pl.Array) and column.dtype.inner.is_float():
        lists = column.cast(pl.List(pl.Float64))
        wrong = lists.list.eval(~pl.element().is_finite()).list.any().arg_true()
    else:
        return column
    if len(wrong) == 0:
        return column
    what = f"column {quoted(column.name)} holds a number that is not finite. Replace it, or drop the column."
    raise fault(name, what, row=int(wrong[0]) + 1)
