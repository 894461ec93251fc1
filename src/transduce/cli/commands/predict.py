"""transduce predict: label a new file with a saved model."""

from typing import Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.options import ENCODER_OPTIONS, MESSAGE_OPTIONS, MODEL_INPUT_OPTIONS, output_options


@click.command(short_help="Label a file with a saved model.")
@click.argument("model")
@click.argument("file")
@output_options("csv, tsv, jsonl or parquet, or the format of FILE for sequences")
@MODEL_INPUT_OPTIONS
@ENCODER_OPTIONS
@MESSAGE_OPTIONS
def predict(model: str, file: str, out: str, **options: Any) -> None:
    """Label the rows of FILE with a saved MODEL, and write the result to OUT.

    With a MODEL that `transduce tag` wrote, FILE holds sequences, and tokens without a label get one.
    """
    from transduce.cli.tagging.results import predict_sequences
    from transduce.sequences.tagger_file import is_tagger

    if is_tagger(model):
        predict_sequences(model, file, out, options)
        return
    output_paths.check([(out, output_paths.TABLES)], options, model, file)

    from transduce.cli.formats import write_table
    from transduce.cli.predictions import read_model_and_table
    from transduce.cli.progress import Progress
    from transduce.cli.results import predict_table

    with Progress.from_options(options) as progress:
        loaded, table = read_model_and_table(model, file, options)
        frame, names = predict_table(loaded, table, options, progress)
        style = {"keep_formulas": options["keep_formulas"], "dialect": table.dialect}
        write_table(frame, out, class_columns=names.classes, **style)
        if names.label != "label":
            progress.say(f"Note: {table.name} has a column 'label', so the labels are in column {names.label!r}.")
        labels = frame[names.label].drop_nulls()
        n_none = frame.height - labels.len()
        progress.say(f"{messages.labeled_sentence(frame.height, n_none)}. {messages.wrote([out])}")
    if options["as_json"]:
        none = {"none": n_none} if "none" in loaded.about else {}
        counts = dict(labels.value_counts(sort=True).rows())
        messages.print_json({"rows": frame.height, "labels": counts, **none, "written": [out]})
