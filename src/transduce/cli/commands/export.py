"""transduce export: write the decisions of a review, with a label for every other document."""

from typing import Any

import click

from transduce.cli import messages, output_paths
from transduce.cli.commands.review import PROJECT_OPTIONS
from transduce.cli.options import ENCODER_OPTIONS, FEATURES_OPTION, INPUT_OPTIONS, MESSAGE_OPTIONS, output_options


@click.command(short_help="Write the decisions of a review to a file.")
@click.argument("file")
@output_options("csv, tsv, jsonl, parquet, or .json for Label Studio")
@PROJECT_OPTIONS
@click.option("--decisions-only", is_flag=True, help="Do not label documents without a decision.")
@FEATURES_OPTION
@INPUT_OPTIONS
@ENCODER_OPTIONS
@MESSAGE_OPTIONS
def export(file: str, out: str, keep_formulas: bool, decisions_only: bool, **options: Any) -> None:
    """Write the decisions of `transduce review FILE`, and a label for every other document, to OUT.

    OUT is csv, tsv, jsonl, parquet, or .json for Label Studio. Correct labels in it as you like: `transduce label FILE
    --answers OUT` and `transduce review FILE --answers OUT` read them back.
    """
    output_paths.check([(out, (*output_paths.TABLES, ".json"))], options, file)

    from transduce.cli.errors import InputError
    from transduce.cli.progress import Progress
    from transduce.cli.review_task import (
        answer_events,
        check_target,
        read_review,
        read_rows,
        results_column,
        write_decisions,
    )
    from transduce.reviewing.log import LOG_NAME, read_events
    from transduce.reviewing.proposals import Labels, propose
    from transduce.reviewing.state import UNDECIDED, replay

    with Progress.from_options(options) as progress:
        task = read_review(file, options, progress.say)
        if not (task.folder / LOG_NAME).exists():
            start = messages.command_line("review", file)
            raise InputError(f"there are no decisions in {task.folder}. Begin with: {start}")
        state = replay(len(task.texts), task.given, read_events(task.folder, task.texts), task.named)
        for event in answer_events(task, state, options, progress.say):
            state.apply(event)
        check_target(task, state, out)
        proposals = None
        if not decisions_only:
            documents = read_rows(task, options, progress)
            proposals = propose(documents.X, Labels.of(state, documents.group, documents.hints), n_jobs=options["jobs"])
            if proposals is None:
                progress.say("Note: fewer than two classes have decisions, so the other documents get no label.")
        written = write_decisions(task, state, proposals, out, keep_formulas=keep_formulas)
        n_decided = int((state.decided != UNDECIDED).sum())
        progress.say(
            f"{n_decided} of {state.n_rows} documents have a decision of this review. {messages.wrote(written)}"
        )
        if not out.lower().endswith(".json") and task.column is not None:
            progress.say(*messages.column_note(results_column(task), task.column))
    if options["as_json"]:
        messages.print_json({"n_decided": n_decided, "n_rows": state.n_rows, "written": written})
