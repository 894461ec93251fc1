"""Label Studio's JSON export: one task a row, its label from the last annotation that was not cancelled."""

from typing import Any

import polars as pl

from transduce.cli.formats.errors import fault, quoted
from transduce.cli.formats.json_lines import checked_frame, list_of_objects
from transduce.cli.formats.records import frame_of
from transduce.cli.formats.table import Table, free_name

Object = dict[str, Any]


def read_json(data: bytes, name: str, *, must_be_tasks: bool = False) -> Table:
    """Read a list of tasks, or a list of plain objects (as the JSON_MIN export is), whichever it is.

    >>> read_json(b'[{"text": "a", "label": "x"}]', "data.json").format
    'jsonl'
    """
    records = list_of_objects(data, name)
    if must_be_tasks or any(_is_annotated_task(record) for record in records):
        return _table_of_tasks(records, name)
    return Table(name, checked_frame(records, name), "jsonl")


def _is_annotated_task(record: Object) -> bool:
    return isinstance(record.get("data"), dict) and ("annotations" in record or "completions" in record)


def _table_of_tasks(tasks: list[Object], name: str) -> Table:
    frame = checked_frame([_data(task, name, row) for row, task in enumerate(tasks, start=1)], name)
    if any("id" in task for task in tasks):
        id_column = free_name("id", frame.columns)
        frame = frame.hstack(frame_of([{id_column: task.get("id")} for task in tasks]))
    label_column = free_name("label", frame.columns)
    labels = [_label(task, name, row) for row, task in enumerate(tasks, start=1)]
    frame = frame.with_columns(pl.Series(label_column, labels, dtype=pl.String))
    return Table(name, frame, "label-studio", label=label_column)


def _data(task: Object, name: str, row: int) -> Object:
    data = task.get("data")
    if isinstance(data, dict):
        return data
    raise fault(name, 'expected a Label Studio task with an object "data", but it has none. Export again.', row=row)


def _label(task: Object, name: str, row: int) -> str | None:
    """Return the one label of a task, null where nobody has chosen one."""
    labels = [label for item in _results(task, name, row) for label in _labels(item, name, row)]
    if len(labels) <= 1:
        return labels[0] if labels else None
    first = " and ".join(quoted(label) for label in labels[:2])
    raise fault(name, f"expected one choice a task, but found {len(labels)}: {first}. Keep one of them.", row=row)


def _results(task: Object, name: str, row: int) -> list[Object]:
    annotations = task.get("annotations", task.get("completions")) or []
    valid = [one for one in _objects(annotations, "annotations", name, row) if not one.get("was_cancelled")]
    return _objects(valid[-1].get("result") or [], "result", name, row) if valid else []


def _objects(value: Any, key: str, name: str, row: int) -> list[Object]:
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return value
    raise fault(name, f'expected a list of objects as "{key}", but found something else. Export as JSON.', row=row)


def _labels(item: Object, name: str, row: int) -> list[str]:
    """Return the choices of one result; results of other kinds (spans, ratings) have none."""
    value = item.get("value")
    if not isinstance(value, dict):
        return []
    choices = _texts(value.get("choices") or [], "choices", name, row)
    paths = value.get("taxonomy") or []
    if not isinstance(paths, list):
        raise fault(name, 'expected a list of paths as "taxonomy", but found something else.', row=row)
    return choices + ["/".join(_steps(path, name, row)) for path in paths]


def _steps(path: Any, name: str, row: int) -> list[str]:
    steps = _texts(path, "taxonomy", name, row)
    for step in steps:
        if "/" in step or not step.strip():
            what = f'a step of a taxonomy path must not be empty or hold "/", but one is {quoted(step)}. Rename it.'
            raise fault(name, what, row=row)
    return steps


def _texts(value: Any, key: str, name: str, row: int) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise fault(name, f'expected a list of texts in "{key}", but found something else. Export as JSON.', row=row)
