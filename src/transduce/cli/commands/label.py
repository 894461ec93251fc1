"""transduce label: label the rows of a file that have no label yet."""

from typing import Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.errors import InterruptedFitError
from transduce.cli.options import (
    ENCODER_OPTIONS,
    FIT_OPTIONS,
    INPUT_OPTIONS,
    MESSAGE_OPTIONS,
    WholeNumber,
    output_options,
)


@click.command(short_help="Label the rows of a file that have no label.")
@click.argument("file")
@output_options()
@click.option("--label", metavar="COL", help="Label column; rows with an empty cell are labelled.")
@FIT_OPTIONS
@click.option(
    "--no-accuracy", is_flag=True, help="If all class sizes are exact: do not estimate how many labels are right."
)
@INPUT_OPTIONS
@ENCODER_OPTIONS
@click.option("--model", metavar="MODEL", help="Write the classifier to this file (.safetensors).")
@click.option("--report", metavar="REPORT", help="Write a report to this file (.html).")
@click.option("--truth", metavar="COL", help="Column of true labels, used in the report only.")
@click.option("--checkpoint", metavar="DIR", help="Save progress here; to resume, run the same command again.")
@click.option("--dask", metavar="ADDRESS", help="Fit on a running Dask cluster: tcp://host:8786.")
@click.option("--device", metavar="NAME", help="Fit on this device of PyTorch: cuda for a GPU.")
@click.option("--workers", type=WholeNumber(min=1), metavar="N", help="Fit on N new Dask workers on this machine.")
@MESSAGE_OPTIONS
def label(file: str, out: str, model: str | None, report: str | None, **options: Any) -> None:
    """Label every row of FILE that has no label yet, and write the result to OUT.

    FILE is CSV, TSV, JSONL or Parquet (plain, .gz or .zst), svmlight, a folder with one folder for each class, a Label
    Studio export, or - for standard input.
    """
    outputs = [(out, output_paths.TABLES), (model, output_paths.MODELS), (report, output_paths.PAGES)]
    output_paths.check(outputs, options, file)

    from transduce.cli.dask_cluster import check_cluster
    from transduce.cli.device import check_device
    from transduce.cli.evidence_options import check_evidence
    from transduce.cli.formats import labels_of, write_table
    from transduce.cli.label_fit import label_rows
    from transduce.cli.label_task import read_task
    from transduce.cli.labeled_table import misspelled_names, read_labeled_table
    from transduce.cli.none_option import read_none
    from transduce.cli.prior_options import read_prior
    from transduce.cli.progress import Progress
    from transduce.cli.report import build_report, write_report
    from transduce.model_file import save_model

    check_evidence(options)
    check_cluster(options["dask"], options["workers"], options["none"])
    check_device(options["device"], options)
    stated = read_prior(options["prior"])
    read_none(options["none"])  # so that a wrong one is refused before anything is read
    written = [name for name in (out, model, report) if name is not None]
    with Progress.from_options(options) as progress:
        source = read_labeled_table(file, options, progress.say)
        truth = None if options["truth"] is None else labels_of(source.table, options["truth"]).to_list()
        if truth is not None and report is None:
            progress.say("Note: --truth is used in the report only. Ask for one with --report.")
        result = label_rows(read_task(source, stated, options, progress.say), options, progress)
        progress.close()
        about = result.model.about
        fitted = result.model, result.frame, result.names
        page = "" if report is None else build_report(*fitted, truth=truth, X=result.X)
        style = {"keep_formulas": options["keep_formulas"], "dialect": source.table.dialect}
        write_table(result.frame, out, class_columns=result.names.classes, **style)
        if model is not None:
            save_model(result.model, model)
        if report is not None:
            write_report(page, report)
        none = about.get("none")
        n_none = 0 if none is None else none["assigned"]
        labeled = f"{messages.labeled_sentence(about['n_unlabelled'], n_none)} in {about['seconds']:.1f} s"
        labeled += f"{messages.overruled_clause(int(result.frame[result.names.overruled].sum()))}."
        said = (labeled if about["n_unlabelled"] else "", result.ending, messages.wrote(written))
        progress.say(" ".join(filter(None, said)))
        progress.say(*messages.column_note(result.names.label, source.column))
        if "accuracy" in about:
            progress.say(*messages.accuracy_lines(about["accuracy"], about["sizes"], file))
        if about["n_unlabelled"]:
            progress.say(*messages.size_table(about["sizes"], about.get("branches", ()), none))
            progress.say(*messages.misspelling_warnings(about["sizes"], misspelled_names(source, options)))
            progress.say(*messages.size_warnings(about))
    if options["as_json"]:
        shown = {key: value for key, value in about.items() if key not in ("history", "labelled_rows")}
        messages.print_json(shown | {"written": written})
    if about["interrupted"]:
        raise InterruptedFitError(written)
