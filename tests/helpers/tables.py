"""Files and frames for the tests of the readers."""

import io
from pathlib import Path

import polars as pl
import pytest

from transduce.cli.errors import InputError
from transduce.cli.formats import Table, read_table


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """Return a frame as a Parquet file."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def read(folder: Path, name: str, data: bytes | str, format: str | None = None) -> Table:
    """Write a file and read it as a table."""
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_table(str(path), format)


def assert_refused(folder: Path, name: str, data: bytes | str, match: str) -> None:
    """Check that a file is refused by one printable sentence that starts with its name."""
    with pytest.raises(InputError, match=match) as caught:
        read(folder, name, data)
    message = str(caught.value)
    assert message.startswith(str(folder / name).replace("\n", "\\n"))
    assert message.isprintable()
    assert len(message) < 400 + len(str(folder))
    assert message.endswith((".", ")."))
