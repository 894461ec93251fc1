"""CSV and TSV: cells are kept as text exactly as written, and every row must have as many cells as the header.

What is written reads back cell by cell, except that NUL, which readers refuse, becomes the replacement character.
"""

import csv
import re
from collections.abc import Callable, Container, Iterator
from itertools import islice

import polars as pl

from transduce.cli.formats.decoding import BYTE_ORDER_MARKS, decode
from transduce.cli.formats.errors import ContentError, quoted
from transduce.cli.formats.table import Dialect, Table, as_text, unused_name

FORMULA_BEGINNINGS = r"=+\-@\t\r"
"""Characters that start a formula in a spreadsheet, as the inside of a regular expression set."""
GUARD = "'"
"""What is put before a formula. In columns of classes a cell that already has some gets another, so that all can be
undone; in others it stays as it is, so that writing a table twice changes it once."""
_HEADER = re.compile(r'(?:[^"\r\n]++|"[^"]*+")*+')
_LINES = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_QUOTED = re.compile(r'"[^"]*"')
_MAX_CELL = 2**31 - 1  # the limit of the csv module on every platform
_ROWS_AT_A_TIME = 1_000  # each part makes a series of every column
_CELLS_AT_A_TIME = 1 << 18  # a cell takes five times as much memory before it is part of a frame
_NUMBER = r"^[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


def read_delimited(data: bytes, name: str, format: str) -> Table:
    """Read CSV (commas, or semicolons if the header has more of them) or TSV."""
    text = decode(data)
    dialect = Dialect(_separator(text), data.startswith(BYTE_ORDER_MARKS)) if format == "csv" else Dialect()
    frame = _frame(text, "\t" if format == "tsv" else dialect.separator)
    return Table(name, frame, format, dialect=dialect, row_is_line=_count_lines(text) == frame.height + 1)


def _count_lines(text: str) -> int:
    """Number of lines up to the last one that is not empty."""
    text = text.rstrip("\r\n")
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


def _frame(text: str, separator: str) -> pl.DataFrame:
    rows = _rows(text, separator)
    first = next(rows, None)
    if first is None:
        raise ContentError("the file is empty. Add a header line and one line per document.")
    header = _column_names(first[1], first[0])
    parts: list[pl.DataFrame] = []
    while cells := list(islice(_checked(rows, len(header)), max(_ROWS_AT_A_TIME, _CELLS_AT_A_TIME // len(header)))):
        parts.append(_part(header, cells))
    if not parts:
        raise ContentError("there is a header but no rows. Add one line per document below it.")
    return pl.concat(parts) if len(parts) > 1 else parts[0]


def _checked(rows: Iterator[tuple[int, list[str]]], width: int) -> Iterator[list[str]]:
    """Yield the cells of rows that have this many."""
    for line, row in rows:
        if len(row) != width:
            advice = "Put cells that contain the separator or a line break in double quotes."
            raise ContentError(f"expected {width} cells as in the header, found {len(row)}. {advice}", line)
        yield row


def _part(header: list[str], cells: list[list[str]]) -> pl.DataFrame:
    columns = zip(header, zip(*cells, strict=True), strict=True)
    return pl.DataFrame([pl.Series(column, values, dtype=pl.String) for column, values in columns])


def _separator(text: str) -> str:
    header = _HEADER.match(text.lstrip("\r\n"))
    unquoted = _QUOTED.sub("", header.group() if header else "")
    return ";" if unquoted.count(";") > unquoted.count(",") else ","


def _rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each row, skipping empty lines."""
    at_end = False

    def lines() -> Iterator[str]:
        nonlocal at_end
        yield from (line.group() for line in _LINES.finditer(text))
        at_end = True

    reader = csv.reader(lines(), delimiter=separator, strict=True)
    line, limit = 1, csv.field_size_limit(_MAX_CELL)  # global, so it is restored
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error:
        problem = "there is text after a closing quote. Double quotes inside the text."
        if at_end:
            problem = "a quoted cell starts here and is never closed. Close it, or double quotes inside the text."
        raise ContentError(problem, line) from None
    finally:
        csv.field_size_limit(limit)


def _column_names(header: list[str], line: int) -> list[str]:
    """Name unnamed columns by their position, and refuse duplicate names."""
    given = {cell for cell in header if cell.strip()}
    if not given:
        raise ContentError("the header has no column names. Write them in the first line.", line)
    names: dict[str, None] = {}
    for position, cell in enumerate(header, start=1):
        if cell in names:
            problem = f"the header has the column {quoted(cell)} twice. Use a different name for each column."
            raise ContentError(problem, line)
        names[cell if cell.strip() else unused_name(f"column_{position}", given)] = None
    return list(names)


def delimited_lines(
    frame: pl.DataFrame, *, separator: str, guards: Callable[[str], str | None], is_first: bool
) -> Iterator[str]:
    """Yield the header, if this is the first part of a table, and then the rows.

    `guards` gives the pattern of cells of a column that get an apostrophe in front, None where none do.
    """
    if is_first:
        yield separator.join(_escaped(pl.Series(frame.columns, dtype=pl.String), separator, guards("")))
    if frame.width:
        cells = pl.DataFrame(_escaped_columns(frame, separator, guards))
        lines = cells.select(pl.concat_str(pl.all(), separator=separator)).to_series()
        yield from lines.set(lines == "", '""') if frame.width == 1 else lines


def _escaped_columns(frame: pl.DataFrame, separator: str, guards: Callable[[str], str | None]) -> list[pl.Series]:
    """Escape all columns with the same guard at once; one call a column takes half a minute for 40 000 columns."""
    places: dict[str | None, list[int]] = {}
    for place, (name, dtype) in enumerate(frame.schema.items()):
        is_plain = dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean
        places.setdefault(None if is_plain else guards(name), []).append(place)
    columns, found = frame.get_columns(), [pl.Series(dtype=pl.String)] * frame.width
    for guarded, group in places.items():
        cells = pl.concat([as_text(columns[place]).alias("") for place in group], rechunk=True)
        cells = _escaped(cells, separator, guarded)
        for number, place in enumerate(group):
            found[place] = cells.slice(number * frame.height, frame.height).alias(str(place))
    return found


def guard_pattern(column: str, class_columns: Container[str]) -> str:
    """The pattern of cells of a column that get an apostrophe in front."""
    return f"^{GUARD}*[{FORMULA_BEGINNINGS}]" if column in class_columns else f"^[{FORMULA_BEGINNINGS}]"


def _escaped(cells: pl.Series, separator: str, guarded: str | None) -> pl.Series:
    """Write texts as cells of a table: in quotes where needed, and with an apostrophe where `guarded` matches."""
    cell = pl.col("cell").fill_null("").str.replace_all("\0", "\ufffd", literal=True)
    if guarded is not None:
        is_formula = cell.str.contains(guarded) & ~cell.str.contains(_NUMBER)
        cell = pl.when(is_formula).then(pl.lit(GUARD) + cell).otherwise(cell)
    separators = "\t" if separator == "\t" else ",;"  # both, because readers guess the separator from the header
    in_quotes = pl.lit('"') + cell.str.replace_all('"', '""', literal=True) + pl.lit('"')
    quoted = pl.when(cell.str.contains(f'[{separators}"\r\n\ufeff]')).then(in_quotes).otherwise(cell)
    return cells.to_frame("cell").select(quoted).to_series()
