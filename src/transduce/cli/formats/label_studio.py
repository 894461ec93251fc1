"""Label Studio's JSON export: one task per row, labelled by its last annotation that was not cancelled."""

from typing import Any

import polars as pl

from transduce.cli.formats.decoding import expansion_limit
from transduce.cli.formats.errors import ContentError, map_rows, quoted
from transduce.cli.formats.json_lines import frame_of, list_of_objects
from transduce.cli.formats.table import Table, unused_name

Object = dict[str, Any]


def read_json(data: bytes, name: str, limit: int | None = None, *, must_be_tasks: bool = False) -> Table:
    """Read a list of tasks, or a list of plain objects (such as the JSON_MIN export); `limit` is as in `frame_of`."""
    records, limit = list_of_objects(data), expansion_limit(len(data)) if limit is None else limit
    if not must_be_tasks and not any(map(_is_annotated_task, records)):
        return Table(name, frame_of(records, limit), "jsonl")
    frame = frame_of(map_rows(_data, records), limit)
    if any("id" in task for task in records):
        id_column = unused_name("id", frame.columns)
        frame = frame.hstack(frame_of([{id_column: task.get("id")} for task in records]))
    label_column = unused_name("label", frame.columns)
    frame = frame.with_columns(pl.Series(label_column, map_rows(_label, records), dtype=pl.String))
    return Table(name, frame, "label-studio", label=label_column)


def _is_annotated_task(record: Object) -> bool:
    return isinstance(record.get("data"), dict) and ("annotations" in record or "completions" in record)


def _data(task: Object) -> Object:
    data = task.get("data")
    if isinstance(data, dict):
        return data
    raise ContentError('expected a Label Studio task with an object "data", but it has none. Export the tasks again.')


def _label(task: Object) -> str | None:
    """Return the label of a task, None if nobody has chosen one."""
    annotations = _list_of(dict, task.get("annotations", task.get("completions")), "annotations")
    valid = [one for one in annotations if not one.get("was_cancelled")]
    results = _list_of(dict, valid[-1].get("result"), "result") if valid else []
    labels = [label for item in results for label in _labels(item)]
    if len(labels) > 1:
        chosen = " and ".join(quoted(label) for label in labels[:2])
        raise ContentError(f"expected one choice per task, but found {len(labels)}: {chosen}. Keep one.")
    return labels[0] if labels else None


def _labels(item: Object) -> list[str]:
    """Return the choices of one result; results of other kinds (spans, ratings) have none."""
    value = item.get("value")
    if not isinstance(value, dict):
        return []
    choices = _list_of(str, value.get("choices"), "choices")
    return choices + [_path(path) for path in _list_of(list, value.get("taxonomy"), "taxonomy")]


def _path(parts: list[Any]) -> str:
    for part in _list_of(str, parts, "taxonomy"):
        if "/" in part or not part.strip():
            advice = 'Rename it: a part must not be empty or contain "/".'
            raise ContentError(f"a taxonomy path has the part {quoted(part)}. {advice}")
    return "/".join(parts)


def _list_of(kind: type, value: Any, key: str) -> list[Any]:
    """Check that a value is a list of one kind, or empty."""
    if not value or (isinstance(value, list) and all(isinstance(one, kind) for one in value)):
        return value or []
    items = "objects" if kind is dict else "texts" if kind is str else "paths"
    raise ContentError(f'expected a list of {items} in "{key}", but found something else. Export as JSON again.')
