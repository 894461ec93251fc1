"""A saved model on a new file: the same words, the same weights, the same answer in every process."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from transduce.cli.columns import choose_columns
from transduce.cli.errors import InputError
from transduce.cli.features import read_vectors, unit_rows
from transduce.cli.formats import Table, texts_of
from transduce.cli.model_file import Model
from transduce.cli.results import ResultNames, Verdict, add_results, model_verdict


def predict_table(
    model: Model, table: Table, text: Sequence[str] = (), vectors: str | None = None, n_jobs: int | None = None
) -> tuple[pl.DataFrame, ResultNames, tuple[str, ...]]:
    """The table with a label for every row, the names of the added columns, and what was guessed."""
    X, columns, said = rows_of(model, table, text, vectors, n_jobs)
    verdict = verdict_of(model, X)
    frame, names = add_results(table.frame, columns, model.classes, verdict)
    return frame, names, said


def verdict_of(model: Model, X: Any) -> Verdict:
    """What the model says of feature rows."""
    return model_verdict(model, model.scores(X))


def rows_of(
    model: Model, table: Table, text: Sequence[str] = (), vectors: str | None = None, n_jobs: int | None = None
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Feature rows of a table as the model knows them, the text columns taken, and what was guessed."""
    features = model.vectorizer.features
    if features.kind == "vectors":
        return _vectors(model, table, vectors), tuple(text), ()
    if table.vectors is not None:
        raise InputError(f"the model reads texts, but {table.name} holds vectors; give a file with a column of texts.")
    if vectors is not None:
        raise InputError(f"the model reads texts, but {vectors} is to be read as vectors; name a column by --text.")
    trained_on = tuple(model.about.get("settings", {}).get("text", ()))
    if not text and trained_on and all(name in table.frame.columns for name in trained_on):
        text = trained_on
    columns = choose_columns(table, text, labels=False)
    texts = texts_of(table, columns.text).to_list()
    return model.vectorizer.transform(texts, n_jobs), columns.text, columns.said


def _vectors(model: Model, table: Table, vectors: str | None) -> Any:
    """Vectors, with as many columns as the model has; svmlight leaves out columns that are zero at the end."""
    d = model.vectorizer.features.n_features
    if vectors is None and table.vectors is None:
        raise InputError(f"the model reads vectors of {d} numbers, but {table.name} has none; name them by --vectors.")
    X: Any = unit_rows(table.vectors, table.name) if vectors is None else read_vectors(vectors, table)
    if vectors is None and X.shape[1] < d:
        X.resize(X.shape[0], d)
    if X.shape[1] != d:
        raise InputError(
            f"the model reads vectors of {d} numbers, but those for {table.name} have {X.shape[1]}; "
            "give vectors made as those it was trained on."
        )
    return X
