"""A table with its labels, ready to be labelled: previous results removed, answers filled in, odd labels reported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from transduce.cli.columns import choose_label
from transduce.cli.formats import Table, labels_of, read_table
from transduce.cli.previous_results import remove_results
from transduce.cli.queue.answers import merge_answers
from transduce.cli.validation import label_warnings


@dataclass(frozen=True, eq=False)
class LabeledTable:
    """A table, the name of its label column, and the label that a person gave to each row, or None."""

    table: Table
    column: str
    labels: list[str | None]


def read_labeled_table(
    file: str, options: Mapping[str, Any], say: Callable[[str], None], *, notes: bool = True
) -> LabeledTable:
    """Read a file with the labels that people gave and no others; `options` are those of the command line."""
    table = read_table(file, options["format_"])
    column = choose_label(table, options["label"], options["text"], say)
    table = remove_results(table, column, say)
    labels = labels_of(table, column).to_list()
    if options.get("answers") is not None:
        labels = merge_answers(table.frame, column, labels, read_table(options["answers"]), say)
        table = replace(table, frame=table.frame.with_columns(pl.Series(column, labels, dtype=pl.String)))
    for note in label_warnings(labels, flat=options.get("flat", False)) if notes else ():
        say(f"Note: {note}")
    return LabeledTable(table, column, labels)
