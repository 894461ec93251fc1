"""Label Studio's JSON export: one task per row, labelled by its last annotation that was not cancelled."""

from typing import Any

import polars as pl

from transduce.cli.formats.errors import FileError, quoted
from transduce.cli.formats.json_lines import list_of_objects, non_empty_frame
from transduce.cli.formats.records import frame_of
from transduce.cli.formats.table import Table, unused_name

Object = dict[str, Any]


def read_json(data: bytes, name: str, *, must_be_tasks: bool = False) -> Table:
    """Read a list of tasks, or a list of plain objects (such as the JSON_MIN export).

    >>> read_json(b'[{"text": "a", "label": "x"}]', "data.json").format
    'jsonl'
    """
    records = list_of_objects(data, name)
    if must_be_tasks or any(_is_annotated_task(record) for record in records):
        return _table_of_tasks(records, name)
    return Table(name, non_empty_frame(records, name), "jsonl")


def _is_annotated_task(record: Object) -> bool:
    return isinstance(record.get("data"), dict) and ("annotations" in record or "completions" in record)


def _table_of_tasks(tasks: list[Object], name: str) -> Table:
    rows = list(enumerate(tasks, start=1))
    frame = non_empty_frame([_data(task, name, row) for row, task in rows], name)
    if any("id" in task for task in tasks):
        id_column = unused_name("id", frame.columns)
        frame = frame.hstack(frame_of([{id_column: task.get("id")} for task in tasks]))
    label_column = unused_name("label", frame.columns)
    labels = [_label(task, name, row) for row, task in rows]
    frame = frame.with_columns(pl.Series(label_column, labels, dtype=pl.String))
    return Table(name, frame, "label-studio", label=label_column)


def _data(task: Object, name: str, row: int) -> Object:
    data = task.get("data")
    if isinstance(data, dict):
        return data
    problem = 'expected a Label Studio task with an object "data", but it has none. Export the tasks again.'
    raise FileError(name, problem, row=row)


def _label(task: Object, name: str, row: int) -> str | None:
    """Return the label of a task, None if nobody has chosen one."""
    labels = [label for item in _results(task, name, row) for label in _labels(item, name, row)]
    if len(labels) <= 1:
        return labels[0] if labels else None
    chosen = " and ".join(quoted(label) for label in labels[:2])
    raise FileError(name, f"expected one choice per task, but found {len(labels)}: {chosen}. Keep one.", row=row)


def _results(task: Object, name: str, row: int) -> list[Object]:
    annotations = task.get("annotations", task.get("completions")) or []
    valid = [one for one in _list_of(dict, annotations, "annotations", name, row) if not one.get("was_cancelled")]
    return _list_of(dict, valid[-1].get("result") or [], "result", name, row) if valid else []


def _labels(item: Object, name: str, row: int) -> list[str]:
    """Return the choices of one result; results of other kinds (spans, ratings) have none."""
    value = item.get("value")
    if not isinstance(value, dict):
        return []
    choices = _list_of(str, value.get("choices") or [], "choices", name, row)
    paths = _list_of(list, value.get("taxonomy") or [], "taxonomy", name, row)
    return choices + [_path(path, name, row) for path in paths]


def _path(parts: list[Any], name: str, row: int) -> str:
    for part in _list_of(str, parts, "taxonomy", name, row):
        if "/" in part or not part.strip():
            problem = (
                f'a taxonomy path has the part {quoted(part)}. Rename it: a part must not be empty or contain "/".'
            )
            raise FileError(name, problem, row=row)
    return "/".join(parts)


_ITEMS: dict[type, str] = {dict: "objects", str: "texts", list: "paths"}


def _list_of(kind: type, value: Any, key: str, name: str, row: int) -> list[Any]:
    if isinstance(value, list) and all(isinstance(one, kind) for one in value):
        return value
    problem = f'expected a list of {_ITEMS[kind]} in "{key}", but found something else. Export as JSON again.'
    raise FileError(name, problem, row=row)
