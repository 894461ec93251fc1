"""Choose the text and label columns of a table: as named by the user, else by column names, else by contents."""

from collections.abc import Callable, Sequence

import polars as pl

from transduce.cli.errors import InputError
from transduce.cli.formats import Table
from transduce.suggest import name_list

TEXT_NAMES = (
    "text", "texts", "document", "documents", "doc", "content", "body", "message", "sentence", "utterance", "question",
    "query", "review", "comment", "description", "abstract", "title", "subject",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "categories", "target", "topic", "intent", "tag", "y", "genre", "group",
)  # fmt: skip
RESULT_NAMES = ("confidence", "runner_up", "overruled", "given")
MIN_TEXT_LENGTH = 15
"""Mean number of characters from which a column counts as text."""
MAX_LISTED = 12

Say = Callable[..., None]
"""Prints each of its arguments as a line."""


def choose_label(table: Table, label: str | None, text: Sequence[str], say: Say) -> str:
    """Return the label column; `say` reports a guess.

    >>> frame = pl.DataFrame({"id": [1, 2], "Text": ["a nice cup of tea", "a mug of coffee"], "Label": ["tea", None]})
    >>> choose_label(Table("drinks.csv", frame, "csv"), None, (), print)
    Using column 'Label' as the label.
    'Label'
    """
    if label is None:
        label = table.label or _guess_label(table, text)
        say(f"Using column {label!r} as the label.")
    return label


def choose_text(
    table: Table, text: Sequence[str], label: str | None, say: Say, *, required: bool = True
) -> tuple[str, ...]:
    """Return the text columns; `say` reports a guess.

    Where text is not `required`, because there are vectors, an obvious text column is still used: people read it.
    """
    for name in text:
        if list(text).count(name) > 1:
            raise InputError(f"--text names column {name!r} of {table.name} twice. Name it once.")
    if label is not None and label in text:
        raise InputError(f"column {label!r} of {table.name} cannot be both text and label. Name two columns.")
    if text or table.vectors is not None:
        return tuple(text)
    try:
        guess = table.text or _guess_text(table, label)
    except InputError:
        if required:
            raise
        return ()
    if required:
        say(f"Using column {guess!r} as the text.")
    return (guess,)


def _guess_label(table: Table, text: Sequence[str]) -> str:
    columns = [name for name in table.frame.columns if name not in text]
    named = _by_name(columns, LABEL_NAMES)
    if named:
        return named
    likely = [name for name in columns if _looks_like_labels(table.frame[name])]
    if len(likely) == 1:
        return likely[0]
    raise InputError(
        f"cannot tell which column of {table.name} holds the labels. Its columns are "
        f"{name_list(table.frame.columns, MAX_LISTED)}. Name one with --label."
    )


def _guess_text(table: Table, label: str | None) -> str:
    columns = [name for name in table.frame.columns if name != label and name not in RESULT_NAMES]
    named = _by_name(columns, TEXT_NAMES)
    if named:
        return named
    likely = [name for name in columns if _mean_length(table.frame[name]) >= MIN_TEXT_LENGTH]
    if len(likely) == 1:
        return likely[0]
    raise InputError(
        f"{table.name} has {'several columns' if likely else 'no column'} that could be the text. Its columns are "
        f"{name_list(table.frame.columns, MAX_LISTED)}. Name one with --text, or several with several --text."
    )


def _by_name(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """The column with the first of these names, ignoring case."""
    folded = {column.strip().casefold(): column for column in reversed(columns)}
    return next((folded[name] for name in names if name in folded), None)


def _looks_like_labels(column: pl.Series) -> bool:
    """Whether a column is partly empty and has few distinct values."""
    if column.dtype not in (pl.String, pl.Int64, pl.List(pl.String)):
        return False
    filled = column.drop_nulls()
    if column.dtype == pl.String:
        filled = filled.filter(filled.str.strip_chars() != "")
    return 0 < filled.len() < column.len() and filled.n_unique() <= max(2, filled.len() // 2)


def _mean_length(column: pl.Series) -> float:
    if column.dtype != pl.String:
        return 0.0
    return float(column.str.len_chars().mean() or 0.0)  # type: ignore[arg-type]
