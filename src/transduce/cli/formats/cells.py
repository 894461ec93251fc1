"""Values of any column as text, labels, documents or JSON; a null never becomes the text "null"."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from transduce.cli.formats.errors import ContentError, FileError, map_rows, quoted
from transduce.cli.formats.table import Table
from transduce.io.strict_json import JsonError, dumps, parse

RAW_JSON = pl.Struct({"json": pl.String})
"""JSON values that no other type represents, as text; the struct distinguishes them from text that looks like JSON."""


def labels_of(table: Table, column: str) -> pl.Series:
    """Return the labels as text, null where a row has none; a list is a path in the class tree.

    >>> table = Table("data.jsonl", pl.DataFrame({"y": [["rec", "hockey"], None]}), "jsonl")
    >>> labels_of(table, "y").to_list()
    ['rec/hockey', None]
    """
    series = table.column(column)
    if series.dtype.is_float() or series.dtype.is_nested():
        try:
            labels = map_rows(_label, series.to_list() if series.dtype.is_float() else plain_values(series))
        except ContentError as error:
            raise FileError(table.name, f"column {quoted(column)} has {error.problem}", row=error.row) from None
        series = pl.Series(column, labels, dtype=pl.String)
    stripped = as_text(series).str.strip_chars()
    return stripped.set(stripped == "", None)


def _label(value: Any) -> str | None:
    if isinstance(value, list):
        return "/".join(_path_part(_label(part)) for part in value) if value else None
    if isinstance(value, dict):
        raise ContentError("an object as a label. Use a text, or a list of texts for a path.")
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return None if value is None else str(value)
    if math.isinf(value):
        raise ContentError("infinity as a label. Replace it, or leave it empty.")
    return None if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)


def _path_part(label: str | None) -> str:
    part = (label or "").strip()
    if part and "/" not in part:
        return part
    raise ContentError(f'a path with the part {quoted(part)}. Rename it: a part must not be empty or contain "/".')


def texts_of(table: Table, columns: Sequence[str]) -> pl.Series:
    r"""Return the documents: the columns as text, joined by line breaks where there are several.

    >>> table = Table("data.csv", pl.DataFrame({"title": ["a", None], "body": ["b", "c"]}), "csv")
    >>> texts_of(table, ["title", "body"]).to_list()
    ['a\nb', '\nc']
    """
    if not columns:
        raise FileError(table.name, "no text column was given. Name at least one.")
    texts = [as_text(table.column(name)).fill_null("").alias(str(i)) for i, name in enumerate(columns)]
    return pl.DataFrame(texts).select(pl.concat_str(pl.all(), separator="\n").alias("text")).to_series()


def as_text(series: pl.Series) -> pl.Series:
    """Convert a column to text; nested values become JSON, NaN and infinity become null."""
    dtype = series.dtype
    if dtype == pl.String:
        return series
    if dtype.is_float():
        return series.set(~series.is_finite(), None).cast(pl.String)
    if dtype.is_integer() or dtype in (pl.Boolean, pl.Null, pl.Categorical, pl.Enum, pl.Decimal):
        return series.cast(pl.String)
    texts = [value if value is None or isinstance(value, str) else dumps(value) for value in plain_values(series)]
    return pl.Series(series.name, texts, dtype=pl.String)


def plain_values(series: pl.Series) -> list[Any]:
    """Return values that JSON can represent: raw JSON is parsed, dates become text, NaN and infinity null."""
    dtype = series.dtype
    if dtype == RAW_JSON:
        return [_parse_raw_json(text) for text in series.struct.field("json")]
    if dtype in (pl.String, pl.Boolean) or dtype.is_integer():
        return series.to_list()
    return [_plain(value) for value in series.to_list()]


def _parse_raw_json(text: str | None) -> Any:
    if text is None:
        return None
    try:
        value, end = parse(text)
    except JsonError:
        return {"json": text}  # the user's own struct with a field "json"
    return value if end == len(text) else {"json": text}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | pl.Series):
        return [_plain(part) for part in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
