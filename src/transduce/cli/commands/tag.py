"""transduce tag: label the tokens of a file of sequences that have no label yet."""

from typing import Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.errors import InterruptedFitError
from transduce.cli.options import ALPHA_OPTION, MESSAGE_OPTIONS, SEED_OPTION, WholeNumber


@click.command(short_help="Label the tokens of sequences.")
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="OUT", help="File to write, in the format of FILE.")
@click.option("--constraint", multiple=True, metavar="TEXT", help="'title: once', 'author before title', 'a needs b'.")
@click.option("--count", multiple=True, metavar="NAME=SIZE", help="Tokens of a label: author=20%:30%; title==120.")
@click.option("--model", metavar="MODEL", help="Write the tagger to this file (.safetensors).")
@click.option("--report", metavar="REPORT", help="Write a report to this file (.html).")
@click.option("--format", "format_", type=click.Choice(("conll", "jsonl", "xml")), help="Format of FILE.")
@click.option("--text", metavar="COL", help="Column (from 1) or key of the tokens.")
@click.option("--label", metavar="COL", help="Column (from 1) or key of the labels.")
@click.option(
    "--scheme", type=click.Choice(("auto", "none", "BIO", "BIOES")), default="auto", help="Scheme of the labels."
)
@click.option(
    "--loss", type=click.Choice(("maxent", "hinge")), default="maxent", show_default=True, help="Loss of the tagger."
)
@ALPHA_OPTION
@click.option(
    "--annealing",
    type=click.Choice(("soft", "paper", "none")),
    default="soft",
    show_default=True,
    help="How labels harden during the fit; none learns from labelled sequences alone.",
)
@SEED_OPTION
@click.option("--jobs", type=WholeNumber(min=1), help="Number of cores; all by default.")
@MESSAGE_OPTIONS
def tag(file: str, out: str, model: str | None, report: str | None, **options: Any) -> None:
    """Label every token of FILE that has no label yet, and write the result to OUT.

    FILE holds sequences of tokens, such as references: CoNLL columns, JSONL ({"tokens": [...], "labels": [...]}) or
    tagged XML. Labels that you gave stay, and so does everything else in the file.
    """
    from transduce.cli.tagging.corpus import SUFFIXES, check_output, choose_format, read_corpus, write_corpus

    choose_format(file, options["format_"])
    output_paths.check([(out, SUFFIXES), (model, output_paths.MODELS), (report, output_paths.PAGES)], options, file)

    from transduce.cli.progress import Progress
    from transduce.cli.report import write_report
    from transduce.cli.tagging.fit import fit_tagger
    from transduce.cli.tagging.report import build_report
    from transduce.cli.tagging.statements import read_counts
    from transduce.sequences.tagger_file import save_tagger
    from transduce.suggest import number_of

    counts = read_counts(options["count"])
    written = [name for name in (out, model, report) if name is not None]
    with Progress.from_options(options) as progress:
        corpus = read_corpus(file, options["format_"], options["text"], options["label"])
        check_output(corpus, out)
        tagging, about = fit_tagger(corpus, counts, options, progress)
        progress.close()
        page = "" if report is None else build_report(tagging, about)
        write_corpus(corpus, tagging.labels, out)
        if model is not None:
            save_tagger(tagging.tagger, model, about)
        if report is not None:
            write_report(page, report)
        tagged = f"Labelled {number_of(tagging.counts[1].total(), 'token')} in {about['seconds']:.1f} s"
        where = " (--report shows them)" if report is None else " (see the report)"
        progress.say(f"{tagged}. {about['ending']} {messages.wrote(written)}", *tagging.summary(where))
    if options["as_json"]:
        shown = {key: value for key, value in about.items() if key not in ("history", "labelled_rows")}
        messages.print_json(shown | {"written": written})
    if about["interrupted"]:
        raise InterruptedFitError(written)
