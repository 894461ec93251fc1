"""Files that `export` wrote: the labels that a person has corrected in them since.

Corrections are in the label column of the documents, or in that of all labels. The column "exported" shows what was
written; a check beside it shows whether that column was edited itself, as by somebody who took it for the labels.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import polars as pl

from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of, read_table
from transduce.cli.results import (
    corrected_rows,
    export_columns,
    filled_column,
    given_column,
    is_export,
    plain_labels,
)
from transduce.suggest import number_of

_LETTERS, _LENGTH = "bcdfghjklmnpqrst", 6
"""A check is so many of these letters, which no spreadsheet takes for a number, a date or a word."""

Labels = Sequence[str | None]


def check_of(labels: pl.Series) -> pl.Series:
    """Return a few letters for each label, by which a label that was edited shows.

    >>> check_of(pl.Series(["travel", "work", "travel"])).to_list()
    ['sqpjpb', 'blljsg', 'sqpjpb']
    """
    text = plain_labels(pl.DataFrame({"label": labels}), "label")
    codes = {label: crc32(label.encode("utf-8", "surrogatepass")) for label in text.unique()}
    letters = {
        label: "".join(_LETTERS[code >> 4 * place & 15] for place in range(_LENGTH)) for label, code in codes.items()
    }
    return pl.Series([letters[label] for label in text], dtype=pl.String)


def documents_labels(documents: Table, column: str) -> list[str | None]:
    """Return the labels of a column as the file has them; none if there is no such column."""
    has_column = column in documents.frame.columns
    return labels_of(documents, column).to_list() if has_column else [None] * documents.frame.height


def read_corrections(answers: Table, column: str, original: Labels) -> Table:
    """Return an exported file with all its corrections in the column of all labels; contradictions are refused.

    `column` is the label column of the documents, and `original` has the labels there.
    """
    frame = answers.frame
    own = column if column in frame.columns else filled_column(frame)
    edited = _edited_exported(frame).arg_true().to_list()
    if edited:
        raise InputError(
            f"row {edited[0] + 1} of {answers.name} has another label in {export_columns(frame)[0]!r} than was "
            f"exported. Undo that change, and correct {own!r} instead."
        )
    label = filled_column(frame)
    in_own = _corrected_in(frame, own, original)
    ours, theirs = plain_labels(frame, own), plain_labels(frame, label)
    both = (in_own & corrected_rows(frame, label) & (ours != theirs)).arg_true().to_list()
    if both:
        row = both[0]
        raise InputError(
            f"row {row + 1} of {answers.name} was corrected to {ours[row]!r} in {own!r} and to {theirs[row]!r} in "
            f"{label!r}. Write the same label into both columns."
        )
    merged = frame[own].cast(pl.String).zip_with(in_own, frame[label].cast(pl.String))
    return replace(answers, frame=frame.with_columns(merged.alias(label)))


def check_uncorrected(target: str, column: str, original: Labels, labels: Labels) -> None:
    """Check that replacing the target loses no correction; one that `labels` has already is not lost."""
    if not Path(target).is_file():
        return
    try:
        frame = read_table(target).frame
    except InputError:
        return
    if not is_export(frame):
        return
    if frame.height != len(labels):  # of other documents
        original = labels = [None] * frame.height
    now, lost = pl.Series(labels, dtype=pl.String).fill_null(""), _edited_exported(frame)
    for name in {column, filled_column(frame)} & set(frame.columns):
        lost |= _corrected_in(frame, name, original) & (plain_labels(frame, name) != now)
    if lost.any():
        raise InputError(
            f"{target} has {number_of(int(lost.sum()), 'correction')} made after the export, which would be lost. "
            f"Write to another file, and read the corrections back with --answers {target}."
        )


def _corrected_in(frame: pl.DataFrame, column: str, original: Labels) -> pl.Series:
    """Which labels in a column of an exported file were corrected.

    The label column of the documents was written without proposals; there, rows without a decision have what they had.
    """
    if column == filled_column(frame):
        return corrected_rows(frame, column)
    before = plain_labels(frame, export_columns(frame)[0]).zip_with(
        given_column(frame), pl.Series(original, dtype=pl.String).fill_null("")
    )
    now = plain_labels(frame, column)
    return (now != before) & (now != "")


def _edited_exported(frame: pl.DataFrame) -> pl.Series:
    """In which rows the column "exported" was edited; exports of earlier versions do not show it."""
    exported, check, _ = export_columns(frame)
    if check not in frame.columns:
        return pl.repeat(False, frame.height, eager=True)
    return check_of(frame[exported]) != frame[check].cast(pl.String).fill_null("").str.strip_chars()
