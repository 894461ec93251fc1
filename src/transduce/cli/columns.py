"""Which columns hold the text and the labels: as asked for, else by their names, else by what is in them.

Whatever is taken without being asked for is said in a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from transduce.cli.errors import InputError
from transduce.cli.formats import Table

TEXT_NAMES = (
    "text", "texts", "document", "documents", "doc", "content", "body", "message", "sentence", "utterance", "question",
    "query", "review", "comment", "description", "abstract", "title", "subject",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "categories", "target", "topic", "intent", "tag", "y", "genre", "group",
)  # fmt: skip
RESULT_NAMES = ("confidence", "runner_up", "overruled", "given")
TEXT_LENGTH = 15
"""Mean number of characters from which a column reads like text."""


@dataclass(frozen=True)
class Columns:
    """The columns of the text, of the labels (None where there are none), and sentences on what was guessed."""

    text: tuple[str, ...]
    label: str | None
    said: tuple[str, ...]


def choose_columns(
    table: Table, text: Sequence[str] = (), label: str | None = None, *, labels: bool = True, texts: bool = True
) -> Columns:
    """Columns as asked for, or guessed where that is safe; `labels` and `texts` say what is needed.

    Texts that are not needed, because there are vectors, are still taken where they are plain to see: people read them.

    >>> frame = pl.DataFrame({"id": [1, 2], "Text": ["a nice cup of tea", "a mug of coffee"], "Label": ["tea", None]})
    >>> choose_columns(Table("drinks.csv", frame, "csv"))
    Columns(text=('Text',), label='Label', said=("texts are in column 'Text'", "labels are in column 'Label'"))
    """
    said: list[str] = []
    if label is None and labels:
        label = table.label or _guess_label(table, text)
        said.append(f"labels are in column {label!r}")
    if not text and table.vectors is None:
        text = _texts(table, label, texts)
        said[:0] = [f"texts are in column {name!r}" for name in text if texts]
    for name in text:
        if list(text).count(name) > 1:
            raise InputError(f"column {name!r} of {table.name} is named twice by --text; name it once.")
    if label is not None and label in text:
        raise InputError(f"column {label!r} of {table.name} cannot be both text and label; name two columns.")
    return Columns(tuple(text), label, tuple(said))


def _texts(table: Table, label: str | None, needed: bool) -> tuple[str, ...]:
    try:
        return (table.text or _guess_text(table, label),)
    except InputError:
        if needed:
            raise
        return ()


def _guess_label(table: Table, text: Sequence[str]) -> str:
    left = [name for name in table.frame.columns if name not in text]
    named = _by_name(left, LABEL_NAMES)
    if named:
        return named
    columns = [name for name in left if _looks_like_labels(table.frame[name])]
    if len(columns) == 1:
        return columns[0]
    raise InputError(
        f"{table.name} has no column that is plainly the labels; its columns are {_list(table.frame.columns)}. "
        "Name it by --label."
    )


def _guess_text(table: Table, label: str | None) -> str:
    left = [name for name in table.frame.columns if name != label and name not in RESULT_NAMES]
    named = _by_name(left, TEXT_NAMES)
    if named:
        return named
    columns = [name for name in left if _mean_length(table.frame[name]) >= TEXT_LENGTH]
    if len(columns) == 1:
        return columns[0]
    raise InputError(
        f"{table.name} has {'several columns' if columns else 'no column'} that could be the text; its columns are "
        f"{_list(table.frame.columns)}. Name it by --text (or several, by several --text)."
    )


def _by_name(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """The column whose name is the first of the names that any has."""
    folded = {column.strip().casefold(): column for column in reversed(columns)}
    return next((folded[name] for name in names if name in folded), None)


def _looks_like_labels(column: pl.Series) -> bool:
    """Partly empty, and few values that repeat."""
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


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:12]) + (" and others" if len(names) > 12 else "")
