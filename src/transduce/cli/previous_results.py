"""Remove the results of a previous `transduce label` run from a table, so that it can be labelled again."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from transduce.cli.formats import Table, labels_of
from transduce.cli.results import given_rows, result_columns, without_guard


def remove_results(table: Table, label: str, say: Callable[[str], None]) -> Table:
    """Return the table without previous results, keeping the labels that a person gave; others as they are.

    `label` is the label column: the one that was filled in, or one that still holds only what a person gave.
    """
    names = result_columns(table.frame)
    if names is None or label not in table.frame.columns:
        return table
    given = given_rows(table.frame, label)
    if given is not None:
        column = table.frame[label]
        if table.format in ("csv", "tsv"):
            column = table.frame.select(without_guard(pl.col(label))).to_series()
        filled = column.zip_with(given, pl.Series([None], dtype=column.dtype))
        frame = table.frame.with_columns(filled).drop(names)
    else:
        if label == "label":  # the results have a label column of their own, and this one may be unrelated
            return table
        added = table.frame.columns[table.frame.columns.index(names[0]) - 1]
        given = given_rows(table.frame, added)
        if given is None or not _holds_given_labels(table, label, added, given):
            return table
        frame = table.frame.drop(added, *names)
    say(
        f"{table.name} holds the results of an earlier run: keeping the {int(given.sum())} labels with given = true "
        "and replacing the rest. To keep a label that you have checked, set given to true."
    )
    return replace(table, frame=frame)


def _holds_given_labels(table: Table, label: str, added: str, given: pl.Series) -> bool:
    """Whether the label column has the given labels and the added column repeats them."""
    ours, theirs = labels_of(table, label).filter(given), labels_of(table, added).filter(given)
    return ours.null_count() == 0 and bool((ours == theirs).all())
