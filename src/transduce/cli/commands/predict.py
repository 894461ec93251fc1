"""transduce predict: label a new file with a saved model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.errors import InputError
from transduce.cli.options import INPUT_OPTIONS, MESSAGE_OPTIONS, OUTPUT_OPTIONS

if TYPE_CHECKING:
    import polars as pl

    from transduce.cli.columns import Say
    from transduce.cli.formats import Table
    from transduce.cli.model_file import Model
    from transduce.cli.results import ResultNames


@click.command()
@click.argument("model")
@click.argument("file")
@OUTPUT_OPTIONS
@INPUT_OPTIONS
@MESSAGE_OPTIONS
def predict(model: str, file: str, out: str, **options: Any) -> None:
    """Label the rows of FILE with a saved MODEL, and write the result to OUT."""
    output_paths.check([(out, output_paths.TABLES)], options, model, file)

    from transduce.cli.formats import write_table
    from transduce.cli.progress import Progress

    with Progress.from_options(options) as progress:
        loaded, table = read_model_and_table(model, file, options)
        frame, names = predict_table(loaded, table, options, progress.say)
        write_table(frame, out, keep_formulas=options["keep_formulas"], dialect=table.dialect)
        if names.label != "label":
            progress.say(f"Note: {table.name} has a column 'label', so the labels are in column {names.label!r}.")
        progress.say(f"Labelled {frame.height} rows. {messages.wrote([out])}")
    if options["as_json"]:
        counts = dict(frame[names.label].value_counts(sort=True).rows())
        messages.print_json({"rows": frame.height, "labels": counts, "written": [out]})


def read_model_and_table(model: str, file: str, options: Mapping[str, Any]) -> tuple["Model", "Table"]:
    """Read MODEL and FILE of a command line, or say that they were swapped."""
    from transduce.cli.formats import read_table
    from transduce.cli.model_file import load_model

    try:
        loaded = load_model(model)
    except InputError:
        try:
            load_model(file)
        except InputError:
            pass
        else:
            raise InputError(f"{file} is a model and {model} is not. The order is MODEL FILE.") from None
        raise
    return loaded, read_table(file, options["format_"])


def predict_table(
    model: "Model", table: "Table", options: Mapping[str, Any], say: "Say"
) -> tuple["pl.DataFrame", "ResultNames"]:
    """Return the table with a label for every row, and the names of the added columns."""
    from transduce.cli.results import add_results, predict_rows

    X, text = feature_rows(model, table, options, say)
    return add_results(table.frame, text, model.classes, predict_rows(model, model.scores(X)))


def feature_rows(model: "Model", table: "Table", options: Mapping[str, Any], say: "Say") -> tuple[Any, tuple[str, ...]]:
    """Feature rows of a table as the model expects them, and the text columns used."""
    from transduce.cli.columns import choose_text
    from transduce.cli.formats import texts_of

    text, vectors = tuple(options["text"]), options["vectors"]
    if model.vectorizer.features.kind == "vectors":
        return _vectors(model, table, vectors), text
    if table.vectors is not None:
        raise InputError(f"the model needs texts, but {table.name} holds vectors. Pass a file with a text column.")
    if vectors is not None:
        raise InputError(f"the model needs texts, but --vectors names {vectors}. Name a text column with --text.")
    trained_on = model.about.get("settings", {}).get("text", ())
    if not text and all(name in table.frame.columns for name in trained_on):
        text = tuple(trained_on)
    columns = choose_text(table, text, None, say)
    return model.vectorizer.transform(texts_of(table, columns).to_list(), options["jobs"]), columns


def _vectors(model: "Model", table: "Table", vectors: str | None) -> Any:
    """Vectors with as many columns as the model has; svmlight leaves out zero columns at the end."""
    from transduce.cli.features import read_vectors, unit_rows

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
    return X
