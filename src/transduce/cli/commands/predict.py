"""transduce predict: label a new file with a saved model."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.errors import InputError
from transduce.cli.options import INPUT_OPTIONS, MESSAGE_OPTIONS, OUTPUT_OPTIONS

if TYPE_CHECKING:
    import polars as pl

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
    output_paths.check([out], output_paths.TABLES, model, *output_paths.sources(file, options))
    output_paths.check_standard_output(out, options["as_json"])

    from transduce.cli.formats import read_table, write_table
    from transduce.cli.model_file import load_model_argument
    from transduce.cli.progress import Progress

    with Progress.from_options(options) as progress:
        loaded = load_model_argument(model, file)
        table = read_table(file, options["format_"])
        frame, names = predict_table(loaded, table, options, progress.say)
        write_table(frame, out, keep_formulas=options["keep_formulas"], dialect=table.dialect)
        progress.say(f"Labelled {frame.height} rows. {messages.wrote([out])}")
    if options["as_json"]:
        counts = dict(frame[names.label].value_counts(sort=True).rows())
        messages.print_json({"rows": frame.height, "labels": counts, "written": [out]})


def predict_table(
    model: "Model", table: "Table", options: dict[str, Any], say: Callable[[str], None]
) -> tuple["pl.DataFrame", "ResultNames"]:
    """Return the table with a label for every row, and the names of the added columns."""
    from transduce.cli.results import add_results, predict_rows

    X, text = feature_rows(model, table, options["text"], options["vectors"], options["jobs"], say)
    return add_results(table.frame, text, model.classes, predict_rows(model, model.scores(X)))


def feature_rows(
    model: "Model",
    table: "Table",
    text: Sequence[str],
    vectors: str | None,
    n_jobs: int | None,
    say: Callable[[str], None],
) -> tuple[Any, tuple[str, ...]]:
    """Feature rows of a table as the model expects them, and the text columns used."""
    from transduce.cli.columns import choose_text
    from transduce.cli.formats import texts_of

    if model.vectorizer.features.kind == "vectors":
        return _vectors(model, table, vectors), tuple(text)
    if table.vectors is not None:
        raise InputError(f"the model needs texts, but {table.name} holds vectors. Pass a file with a text column.")
    if vectors is not None:
        raise InputError(f"the model needs texts, but --vectors names {vectors}. Name a text column with --text.")
    trained_on = tuple(model.about.get("settings", {}).get("text", ()))
    if not text and trained_on and all(name in table.frame.columns for name in trained_on):
        text = trained_on
    columns = choose_text(table, text, None, say)
    return model.vectorizer.transform(texts_of(table, columns).to_list(), n_jobs), columns


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
