"""The columns that `label` and `predict` add to a table: label, confidence, runner-up, overruled, given and origin.

Other columns and the order of the rows stay as they are, and so does every label that a person gave.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.empty_rows import empty_rows_note, rows_without_values, what_lacks
from transduce.cli.formats import Table, unused_name
from transduce.cli.formats.delimited import FORMULA_BEGINNINGS, GUARD
from transduce.cli.predictions import Predictions, feature_rows, predict_rows
from transduce.cli.progress import Progress
from transduce.model_file import Model

RESULTS = ("label", "confidence", "runner_up", "overruled", "given")
"""The columns that `label` adds, unless the table has a column of that name."""
ORIGIN, ORIGINS = "origin", ("given", "answered", "answered at random", "predicted")
"""A column that says where labels come from, added if some of them are answers, and its values."""
GIVEN, ANSWERED, AT_RANDOM, PREDICTED = range(len(ORIGINS))
"""Numbers of the origins: answered at random are labels of rows that a review drew at random, not as difficult ones."""

EXPORTED, EXPORTED_CHECK, NOTE = "exported", "exported_check", "note"
"""Columns that `export` adds: labels as they were written, so that corrections show, a check of these, and notes."""


@dataclass(frozen=True)
class ResultNames:
    """Names of the text columns and of the columns that hold the results."""

    text: tuple[str, ...]
    label: str
    confidence: str
    runner_up: str
    overruled: str
    given: str | None = None

    @property
    def classes(self) -> tuple[str, str]:
        """The columns that hold names of classes."""
        return self.label, self.runner_up


def add_results(
    frame: pl.DataFrame,
    text: Sequence[str],
    classes: Sequence[str],
    predictions: Predictions,
    given: Sequence[str | None] | None = None,
    in_place: str | None = None,
    origin: NDArray[np.int64] | None = None,
) -> tuple[pl.DataFrame, ResultNames]:
    """Return the frame with its results, and the names of their columns.

    `given` holds the label that a person gave to each row, if any. `in_place` is a label column whose empty cells are
    filled in (text that was there is kept, other types become text); otherwise labels get a column of their own.
    `origin` (n,) is the number of the origin of each label that a person gave. Rows that fit no class have no label;
    their runner-up is the most probable class.
    """
    label, *others = (unused_name(name, frame.columns) for name in RESULTS)
    names = ResultNames(tuple(text), in_place or label, *(others if given is not None else others[:-1]))
    is_given = np.zeros(frame.height, bool) if given is None else np.array([g is not None for g in given], bool)
    labels = pl.Series(names.label, [None if k < 0 else classes[k] for k in predictions.label], dtype=pl.String)
    if in_place is not None and frame[in_place].dtype == pl.String:
        labels = frame[in_place].zip_with(pl.Series(is_given), labels)
    second = ["" if g else classes[k] for g, k in zip(is_given, predictions.runner_up, strict=True)]
    columns = [
        labels,
        pl.Series(names.confidence, np.where(is_given, 1.0, np.round(predictions.confidence, 4))),
        pl.Series(names.runner_up, second, dtype=pl.String),
        pl.Series(names.overruled, (predictions.unpriced != predictions.label) & ~is_given),
    ]
    if names.given is not None:
        columns.append(pl.Series(names.given, is_given))
    if origin is not None and np.any(origin[is_given] != GIVEN):
        origins = np.array(ORIGINS)[np.where(is_given, origin, PREDICTED)]
        columns.append(pl.Series(unused_name(ORIGIN, frame.columns), origins.tolist(), dtype=pl.String))
    return frame.with_columns(columns), names


def predict_table(
    model: Model, table: Table, options: Mapping[str, Any], progress: Progress
) -> tuple[pl.DataFrame, ResultNames]:
    """Return the table with a label for every row, and the names of the added columns."""
    X, text = feature_rows(model, table, options, progress)
    lack = what_lacks(model.vectorizer.features.kind, "word that the model knows")
    guess = "its label is a guess", "their labels are guesses"
    progress.say(*empty_rows_note(rows_without_values(X), np.ones(X.shape[0], bool), table, "rows", lack, guess))
    return add_results(table.frame, text, model.classes, predict_rows(model, model.scores(X)))


def read_results(
    frame: pl.DataFrame, text: tuple[str, ...], classes: Sequence[str], *, in_place: bool = False, none: bool = False
) -> tuple[pl.DataFrame, ResultNames] | None:
    """Restore the types of a frame that `label` wrote; None if `label` did not write it.

    CSV holds text only, so numbers and booleans are parsed again, and labels lose the apostrophe that guards formulas.
    If a file was labelled twice, the last results are read; `in_place` says that `label` filled in the column "label",
    `none` that rows may have no label.
    """
    found = result_columns(frame)
    label = RESULTS[0] if in_place else _last_name(RESULTS[0], frame.columns)
    if found is None or any(name not in frame.columns for name in (label, *text)):
        return None
    confidence, runner_up, overruled, given = found
    frame = frame.with_columns(
        without_guard(pl.col(label)).str.strip_chars(),
        pl.col(confidence).cast(pl.Float64),
        without_guard(pl.col(runner_up)).fill_null(""),
        *(_is_true(pl.col(name)) for name in (overruled, given)),
    )
    is_class = pl.col(label).is_in(list(classes)).fill_null(False)
    is_none = (pl.col(label).fill_null("") == "") & ~pl.col(given)
    if not frame.select((is_class | is_none if none else is_class).all()).item():
        return None
    return frame, ResultNames(text, label, confidence, runner_up, overruled, given)


def given_rows(frame: pl.DataFrame, column: str) -> pl.Series | None:
    """Which labels a person gave, if `label` filled in this column; None for any other column."""
    names = result_columns(frame)
    if names is None:
        return None
    if column != filled_column(frame) or column not in frame.columns:
        return None
    return given_column(frame) | corrected_rows(frame, column)


def filled_column(frame: pl.DataFrame) -> str:
    """The column in which a frame that `label` or `export` wrote has the labels of all rows."""
    before = frame.columns[frame.columns.index(_last_name(RESULTS[1], frame.columns)) - 1]
    return before if re.fullmatch(rf"{RESULTS[0]}_\d+", before) else RESULTS[0]


def given_column(frame: pl.DataFrame) -> pl.Series:
    """Which labels a frame that `label` or `export` wrote says that a person gave."""
    return frame.select(_is_true(pl.col(_last_name(RESULTS[-1], frame.columns)))).to_series()


def plain_labels(frame: pl.DataFrame, column: str) -> pl.Series:
    """Labels as text without spaces around them and without a guard, "" where there is none."""
    return frame.select(without_guard(pl.col(column)).fill_null("").str.strip_chars()).to_series()


def is_export(frame: pl.DataFrame) -> bool:
    """Whether `export` wrote a frame, which has the labels as exported, and checks of them or (once) notes."""
    exported, *others = (name in frame.columns for name in export_columns(frame))
    return exported and any(others) and result_columns(frame) is not None


def export_columns(frame: pl.DataFrame) -> tuple[str, str, str]:
    """Names of the columns that `export` adds: labels as exported, their checks, and notes.

    They have a number if the documents had columns of these names.
    """
    exported, check, note = (_last_name(name, frame.columns) for name in (EXPORTED, EXPORTED_CHECK, NOTE))
    return exported, check, note


def corrected_rows(frame: pl.DataFrame, column: str) -> pl.Series:
    """Which labels of an exported file a person has changed since, to another class."""
    if not is_export(frame):
        return pl.repeat(False, frame.height, eager=True)
    now, before = plain_labels(frame, column), plain_labels(frame, export_columns(frame)[0])
    return (now != before) & (now != "")


def origins_of(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Numbers of the origins of labels that people gave: those of a frame that `label` wrote, GIVEN in any other.

    Results that were checked have a runner-up though they are given; they were chosen, and so count as answered.
    """
    names = result_columns(frame)
    if names is None:
        return np.full(frame.height, GIVEN, np.int64)
    origin, label = origin_column(frame), _last_name(RESULTS[0], frame.columns)
    stated = pl.repeat("", frame.height, eager=True) if origin is None else frame[origin].cast(pl.String)
    is_checked = frame[names[1]].cast(pl.String).fill_null("") != ""
    found = given_column(frame) & (is_checked | (stated == ORIGINS[ANSWERED]))
    found |= corrected_rows(frame, label) if label in frame.columns else False
    return np.where(stated == ORIGINS[AT_RANDOM], AT_RANDOM, np.where(found, ANSWERED, GIVEN))


def origin_column(frame: pl.DataFrame) -> str | None:
    """The column that says where labels come from, if `label` wrote one."""
    name = _last_name(ORIGIN, frame.columns)
    if name not in frame.columns or result_columns(frame) is None:
        return None
    return name if frame[name].cast(pl.String, strict=False).is_in(ORIGINS).fill_null(False).all() else None


def predict_columns(frame: pl.DataFrame) -> list[list[str]]:
    """Names of the label, confidence, runner-up and overruled columns of each time that `predict` added them."""
    names, predicted = frame.columns, RESULTS[:-1]
    found = []
    for start in range(len(names) - len(predicted) + 1):
        group, after = names[start : start + len(predicted)], names[start + len(predicted) :][:1]
        if all(map(_is_numbered, group, predicted)) and not any(_is_numbered(name, RESULTS[-1]) for name in after):
            found.append(group)
    return found


def result_columns(frame: pl.DataFrame) -> list[str] | None:
    """Names of the last confidence, runner-up, overruled and given columns, if `label` wrote the file; else None."""
    names = [_last_name(name, frame.columns) for name in RESULTS[1:]]
    if any(name not in frame.columns for name in names):
        return None
    confidence, _, overruled, given = (frame[name] for name in names)
    between = confidence.cast(pl.Float64, strict=False).is_between(0.0, 1.0)
    words = pl.concat([column.cast(pl.String, strict=False).str.to_lowercase() for column in (overruled, given)])
    return names if between.fill_null(False).all() and words.is_in(["true", "false"]).fill_null(False).all() else None


def _is_true(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.String).str.to_lowercase() == "true"


def _is_numbered(name: str, base: str) -> bool:
    """Whether a name is one that `unused_name` may make of another."""
    return re.fullmatch(rf"{base}(_\d+)?", name) is not None


def _last_name(name: str, columns: Sequence[str]) -> str:
    """The name with the highest number that `unused_name` gave it."""
    numbered = takewhile(columns.__contains__, (f"{name}_{number}" for number in count(2)))
    return [name, *numbered][-1]


def without_guard(column: pl.Expr) -> pl.Expr:
    """Text without the apostrophe that keeps a spreadsheet from running it as a formula; others are the user's own."""
    return column.cast(pl.String).str.replace(f"^{GUARD}({GUARD}*[{FORMULA_BEGINNINGS}])", "$1")
