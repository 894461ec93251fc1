"""What `label` and `predict` add to a file: a label for every row, how sure it is, and who decided it.

Other columns and the order of the rows stay as they are; a label that was given is never changed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.formats import free_name
from transduce.cli.formats.spreadsheet import FORMULA_BEGINNINGS
from transduce.cli.model_file import Model

RESULTS = ("label", "confidence", "runner_up", "overruled", "given")
"""What `label` adds, unless the file has a column of that name."""


@dataclass(frozen=True)
class ResultNames:
    """Names of the columns that hold the results."""

    text: tuple[str, ...]
    label: str
    confidence: str
    runner_up: str
    overruled: str
    given: str | None = None


@dataclass(frozen=True, eq=False)
class Verdict:
    """For each row: class, its probability, the most probable other class, and the classifier's own choice.

    label, runner_up, own (n,) indices of classes; confidence (n,)
    """

    label: NDArray[np.int64]
    confidence: NDArray[np.float64]
    runner_up: NDArray[np.int64]
    own: NDArray[np.int64]


def judge(label: NDArray[np.int64], probabilities: NDArray[np.float64], own: NDArray[np.int64]) -> Verdict:
    """Verdict from the probabilities (n, K) of labels that were chosen already.

    >>> verdict = judge(np.array([1]), np.array([[0.5, 0.3, 0.2]]), np.array([0]))
    >>> verdict.confidence, verdict.runner_up
    (array([0.3]), array([0]))
    """
    rows = np.arange(label.size)
    confidence = np.asarray(probabilities[rows, label], dtype=np.float64)
    others = probabilities.copy()
    others[rows, label] = -1.0
    return Verdict(label, np.clip(confidence, 0.0, 1.0), others.argmax(axis=1), own)


def add_results(
    frame: pl.DataFrame,
    text: Sequence[str],
    classes: Sequence[str],
    verdict: Verdict,
    given: Sequence[str | None] | None = None,
    in_place: str | None = None,
) -> tuple[pl.DataFrame, ResultNames]:
    """The frame with its results, and what their columns are called.

    `in_place` names a column of the frame that the labels are to stand in; what it holds already stays as it is.
    """
    taken = set(frame.columns)
    label = in_place if in_place is not None else free_name("label", taken)
    confidence, runner_up, overruled = (free_name(name, taken) for name in ("confidence", "runner_up", "overruled"))
    names = ResultNames(tuple(text), label, confidence, runner_up, overruled)
    is_given = np.zeros(frame.height, bool) if given is None else np.array([g is not None for g in given], bool)
    chosen = [classes[k] for k in verdict.label]
    second = ["" if g else classes[k] for g, k in zip(is_given, verdict.runner_up, strict=True)]
    columns = [
        pl.Series(label, chosen, dtype=pl.String) if in_place is None else _filled(frame[in_place], chosen, is_given),
        pl.Series(confidence, np.where(is_given, 1.0, np.round(verdict.confidence, 4))),
        pl.Series(runner_up, second, dtype=pl.String),
        pl.Series(overruled, (verdict.own != verdict.label) & ~is_given),
    ]
    if given is not None:
        names = replace(names, given=free_name("given", taken))
        columns.append(pl.Series(names.given, is_given))
    return frame.with_columns(columns), names


def _filled(column: pl.Series, chosen: Sequence[str], is_given: NDArray[np.bool_]) -> pl.Series:
    """The column with labels where it had none; text that was there stays to the letter, other kinds become text."""
    labels = pl.Series(column.name, chosen, dtype=pl.String)
    return column.zip_with(pl.Series(is_given), labels) if column.dtype == pl.String else labels


def model_verdict(model: Model, scores: NDArray[np.float64]) -> Verdict:
    """What a model says of rows with these scores."""
    return judge(scores.argmax(axis=1), model.probabilities(scores), (scores - model.shift).argmax(axis=1))


def read_results(
    frame: pl.DataFrame, text: tuple[str, ...], classes: Sequence[str], *, in_place: bool = False
) -> tuple[pl.DataFrame, ResultNames] | None:
    """A frame that `label` wrote, with numbers and truth values as such again; None if it is another.

    CSV keeps all cells as text, so confidence and the two truth values are read from text too, and labels without the
    mark of a formula. Of a file that was labelled twice the last results are taken; `in_place` says that `label` filled
    in the column "label" itself.
    """
    label, *others = (_last_name(name, frame.columns) for name in RESULTS)
    label = RESULTS[0] if in_place else label
    confidence, runner_up, overruled, given = others
    if any(name not in frame.columns for name in (label, *others, *text)):
        return None
    frame = frame.with_columns(
        without_mark(pl.col(label)).str.strip_chars(),
        pl.col(confidence).cast(pl.Float64, strict=False),
        without_mark(pl.col(runner_up)).fill_null(""),
        *(pl.col(name).cast(pl.String).str.to_lowercase().is_in(["true", "1"]) for name in (overruled, given)),
    )
    known = frame[label].is_in(list(classes)).all() and frame[confidence].is_between(0.0, 1.0).all()
    if not known or frame[confidence].null_count() or frame[label].null_count():
        return None
    return frame, ResultNames(text, label, confidence, runner_up, overruled, given)


def given_rows(frame: pl.DataFrame, column: str) -> pl.Series | None:
    """Whether the label of each row was given, if `label` filled in the column; None for any other column.

    >>> cells = {"label": ["tea", "tea"], "confidence": ["1.0", "0.7"], "runner_up": ["", "coffee"]}
    >>> frame = pl.DataFrame({**cells, "overruled": ["false", "false"], "given": ["true", "false"]})
    >>> given_rows(frame, "label").to_list(), given_rows(frame, "runner_up")
    ([True, False], None)
    """
    names = result_columns(frame)
    if names is None:
        return None
    before = frame.columns[frame.columns.index(names[0]) - 1]
    added = re.fullmatch(r"label_\d+", before) is not None
    filled = before if added else "label"
    return _truth_values(frame[names[-1]]) if column == filled else None


def result_columns(frame: pl.DataFrame) -> tuple[str, str, str, str] | None:
    """Names of confidence, runner-up, overruled and given, the last ones, if `label` wrote the file; else None."""
    confidence, runner_up, overruled, given = (_last_name(name, frame.columns) for name in RESULTS[1:])
    names = (confidence, runner_up, overruled, given)
    if any(name not in frame.columns for name in names):
        return None
    between = frame[confidence].cast(pl.Float64, strict=False).is_between(0.0, 1.0)
    words = pl.concat([frame[name].cast(pl.String, strict=False).str.to_lowercase() for name in (overruled, given)])
    return names if between.fill_null(False).all() and words.is_in(["true", "false"]).fill_null(False).all() else None


def _truth_values(column: pl.Series) -> pl.Series:
    return column.cast(pl.String).str.to_lowercase() == "true"


def _last_name(name: str, columns: Sequence[str]) -> str:
    """The name with the highest number that `free_name` gave it.

    >>> _last_name("given", ["given", "given_2", "given_3"]), _last_name("given", [])
    ('given_3', 'given')
    """
    last, number = name, 2
    while f"{name}_{number}" in columns:
        last, number = f"{name}_{number}", number + 1
    return last


def without_mark(column: pl.Expr) -> pl.Expr:
    """Text without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return column.cast(pl.String).str.replace(f"^'([{FORMULA_BEGINNINGS}])", "$1")
