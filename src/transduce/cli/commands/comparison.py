"""A model beside the labels of a file: which of them were known before, which are its own, and how many it meets."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from transduce.cli.columns import choose_columns
from transduce.cli.commands.evaluate import Evaluation, evaluate
from transduce.cli.commands.predict import rows_of, verdict_of
from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of
from transduce.cli.model_file import Model
from transduce.cli.progress import Listener
from transduce.cli.results import given_rows, without_mark

FLATTERED = "Note: the model was made from these rows, their labels among them, so the figures flatter it."


def compare(
    model: Model,
    table: Table,
    text: Sequence[str],
    label: str | None,
    vectors: str | None,
    n_jobs: int | None,
    listener: Listener,
) -> Evaluation:
    """What the model says beside what the file says; labels that `label` itself wrote are no truth and are left out."""
    X, text, said = rows_of(model, table, text, vectors, n_jobs)
    columns = choose_columns(table, text, label, texts=False)
    for sentence in (*said, *columns.said):
        listener.say(f"Took it that {sentence}.")
    assert columns.label is not None
    truth, n_given = _truth(table, columns.label, listener)
    if Path(table.name).name == model.about["source"] or n_given == model.about["n_labelled"]:
        listener.say(FLATTERED)
    guesses = [model.classes[k] for k in verdict_of(model, X).label]
    found = evaluate(truth, guesses, f"column {columns.label!r} of {table.name}", tree=model.tree)
    for sentence in found.strangers(model.classes):
        listener.say(f"Note: {sentence}")
    return found


def _truth(table: Table, column: str, listener: Listener) -> tuple[list[str | None], int | None]:
    """Labels that people gave; and how many, if that could be told from a column `given`."""
    labels, given = labels_of(table, column), given_rows(table.frame, column)
    if given is None:
        return labels.to_list(), None
    n_given = int(given.sum())
    if not n_given:
        raise InputError(
            f"column {column!r} of {table.name} holds the model's own labels alone (given is false in every row); "
            "name the column of the truth by --label."
        )
    listener.say(f"Took only the {n_given} rows whose label was given; the others hold the model's own labels.")
    labels = labels.to_frame().select(without_mark(pl.col(labels.name))).to_series()
    return [label if known else None for label, known in zip(labels, given, strict=True)], n_given
