"""Lines of CSV and TSV that read back cell by cell and cannot run as formulas in a spreadsheet.

Cells with a separator, a quote, a line break or a byte order mark are quoted. NUL, which CSV readers refuse, becomes
the replacement character.
"""

from collections.abc import Iterator

import polars as pl

from transduce.cli.formats.cells import as_text

_NEEDS_QUOTES = {
    **dict.fromkeys(",;", '[,;"\r\n\ufeff]'),  # both, because readers guess the separator from the header
    "\t": '[\t"\r\n\ufeff]',
}
FORMULA_BEGINNINGS = r"=+\-@\t\r"
"""Characters that start a formula, as the inside of a regular expression set."""
_NUMBER = r"^[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


def delimited_lines(frame: pl.DataFrame, *, separator: str, keep_formulas: bool, is_first: bool) -> Iterator[str]:
    """Yield the header, if this is the first part of a table, and then the rows.

    >>> list(delimited_lines(pl.DataFrame({"a": ["x,y", "-3.5"]}), separator=",", keep_formulas=False, is_first=True))
    ['a', '"x,y"', '-3.5']
    """
    if is_first:
        header = pl.Series(frame.columns, dtype=pl.String)
        yield separator.join(_escaped(header, separator, keep_formulas))
    if frame.width:
        cells = pl.DataFrame(
            [
                _escaped(
                    as_text(column).alias(str(i)), separator, keep_formulas or not _may_hold_formulas(column.dtype)
                )
                for i, column in enumerate(frame.iter_columns())
            ]
        )
        lines = cells.select(pl.concat_str(pl.all(), separator=separator)).to_series()
        yield from lines.set(lines == "", '""') if frame.width == 1 else lines


def _may_hold_formulas(dtype: pl.DataType) -> bool:
    return not (dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean)


def _escaped(texts: pl.Series, separator: str, keep_formulas: bool) -> pl.Series:
    cell = pl.col("cell").fill_null("").str.replace_all("\0", "\ufffd", literal=True)
    if not keep_formulas:
        is_formula = cell.str.contains(f"^[{FORMULA_BEGINNINGS}]") & ~cell.str.contains(_NUMBER)
        cell = pl.when(is_formula).then(pl.lit("'") + cell).otherwise(cell)
    in_quotes = pl.lit('"') + cell.str.replace_all('"', '""', literal=True) + pl.lit('"')
    quoted = pl.when(cell.str.contains(_NEEDS_QUOTES[separator])).then(in_quotes).otherwise(cell)
    return texts.to_frame("cell").select(quoted.alias(texts.name)).to_series()
