"""The columns that `label` and `predict` add to a table: label, confidence, runner-up, overruled and given.

Other columns and the order of the rows stay as they are, and so does every label that a person gave.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.formats import unused_name
from transduce.cli.formats.spreadsheet import FORMULA_BEGINNINGS
from transduce.cli.model_file import Model

RESULTS = ("label", "confidence", "runner_up", "overruled", "given")
"""The columns that `label` adds, unless the table has a column of that name."""


@dataclass(frozen=True)
class ResultNames:
    """Names of the text columns and of the columns that hold the results."""

    text: tuple[str, ...]
    label: str
    confidence: str
    runner_up: str
    overruled: str
    given: str | None = None


@dataclass(frozen=True, eq=False)
class Predictions:
    """Label of each row, its probability, the most probable other class, and the prediction without class sizes.

    label, runner_up, unpriced (n,) indices of classes; confidence (n,)
    """

    label: NDArray[np.int64]
    confidence: NDArray[np.float64]
    runner_up: NDArray[np.int64]
    unpriced: NDArray[np.int64]


def make_predictions(
    label: NDArray[np.int64], probabilities: NDArray[np.float64], unpriced: NDArray[np.int64]
) -> Predictions:
    """Predictions from labels (n,) and probabilities (n, K).

    >>> predictions = make_predictions(np.array([1]), np.array([[0.5, 0.3, 0.2]]), np.array([0]))
    >>> predictions.confidence, predictions.runner_up
    (array([0.3]), array([0]))
    """
    rows = np.arange(label.size)
    confidence = np.asarray(probabilities[rows, label], dtype=np.float64)
    others = probabilities.copy()
    others[rows, label] = -1.0
    return Predictions(label, np.clip(confidence, 0.0, 1.0), others.argmax(axis=1), unpriced)


def predict_rows(model: Model, scores: NDArray[np.float64]) -> Predictions:
    """Predictions of a model for rows with these scores."""
    return make_predictions(scores.argmax(axis=1), model.probabilities(scores), (scores - model.shift).argmax(axis=1))


def add_results(
    frame: pl.DataFrame,
    text: Sequence[str],
    classes: Sequence[str],
    predictions: Predictions,
    given: Sequence[str | None] | None = None,
    in_place: str | None = None,
) -> tuple[pl.DataFrame, ResultNames]:
    """Return the frame with its results, and the names of their columns.

    `given` holds the label that a person gave to each row, if any. `in_place` is a label column whose empty cells are
    filled in; otherwise the labels get a column of their own.
    """
    taken = set(frame.columns)
    label = in_place if in_place is not None else unused_name("label", taken)
    names = ResultNames(tuple(text), label, *(unused_name(name, taken) for name in RESULTS[1:4]))
    is_given = np.zeros(frame.height, bool) if given is None else np.array([g is not None for g in given], bool)
    labels = [classes[k] for k in predictions.label]
    second = ["" if g else classes[k] for g, k in zip(is_given, predictions.runner_up, strict=True)]
    columns = [
        pl.Series(label, labels, dtype=pl.String) if in_place is None else _filled(frame[in_place], labels, is_given),
        pl.Series(names.confidence, np.where(is_given, 1.0, np.round(predictions.confidence, 4))),
        pl.Series(names.runner_up, second, dtype=pl.String),
        pl.Series(names.overruled, (predictions.unpriced != predictions.label) & ~is_given),
    ]
    if given is not None:
        names = replace(names, given=unused_name("given", taken))
        columns.append(pl.Series(names.given, is_given))
    return frame.with_columns(columns), names


def _filled(column: pl.Series, labels: Sequence[str], is_given: NDArray[np.bool_]) -> pl.Series:
    """Fill in the empty cells; text that was there is kept exactly, other types become text."""
    found = pl.Series(column.name, labels, dtype=pl.String)
    return column.zip_with(pl.Series(is_given), found) if column.dtype == pl.String else found


def read_results(
    frame: pl.DataFrame, text: tuple[str, ...], classes: Sequence[str], *, in_place: bool = False
) -> tuple[pl.DataFrame, ResultNames] | None:
    """Restore the types of a frame that `label` wrote; None if `label` did not write it.

    CSV holds text only, so numbers and booleans are parsed again, and labels lose the apostrophe that guards formulas.
    If a file was labelled twice, the last results are read; `in_place` says that `label` filled in the column "label".
    """
    label, *others = (_last_name(name, frame.columns) for name in RESULTS)
    label = RESULTS[0] if in_place else label
    confidence, runner_up, overruled, given = others
    if any(name not in frame.columns for name in (label, *others, *text)):
        return None
    frame = frame.with_columns(
        without_guard(pl.col(label)).str.strip_chars(),
        pl.col(confidence).cast(pl.Float64, strict=False),
        without_guard(pl.col(runner_up)).fill_null(""),
        *(pl.col(name).cast(pl.String).str.to_lowercase().is_in(["true", "1"]) for name in (overruled, given)),
    )
    known = frame[label].is_in(list(classes)).all() and frame[confidence].is_between(0.0, 1.0).all()
    if not known or frame[confidence].null_count() or frame[label].null_count():
        return None
    return frame, ResultNames(text, label, confidence, runner_up, overruled, given)


def given_rows(frame: pl.DataFrame, column: str) -> pl.Series | None:
    """Which labels a person gave, if `label` filled in this column; None for any other column.

    >>> cells = {"label": ["tea", "tea"], "confidence": ["1.0", "0.7"], "runner_up": ["", "coffee"]}
    >>> frame = pl.DataFrame({**cells, "overruled": ["false", "false"], "given": ["true", "false"]})
    >>> given_rows(frame, "label").to_list(), given_rows(frame, "runner_up")
    ([True, False], None)
    """
    names = result_columns(frame)
    if names is None:
        return None
    before = frame.columns[frame.columns.index(names[0]) - 1]
    filled = before if re.fullmatch(r"label_\d+", before) else "label"
    return frame[names[-1]].cast(pl.String).str.to_lowercase() == "true" if column == filled else None


def result_columns(frame: pl.DataFrame) -> tuple[str, str, str, str] | None:
    """Names of the last confidence, runner-up, overruled and given columns, if `label` wrote the file; else None."""
    confidence, runner_up, overruled, given = (_last_name(name, frame.columns) for name in RESULTS[1:])
    names = (confidence, runner_up, overruled, given)
    if any(name not in frame.columns for name in names):
        return None
    between = frame[confidence].cast(pl.Float64, strict=False).is_between(0.0, 1.0)
    words = pl.concat([frame[name].cast(pl.String, strict=False).str.to_lowercase() for name in (overruled, given)])
    return names if between.fill_null(False).all() and words.is_in(["true", "false"]).fill_null(False).all() else None


def _last_name(name: str, columns: Sequence[str]) -> str:
    """The name with the highest number that `unused_name` gave it.

    >>> _last_name("given", ["given", "given_2", "given_3"]), _last_name("given", [])
    ('given_3', 'given')
    """
    last, number = name, 2
    while f"{name}_{number}" in columns:
        last, number = f"{name}_{number}", number + 1
    return last


def without_guard(column: pl.Expr) -> pl.Expr:
    """Text without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return column.cast(pl.String).str.replace(f"^'([{FORMULA_BEGINNINGS}])", "$1")
