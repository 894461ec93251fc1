"""CSV and TSV: cells are kept as text exactly as written, and every row must have as many cells as the header.

Python's csv module in strict mode parses the quotes; the checks around it report the line of a problem.
"""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from transduce.cli.formats.decoding import decode, has_byte_order_mark
from transduce.cli.formats.errors import FileError, quoted
from transduce.cli.formats.table import Dialect, Table, unused_name

_HEADER = re.compile(r'(?:[^"\r\n]++|"[^"]*+")*+')
_QUOTED = re.compile(r'"[^"]*"')
_MAX_CELL = 2**31 - 1  # the limit of the csv module on every platform


def read_delimited(data: bytes, name: str, format: str) -> Table:
    r"""Read CSV (commas, or semicolons if the header has more of them) or TSV.

    >>> table = read_delimited(b'id;text\n007;"a;b"\n', "data.csv", "csv")
    >>> table.frame.rows(), table.dialect
    ([('007', 'a;b')], Dialect(separator=';', byte_order_mark=False))
    """
    text = decode(data, name)
    dialect = Dialect(_separator(text), has_byte_order_mark(data)) if format == "csv" else Dialect()
    return Table(name, _frame(text, name, "\t" if format == "tsv" else dialect.separator), format, dialect=dialect)


def _frame(text: str, name: str, separator: str) -> pl.DataFrame:
    rows = _rows(text, name, separator)
    first = next(rows, None)
    if first is None:
        raise FileError(name, "the file is empty. Add a header line and one line per document.")
    header = _column_names(first[1], name, first[0])
    cells = [_check_width(row, len(header), name, line) for line, row in rows]
    if not cells:
        raise FileError(name, "there is a header but no rows. Add one line per document below it.")
    columns = zip(header, zip(*cells, strict=True), strict=True)
    return pl.DataFrame([pl.Series(column, values, dtype=pl.String) for column, values in columns])


def _separator(text: str) -> str:
    header = _HEADER.match(text.lstrip("\r\n"))
    unquoted = _QUOTED.sub("", header.group() if header else "")
    return ";" if unquoted.count(";") > unquoted.count(",") else ","


def _rows(text: str, name: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each row, skipping empty lines."""
    at_end = False

    def lines() -> Iterator[str]:
        nonlocal at_end
        yield from io.StringIO(text, newline="")
        at_end = True

    reader = csv.reader(lines(), delimiter=separator, strict=True)
    line = 1
    with _field_size_limit(len(text)):
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error:
            if at_end:
                problem = "a quoted cell starts here and is never closed. Close it, or double quotes inside the text."
            else:
                problem = "there is text after a closing quote. Double quotes inside the text."
            raise FileError(name, problem, line=line) from None


@contextmanager
def _field_size_limit(longest: int) -> Iterator[None]:
    """Allow cells of any length; the limit of the csv module is global, so restore it."""
    before = csv.field_size_limit()
    csv.field_size_limit(min(max(before, longest), _MAX_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _column_names(header: list[str], name: str, line: int) -> list[str]:
    """Name unnamed columns by their position, and refuse duplicate names."""
    given = {cell for cell in header if cell.strip()}
    if not given:
        raise FileError(name, "the header has no column names. Write them in the first line.", line=line)
    names: list[str] = []
    for position, cell in enumerate(header, start=1):
        if cell in names:
            problem = f"the header has the column {quoted(cell)} twice. Use a different name for each column."
            raise FileError(name, problem, line=line)
        names.append(cell if cell.strip() else unused_name(f"column_{position}", given))
    return names


def _check_width(row: list[str], expected: int, name: str, line: int) -> list[str]:
    if len(row) == expected:
        return row
    advice = "Put cells that contain the separator or a line break in double quotes."
    raise FileError(name, f"expected {expected} cells as in the header, found {len(row)}. {advice}", line=line)
