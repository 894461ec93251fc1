"""CSV and TSV: every cell is text exactly as it stands in the file, and every row has as many cells as the header.

Python's own reader in its strict mode takes the quotes apart; around it stand the checks that say which line is wrong.
"""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from transduce.cli.formats.decoding import decode, has_mark
from transduce.cli.formats.errors import fault, quoted
from transduce.cli.formats.table import Dialect, Table, free_name

_HEADER = re.compile(r'(?:[^"\r\n]++|"[^"]*+")*+')
_QUOTED = re.compile(r'"[^"]*"')
_LARGEST_CELL = 2**31 - 1  # the most that the reader takes on every platform


def read_delimited(data: bytes, name: str, format: str) -> Table:
    r"""Read CSV (commas, or semicolons if the header has more of them) or TSV.

    >>> table = read_delimited(b'id;text\n007;"a;b"\n', "data.csv", "csv")
    >>> table.frame.rows(), table.dialect
    ([('007', 'a;b')], Dialect(separator=';', marked=False))
    """
    text = decode(data, name)
    dialect = Dialect(_separator(text), has_mark(data)) if format == "csv" else Dialect()
    return Table(name, _frame(text, name, "\t" if format == "tsv" else dialect.separator), format, dialect=dialect)


def _frame(text: str, name: str, separator: str) -> pl.DataFrame:
    rows = _rows(text, name, separator)
    first = next(rows, None)
    if first is None:
        raise fault(name, "the file is empty. Give a header line and one line a document.")
    header = _column_names(first[1], name, first[0])
    cells = [_checked(row, len(header), name, line) for line, row in rows]
    if not cells:
        raise fault(name, "there is a header but no row. Give one line a document below it.")
    columns = zip(header, zip(*cells, strict=True), strict=True)
    return pl.DataFrame([pl.Series(column, values, dtype=pl.String) for column, values in columns])


def _separator(text: str) -> str:
    header = _HEADER.match(text.lstrip("\r\n"))
    outside_quotes = _QUOTED.sub("", header.group() if header else "")
    return ";" if outside_quotes.count(";") > outside_quotes.count(",") else ","


def _rows(text: str, name: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each row begins, and its cells; empty lines are no rows."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    with _cells_of_any_length(len(text)):
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                what = "a quote opens here and is never closed. Close it, or double a quote that belongs to the text."
            else:
                what = "a quoted cell goes on after its closing quote. Double a quote that belongs to the text."
            raise fault(name, what, line=line) from None


@contextmanager
def _cells_of_any_length(longest: int) -> Iterator[None]:
    before = csv.field_size_limit()
    csv.field_size_limit(min(max(before, longest), _LARGEST_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _column_names(header: list[str], name: str, line: int) -> list[str]:
    """Name the nameless columns by their place, and refuse names that stand for two columns."""
    if not any(cell.strip() for cell in header):
        raise fault(name, "the header names no column. Write the columns' names into the first line.", line=line)
    given = {cell for cell in header if cell.strip()}
    names: list[str] = []
    for place, cell in enumerate(header, start=1):
        if cell in names:
            what = f"the header names the column {quoted(cell)} twice. Give each column a name of its own."
            raise fault(name, what, line=line)
        names.append(cell if cell.strip() else free_name(f"column_{place}", given))
    return names


def _checked(row: list[str], expected: int, name: str, line: int) -> list[str]:
    if len(row) == expected:
        return row
    what = (
        f"expected {expected} cells as in the header, found {len(row)}. "
        "Put cells that hold the separator or a line end into double quotes."
    )
    raise fault(name, what, line=line)
