"""What `review` and `export` share: documents of a file with their feature rows, the project folder, and results."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.columns import Say, choose_label, choose_text, named_label
from transduce.cli.errors import InputError
from transduce.cli.evidence_options import check_evidence, check_spelling, class_names, fit_evidence, has_evidence
from transduce.cli.exported import check_of, check_uncorrected, documents_labels
from transduce.cli.features.encoding import encoding_of
from transduce.cli.formats import Table, labels_of, read_table, texts_of, unused_name, write_table
from transduce.cli.labeled_table import with_labels
from transduce.cli.predictions import Predictions
from transduce.cli.queue.answers import LABEL, merge_all
from transduce.cli.queue.write import label_studio_config, label_studio_tasks, queue_frame
from transduce.cli.results import ANSWERED, AT_RANDOM, EXPORTED, EXPORTED_CHECK, GIVEN, NOTE, add_results
from transduce.features.pretrained import local_encoder
from transduce.features.text_rows import fit_texts
from transduce.io.atomic_write import atomic_write
from transduce.reviewing.documents import Documents
from transduce.reviewing.hints import Hints
from transduce.reviewing.log import Event
from transduce.reviewing.proposals import Proposals
from transduce.reviewing.state import NO_CLASS, RANDOM, UNDECIDED, ReviewState

if TYPE_CHECKING:
    from transduce.cli.progress import Progress

FOLDER_SUFFIX = ".review"


@dataclass(frozen=True, eq=False)
class ReviewTask:
    """A file to review: its table, text columns, the label column if there is one, labels, and classes of hints."""

    table: Table
    text: tuple[str, ...]
    column: str | None
    given: list[str | None]
    texts: list[str]
    folder: Path
    named: list[str]


def read_review(file: str, options: Mapping[str, Any], say: Say) -> ReviewTask:
    """Read a file with any number of labels, also none."""
    if file == "-":
        raise InputError("a review needs a file that stays where it is, not standard input. Name one.")
    table = read_table(file, options["format_"], options.get("max_size"))
    check_evidence({"vectors": None, **options})
    named = class_names(table, options)
    if options["guess"] is not None and any("|" in name for name in named):
        say('Note: guesses with "|" name several classes. These documents count as without a guess.')
        named = [name for name in named if "|" not in name]
    column = _label_column(table, options, say)
    guess = () if options["guess"] is None else (options["guess"],)
    text = choose_text(replace(table, frame=table.frame.drop(guess)), options["text"], column, say)
    given: list[str | None] = [None] * table.frame.height
    if column is not None:
        source = with_labels(table, column, {"flat": False, **options, "answers": ()}, say)
        table, given = source.table, source.labels
    if options["classes"] is not None:
        check_spelling(named, given)
    if any(name is not None and "|" in name for name in given):
        say('Note: labels with "|" name several classes. These documents count as undecided.')
        given = [None if name is None or "|" in name else name for name in given]
    folder = Path(options["project"] or f"{file.rstrip('/')}{FOLDER_SUFFIX}")
    return ReviewTask(table, text, column, given, texts_of(table, text).to_list(), folder, named)


def answer_events(task: ReviewTask, state: ReviewState, options: Mapping[str, Any], say: Say) -> list[Event]:
    """Events that decide what --answers say and the state does not."""
    files, known = [read_table(name) for name in options["answers"]], (*options["new_class"], *state.classes)
    now = ["" if k == NO_CLASS else name for k, name in zip(state.codes().tolist(), state.labels(), strict=True)]
    merged = merge_all(task.table, task.column or LABEL, now, files, say, known, reviewed=True)
    rows: dict[str, list[int]] = {}
    for row, (old, new) in enumerate(zip(now, merged, strict=True)):
        if new and new != old and "|" not in new:
            rows.setdefault(new, []).append(row)
    events: list[Event] = [{"op": "add_class", "name": name} for name in rows if name not in state.names]
    return events + [{"op": "decide", "rows": of, "label": name, "how": "file"} for name, of in rows.items()]


def _label_column(table: Table, options: Mapping[str, Any], say: Say) -> str | None:
    """The label column; None if none is named and none is obvious."""
    if options["label"] is not None:
        return str(options["label"])
    if has_evidence(options):
        return named_label(table, (*options["text"], options["guess"]))
    try:
        return choose_label(table, None, options["text"], say)
    except InputError:
        say("There is no label column, so the review begins without labels. If there is one, name it with --label.")
        return None


def read_rows(task: ReviewTask, options: Mapping[str, Any], progress: "Progress") -> Documents:
    """Compute the feature rows of the documents."""
    kind = options["features"] or ("tfidf" if options["encoder"] is None and local_encoder() is None else "mix")
    progress.say(f"Reading {len(task.texts)} texts.")
    with encoding_of(options, progress) as encoding:
        rows = fit_texts(task.texts, "mix" if kind == "auto" else kind, encoding)
    evidence = fit_evidence(task.table, task.text, options, progress)
    if "guesses" in evidence:
        evidence["guesses"] = np.where(np.isin(evidence["guesses"].astype(str), task.named), evidence["guesses"], "")
    return Documents(task.texts, rows.X, rows.vectorizer.vocabulary, Path(task.table.name).name, Hints(**evidence))


def write_decisions(
    task: ReviewTask, state: ReviewState, proposals: Proposals | None, target: str, *, keep_formulas: bool = False
) -> list[str]:
    """Write all documents with decisions, and proposals for the others, and return the names of the files written."""
    if target.lower().endswith(".json"):
        return _write_tasks(task, state, proposals, target)
    frame = results_frame(task, state, proposals)
    write_table(frame, target, keep_formulas=keep_formulas, dialect=task.table.dialect)
    return [target]


def check_target(task: ReviewTask, state: ReviewState, target: str) -> None:
    """Check that the target is no exported file with corrections that the review does not have."""
    column = task.column or LABEL
    check_uncorrected(target, column, documents_labels(task.table, column), state.labels())


def results_column(task: ReviewTask) -> str:
    """The column of the labels of all documents: that of the file if it is called "label", else one that is added."""
    return LABEL if task.column == LABEL else unused_name(LABEL, task.table.frame.columns)


def results_frame(task: ReviewTask, state: ReviewState, proposals: Proposals | None) -> pl.DataFrame:
    """The table with the columns that `label` adds, and those that show corrections: labels as exported, and notes.

    As `label --answers` does, it fills in decisions in the label column, also if the labels of all documents are in
    another one.
    """
    codes, labels = state.codes(), state.labels()
    classes, predictions = _predictions(state, proposals)
    is_none = (codes != UNDECIDED) & (codes < 0)
    predictions.label[is_none] = -1
    in_place = task.column if task.column == LABEL else None
    table = task.table.frame
    if task.column is not None:  # decisions may replace labels of the file, also one that names several classes
        decided = pl.Series(task.column, labels, dtype=pl.String)
        own = table[task.column]  # lists are paths; other cells stay as they are
        kept = labels_of(task.table, task.column) if own.dtype.is_nested() else own.cast(pl.String)
        table = table.with_columns(decided.zip_with(pl.Series(codes != UNDECIDED), kept))
    frame, names = add_results(table, task.text, classes, predictions, labels, in_place, _origin(task, state))
    notes = [state.notes.get(row) for row in range(state.n_rows)]
    exported = frame[names.label]
    added = exported, check_of(exported), pl.Series(notes, dtype=pl.String)
    free = (unused_name(name, frame.columns) for name in (EXPORTED, EXPORTED_CHECK, NOTE))
    return frame.with_columns(column.alias(name) for column, name in zip(added, free, strict=True))


def _origin(task: ReviewTask, state: ReviewState) -> NDArray[np.int64]:
    """Numbers of the origins of all labels; of documents with the same text, one was drawn at random."""
    origin = np.where(state.decided == UNDECIDED, GIVEN, ANSWERED)
    drawn = np.flatnonzero((state.decided != UNDECIDED) & (state.how == RANDOM))
    _, first = np.unique(Documents(task.texts, None).group[drawn], return_index=True)
    origin[drawn[first]] = AT_RANDOM
    return origin


def _predictions(state: ReviewState, proposals: Proposals | None) -> tuple[list[str], Predictions]:
    """Classes, and what is proposed for every document; decisions replace it."""
    labels, n = state.labels(), state.n_rows
    classes = sorted({*state.classes, *(() if proposals is None else proposals.classes)})
    index = {name: k for k, name in enumerate(classes)}
    if proposals is None:
        nothing = np.full(n, -1, np.int64)
        second, confidence, best, unpriced = np.zeros(n, np.int64), np.zeros(n), nothing.copy(), nothing
        classes = classes or [""]
    else:
        number = np.array([index[name] for name in proposals.classes])
        best, second, confidence = number[proposals.label], number[proposals.runner_up], proposals.confidence
        unpriced = np.where(proposals.overruled, -2, best)
    decided = np.array([-1 if name is None else index[name] for name in labels], dtype=np.int64)
    best = np.where(decided >= 0, decided, best)
    return classes, Predictions(
        best, np.asarray(confidence, np.float64), second, np.where(decided >= 0, best, unpriced)
    )


def _write_tasks(task: ReviewTask, state: ReviewState, proposals: Proposals | None, target: str) -> list[str]:
    """Write Label Studio's import format: decisions as annotations, proposals as predictions."""
    classes, predictions = _predictions(state, proposals)
    names = [classes[k] if k >= 0 else "" for k in predictions.label.tolist()]
    frame = queue_frame(task.table.frame, np.arange(state.n_rows), names, predictions.confidence, task.text)
    tasks = label_studio_tasks(frame, task.text, classes)
    for one, name in zip(tasks, state.labels(), strict=True):
        result = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [name]}}
        one["annotations"] = [] if name is None else [{"result": [result], "was_cancelled": False}]
    interface = str(Path(target).with_suffix(".xml"))
    content = json.dumps(tasks, ensure_ascii=False, indent=1, allow_nan=False)
    for name, text in ((interface, label_studio_config(classes, task.text)), (target, content)):
        with atomic_write(name) as file:
            file.write(f"{text}\n".encode())
    return [target, interface]
