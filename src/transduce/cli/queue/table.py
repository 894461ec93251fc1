"""Which rows to ask a person about, and the answers read back: between a table and the choice of rows in `choosing`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.columns import choose_columns
from transduce.cli.commands.label import LabelSettings, label_table, read_task
from transduce.cli.commands.predict import rows_of
from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of
from transduce.cli.model_file import load_model
from transduce.cli.progress import Listener
from transduce.cli.queue.answers import account_of, merge_answers
from transduce.cli.queue.selection import check_columns, choose_rows, interface_of, label_studio_config, queue_frame
from transduce.cli.results import model_verdict


@dataclass(frozen=True, eq=False)
class Queue:
    """Rows to be labelled, the classes to choose from, the columns of the text, and how many rows had no label."""

    frame: pl.DataFrame
    classes: tuple[str, ...]
    text: tuple[str, ...]
    n_open: int
    interrupted: bool


def queue_table(
    table: Table, settings: LabelSettings, model: str | None, number: int, listener: Listener, target: str
) -> Queue:
    """The rows without a label where one would help most, by a saved model or one that is fitted first.

    `target` is where they will be written: what cannot stand there is refused before any long work.
    """
    if model is None:
        task = read_task(table, settings, _Silent())
        _check_names(task.columns.text, task.classes, target)
        open_rows, text = _open_rows(table, task.labels), task.columns.text
        done = label_table(table, settings, listener)
        loaded, interrupted, X = done.model, done.interrupted, done.X
    else:
        loaded, interrupted = load_model(model), False
        _check_names(settings.text, loaded.classes, target)
        X, text, said = rows_of(loaded, table, settings.text, settings.vectors, settings.n_jobs)
        columns = choose_columns(table, text, settings.label, texts=False)
        for sentence in (*said, *columns.said):
            listener.say(f"Took it that {sentence}.")
        assert columns.label is not None
        open_rows, text = _open_rows(table, labels_of(table, columns.label).to_list()), columns.text
    X = X[open_rows]
    scores = loaded.scores(X)
    picked = choose_rows(loaded.probabilities(scores), X, number, seed=settings.seed)
    verdict = model_verdict(loaded, scores[picked])
    suggestions = [loaded.classes[k] for k in verdict.label]
    frame = queue_frame(table.frame, open_rows[picked], suggestions, verdict.confidence, text, "label")
    return Queue(frame, loaded.classes, tuple(text), open_rows.size, interrupted)


def _check_names(text: Sequence[str], classes: Sequence[str], target: str) -> None:
    check_columns(text)
    if interface_of(target) is not None:
        label_studio_config(classes, text)


def _open_rows(table: Table, labels: Sequence[str | None]) -> NDArray[np.intp]:
    """Places of the rows that have no label yet."""
    found = np.flatnonzero([label is None for label in labels])
    if not found.size:
        raise InputError(f"{table.name} has a label in every row, so there is nothing to ask; name another --label.")
    return found


def answered(table: Table, label: str, answers: Table) -> tuple[Table, list[str]]:
    """The table with a person's answers in its label column, and what is to be said of them."""
    labels = labels_of(table, label)
    frame = merge_answers(table.frame.with_columns(labels.alias(label)), label, answers.frame, answers.name)
    return replace(table, frame=frame), account_of(answers.frame, label, answers.name, labels.to_list())


class _Silent:
    """Hears and says nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""

    def round(self, row: object) -> None:
        """Nothing."""
