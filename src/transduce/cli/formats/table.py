"""A table of documents, and its columns as text, labels, documents or JSON; a null never becomes the text "null"."""

import base64
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from scipy.sparse import csr_matrix

from transduce.cli.formats.errors import ContentError, FileError, map_rows, quoted
from transduce.io.strict_json import JsonError, dumps, parse
from transduce.suggest import closest_name

RAW_JSON = pl.Struct({"json": pl.String})
"""JSON values that no other type represents, as text; the struct distinguishes them from text that looks like JSON."""
_MAX_COLUMNS_SHOWN = 20


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: its separator, and whether it starts with a byte order mark, as files of Excel do."""

    separator: str = ","
    byte_order_mark: bool = False


@dataclass(frozen=True)
class Table:
    """The documents of one source.

    name         the source as the user named it: a path, or "standard input"
    format       "csv", "tsv", "jsonl", "parquet", "svmlight", "folder" or "label-studio"
    vectors      svmlight: the features of each row; otherwise None
    text         the text column, if the format defines one; `label` likewise
    dialect      how the CSV file was written, so that results can be written the same way
    row_is_line  CSV, TSV: whether each row is one line of the file, so that row k is in line k + 1
    """

    name: str
    frame: pl.DataFrame
    format: str
    vectors: csr_matrix | None = None
    text: str | None = None
    label: str | None = None
    dialect: Dialect = Dialect()
    row_is_line: bool = False

    def column(self, name: str) -> pl.Series:
        """Return a column; the error for an unknown name suggests the closest one."""
        columns = self.frame.columns
        if name in columns:
            return self.frame.get_column(name)
        near = closest_name(name, columns)
        hint = "" if near is None else f" Did you mean {quoted(near)}?"
        listed = ", ".join(quoted(column)[1:-1] for column in columns[:_MAX_COLUMNS_SHOWN])
        more = ", …" if len(columns) > _MAX_COLUMNS_SHOWN else ""
        raise FileError(self.name, f"there is no column {quoted(name)}.{hint} The columns are: {listed}{more}.")


def unused_name(name: str, taken: Container[str]) -> str:
    """Return the name, with the first free number appended if it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


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
