"""Answers of a person, read back into the table: they fill empty labels, and never change one that was given."""

import difflib
import re
from collections.abc import Sequence

import polars as pl

from transduce.cli.candidate_syntax import parts_of
from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of, texts_of
from transduce.cli.formats.spreadsheet import FORMULA_BEGINNINGS

ROW, LABEL, SUGGESTED, CONFIDENCE = "row", "label", "suggested", "confidence"
"""The columns of a queue, before the text."""
LABEL_STUDIO_OWN = frozenset(("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"))
"""Columns that Label Studio adds to what it exports; one of the documents with such a name is another thing."""

MOST_NEW = 10
_DOCUMENTS = "the documents"
_FORMULA_MARK = re.compile(rf"\A'(?=[{FORMULA_BEGINNINGS}])")


def merge_answers(
    table_frame: pl.DataFrame, label_column: str, answers_frame: pl.DataFrame, answers_name: str
) -> pl.DataFrame:
    """The table with the answers filled in; a label that was given stays, and one against it is an error.

    >>> table = pl.DataFrame({"text": ["a", "b", "c"], "label": ["tea", None, None]})
    >>> answers = pl.DataFrame({"row": ["3", "2"], "label": ["coffee", ""], "text": ["c", "b"]})
    >>> merge_answers(table, "label", answers, "answers.csv")["label"].to_list()
    ['tea', None, 'coffee']
    """
    answered = LABEL if LABEL in answers_frame.columns else label_column
    for name in (ROW, answered):
        if name not in answers_frame.columns:
            raise InputError(f"{answers_name} must have the columns 'row' and 'label', but has no {name!r}; add it.")
    labels = labels_of(Table(_DOCUMENTS, table_frame, ""), label_column).to_list()
    answers = _answers(answers_frame, answered, answers_name)
    numbers = _row_numbers(answers_frame, answers, len(labels), answers_name)
    own = {ROW, SUGGESTED, CONFIDENCE, answered, label_column} | LABEL_STUDIO_OWN
    shared = [name for name in answers_frame.columns if name in table_frame.columns and name not in own]
    _check_texts(table_frame.select(shared), answers_frame.select(shared), numbers, answers_name)
    filled = _fill(labels, numbers, answers, answers_name)
    return table_frame.with_columns(pl.Series(label_column, filled, dtype=pl.String))


def account_of(frame: pl.DataFrame, label_column: str, name: str, before: Sequence[str | None]) -> list[str]:
    """How many answers there were, and which name a class that no label named before, with the nearest that one did.

    >>> answers = pl.DataFrame({"row": ["2", "3"], "label": ["tee", ""]})
    >>> for sentence in account_of(answers, "label", "ask.csv", ["tea", None, None]):
    ...     print(sentence)
    1 answer was filled in, 1 left empty.
    Note: the answer 'tee' in ask.csv is a new class; the nearest known is 'tea'.
    """
    answers = _answers(frame, LABEL if LABEL in frame.columns else label_column, name)
    rows = texts_of(Table(name, frame, ""), [ROW])
    n_filled = sum(answer is not None for answer in answers)
    n_empty = sum(answer is None and bool(row.strip()) for row, answer in zip(rows, answers, strict=True))
    said = [f"{n_filled} {'answer was' if n_filled == 1 else 'answers were'} filled in, {n_empty} left empty."]
    known = sorted({label for label in before if label is not None})
    named = {name for answer in answers if answer is not None for name in _named(answer, known)}
    new = sorted(named.difference(known))
    said += [
        f"Note: the answer {answer!r} in {name} is a new class{_nearest(answer, known)}." for answer in new[:MOST_NEW]
    ]
    return said + ([f"Note: there are {len(new) - MOST_NEW} more new classes."] if len(new) > MOST_NEW else [])


def _named(answer: str, known: Sequence[str]) -> tuple[str, ...]:
    """What an answer names: itself, or the parts of a set of which one is known."""
    parts = parts_of(answer)
    return (answer,) if set(parts).isdisjoint(known) else tuple(filter(None, parts))


def _nearest(answer: str, known: Sequence[str]) -> str:
    folded = {label.casefold(): label for label in known}
    near = difflib.get_close_matches(answer.casefold(), folded, 1, 0.0)
    return f"; the nearest known is {folded[near[0]]!r}" if near else ""


def _answers(frame: pl.DataFrame, column: str, name: str) -> list[str | None]:
    """Labels, None where there is none, without the mark that keeps a spreadsheet from running them as formulas."""
    labels = labels_of(Table(name, frame, ""), column)
    return [None if label is None else _FORMULA_MARK.sub("", label) for label in labels]


def _row_numbers(frame: pl.DataFrame, answers: list[str | None], n_rows: int, name: str) -> list[int | None]:
    """Row numbers from 1, None for a line that is blank altogether."""
    numbers: list[int | None] = []
    for place, (text, answer) in enumerate(zip(texts_of(Table(name, frame, ""), [ROW]), answers, strict=True), 1):
        row = text.strip()
        if not row and answer is None:
            numbers.append(None)
            continue
        whole = re.fullmatch(r"([0-9]{1,18})(?:\.0*)?", row, re.ASCII)
        if whole is None:
            raise InputError(f"row {place} of {name} must have a row number in 'row', but has {row!r}; correct it.")
        if not 1 <= int(whole[1]) <= n_rows:
            raise InputError(
                f"row {place} of {name} labels row {row}, but the documents have rows 1 to {n_rows}; correct it."
            )
        numbers.append(int(whole[1]))
    return numbers


def _check_texts(table: pl.DataFrame, answers: pl.DataFrame, numbers: list[int | None], name: str) -> None:
    """Columns that both have must agree, or the answers belong to other rows."""
    lines = [place for place, number in enumerate(numbers) if number is not None]
    rows = [number - 1 for number in numbers if number is not None]
    for column in answers.columns:
        theirs = texts_of(Table(name, answers[lines], ""), [column])
        ours = texts_of(Table(_DOCUMENTS, table[rows], ""), [column])
        for row, one, other in zip(rows, theirs, ours, strict=True):
            if _comparable(one) != _comparable(other):
                raise InputError(
                    f"row {row + 1} of {name} has another text in {column!r} than row {row + 1} of the documents; "
                    "was the file sorted? Bring back its order, or write the queue again."
                )


def _comparable(text: str) -> str:
    """A text as a spreadsheet may hand it back: with other line ends, without NUL, with the mark of a formula."""
    return " ".join(_FORMULA_MARK.sub("", text).replace("\0", "\ufffd").split())


def _fill(
    labels: list[str | None], numbers: list[int | None], answers: list[str | None], name: str
) -> list[str | None]:
    filled = list(labels)
    for number, answer in zip(numbers, answers, strict=True):
        if number is None or answer is None:
            continue
        given, before = labels[number - 1], filled[number - 1]
        if given is not None and given != answer:
            raise InputError(
                f"row {number} has the label {given!r}, but {name} says {answer!r}; correct one of them by hand."
            )
        if before is not None and before != answer:
            raise InputError(f"{name} labels row {number} twice, {before!r} and {answer!r}; keep one of them.")
        filled[number - 1] = answer
    return filled
