"""Columns from JSON objects, built so that every value can be written back unchanged.

Texts, numbers, booleans and flat lists of them become typed columns. Everything else (objects, nested lists, columns of
mixed types) is stored as JSON text in a struct with the single field "json", which distinguishes it from plain text
that happens to look like JSON.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import polars as pl

from transduce.io.strict_json import dumps

RAW_JSON = pl.Struct({"json": pl.String})
_MAX_EXACT_FLOAT = 2**53
_INT64 = range(-(2**63), 2**63)


def frame_of(records: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Build a frame with all keys as columns, in order of first appearance; missing keys are null.

    >>> frame_of([{"a": 1}, {"b": ["x", "y"]}]).to_dict(as_series=False)
    {'a': [1, None], 'b': [None, ['x', 'y']]}
    """
    columns: dict[str, list[Any]] = {}
    for row, record in enumerate(records):
        for key, value in record.items():
            if key not in columns:
                columns[key] = [None] * len(records)
            columns[key][row] = value
    return pl.DataFrame({name: _column(name, values) for name, values in columns.items()})  # a list would rename ""


def _column(name: str, values: list[Any]) -> pl.Series:
    dtype = _scalar_type(values)
    if dtype is None and all(value is None or type(value) is list for value in values):
        inner = _scalar_type(chain.from_iterable(value for value in values if value is not None))
        dtype = None if inner is None else pl.List(inner)
    return _raw_json(name, values) if dtype is None else pl.Series(name, _as_floats(values, dtype), dtype=dtype)


def _scalar_type(values: Iterable[Any]) -> pl.DataType | None:
    """Return the type that represents all values exactly, or None."""
    values = list(values)
    types = set(map(type, values)) - {type(None)}
    if types <= {str}:
        return pl.String()
    if types == {bool}:
        return pl.Boolean()
    integers = [value for value in values if type(value) is int]
    if types == {int} and all(number in _INT64 for number in integers):
        return pl.Int64()
    if types == {float} or (types == {int, float} and all(abs(number) <= _MAX_EXACT_FLOAT for number in integers)):
        return pl.Float64()
    return None


def _as_floats(values: list[Any], dtype: pl.DataType) -> list[Any]:
    """Convert the integers of a float column, which Polars would refuse."""
    if dtype == pl.Float64:
        return [None if value is None else float(value) for value in values]
    if dtype == pl.List(pl.Float64):
        return [None if value is None else _as_floats(value, pl.Float64()) for value in values]
    return values


def _raw_json(name: str, values: list[Any]) -> pl.Series:
    texts = pl.Series("json", [None if value is None else dumps(value) for value in values], dtype=pl.String)
    filled = pl.when(pl.col("json").is_not_null()).then(pl.struct("json")).alias(name)
    return texts.to_frame().select(filled).to_series()
