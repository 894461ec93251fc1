"""Predictions of a saved model for the rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from transduce.cli.columns import MAX_LISTED, choose_text
from transduce.cli.errors import InputError
from transduce.cli.features import read_vectors, unit_rows
from transduce.cli.features.encoding import encoding_of
from transduce.cli.formats import Table, read_table, texts_of
from transduce.cli.progress import Progress
from transduce.features.centering import center_and_scale
from transduce.features.text_rows import transform_texts
from transduce.model_file import Model, load_model
from transduce.suggest import name_list


@dataclass(frozen=True, eq=False)
class Predictions:
    """Label of each row, its probability, the most probable other class, and the prediction without class sizes.

    A row that fits no class has the label -1. Its runner-up is the most probable class, and its confidence that of it.
    """

    label: NDArray[np.int64]
    confidence: NDArray[np.float64]
    runner_up: NDArray[np.int64]
    unpriced: NDArray[np.int64]


def make_predictions(
    label: NDArray[np.int64], probabilities: NDArray[np.float64], unpriced: NDArray[np.int64]
) -> Predictions:
    """Predictions from labels (n,), -1 for rows that fit no class, and probabilities (n, K).

    >>> found = make_predictions(np.array([0, -1]), np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([1, 1]))
    >>> found.confidence.tolist(), found.runner_up.tolist(), found.unpriced.tolist()
    ([0.7, 0.6], [1, 1], [1, -1])
    """
    rows, fits_none = np.arange(label.size), label < 0
    shown = np.where(fits_none, probabilities.argmax(axis=1), label)
    confidence = np.asarray(probabilities[rows, shown], dtype=np.float64)
    others = probabilities.copy()
    others[rows[~fits_none], label[~fits_none]] = -1.0
    unpriced = np.where(fits_none, -1, unpriced)
    return Predictions(label, np.clip(confidence, 0.0, 1.0), others.argmax(axis=1), unpriced)


def predict_rows(model: Model, scores: NDArray[np.float64]) -> Predictions:
    """Predictions of a model for rows with these scores."""
    label = np.where(scores.max(axis=1) < model.none_score, -1, scores.argmax(axis=1))
    return make_predictions(label, model.probabilities(scores), (scores - model.shift).argmax(axis=1))


def load_classifier(source: str) -> Model:
    """Read a model of documents; a tagger of sequences is refused, with what reads it."""
    from transduce.sequences.tagger_file import is_tagger  # which imports scikit-learn

    if is_tagger(source):
        raise InputError(
            f"{source} is a tagger of sequences. `transduce predict` and `transduce evaluate` read it; `transduce tag "
            "--report` writes its report."
        )
    return load_model(source)


def read_model_and_table(model: str, file: str, options: Mapping[str, Any]) -> tuple[Model, Table]:
    """Read MODEL and FILE of a command line, or say that they were swapped."""
    try:
        loaded = load_classifier(model)
    except InputError:
        try:
            load_model(file)
        except InputError:
            pass
        else:
            raise InputError(f"{file} is a model and {model} is not. The order is MODEL FILE.") from None
        raise
    return loaded, read_table(file, options["format_"], options.get("max_size"))


def feature_rows(
    model: Model, table: Table, options: Mapping[str, Any], progress: Progress
) -> tuple[Any, tuple[str, ...]]:
    """Feature rows of a table as the model expects them, and the text columns used."""
    text, vectors = tuple(options["text"]), options["vectors"]
    if model.vectorizer.features.kind == "vectors":
        return _vectors(model, table, vectors), text
    if table.vectors is not None:
        raise InputError(f"the model needs texts, but {table.name} holds vectors. Pass a file with a text column.")
    if vectors is not None:
        raise InputError(f"the model needs texts, but --vectors names {vectors}. Name a text column with --text.")
    columns = choose_text(table, text or _trained_text(model, table), None, progress.say)
    if options["encoder"] is not None and model.vectorizer.features.encoder is None:
        progress.say("Note: the model uses the words of the texts, so --encoder has no effect.")
    with encoding_of(options, progress) as encoding:
        return transform_texts(model.vectorizer, texts_of(table, columns).to_list(), encoding), columns


def _trained_text(model: Model, table: Table) -> tuple[str, ...]:
    """The text columns that the model was trained on; none if it has none stored or the table defines its own."""
    trained_on = tuple(model.about["settings"].get("text", ()))
    missing = [name for name in trained_on if name not in table.frame.columns]
    if not missing:
        return trained_on
    if table.text is not None:  # a folder
        return ()
    columns = f"column{'' if len(trained_on) == 1 else 's'} {name_list(trained_on, MAX_LISTED)}"
    lacks = f"which {table.name} does not have" if len(trained_on) == 1 else f"but {table.name} has no {missing[0]!r}"
    raise InputError(
        f"the model was trained on {columns}, {lacks}. Its columns are {name_list(table.frame.columns, MAX_LISTED)}. "
        "Name the text with --text."
    )


def _vectors(model: Model, table: Table, vectors: str | None) -> Any:
    """Vectors with as many columns as the model has; svmlight leaves out zero columns at the end."""
    d = model.vectorizer.features.n_features
    if vectors is None and table.vectors is None:
        raise InputError(f"the model needs vectors of {d} numbers, but {table.name} has none. Name them by --vectors.")
    X: Any = unit_rows(table.vectors, table.name) if vectors is None else read_vectors(vectors, table)
    if vectors is None and X.shape[1] < d:
        X.resize(X.shape[0], d)
    if X.shape[1] != d:
        raise InputError(
            f"the model needs vectors of {d} numbers, but those of {table.name} have {X.shape[1]}. "
            "Make them in the same way as those it was trained on."
        )
    if model.vectorizer.center.size:
        X = X.toarray() if sparse.issparse(X) else X
        center_and_scale(X, model.vectorizer.center)
    return X
