"""transduce queue: choose the rows where a person's label would help most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.commands.predict import feature_rows
from transduce.cli.errors import InputError, InterruptedFitError
from transduce.cli.invocation import command_line
from transduce.cli.options import FIT_OPTIONS, INPUT_OPTIONS, MESSAGE_OPTIONS

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from transduce.cli.label_task import LabelSettings
    from transduce.cli.labeled_table import LabeledTable
    from transduce.cli.progress import Progress


@click.command()
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="OUT", help="csv, tsv, jsonl, parquet, or .json for Label Studio.")
@click.option("-n", "--number", type=click.IntRange(min=1), default=50, show_default=True, help="Rows to choose.")
@click.option("--model", metavar="MODEL", help="A saved model; without one, a model is fitted first.")
@FIT_OPTIONS
@INPUT_OPTIONS
@MESSAGE_OPTIONS
def queue(file: str, out: str, number: int, model: str | None, **options: Any) -> None:
    """Choose the rows of FILE where a person's label would help most.

    Fill in their `label`, then read them back with `transduce label FILE --answers OUT`.
    """
    sources = (model, *output_paths.sources(file, options))
    output_paths.check([out], (*output_paths.TABLES, ".json"), *sources)
    output_paths.check_standard_output(out, options["as_json"])

    from transduce.cli.label_task import LabelSettings
    from transduce.cli.labeled_table import read_labeled_table
    from transduce.cli.progress import Progress
    from transduce.cli.queue import interface_of, write_queue

    output_paths.check([interface_of(out)], (".xml",), *sources)
    settings = LabelSettings.from_options(options)
    with Progress.from_options(options) as progress:
        source = read_labeled_table(file, options, progress.say)
        chosen = choose_queue(source, settings, model, number, progress, out)
        progress.close()
        written = write_queue(chosen.frame, out, chosen.classes, chosen.text, source.table.dialect)
        next_command = command_line("label", file, "--answers", out, "-o", "OUT")
        progress.say(f"{_summary(chosen, number)} {messages.wrote(written)} Fill in their label, then: {next_command}")
    if options["as_json"]:
        messages.print_json({"rows": chosen.frame["row"].to_list(), "written": written})
    if chosen.interrupted:
        raise InterruptedFitError(written)


@dataclass(frozen=True, eq=False)
class Queue:
    """Rows to be labelled, the classes to choose from, the text columns, and how many rows had no label."""

    frame: "pl.DataFrame"
    classes: tuple[str, ...]
    text: tuple[str, ...]
    n_unlabeled: int
    interrupted: bool


def choose_queue(
    source: "LabeledTable",
    settings: "LabelSettings",
    model_file: str | None,
    number: int,
    progress: "Progress",
    target: str,
) -> Queue:
    """Choose rows with a saved model, or with one that is fitted first.

    What cannot be written to `target` is refused before the fit.
    """
    from transduce.cli.columns import choose_text
    from transduce.cli.label_fit import label_rows
    from transduce.cli.label_task import read_task
    from transduce.cli.model_file import load_model
    from transduce.cli.queue import check_names, choose_rows, queue_frame
    from transduce.cli.results import predict_rows

    table = source.table
    if model_file is None:
        task = read_task(source, settings, progress)
        check_names(task.text, task.classes, target)
        rows = _unlabeled_rows(table.name, task.parsed.full)
        result = label_rows(task, settings, progress)
        model, X, text, interrupted = result.model, result.X, task.text, result.interrupted
    else:
        model, interrupted = load_model(model_file), False
        check_names(settings.text, model.classes, target)
        X, text = feature_rows(model, table, settings.text, settings.vectors, settings.n_jobs, progress.say)
        text = choose_text(table, text, source.column, progress.say, required=False)
        rows = _unlabeled_rows(table.name, source.labels)
    X = X[rows]
    scores = model.scores(X)
    picked = choose_rows(model.probabilities(scores), X, number, seed=settings.seed)
    predictions = predict_rows(model, scores[picked])
    suggestions = [model.classes[k] for k in predictions.label]
    frame = queue_frame(table.frame, rows[picked], suggestions, predictions.confidence, text)
    return Queue(frame, model.classes, text, rows.size, interrupted)


def _unlabeled_rows(name: str, labels: Sequence[str | None]) -> "NDArray[np.intp]":
    """Positions of the rows without a label."""
    import numpy as np

    found = np.flatnonzero([label is None for label in labels])
    if not found.size:
        raise InputError(f"every row of {name} has a label, so there is nothing to ask. Name another --label.")
    return found


def _summary(chosen: Queue, number: int) -> str:
    """How many rows were chosen, and why they are fewer than asked for."""
    n = chosen.frame.height
    rows = f"Chose {n} row{'' if n == 1 else 's'}"
    if n < min(number, chosen.n_unlabeled):
        return f"{rows}, not {number}: texts repeat, and no text is asked for twice."
    return f"{rows}, not {number}: no more are without a label." if n < number else f"{rows}."
