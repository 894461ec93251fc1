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
RESULT_NAMES = ("confidence", "runner_up", "overruled", "given", "origin")
MIN_TEXT_LENGTH = 15
"""Mean number of characters from which a column counts as text."""
MAX_LISTED = 12

Say = Callable[..., None]
"""Prints each of its arguments as a line."""


def choose_label(table: Table, label: str | None, text: Sequence[str], say: Say, advice: str = "") -> str:
    """Return the label column; `say` reports a guess, and `advice` is for a table without one."""
    if label is not None:
        return label
    likely = [table.label] if table.label else _likely(table.frame.drop(text, strict=False), LABEL_NAMES, _is_label)
    if len(likely) != 1:
        raise InputError(
            f"cannot tell which column of {table.name} holds the labels. {_column_list(table)} Name one with "
            f"--label.{advice}"
        )
    say(f"Using column {likely[0]!r} as the label.")
    return likely[0]


def named_label(table: Table, others: Sequence[str | None]) -> str | None:
    """Return the label column by its name alone, None if there is none; `others` are columns with another use."""
    if table.label and table.label not in others:
        return table.label
    found = _likely(table.frame.drop([name for name in others if name], strict=False), LABEL_NAMES, lambda _: False)
    return found[0] if found else None


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
    others = table.frame.drop(RESULT_NAMES if label is None else (label, *RESULT_NAMES), strict=False)
    likely = [table.text] if table.text else _likely(others, TEXT_NAMES, _is_text)
    if len(likely) != 1:
        if not required:
            return ()
        raise InputError(
            f"{table.name} has {'several columns' if likely else 'no column'} that could be the text. "
            f"{_column_list(table)} Name one with --text, or several with several --text."
        )
    if required:
        say(f"Using column {likely[0]!r} as the text.")
    return (likely[0],)


def _column_list(table: Table) -> str:
    names = table.frame.columns
    return f"Its {'only column is' if len(names) == 1 else 'columns are'} {name_list(names, MAX_LISTED)}."


def _likely(frame: pl.DataFrame, names: Sequence[str], fits: Callable[[pl.Series], bool]) -> list[str]:
    """The column with the first of these names, ignoring case; otherwise all whose content fits."""
    folded = {column.strip().casefold(): column for column in reversed(frame.columns)}
    named = [folded[name] for name in names if name in folded]
    return named[:1] or [column.name for column in frame if fits(column)]


def _is_label(column: pl.Series) -> bool:
    """Whether a column is partly empty and has few distinct values."""
    if column.dtype not in (pl.String, pl.Int64, pl.List(pl.String)):
        return False
    filled = column.drop_nulls()
    if column.dtype == pl.String:
        filled = filled.filter(filled.str.strip_chars() != "")
    return 0 < filled.len() < column.len() and filled.n_unique() <= max(2, filled.len() // 2)


def _is_text(column: pl.Series) -> bool:
    """Whether a column holds long strings."""
    if column.dtype != pl.String:
        return False
    return float(column.str.len_chars().mean() or 0.0) >= MIN_TEXT_LENGTH  # type: ignore[arg-type]
