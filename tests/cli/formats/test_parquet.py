"""Parquet files, and corrupt ones."""

import polars as pl
import pytest
from helpers.tables import assert_refused, parquet_bytes, read

from transduce.cli.errors import InputError
from transduce.cli.formats import parquet as parquet_module

GOOD_PARQUET = parquet_bytes(pl.DataFrame({"text": ["a", "b"], "label": ["x", "y"]}))


BAD = {
    "empty Parquet": ("a.parquet", b"", "expected a complete Parquet file"),
    "Parquet cut short": ("a.parquet", GOOD_PARQUET[:-20], "expected a complete Parquet file"),
    "Parquet without a middle": ("a.parquet", b"PAR1" + b"\xff" * 40 + b"PAR1", "expected a complete Parquet file"),
    "CSV called Parquet": ("a.pq", "a,b\n1,2\n", "expected a complete Parquet file"),
    "Parquet without rows": ("a.parquet", parquet_bytes(pl.DataFrame({"a": []})), "the file has no rows"),
    "infinity in Parquet": (
        "a.parquet",
        parquet_bytes(pl.DataFrame({"a": [1.0, float("inf")]})),
        'row 2: column "a" has a number that is not finite',
    ),
    "NaN in a vector": (
        "a.parquet",
        parquet_bytes(pl.DataFrame({"v": [[1.0], None, [0.0, float("nan")]]})),
        'row 3: column "v" has a number that is not finite',
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_position(tmp_path, case):
    assert_refused(tmp_path, *BAD[case])


def test_a_crash_of_the_parquet_reader_becomes_an_error(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(parquet_module, "_TRIAL", "import os; os.write(2, b'panicked'); os.abort()")
    with pytest.raises(InputError, match="expected a complete Parquet file"):
        read(tmp_path, "a.parquet", GOOD_PARQUET)
    assert capfd.readouterr().err == ""
