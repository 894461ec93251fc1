"""The command line: reads options, calls one job, tells what came; heavy parts are imported where they are used.

Exit codes: 0 done, 1 something failed or was interrupted, 2 wrong use. What is asked for goes to standard output or the
file named by -o; all else that is said goes to standard error.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import transduce
from transduce.cli.errors import InputError
from transduce.cli.options import COLUMNS, FIT, OUTPUT, SPOKEN
from transduce.io.atomic_write import WriteError

if TYPE_CHECKING:
    from transduce.cli.commands.label import LabelSettings
    from transduce.cli.formats import Table
    from transduce.cli.model_file import Model
    from transduce.cli.progress import Listener


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every failure is one sentence on standard error and an exit code."""
    try:
        return cli.main(arguments, prog_name="transduce", standalone_mode=False) or 0
    except WriteError as error:
        return _fail(str(error), 1)
    except InputError as error:
        return _fail(str(error), 2)
    except click.UsageError as error:
        message = error.format_message()
        end = "" if message.endswith((".", "?", "?)")) else "."
        return _fail(f"{message}{end} Try '{error.ctx.command_path if error.ctx else 'transduce'} --help'.", 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted before there was anything to write.", 1)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}.", 1)
    except MemoryError:
        return _fail("memory ran out; try --features hashing, fewer --jobs, or a part of the file.", 1)


def _fail(sentence: str, code: int) -> int:
    print(f"transduce: {' '.join(sentence.split())}", file=sys.stderr)
    return code


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(transduce.__version__, prog_name="transduce")
def cli() -> None:
    """Label a pile of documents from labels for a few of them and the size of each class.

    \b
    transduce label tickets.csv -o labelled.csv --prior billing=0.3 --model m.safetensors --report r.html
    transduce predict m.safetensors next-week.csv -o next-week-labelled.csv
    """


@cli.command()
@click.argument("file")
@OUTPUT
@FIT
@COLUMNS
@click.option("--model", metavar="MODEL", help="Write the classifier here (.safetensors).")
@click.option("--report", metavar="REPORT", help="Write a page to look at here (.html).")
@click.option("--truth", metavar="COL", help="Column of true labels, for the report alone.")
@click.option("--checkpoint", metavar="DIR", help="Keep stages of the fit here; if it is killed, run the same again.")
@click.option("--dask", metavar="ADDRESS", help="Fit on the workers of this Dask scheduler: tcp://host:8786.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Fit on so many Dask workers of this machine.")
@SPOKEN
def label(file: str, out: str, model: str | None, report: str | None, **options: Any) -> int | None:
    """Label every row of FILE that has no label yet, and write it to OUT.

    FILE is CSV, TSV, JSONL or Parquet (plain, .gz or .zst), svmlight, a folder with a folder a class, a Label Studio
    export, or - for standard input.
    """
    from transduce.cli import messages as telling
    from transduce.cli import output_paths
    from transduce.cli.commands.label import label_table
    from transduce.cli.dask_cluster import check_cluster
    from transduce.cli.formats import write_table
    from transduce.cli.model_file import save_model
    from transduce.cli.report import build_report, write_report

    sources = _sources(file, options)
    output_paths.check([out], output_paths.TABLES, *sources)
    output_paths.check([model], (".safetensors",), *sources)
    output_paths.check([report], (".html", ".htm"), *sources)
    output_paths.check_different(out, model, report)
    output_paths.check_standard_output(out, options["as_json"])
    check_cluster(options["dask"], options["workers"])
    settings = _settings(options)
    with _progress(options) as progress:
        table = _read(file, options, progress)
        truth = _truth(table, options["truth"])
        if truth is not None and report is None:
            progress.say("Note: --truth is for the report alone, and there is none; ask for one by --report.")
        done = label_table(table, settings, progress)
        progress.close()
        page = "" if report is None else build_report(done.model, done.frame, done.names, truth=truth)
        write_table(done.frame, out, keep_formulas=options["keep_formulas"], dialect=table.dialect)
        if model is not None:
            save_model(done.model, model)
        if report is not None:
            write_report(page, report)
        written = [name for name in (out, model, report) if name is not None]
        progress.say(telling.of_labels(done, written))
        progress.say(telling.of_sizes(done.model.about["sizes"], done.model.about.get("branches", ())))
    if options["as_json"]:
        _print_json({**done.model.about, "written": written}, less=("history",))
    return _ended(done.interrupted, written)


@cli.command()
@click.argument("model")
@click.argument("file")
@OUTPUT
@COLUMNS
@SPOKEN
def predict(model: str, file: str, out: str, **options: Any) -> None:
    """Label the rows of FILE with a saved MODEL, and write them to OUT."""
    from transduce.cli import output_paths
    from transduce.cli.commands.predict import predict_table
    from transduce.cli.formats import write_table
    from transduce.cli.messages import wrote

    output_paths.check([out], output_paths.TABLES, model, *_sources(file, options))
    output_paths.check_standard_output(out, options["as_json"])
    with _progress(options) as progress:
        loaded = _load(model, file)
        table = _read(file, options)
        frame, names, said = predict_table(loaded, table, options["text"], options["vectors"], options["jobs"])
        for sentence in said:
            progress.say(f"Took it that {sentence}.")
        write_table(frame, out, keep_formulas=options["keep_formulas"], dialect=table.dialect)
        progress.say(f"Labelled {frame.height} rows. {wrote([out])}")
    if options["as_json"]:
        counts = frame[names.label].value_counts(sort=True).rows()
        _print_json({"rows": frame.height, "labels": dict(counts), "written": [out]})


@cli.command()
@click.argument("model")
@click.argument("file")
@click.option("--label", metavar="COL", help="Column of the true labels.")
@COLUMNS
@SPOKEN
def evaluate(model: str, file: str, label: str | None, **options: Any) -> None:
    """Compare what MODEL says with the labels in FILE: F of all and of each class, confusions, levels of a tree."""
    from transduce.cli.commands.comparison import compare

    with _progress(options) as progress:
        loaded = _load(model, file)
        table = _read(file, options)
        found = compare(loaded, table, options["text"], label, options["vectors"], options["jobs"], progress)
    if options["as_json"]:
        _print_json(found.as_json())
    else:
        _print_text(str(found))


@cli.command()
@click.argument("model")
@click.option("--words", type=click.IntRange(0, 1000), default=10, show_default=True, help="Words to show a class.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors: shows only whether MODEL can be read.")
def inspect(model: str, words: int, as_json: bool, quiet: bool) -> None:
    """Show the classes, counts, strongest words, settings and provenance of MODEL."""
    from transduce.cli.commands.inspect import as_text, inspection
    from transduce.cli.model_file import load_model

    found = inspection(load_model(model), words)
    if as_json:
        _print_json(found)
    elif not quiet:
        _print_text(as_text(found))


@cli.command()
@click.argument("file")
@click.option("--label", metavar="COL", help="Column of the labels.")
@click.option("--prior", multiple=True, metavar="NAME=SHARE|FILE", help="Class sizes to compare with.")
@click.option("--flat", is_flag=True, help="Read 'a/b' labels as plain names.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there is a problem or a warning.")
@COLUMNS
@SPOKEN
def check(file: str, label: str | None, prior: tuple[str, ...], flat: bool, strict: bool, **options: Any) -> int | None:
    """Say what a careful colleague would notice first in FILE."""
    from collections import Counter

    from transduce.cli.classes import read_names
    from transduce.cli.columns import choose_columns
    from transduce.cli.formats import labels_of, texts_of
    from transduce.cli.prior_options import as_ranges, read_prior
    from transduce.cli.validation import as_json, check_documents, is_odd, render_findings

    with _progress(options) as progress:
        stated = read_prior(prior)
        table = _read(file, {**options, "label": label}, progress, notes=False)
        columns = choose_columns(table, options["text"], label, texts=options["vectors"] is None)
        for sentence in columns.said:
            progress.say(f"Took it that {sentence}.")
        assert columns.label is not None
        labels = labels_of(table, columns.label).to_list()
        texts = texts_of(table, columns.text).to_list() if columns.text else [f"row {i}" for i in range(len(labels))]
        names = read_names(Counter(name for name in labels if name is not None), flat=flat)
        n_open = sum(name is None or (name in names.meant and len(names.meant[name]) > 1) for name in labels)
        ranges = as_ranges(stated, n_open) if stated else None
        findings = check_documents(texts, labels, ranges, tree=names.tree, flat=flat)
    if options["as_json"]:
        _print_json({"file": file, "findings": as_json(findings)})
    else:
        _print_text(render_findings(findings))
    return 1 if strict and is_odd(findings) else None


@cli.command()
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="OUT", help="csv, tsv, jsonl, parquet, or .json for Label Studio.")
@click.option("-n", "--number", type=click.IntRange(min=1), default=50, show_default=True, help="Rows to choose.")
@click.option("--model", metavar="MODEL", help="A saved model; without one a fit is made first.")
@FIT
@COLUMNS
@SPOKEN
def queue(file: str, out: str, number: int, model: str | None, **options: Any) -> int | None:
    """Choose the rows of FILE where a person's label would help most.

    Fill in their `label` and read them back by `transduce label FILE --answers OUT`.
    """
    from transduce.cli import messages as telling
    from transduce.cli import output_paths
    from transduce.cli.invocation import command
    from transduce.cli.queue import interface_of, queue_table, write_queue

    sources = (model, *_sources(file, options))
    output_paths.check([out], (*output_paths.TABLES, ".json"), *sources)
    output_paths.check([interface_of(out)], (".xml",), *sources)
    output_paths.check_standard_output(out, options["as_json"])
    settings = _settings(options)
    with _progress(options) as progress:
        table = _read(file, options, progress)
        chosen = queue_table(table, settings, model, number, progress, out)
        progress.close()
        written = write_queue(chosen.frame, out, chosen.classes, chosen.text, table.dialect)
        progress.say(f"{telling.of_queue(chosen, number)} {telling.wrote(written)} Fill in their label, then: "
                     f"{command('label', file, '--answers', out, '-o', 'OUT')}")  # fmt: skip
    if options["as_json"]:
        _print_json({"rows": chosen.frame["row"].to_list(), "written": written})
    return _ended(chosen.interrupted, written)


@cli.command()
@click.argument("model")
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="REPORT", help="The page to write (.html).")
@click.option("--truth", metavar="COL", help="Column of true labels, to show what is confused with what.")
@COLUMNS
@SPOKEN
def report(model: str, file: str, out: str, truth: str | None, **options: Any) -> None:
    """Make the page of a MODEL and a FILE: what `label` wrote, or any file, which is then predicted first."""
    from transduce.cli import output_paths
    from transduce.cli.commands.predict import predict_table
    from transduce.cli.report import build_report, write_report
    from transduce.cli.results import read_results

    output_paths.check([out], (".html", ".htm"), model, *_sources(file, options))
    with _progress(options) as progress:
        loaded = _load(model, file)
        table = _read(file, options)
        known = _truth(table, truth)
        text = tuple(options["text"] or loaded.about["settings"].get("text", ()))
        in_place = loaded.about["settings"].get("label") == "label"
        found = read_results(table.frame, text, loaded.classes, in_place=in_place)
        if found is None:
            progress.say(f"{file} does not hold the results of transduce label, so its rows are predicted.")
            frame, names, _ = predict_table(loaded, table, options["text"], options["vectors"], options["jobs"])
        else:
            frame, names = found
        other = None if found is not None else Path(table.name).name
        write_report(build_report(loaded, frame, names, truth=known, file=other), out)
        progress.say(f"Wrote {out}.")
    if options["as_json"]:
        _print_json({"rows": table.frame.height, "written": [out]})


@cli.command()
@click.option("-o", "--out", default="transduce-demo", show_default=True, metavar="FOLDER", help="Where to write.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def demo(out: str, seed: int, quiet: bool) -> int:
    """Run the main job on the built-in corpus: labelled CSV, model and report."""
    from transduce.cli.commands.demo import run_demo

    return run_demo(Path(out), run, seed, quiet=quiet)


def _settings(options: dict[str, Any]) -> "LabelSettings":
    from transduce.cli.commands.label import LabelSettings
    from transduce.cli.features import Features
    from transduce.cli.prior_options import read_prior

    return LabelSettings(
        text=tuple(options["text"]),
        label=options["label"],
        prior=read_prior(options["prior"]),
        features=Features(kind=options["features"], ngrams=options["ngrams"]),
        vectors=options["vectors"],
        flat=options["flat"],
        loss=options["loss"],
        alpha=options["alpha"],
        annealing=None if options["annealing"] == "none" else options["annealing"],
        seed=options["seed"],
        n_jobs=options["jobs"],
        checkpoint=options.get("checkpoint"),
        dask=options.get("dask"),
        workers=options.get("workers"),
    )


def _read(file: str, options: dict[str, Any], listener: "Listener | None" = None, *, notes: bool = True) -> "Table":
    """The table; for one who listens, with the labels that people gave and no others (see `preparing`)."""
    from transduce.cli.formats import read_table

    table = read_table(file, options["format_"])
    if listener is None:
        return table
    from transduce.cli.commands.preparation import prepared

    return prepared(
        table,
        options["text"],
        options["label"],
        options.get("answers"),
        listener,
        notes=notes,
        flat=options.get("flat", False),
    )


def _load(model: str, file: str) -> "Model":
    """The model; arguments that were exchanged are seen by their contents."""
    from transduce.cli.model_file import load_model

    try:
        return load_model(model)
    except InputError:
        try:
            load_model(file)
        except InputError:
            pass
        else:
            raise InputError(f"{file} is a model and {model} is none; the order is MODEL FILE.") from None
        raise


def _sources(file: str, options: dict[str, Any]) -> list[str | None]:
    """All that is read besides a model, or may be: options can name columns and class sizes where they name files."""
    return [file, *options.get("prior", ()), *(options.get(name) for name in ("answers", "vectors", "config"))]


def _truth(table: "Table", column: str | None) -> list[str | None] | None:
    from transduce.cli.formats import labels_of

    return None if column is None else labels_of(table, column).to_list()


def _progress(options: dict[str, Any]) -> Any:
    from transduce.cli.progress import Progress
    from transduce.solvers.schedule import COOLINGS, N_STAGES

    n_restarts = 1 + len(COOLINGS) if options.get("annealing") == "soft" else 1
    return Progress(quiet=options["quiet"], n_restarts=n_restarts, n_stages=N_STAGES + 1)


def _ended(interrupted: bool, written: Sequence[str]) -> int | None:
    """An interrupted fit has written what there was; its exit code says that it is not done."""
    from transduce.cli.messages import of_interruption

    return _fail(of_interruption(written), 1) if interrupted else None


def _print_text(text: str) -> None:
    """Print lines; what a file put into them can move no cursor and colour nothing."""
    from transduce.cli.formats.errors import shown

    click.echo("\n".join(map(shown, text.split("\n"))))


def _print_json(found: dict[str, Any], less: Sequence[str] = ()) -> None:
    click.echo(json.dumps({k: v for k, v in found.items() if k not in less}, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
