"""JSON: one object a line, or one list of objects; either way a list of objects and where each of them begins."""

from typing import Any

import polars as pl

from transduce.cli.formats.decoding import decode
from transduce.cli.formats.errors import fault
from transduce.cli.formats.records import frame_of
from transduce.io.strict_json import JsonError, parse_object

_BLANKS = " \t\r\n"


def read_json_lines(data: bytes, name: str) -> pl.DataFrame:
    r"""Read one object a line; blank lines are skipped.

    >>> read_json_lines(b'{"text": "a"}\n\n{"text": "b", "label": "x"}\n', "data.jsonl").rows()
    [('a', None), ('b', 'x')]
    """
    records = [
        _object_on_line(content, name, line)
        for line, content in enumerate(decode(data, name).split("\n"), start=1)
        if content.strip(_BLANKS)
    ]
    return checked_frame(records, name)


def checked_frame(records: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Build the frame of at least one object with at least one key."""
    if not records:
        raise fault(name, "there is no object in it. Give one JSON object a document.")
    frame = frame_of(records)
    if frame.width == 0:
        raise fault(name, "all objects are empty, row 1 too. Give each document its text under a key.")
    return frame


def _object_on_line(content: str, name: str, line: int) -> dict[str, Any]:
    content = content.strip(_BLANKS)
    try:
        value, end = parse_object(content)
    except JsonError as refused:
        raise fault(name, f"expected one JSON object, but {_described(refused)}", line=line) from None
    if end < len(content):
        what = "expected one JSON object, but there is more after it. Put each object on a line of its own."
        raise fault(name, what, line=line)
    return value


def list_of_objects(data: bytes, name: str) -> list[dict[str, Any]]:
    """Read a list of objects, item by item, so that a fault has its line and row."""
    text = decode(data, name)
    at = _after_blanks(text, 0)
    if text[at : at + 1] != "[":
        raise fault(name, "expected a JSON list of objects, but it begins otherwise. Write [{...}, ...].", line=1)
    records: list[dict[str, Any]] = []
    at = _after_blanks(text, at + 1)
    closed = text[at : at + 1] == "]"
    while not closed:
        record, at = _item(text, at, name, len(records) + 1)
        records.append(record)
        at = _after_blanks(text, at)
        closed = text[at : at + 1] == "]"
        if not closed and text[at : at + 1] != ",":
            what = "something else. Put commas between objects" if at < len(text) else "the file ends. Fetch it whole"
            what = f'expected "," or "]" after the object, but {what}, and end the list with "]".'
            raise fault(name, what, line=_line(text, at), row=len(records))
        at = at if closed else _after_blanks(text, at + 1)
    if _after_blanks(text, at + 1) < len(text):
        what = "expected the end of the file after the list, but there is more. Keep one list."
        raise fault(name, what, line=_line(text, _after_blanks(text, at + 1)))
    return records


def _item(text: str, at: int, name: str, row: int) -> tuple[dict[str, Any], int]:
    try:
        return parse_object(text, at)
    except JsonError as refused:
        raise fault(name, f"expected a JSON object, but {_described(refused)}", line=_line(text, at), row=row) from None


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _described(error: JsonError) -> str:
    advice = "Correct it there, or name the format with --format." if error.is_syntax else error.advice
    return f"{error.problem}. {advice}"
