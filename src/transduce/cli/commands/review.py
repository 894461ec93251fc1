"""transduce review: decide about documents in the browser while a classifier learns."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from transduce.cli.options import (
    ENCODER_OPTIONS,
    FEATURES_OPTION,
    INPUT_OPTIONS,
    MESSAGE_OPTIONS,
    WholeNumber,
    with_options,
)

PROJECT_OPTIONS = with_options(
    click.option("--label", metavar="COL", help="Label column, if there is one."),
    click.option("--project", metavar="DIR", help="Folder of the decisions; FILE.review by default."),
    click.option(
        "--answers",
        multiple=True,
        metavar="FILE",
        help="Labels that a person gave, in a file from `queue`, `export` or `label`; may be repeated; the last file "
        "that answers a row decides.",
    ),
    click.option(
        "--classes",
        metavar="NAMES|FILE",
        help="Class names, or a file of them, for proposals before any decision: 'billing, outage'.",
    ),
    click.option("--guess", metavar="COL", help="Column of labels of which some are wrong, such as a model's."),
    click.option("--new-class", multiple=True, metavar="NAME", help="Accept this answer as a new class."),
)


@click.command(short_help="Review a file in the browser.")
@click.argument("file")
@PROJECT_OPTIONS
@click.option("--port", type=WholeNumber(0, 65535), default=0, help="Port of the server; a free one by default.")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
@FEATURES_OPTION
@INPUT_OPTIONS
@ENCODER_OPTIONS
@MESSAGE_OPTIONS
def review(file: str, port: int, no_browser: bool, **options: Any) -> None:
    """Review FILE in the browser: decide, and see a classifier learn from it.

    FILE is never changed: decisions are saved in a folder beside it, and `transduce export FILE -o OUT` writes them.
    """
    from transduce.cli.errors import InputError
    from transduce.suggest import install_advice, number_of

    try:
        from transduce.reviewing.server import ReviewServer
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InputError(f"a review needs the extra 'review'. {install_advice('review')}") from None
    from transduce.cli import messages, output_paths
    from transduce.cli.progress import Progress
    from transduce.cli.review_task import answer_events, read_review, read_rows, write_decisions
    from transduce.reviewing.log import DecisionLog
    from transduce.reviewing.session import Session
    from transduce.reviewing.state import UNDECIDED

    with Progress.from_options(options) as progress:
        task = read_review(file, options, progress.say)
        documents = read_rows(task, options, progress)
        session = Session(documents, DecisionLog(task.folder, task.texts), task.given)

        def export(format: str) -> dict[str, str]:
            target = output_paths.unused(Path(file.rstrip("/")), "reviewed", f".{format}")
            with session.lock:
                state, proposals = session.state.copy(), session.proposals
            write_decisions(task, state, proposals, str(target))
            return {"path": str(target.resolve()), "next": _label_command(file, str(target), options)}

        try:
            for event in answer_events(task, session.state, options, progress.say):
                session.submit([event])
            with suppress(KeyboardInterrupt):  # Ctrl-C is how a review ends
                server = ReviewServer(session, export, port)
                progress.say(f"Decisions are saved in {task.folder}. Press Ctrl-C to end the review.")
                if options["as_json"]:
                    messages.print_json({"url": server.url})
                elif no_browser:
                    messages.print_text(server.url)
                else:
                    progress.say(f"Opening {server.url}")
                server.run(open_browser=not no_browser)
        finally:
            session.close()
        target = str(output_paths.unused(Path(file.rstrip("/")), "reviewed", ".csv"))
        n_decided = int((session.state.decided != UNDECIDED).sum())
        progress.say(
            f"{number_of(n_decided, 'document')} decided. Write all labels with: "
            f"{_export_command(file, target, options)}",
            f"Then label all documents with your decisions: {_label_command(file, target, options)}",
        )


def _export_command(file: str, target: str, options: Mapping[str, Any]) -> str:
    """The command that writes the decisions of this review."""
    from transduce.cli import messages

    project = ("--project", options["project"]) if options["project"] else ()
    return messages.command_line("export", file, "-o", target, *project, *_input_arguments(options))


def _label_command(file: str, answers: str, options: Mapping[str, Any]) -> str:
    """The command that labels the file with exported decisions."""
    from transduce.cli import messages, output_paths

    out = str(output_paths.unused(Path(file.rstrip("/")), "labelled", ".csv"))
    return messages.command_line("label", file, "--answers", answers, "-o", out, *_input_arguments(options))


def _input_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options about the columns and classes of the file, as they were typed."""
    from transduce.cli.evidence_options import evidence_arguments

    label = ["--label", options["label"]] if options["label"] else []
    return [*label, *(word for name in options["text"] for word in ("--text", name)), *evidence_arguments(options)]
