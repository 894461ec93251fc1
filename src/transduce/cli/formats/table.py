"""A table of documents: one row a document, in the file's order, with what the format itself tells of its columns."""

from collections.abc import Container
from dataclasses import dataclass

import polars as pl
from scipy.sparse import csr_matrix

from transduce.cli.formats.errors import fault, quoted
from transduce.suggest import closest_name

_NAMED_COLUMNS = 20


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: what parts its cells, and whether it begins with a byte order mark, as Excel's do."""

    separator: str = ","
    marked: bool = False


@dataclass(frozen=True)
class Table:
    """What was read.

    name     as the user called it: a path, or "standard input"
    frame    one row a document
    format   "csv", "tsv", "jsonl", "parquet", "svmlight", "folder" or "label-studio"
    vectors  svmlight: the features of each row, else None
    text     the column known to hold the text, if the format says so
    label    the column known to hold the label, if the format says so
    dialect  how a CSV file was written, so that another can be written alike
    """

    name: str
    frame: pl.DataFrame
    format: str
    vectors: csr_matrix | None = None
    text: str | None = None
    label: str | None = None
    dialect: Dialect = Dialect()

    def column(self, name: str) -> pl.Series:
        """Return a column; if there is none of that name, the error offers the nearest.

        >>> table = Table("data.csv", pl.DataFrame({"text": ["a"], "label": ["x"]}), "csv")
        >>> table.column("labl")
        Traceback (most recent call last):
        transduce.cli.errors.InputError: data.csv: there is no column "labl". Did you mean "label"? It has: text, label.
        """
        if name in self.frame.columns:
            return self.frame.get_column(name)
        raise fault(self.name, f"there is no column {quoted(name)}.{_nearest(name, self.frame.columns)}")


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or with the first number that makes it a new one.

    >>> free_name("label", {"label", "label_2"})
    'label_3'
    """
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _nearest(name: str, columns: list[str]) -> str:
    near = closest_name(name, columns)
    hint = "" if near is None else f" Did you mean {quoted(near)}?"
    more = ", …" if len(columns) > _NAMED_COLUMNS else ""
    return f"{hint} It has: {', '.join(quoted(column)[1:-1] for column in columns[:_NAMED_COLUMNS])}{more}."
