"""A table of documents: one row per document, in file order."""

from collections.abc import Container
from dataclasses import dataclass

import polars as pl
from scipy.sparse import csr_matrix

from transduce.cli.formats.errors import FileError, quoted
from transduce.suggest import closest_name

_MAX_COLUMNS_SHOWN = 20


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: its separator, and whether it starts with a byte order mark, as files of Excel do."""

    separator: str = ","
    byte_order_mark: bool = False


@dataclass(frozen=True)
class Table:
    """The documents of one source.

    name     the source as the user named it: a path, or "standard input"
    format   "csv", "tsv", "jsonl", "parquet", "svmlight", "folder" or "label-studio"
    vectors  svmlight: the features of each row; otherwise None
    text     the text column, if the format defines one; `label` likewise
    dialect  how the CSV file was written, so that results can be written the same way
    """

    name: str
    frame: pl.DataFrame
    format: str
    vectors: csr_matrix | None = None
    text: str | None = None
    label: str | None = None
    dialect: Dialect = Dialect()

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
