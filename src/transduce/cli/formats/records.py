"""From JSON objects to columns, so that each value can be written back as it came.

Text, numbers, booleans and flat lists of text or numbers become columns of their own kind. Everything else (objects,
lists of lists, a column of mixed kinds) is kept as JSON text in a struct of the one field "json", which tells it apart
from a text that merely looks like JSON.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import polars as pl

from transduce.io.strict_json import dumps

RAW_JSON = pl.Struct({"json": pl.String})
_EXACT_IN_FLOAT = 2**53
_INT64 = range(-(2**63), 2**63)


def frame_of(records: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Build a frame: the columns are all keys in order of first appearance, a missing key is null.

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
    if dtype is not None:
        return _series(name, values, dtype)
    if all(value is None or type(value) is list for value in values):
        inner = _scalar_type(chain.from_iterable(value for value in values if value is not None))
        if inner is not None:
            return _series(name, values, pl.List(inner))
    return _raw_json(name, values)


def _scalar_type(values: Iterable[Any]) -> pl.DataType | None:
    """Return the one kind that holds all values exactly, if there is one."""
    values = list(values)
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        return pl.String()
    if kinds == {bool}:
        return pl.Boolean()
    whole = [value for value in values if type(value) is int]
    if kinds == {int} and all(number in _INT64 for number in whole):
        return pl.Int64()
    if kinds == {float} or (kinds == {int, float} and all(abs(number) <= _EXACT_IN_FLOAT for number in whole)):
        return pl.Float64()
    return None


def _series(name: str, values: list[Any], dtype: pl.DataType) -> pl.Series:
    if dtype == pl.Float64:
        values = [None if value is None else float(value) for value in values]
    elif dtype == pl.List(pl.Float64):
        values = [
            value if value is None else [None if number is None else float(number) for number in value]
            for value in values
        ]
    return pl.Series(name, values, dtype=dtype)


def _raw_json(name: str, values: list[Any]) -> pl.Series:
    texts = pl.Series("json", [None if value is None else dumps(value) for value in values], dtype=pl.String)
    known = pl.when(pl.col("json").is_not_null()).then(pl.struct("json")).alias(name)
    return texts.to_frame().select(known).to_series()
