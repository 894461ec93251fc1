"""transduce queue: choose the rows where a person's label would help most."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.errors import InputError, InterruptedFitError
from transduce.cli.options import ENCODER_OPTIONS, FIT_OPTIONS, INPUT_OPTIONS, MESSAGE_OPTIONS, WholeNumber

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from transduce.class_prior.spec import Prior
    from transduce.cli.labeled_table import LabeledTable
    from transduce.cli.progress import Progress
    from transduce.model_file import Model

    Choice = tuple[Model, Any, tuple[str, ...], NDArray[np.intp], NDArray[np.bool_]]
    """A model, features of all rows, text columns, and rows without a label: where they are, and which fit no class."""


@click.command(short_help="Choose rows for a person to label.")
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="OUT", help="csv, tsv, jsonl, parquet, or .json for Label Studio.")
@click.option("-n", "--number", type=WholeNumber(min=1), default=50, show_default=True, help="Rows to choose.")
@click.option("--model", metavar="MODEL", help="A saved model; without one, a model is fitted first.")
@click.option("--label", metavar="COL", help="Label column; rows are chosen among those with an empty cell.")
@FIT_OPTIONS
@click.option("--no-accuracy", is_flag=True, hidden=True)
@INPUT_OPTIONS
@ENCODER_OPTIONS
@MESSAGE_OPTIONS
def queue(file: str, out: str, number: int, model: str | None, **options: Any) -> None:
    """Choose the rows of FILE where a person's label would help most.

    Fill in their `label`, then read them back with `transduce label FILE --answers OUT`.
    """
    output_paths.check([(out, (*output_paths.TABLES, ".json"))], options, model, file)

    import numpy as np

    from transduce.cli.evidence_options import evidence_arguments
    from transduce.cli.labeled_table import read_labeled_table
    from transduce.cli.none_option import read_none
    from transduce.cli.prior_options import read_prior
    from transduce.cli.progress import Progress
    from transduce.cli.queue import (
        check_unanswered,
        choose_rows,
        interface_of,
        queue_frame,
        suspicious_first,
        write_queue,
    )

    output_paths.check([(interface_of(out), (".xml",))], options, model, file)
    check_unanswered(out)
    stated = read_prior(options["prior"])
    read_none(options["none"])  # so that a wrong one is refused before anything is read
    with Progress.from_options(options) as progress:
        source = read_labeled_table(file, options, progress.say)
        if model is None:
            (used, X, text, rows, fits_none), suspicion = _fit(source, stated, out, options, progress)
        else:
            if options["none"] is not None:
                progress.say("Note: --none has no effect with --model, which knows which rows fit no class.")
            if options["guess"] is not None or options["classes"] is not None:
                raise InputError("--model has learnt the classes already. Leave out --guess and --classes.")
            used, X, text, rows, fits_none = _load(model, source, out, options, progress)
            suspicion = None
        probabilities, labeled = used.probabilities(used.scores(X[rows])), np.setdiff1d(np.arange(X.shape[0]), rows)
        picked = choose_rows(
            probabilities, X[rows], number, labeled=X[labeled], seed=options["seed"], fits_none=fits_none
        )
        if suspicion is not None:
            picked = suspicious_first(suspicion[rows], picked)
        best = probabilities[picked].argmax(axis=1)
        suggestions = ["" if none else used.classes[k] for k, none in zip(best, fits_none[picked], strict=True)]
        frame = queue_frame(source.table.frame, rows[picked], suggestions, probabilities[picked].max(axis=1), text)
        progress.close()
        written = write_queue(frame, out, used.classes, text, source.table.dialect)
        next_command = messages.command_line("label", file, *evidence_arguments(options), "--answers", out, "-o", "OUT")
        summary = f"{_summary(frame.height, number, rows.size)} {messages.wrote(written)}"
        progress.say(f"{summary} Fill in their label, then: {next_command}")
    if options["as_json"]:
        messages.print_json({"rows": frame["row"].to_list(), "written": written})
    if model is None and used.about["interrupted"]:
        raise InterruptedFitError(written)


def _fit(
    source: "LabeledTable", stated: "Prior | str", target: str, options: Mapping[str, Any], progress: "Progress"
) -> "tuple[Choice, NDArray[np.float64] | None]":
    """Fit a model, and say how suspicious guesses are; what cannot be written to the target is refused before that."""
    from transduce.cli.label_fit import label_rows
    from transduce.cli.label_task import read_task
    from transduce.cli.queue import check_names

    task = read_task(source, stated, options, progress.say)
    check_names(task.text, task.parsed.classes, target)
    rows = _unlabeled_rows(source.table.name, task.parsed.full)
    result = label_rows(task, options, progress)
    fits_none = result.frame[result.names.label].is_null().to_numpy()
    suspicion = None if options["guess"] is None else result.frame[result.model.about["suspicion"]].to_numpy()
    return (result.model, result.X, task.text, rows, fits_none[rows]), suspicion


def _load(
    model_file: str, source: "LabeledTable", target: str, options: Mapping[str, Any], progress: "Progress"
) -> "Choice":
    """Load a model, and read the rows as it expects them."""
    from transduce.cli.columns import choose_text
    from transduce.cli.predictions import feature_rows, load_classifier, predict_rows
    from transduce.cli.queue import check_names

    model = load_classifier(model_file)
    check_names(options["text"], model.classes, target)
    X, text = feature_rows(model, source.table, options, progress)
    text = choose_text(source.table, text, source.column, progress.say, required=False)
    rows = _unlabeled_rows(source.table.name, source.labels)
    return model, X, text, rows, predict_rows(model, model.scores(X[rows])).label < 0


def _unlabeled_rows(name: str, labels: Sequence[str | None]) -> "NDArray[np.intp]":
    """Positions of the rows without a label."""
    import numpy as np

    found = np.flatnonzero([label is None for label in labels])
    if not found.size:
        raise InputError(f"every row of {name} has a label, so there is nothing to ask. Name another --label.")
    return found


def _summary(n: int, number: int, n_unlabeled: int) -> str:
    """How many rows were chosen, and why they are fewer than asked for."""
    rows = f"Chose {n} row{'' if n == 1 else 's'}"
    if n < min(number, n_unlabeled):
        return f"{rows}, not {number}: texts repeat, and no text is asked for twice."
    return f"{rows}, not {number}: no more are without a label." if n < number else f"{rows}."
