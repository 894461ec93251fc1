"""A file that `label` wrote, as it was before: labels that were not given are taken out, and so are the old results.

Nothing else is changed; a file that only looks like one stays as it is.
"""

from dataclasses import replace

import polars as pl

from transduce.cli.formats import Table, labels_of
from transduce.cli.results import given_rows, result_columns, without_mark


def without_results(table: Table, label: str) -> tuple[Table, list[str]]:
    """The table without the results of an earlier run, and a sentence that says so; others as they are.

    `label` is the column of the labels: the one that was filled in, or one that still holds the given labels alone.
    """
    names = result_columns(table.frame)
    if names is None or label not in table.frame.columns:
        return table, []
    given = given_rows(table.frame, label)
    if given is not None:
        labels = table.frame.select(without_mark(pl.col(label))).to_series() if table.format in ("csv", "tsv") else None
        column = table.frame[label] if labels is None else labels
        frame = table.frame.with_columns(column.zip_with(given, pl.Series([None], dtype=column.dtype))).drop(names)
        return replace(table, frame=frame), [_sentence(table.name, int(given.sum()))]
    if label == "label":  # there is another column of labels beside the results, and no telling whose it is
        return table, []
    added = table.frame.columns[table.frame.columns.index(names[0]) - 1]
    given = given_rows(table.frame, added)
    if given is None or not _holds_the_given(table, label, added, given):
        return table, []
    return replace(table, frame=table.frame.drop(added, *names)), [_sentence(table.name, int(given.sum()))]


def _holds_the_given(table: Table, label: str, added: str, given: pl.Series) -> bool:
    """Whether the column of labels has those that were given, and the added one repeats them."""
    ours, theirs = labels_of(table, label).filter(given), labels_of(table, added).filter(given)
    return ours.null_count() == 0 and bool((ours == theirs).all())


def _sentence(name: str, n_given: int) -> str:
    return (
        f"{name} holds the results of an earlier run: the {n_given} labels with given = true are kept, the others are "
        "found anew, and the old results are replaced; write true into given where you have checked a label."
    )
