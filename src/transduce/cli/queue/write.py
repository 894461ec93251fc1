"""Write a queue, as a table for a spreadsheet or as tasks for Label Studio."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from transduce.cli.errors import InputError
from transduce.cli.formats import Dialect, Table, labels_of, read_table, texts_of, write_table
from transduce.cli.queue.answers import CONFIDENCE, LABEL, ROW, SUGGESTED
from transduce.io.atomic_write import atomic_write
from transduce.suggest import number_of

_PLAIN = Dialect()
_INTERFACE = "<View>\n  <Text name="
"""How a labelling interface begins."""
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def check_names(text_columns: Sequence[str], classes: Sequence[str], target: str) -> None:
    """Check that the target can hold these text columns and classes."""
    for name in text_columns:
        if name in (ROW, LABEL, SUGGESTED, CONFIDENCE):
            raise InputError(f"the text column {name!r} has the name of a column of the queue. Rename it in the file.")
    interface = interface_of(target)
    if interface is not None:
        _check_interface(interface, target)
    for name in classes if interface is not None else ():
        if _NOT_IN_XML.search(name):
            raise InputError(f"class {name!r} has a character that Label Studio's XML cannot hold. Rename the class.")


def _check_interface(interface: str, target: str) -> None:
    """Check that no other file is in the place of the labelling interface; an earlier interface may be replaced."""
    path = Path(interface)
    if path.exists() and not (path.is_file() and path.read_bytes()[: len(_INTERFACE)] == _INTERFACE.encode()):
        raise InputError(f"{interface}, which belongs to {target}, would replace another file. Name another output.")


def check_unanswered(target: str) -> None:
    """Check that the target is not a queue that a person has answered; any other file may be replaced."""
    if not Path(target).is_file():
        return
    try:
        table = read_table(target)
    except InputError:
        return
    if not {ROW, LABEL} <= set(table.frame.columns):
        return
    n_answers = labels_of(table, LABEL).count()
    if n_answers:
        raise InputError(
            f"{target} has {number_of(n_answers, 'answer')}, which would be lost. Write to another file, and use the "
            f"answers with --answers {target}."
        )


def queue_frame(
    documents: pl.DataFrame,
    rows: ArrayLike,
    suggestions: Sequence[str],
    confidences: ArrayLike,
    text_columns: Sequence[str],
) -> pl.DataFrame:
    """The table to fill in: row (from 1), an empty label, suggested label, confidence, then the text.

    `rows` are positions in the documents (from 0); suggestions and confidences are in the same order.
    """
    index = np.asarray(rows, dtype=np.int64)
    head = {
        ROW: pl.Series(index + 1, dtype=pl.Int64),
        LABEL: pl.Series([""] * len(index), dtype=pl.String),
        SUGGESTED: pl.Series(list(suggestions), dtype=pl.String),
        CONFIDENCE: pl.Series(np.round(np.asarray(confidences, dtype=np.float64), 4), dtype=pl.Float64),
    }
    return pl.DataFrame(head).hstack([documents[name][index] for name in text_columns])


def label_studio_tasks(
    frame: pl.DataFrame, text_columns: Sequence[str], classes: Sequence[str]
) -> list[dict[str, Any]]:
    """The queue in Label Studio's import format, with each suggestion as a prediction.

    >>> frame = queue_frame(pl.DataFrame({"text": ["a"]}), [0], ["tea"], [0.6], ["text"])
    >>> task = label_studio_tasks(frame, ["text"], ["coffee", "tea"])[0]
    >>> task["data"], task["predictions"][0]["result"][0]["value"]
    ({'row': 1, 'text': 'a'}, {'choices': ['tea']})
    """
    table = Table("the queue", frame, "")
    texts = {name: texts_of(table, [name]).to_list() for name in text_columns}
    shown = {_variable(name): column for name, column in texts.items()} | texts
    tasks = []
    for place, (row, suggested, confidence) in enumerate(frame.select(ROW, SUGGESTED, CONFIDENCE).iter_rows()):
        task: dict[str, Any] = {"data": {ROW: row, **{name: column[place] for name, column in shown.items()}}}
        if suggested in classes:
            result = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [suggested]}}
            task["predictions"] = [{"model_version": "transduce", "score": confidence, "result": [result]}]
        tasks.append(task)
    return tasks


def _variable(name: str) -> str:
    """A key that Label Studio can refer to: its variables have letters, digits and "_" only."""
    return name if re.fullmatch(r"[A-Za-z0-9_]+", name) else "text_" + name.encode("utf-8").hex()


def label_studio_config(classes: Iterable[str], text_columns: Sequence[str]) -> str:
    """The labelling interface as XML: the texts above one choice of a class.

    >>> print(label_studio_config(["R&D", "tea"], ["body"]))
    <View>
      <Text name="text" value="$body"/>
      <Choices name="label" toName="text" choice="single" showInline="true">
        <Choice value="R&amp;D"/>
        <Choice value="tea"/>
      </Choices>
    </View>
    """
    columns = list(text_columns) or [ROW]
    names = ["text", *(f"text_{k}" for k in range(2, len(columns) + 1))]
    lines = [f'  <Text name="{n}" value="${_variable(c)}"/>' for n, c in zip(names, columns, strict=True)]
    lines.append('  <Choices name="label" toName="text" choice="single" showInline="true">')
    lines += [f"    <Choice value={quoteattr(name)}/>" for name in classes]
    return "\n".join(["<View>", *lines, "  </Choices>", "</View>"])


def interface_of(target: str) -> str | None:
    """The file of the labelling interface: "ask.xml" beside "ask.json" for Label Studio, None for a table."""
    path = Path(target)
    return str(path.with_suffix(".xml")) if path.suffix.lower() == ".json" else None


def write_queue(
    frame: pl.DataFrame, target: str, classes: Sequence[str], text_columns: Sequence[str], dialect: Dialect = _PLAIN
) -> list[str]:
    """Write the queue as a table, or as Label Studio tasks with their interface, and return the names written."""
    check_names(text_columns, classes, target)
    interface = interface_of(target)
    if interface is None:
        write_table(frame, target, dialect=dialect, class_columns=(LABEL, SUGGESTED))
        return [target]
    config = label_studio_config(classes, text_columns)
    tasks = json.dumps(label_studio_tasks(frame, text_columns, classes), ensure_ascii=False, indent=1, allow_nan=False)
    for name, content in ((interface, config), (target, tasks)):
        with atomic_write(name) as file:
            file.write(f"{content}\n".encode())
    return [target, interface]
