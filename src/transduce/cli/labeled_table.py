"""A table with the labels that people gave: previous results removed, answers filled in, odd labels reported."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.columns import Say
from transduce.cli.evidence_options import SUSPICION, class_names, label_column
from transduce.cli.formats import Table, labels_of, read_table
from transduce.cli.queue.answers import holds_results, merge_all
from transduce.cli.results import (
    ANSWERED,
    AT_RANDOM,
    GIVEN,
    export_columns,
    given_rows,
    is_export,
    origin_column,
    origins_of,
    result_columns,
    without_guard,
)
from transduce.cli.validation import label_warnings, misspelled_labels


@dataclass(frozen=True, eq=False)
class LabeledTable:
    """A table with the labels that people gave.

    column  name of the label column
    labels  label of each row, or None
    origin  (n,) number of the origin of each label: given, answered, or answered at random
    """

    table: Table
    column: str
    labels: list[str | None]
    origin: NDArray[np.int64]


def read_labeled_table(file: str, options: Mapping[str, Any], say: Say, *, notes: bool = True) -> LabeledTable:
    """Read a file with the labels that people gave and no others; `options` are those of the command line."""
    table = read_table(file, options["format_"], options.get("max_size"))
    return with_labels(*label_column(table, options, say), options, say, notes=notes)


def with_labels(table: Table, column: str, options: Mapping[str, Any], say: Say, *, notes: bool = True) -> LabeledTable:
    """Return a table with the labels that people gave and no others."""
    before, table = table, remove_results(table, column, say)
    origin = np.full(table.frame.height, GIVEN, np.int64) if table is before else origins_of(before.frame)
    labels = labels_of(table, column).to_list()
    if options.get("answers"):
        files = [read_table(name, limit=options.get("max_size")) for name in options["answers"]]
        known, new = class_names(table, options), options.get("new_class", ())
        given, labels = labels, merge_all(table, column, labels, files, say, new, known)
        is_new = np.array([old != new for old, new in zip(given, labels, strict=True)], bool)
        origin = _with_answers(origin, is_new, files)
        table = replace(table, frame=table.frame.with_columns(pl.Series(column, labels, dtype=pl.String)))
    if notes:
        say(*(f"Note: {note}" for note in _notes(table, labels, options)))
    return LabeledTable(table, column, labels, origin)


def _with_answers(origin: NDArray[np.int64], is_new: NDArray[np.bool_], files: Sequence[Table]) -> NDArray[np.int64]:
    """Origins after answers were filled in: rows that one of the files marks as random stay random."""
    marked = [origins_of(file.frame) == AT_RANDOM for file in files if holds_results(file, origin.size)]
    at_random = np.any([origin == AT_RANDOM, *marked], axis=0)
    return np.where(at_random, AT_RANDOM, np.where(is_new, ANSWERED, origin))


def _notes(table: Table, labels: list[str | None], options: Mapping[str, Any]) -> dict[str, None]:
    """Obvious problems of labels, and of guesses beside them, each once."""
    columns = _with_guesses(table, labels, options)
    style = {"flat": options["flat"], "row_is_line": table.row_is_line}
    return dict.fromkeys(note for column in columns for note in label_warnings(column, **style))


def misspelled_names(source: LabeledTable, options: Mapping[str, Any]) -> dict[str, str]:
    """Labels and guesses that are probably misspelled, and the names that are probably meant."""
    columns = _with_guesses(source.table, source.labels, options)
    return {
        name: meant for column in columns for name, meant in misspelled_labels(column, flat=options["flat"]).items()
    }


def _with_guesses(table: Table, labels: list[str | None], options: Mapping[str, Any]) -> list[list[str | None]]:
    """The labels, and where there are guesses, also these with labels in their gaps."""
    if options.get("guess") is None:
        return [labels]
    guesses = labels_of(table, options["guess"]).to_list()
    return [labels, [label if guess is None else guess for guess, label in zip(guesses, labels, strict=True)]]


def remove_results(table: Table, label: str, say: Say) -> Table:
    """Return the table without the results of an earlier `transduce label`, keeping the labels that a person gave."""
    frame, names = table.frame, result_columns(table.frame)
    if names is None or label not in frame.columns:
        return table
    origin = origin_column(frame)
    exported = [name for name in export_columns(frame) if is_export(frame) and name in frame.columns]
    old = [*names, *([] if origin is None else [origin]), *exported]
    after = frame.columns[frame.columns.index(origin or names[-1]) + 1 :][:1]
    old += [name for name in after if re.fullmatch(rf"{SUSPICION}(_\d+)?", name)]
    given = given_rows(frame, label)
    if given is not None:  # the label column was filled in
        column = frame[label]
        if table.format in ("csv", "tsv"):
            column = frame.select(without_guard(pl.col(label))).to_series()
        frame = frame.with_columns(column.zip_with(given, pl.Series([None], dtype=column.dtype))).drop(old)
    else:  # it may still hold only what a person gave
        added = frame.columns[frame.columns.index(names[0]) - 1]
        given = given_rows(frame, added)
        # if the label column is "label", the results have one of their own, and this one may be unrelated
        if label == "label" or given is None or not _holds_given_labels(table, label, added, given):
            return table
        frame = frame.drop(added, *old)
    say(
        f"{table.name} holds the results of an earlier run: keeping the {int(given.sum())} labels with given = true "
        "and replacing the rest. To keep a label that you have checked, set given to true."
    )
    return replace(table, frame=frame)


def _holds_given_labels(table: Table, label: str, added: str, given: pl.Series) -> bool:
    """Whether the label column has the given labels and the added column repeats them."""
    ours, theirs = labels_of(table, label).filter(given), labels_of(table, added).filter(given)
    return ours.null_count() == 0 and bool((ours == theirs).all())
