"""Merge a person's answers into the labels: they fill empty labels; only an exported file may change one.

Of several files of answers, the last one that answers a row decides. An answer that is probably a misspelling of a
class is an error, unless it is said to be a new class.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from transduce.cli.classes import split_candidates
from transduce.cli.errors import InputError
from transduce.cli.exported import documents_labels, read_corrections
from transduce.cli.formats import Table, labels_of, texts_of
from transduce.cli.formats.delimited import FORMULA_BEGINNINGS, GUARD
from transduce.cli.formats.errors import printable
from transduce.cli.results import (
    RESULTS,
    corrected_rows,
    filled_column,
    given_rows,
    is_export,
    result_columns,
    without_guard,
)
from transduce.suggest import did_you_mean, find_misspelled, number_of

ROW, LABEL, SUGGESTED, CONFIDENCE = "row", "label", "suggested", "confidence"
"""The columns of a queue, before the text."""
LABEL_STUDIO_COLUMNS = frozenset(("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"))
"""Columns that Label Studio adds to its exports; a column of the documents with such a name is something else."""
MAX_NEW_CLASSES, MAX_COMPARED = 10, 50
_FORMULA_GUARDS = re.compile(rf"\A{GUARD}+(?=[{FORMULA_BEGINNINGS}])")

Labels = list[str | None]


def merge_all(
    documents: Table,
    column: str,
    labels: Labels,
    files: Sequence[Table],
    say: Callable[[str], None],
    new_classes: Sequence[str] = (),
    known: Sequence[str] = (),
    *,
    reviewed: bool = False,
) -> Labels:
    """Return the labels with the answers of several files filled in; the last word counts, and conflicts are reported.

    `reviewed` says that the labels are those of a review, "" for none of the classes: answers may change them, but of
    an exported file, which may be older, only those that were corrected in it. `known` are classes that need no label.

    >>> frame = pl.DataFrame({"text": ["a", "b", "c"], "label": ["tea", None, None]})
    >>> documents = Table("tickets.csv", frame, "csv")
    >>> first = Table("one.csv", pl.DataFrame({"row": [2, 3], "label": ["tea", "tea"]}), "csv")
    >>> second = Table("two.csv", pl.DataFrame({"row": [3], "label": ["milk"]}), "csv")
    >>> merge_all(documents, "label", ["tea", None, None], [first, second], print)
    2 answers from one.csv.
    1 answer from two.csv.
    Note: the answer 'milk' in two.csv is a new class.
    Note: row 3 was answered 'tea' in an earlier file and 'milk' in two.csv, which is used.
    ['tea', 'tea', 'milk']
    """
    merged: Labels = [None] * len(labels)
    for answers in files:
        new = read_answers(documents, column, labels, answers, say, new_classes, known, reviewed=reviewed)
        conflicts = [row for row, one in enumerate(new) if None not in (one, merged[row]) and one != merged[row]]
        for row in conflicts[:1]:
            more = f" So were {number_of(len(conflicts) - 1, 'other row')}." if len(conflicts) > 1 else ""
            earlier = f"row {row + 1} was answered {merged[row]!r} in an earlier file"
            say(f"Note: {earlier} and {new[row]!r} in {answers.name}, which is used.{more}")
        merged = _over(merged, new)
    return _over(labels, merged)


def _over(labels: Labels, answers: Labels) -> Labels:
    return [old if new is None else new for old, new in zip(labels, answers, strict=True)]


def _as_answers(answers: Table, documents: Table, column: str, say: Callable[[str], None]) -> Table:
    """The labels that people gave in a file that `label` or `export` wrote, as answers; other files as they are.

    Only `export` keeps its own labels, so that a label which was changed since is known to be a person's.
    """
    n_rows = documents.frame.height
    if not holds_results(answers, n_rows):
        return answers
    label = filled_column(answers.frame)
    if is_export(answers.frame) and label in answers.frame.columns:
        answers = read_corrections(answers, column, documents_labels(documents, column))
    frame = answers.frame
    given = given_rows(frame, label)
    if given is None:
        return answers
    if not is_export(frame) and not given.all():
        names, n_given = result_columns(frame) or RESULTS, number_of(int(given.sum()), "row")
        say(
            f"Note: {answers.name} was written by `label`: its labels count only where column {names[-1]!r} is true "
            f"({n_given}). Set it to true in rows that you have corrected, or correct a file from `transduce export`."
        )
    answer = pl.Series(LABEL, labels_of(answers, label)).zip_with(given, pl.Series([None], dtype=pl.String))
    numbers = pl.Series(ROW, range(1, n_rows + 1), dtype=pl.Int64)
    return Table(answers.name, frame.with_columns(numbers, answer), answers.format)


def holds_results(answers: Table, n_rows: int) -> bool:
    """Whether a file has a label for each document, as `label` writes it without row numbers, and `export` always."""
    frame = answers.frame
    has_results = result_columns(frame) is not None and frame.height == n_rows
    return has_results and (ROW not in frame.columns or is_export(frame))


def merge_answers(
    documents: Table,
    column: str,
    labels: Labels,
    answers: Table,
    say: Callable[[str], None],
    new_classes: Sequence[str] = (),
) -> Labels:
    """Return the labels with the answers filled in; an answer that contradicts a given label is an error.

    Answers of a file that `export` wrote are newer than labels of the documents, and may change them.
    `documents` is the table that the queue was made from, `column` its label column and `labels` that column's labels.

    >>> texts = pl.DataFrame({"text": ["a", "b", "c"], "label": ["tea", None, None]})
    >>> documents = Table("tickets.csv", texts, "csv")
    >>> frame = pl.DataFrame({"row": ["3", "2"], "label": ["tee", ""], "text": ["c", "b"]})
    >>> merge_answers(documents, "label", ["tea", None, None], Table("ask.csv", frame, "csv"), print)
    1 answer from ask.csv; 1 row has none.
    Note: the answer 'tee' in ask.csv is a new class. Did you mean 'tea'?
    ['tea', None, 'tee']
    """
    return _over(labels, read_answers(documents, column, labels, answers, say, new_classes))


def read_answers(
    documents: Table,
    column: str,
    labels: Labels,
    answers: Table,
    say: Callable[[str], None],
    new_classes: Sequence[str] = (),
    known: Sequence[str] = (),
    *,
    reviewed: bool = False,
) -> Labels:
    """Return the answer of a file to each row, None without one; the arguments are those of `merge_all`."""
    may_change, is_queue = reviewed or is_export(answers.frame), not holds_results(answers, len(labels))
    answers = _as_answers(answers, documents, column, say)
    answered = LABEL if LABEL in answers.frame.columns else column
    new = _column_of_answers(answers, answered)
    rows = _row_numbers(answers, new, len(labels))
    queue_columns = {ROW, SUGGESTED, *RESULTS, answered, column} | LABEL_STUDIO_COLUMNS
    names = answers.frame.columns
    _check_texts(
        documents, answers, rows, [n for n in names if n in documents.frame.columns and n not in queue_columns]
    )
    found = _by_row([None] * len(labels) if may_change else labels, rows, new, answers.name)
    n_known = sum(one is not None and one == label for one, label in zip(found, labels, strict=True))
    if reviewed and not is_queue:
        found = _newer(found, labels, answers.frame)
    n_new = sum(one is not None and one != label for one, label in zip(found, labels, strict=True))
    n_empty = sum(row is not None and one is None for row, one in zip(rows, new, strict=True)) if is_queue else 0
    say(_counts(n_new, n_known, n_empty, answers.name, f"{documents.name}{' or its review' if reviewed else ''}"))
    for sentence in _new_classes(found, answers.name, [*labels, *known], new_classes):
        say(sentence)
    return found


def _column_of_answers(answers: Table, column: str) -> Labels:
    for name in (ROW, column):
        if name not in answers.frame.columns:
            raise InputError(f"{answers.name} needs the columns 'row' and 'label', but has no {name!r}. Add it.")
    given = labels_of(answers, column)
    if answers.format in ("csv", "tsv"):
        given = given.to_frame().select(without_guard(pl.col(given.name))).to_series()
    return list(given.to_list())


def _newer(answers: Labels, labels: Labels, frame: pl.DataFrame) -> Labels:
    """Answers of a file that may be older than the labels: of an exported one, those that were corrected in it."""
    if not is_export(frame):
        return answers
    corrected = corrected_rows(frame, LABEL).to_list()
    return [
        one if is_new or label is None else None for one, label, is_new in zip(answers, labels, corrected, strict=True)
    ]


def _row_numbers(answers: Table, labels: Labels, n_rows: int) -> list[int | None]:
    """Row numbers from 1, None for a blank line."""
    numbers: list[int | None] = []
    for place, (text, label) in enumerate(zip(texts_of(answers, [ROW]), labels, strict=True), 1):
        row, where = text.strip(), f"row {place} of {answers.name}"
        whole = re.fullmatch(r"([0-9]{1,18})(?:\.0*)?", row, re.ASCII)
        if whole is None and (row or label is not None):
            raise InputError(f"{where} needs a row number in 'row', but has {row!r}. Correct it.")
        if whole is not None and not 1 <= int(whole[1]) <= n_rows:
            raise InputError(f"{where} labels row {row}, but the documents have rows 1 to {n_rows}.")
        numbers.append(None if whole is None else int(whole[1]))
    return numbers


def _check_texts(documents: Table, answers: Table, numbers: list[int | None], columns: Sequence[str]) -> None:
    """Columns that both have must agree, or the answers belong to other rows."""
    lines = [place for place, number in enumerate(numbers) if number is not None]
    rows = [number - 1 for number in numbers if number is not None]
    ours, theirs = Table("the documents", documents.frame[rows], ""), Table(answers.name, answers.frame[lines], "")
    for column in columns:
        for row, one, other in zip(rows, texts_of(theirs, [column]), texts_of(ours, [column]), strict=True):
            if _comparable(one) != _comparable(other):
                raise InputError(
                    f"row {row + 1} of {answers.name} has a different text in {column!r} than row {row + 1} of the "
                    "documents. Was the file sorted? Restore its order, or write it anew."
                )


def _comparable(text: str) -> str:
    """A text without what a spreadsheet may change: line ends, NUL, the apostrophe that guards a formula."""
    return " ".join(_FORMULA_GUARDS.sub("", text).replace("\0", "\ufffd").split())


def _by_row(labels: Labels, numbers: list[int | None], answers: Labels, name: str) -> Labels:
    """Answers in the order of the rows; they must agree with the labels."""
    found: Labels = [None] * len(labels)
    for number, answer in zip(numbers, answers, strict=True):
        if number is None or answer is None:
            continue
        given, before = labels[number - 1], found[number - 1]
        if given is not None and given != answer:
            raise InputError(
                f"row {number} has the label {given!r}, but {name} says {answer!r}. Correct one of them by hand."
            )
        if before is not None and before != answer:
            raise InputError(f"{name} labels row {number} twice, {before!r} and {answer!r}. Keep one of them.")
        found[number - 1] = answer
    return found


def _counts(n_new: int, n_known: int, n_empty: int, name: str, where: str) -> str:
    """How many answers a file has, how many labels were known before, and how many rows of a queue have no answer.

    >>> _counts(42, 60, 0, "exported.csv", "requests.csv")
    '42 answers from exported.csv; 60 labels were in requests.csv already.'
    """
    found = [f"{number_of(n_new, 'answer')} from {name}"]
    found += (
        [f"{number_of(n_known, 'label')} {'was' if n_known == 1 else 'were'} in {where} already"] if n_known else []
    )
    found += [f"{number_of(n_empty, 'row')} {'has' if n_empty == 1 else 'have'} none"] if n_empty else []
    return f"{'; '.join(found)}."


def _new_classes(answers: Labels, name: str, labels: Labels, new_classes: Sequence[str]) -> Iterator[str]:
    """Which answers name a new class; one that is probably a misspelling is refused."""
    known = {label for label in labels if label}
    named: set[str] = set()
    for answer in filter(None, answers):
        parts = split_candidates(answer)  # a set names its parts if one of them is known
        named.update([answer] if known.isdisjoint(parts) else filter(None, parts))
    new = sorted(named - known)
    for answer in new if len(new) <= MAX_COMPARED else ():
        meant = None if answer in new_classes else find_misspelled(answer, known)
        if meant is not None:
            raise InputError(
                f"{name} has the answer {answer!r}, which is no class. Did you mean {meant!r}? Correct it, or pass "
                f"--new-class {printable(answer)} if it is a class of its own."
            )
    for answer in new[:MAX_NEW_CLASSES]:
        yield f"Note: the answer {answer!r} in {name} is a new class.{did_you_mean(answer, known)}"
    if len(new) > MAX_NEW_CLASSES:
        yield f"Note: there are {len(new) - MAX_NEW_CLASSES} more new classes."
