"""What `label` and `predict` add to a file: a label for every row, how sure it is, and who decided it.

Other columns and the order of the rows stay as they are; a label that was given is never changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.app.model_file import Model


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


def free_name(name: str, taken: set[str]) -> str:
    """The name, or with the first number that makes it a new one.

    >>> free_name("label", {"label", "label_2"})
    'label_3'
    """
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def model_verdict(model: Model, scores: NDArray[np.float64]) -> Verdict:
    """What a model says of rows with these scores."""
    return judge(scores.argmax(axis=1), model.probabilities(scores), (scores - model.shift).argmax(axis=1))


def read_results(
    frame: pl.DataFrame, text: tuple[str, ...], classes: Sequence[str]
) -> tuple[pl.DataFrame, ResultNames] | None:
    """A frame that `label` wrote, with numbers and truth values as such again; None if it is another.

    CSV keeps all cells as text, so confidence and the two truth values are read from text too.
    """
    wanted = ("label", "confidence", "runner_up", "overruled", "given")
    if any(name not in frame.columns for name in (*wanted, *text)):
        return None
    frame = frame.with_columns(
        pl.col("label").cast(pl.String).str.strip_chars(),
        pl.col("confidence").cast(pl.Float64, strict=False),
        pl.col("runner_up").cast(pl.String).fill_null(""),
        *(pl.col(name).cast(pl.String).str.to_lowercase().is_in(["true", "1"]) for name in ("overruled", "given")),
    )
    known = frame["label"].is_in(list(classes)).all() and frame["confidence"].is_between(0.0, 1.0).all()
    if not known or frame["confidence"].null_count() or frame["label"].null_count():
        return None
    return frame, ResultNames(text, *wanted)
