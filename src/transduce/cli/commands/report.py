"""transduce report: write the report of a model and a file."""

from pathlib import Path
from typing import Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.options import ENCODER_OPTIONS, INPUT_OPTIONS, MESSAGE_OPTIONS


@click.command(short_help="Write a report of a model and a file.")
@click.argument("model")
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="REPORT", help="The report to write (.html).")
@click.option("--truth", metavar="COL", help="Column of true labels, to show confusions.")
@INPUT_OPTIONS
@ENCODER_OPTIONS
@MESSAGE_OPTIONS
def report(model: str, file: str, out: str, truth: str | None, **options: Any) -> None:
    """Write the report of MODEL and FILE.

    FILE is what `transduce label` wrote, or any other file, which is then labelled by the model first.
    """
    output_paths.check([(out, output_paths.PAGES)], options, model, file)

    from transduce.cli.formats import labels_of
    from transduce.cli.predictions import read_model_and_table
    from transduce.cli.progress import Progress
    from transduce.cli.report import build_report, write_report
    from transduce.cli.results import predict_table, read_results

    with Progress.from_options(options) as progress:
        loaded, table = read_model_and_table(model, file, options)
        known = None if truth is None else labels_of(table, truth).to_list()
        trained, other_file = loaded.about["settings"], None
        text = tuple(options["text"] or trained.get("text", ()))
        in_place, none = trained.get("label") == "label", "none" in loaded.about
        results = read_results(table.frame, text, loaded.classes, in_place=in_place, none=none)
        if results is None:
            progress.say(f"{file} holds no results of transduce label, so its rows are labelled by the model.")
            results, other_file = predict_table(loaded, table, options, progress), Path(table.name).name
        write_report(build_report(loaded, *results, truth=known, file=other_file), out)
        progress.say(messages.wrote([out]))
    if options["as_json"]:
        messages.print_json({"rows": table.frame.height, "written": [out]})
