"""JSON with one object per line, or one list of objects; errors name the line and row of the object.

Every value can be written back unchanged. Texts, numbers, booleans and flat lists of them become typed columns;
everything else (objects, nested lists, columns of mixed types) is stored as `RAW_JSON`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import polars as pl

from transduce.cli.formats.decoding import RAISE_LIMIT, decode, expansion_limit
from transduce.cli.formats.errors import ContentError
from transduce.cli.formats.table import plain_values
from transduce.io.strict_json import JsonError, dumps, parse_object

_BLANKS = " \t\r\n"
_CELL_BYTES = 16
_MAX_EXACT_FLOAT = 2**53
_INT64 = range(-(2**63), 2**63)


def read_json_lines(data: bytes, limit: int | None = None) -> pl.DataFrame:
    """Read one object per line, skipping blank lines; `limit` is that of `frame_of`."""
    lines = enumerate((line.strip(_BLANKS) for line in decode(data).split("\n")), start=1)
    objects = [_object_on_line(content, line) for line, content in lines if content]
    return frame_of(objects, expansion_limit(len(data)) if limit is None else limit)


def _object_on_line(content: str, line: int) -> dict[str, Any]:
    try:
        value, end = parse_object(content)
    except JsonError as error:
        raise ContentError(_expected_object(error), line) from None
    if end < len(content):
        raise ContentError("expected one JSON object, but there is more after it. Put each on its own line.", line)
    return value


def _expected_object(error: JsonError) -> str:
    advice = "Correct it there, or name the format with --format." if error.is_syntax else error.advice
    return f"expected a JSON object, but {error.problem}. {advice}"


def list_of_objects(data: bytes) -> list[dict[str, Any]]:
    """Read a list of objects one by one, so that an error has its line and row."""
    text = decode(data)
    at = _skip_blanks(text, 0)
    if not text.startswith("[", at):
        raise ContentError("expected a JSON list of objects, but found something else. Write [{...}, ...].", line=1)
    records: list[dict[str, Any]] = []
    at = _skip_blanks(text, at + 1)
    while not text.startswith("]", at):
        at = _skip_blanks(text, at + 1) if records else at
        try:
            record, at = parse_object(text, at)
        except JsonError as error:
            raise ContentError(_expected_object(error), _line(text, at), len(records) + 1) from None
        records.append(record)
        at = _skip_blanks(text, at)
        if not text.startswith((",", "]"), at):
            found = "found something else. Separate objects by commas." if at < len(text) else "the file ends."
            problem = f'expected "," or "]" after the object, but {found} End the list with "]".'
            raise ContentError(problem, _line(text, at), len(records))
    at = _skip_blanks(text, at + 1)
    if at < len(text):
        raise ContentError("expected the end of the file after the list. Keep one list.", _line(text, at))
    return records


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def frame_of(records: Sequence[dict[str, Any]], limit: int | None = None) -> pl.DataFrame:
    """Build a frame with all keys as columns, in order of first appearance; missing keys are null.

    A frame whose cells would take more bytes than the limit is refused, as one in which every row has another key.
    """
    if not records:
        raise ContentError("there are no objects in it. Write one JSON object per document.")
    n_keys = len(set(chain.from_iterable(records)))
    if limit is not None and _CELL_BYTES * n_keys * len(records) > limit:
        problem = f"the objects have {n_keys} different keys, which is too many for {len(records)} rows"
        raise ContentError(f"{problem}. {RAISE_LIMIT}")
    columns: dict[str, list[Any]] = {}
    for row, record in enumerate(records):
        for key, value in record.items():
            if key not in columns:
                columns[key] = [None] * len(records)
            columns[key][row] = value
    if not columns:
        raise ContentError("all objects are empty. Give each document its text under a key.", row=1)
    return pl.DataFrame({name: _column(name, values) for name, values in columns.items()})  # a list would rename ""


def _column(name: str, values: list[Any]) -> pl.Series:
    dtype = _scalar_type(values)
    if dtype is None and all(value is None or type(value) is list for value in values):
        inner = _scalar_type(chain.from_iterable(value for value in values if value is not None))
        dtype = None if inner is None else pl.List(inner)
    if dtype is not None:
        return pl.Series(name, values, dtype, strict=False)  # accepts the integers of a float column
    texts = pl.Series("json", [None if value is None else dumps(value) for value in values], dtype=pl.String)
    filled = pl.when(pl.col("json").is_not_null()).then(pl.struct("json")).alias(name)
    return texts.to_frame().select(filled).to_series()


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


def json_lines(frame: pl.DataFrame, *, is_first: bool) -> Iterator[str]:
    """Yield one object per row; the first part of a table is as the others."""
    for cells in zip(*map(plain_values, frame.iter_columns()), strict=True):
        yield dumps(dict(zip(frame.columns, cells, strict=True)))
