"""JSON with one object per line, or one list of objects; errors name the line and row of the object."""

from typing import Any

import polars as pl

from transduce.cli.formats.decoding import decode
from transduce.cli.formats.errors import FileError
from transduce.cli.formats.records import frame_of
from transduce.io.strict_json import JsonError, parse_object

_BLANKS = " \t\r\n"


def read_json_lines(data: bytes, name: str) -> pl.DataFrame:
    r"""Read one object per line, skipping blank lines.

    >>> read_json_lines(b'{"text": "a"}\n\n{"text": "b", "label": "x"}\n', "data.jsonl").rows()
    [('a', None), ('b', 'x')]
    """
    records = [
        _object_on_line(content.strip(_BLANKS), name, line)
        for line, content in enumerate(decode(data, name).split("\n"), start=1)
        if content.strip(_BLANKS)
    ]
    return non_empty_frame(records, name)


def non_empty_frame(records: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Build the frame of at least one object with at least one key."""
    if not records:
        raise FileError(name, "there are no objects in it. Write one JSON object per document.")
    frame = frame_of(records)
    if frame.width == 0:
        raise FileError(name, "all objects are empty. Give each document its text under a key.", row=1)
    return frame


def _object_on_line(content: str, name: str, line: int) -> dict[str, Any]:
    try:
        value, end = parse_object(content)
    except JsonError as error:
        raise _invalid(error, name, line) from None
    if end < len(content):
        problem = "expected one JSON object, but there is more after it. Put each object on its own line."
        raise FileError(name, problem, line=line)
    return value


def _invalid(error: JsonError, name: str, line: int, row: int | None = None) -> FileError:
    advice = "Correct it there, or name the format with --format." if error.is_syntax else error.advice
    return FileError(name, f"expected a JSON object, but {error.problem}. {advice}", line=line, row=row)


def list_of_objects(data: bytes, name: str) -> list[dict[str, Any]]:
    """Read a list of objects one by one, so that an error has its line and row."""
    text = decode(data, name)
    at = _skip_blanks(text, 0)
    if not text.startswith("[", at):
        raise FileError(name, "expected a JSON list of objects, but found something else. Write [{...}, ...].", line=1)
    records: list[dict[str, Any]] = []
    at = _skip_blanks(text, at + 1)
    while not text.startswith("]", at):
        at = _skip_blanks(text, at + 1) if records else at
        try:
            record, at = parse_object(text, at)
        except JsonError as error:
            raise _invalid(error, name, _line(text, at), len(records) + 1) from None
        records.append(record)
        at = _skip_blanks(text, at)
        if not text.startswith((",", "]"), at):
            problem = 'expected "," or "]" after the object, but '
            problem += "found something else. Separate objects by commas." if at < len(text) else "the file ends."
            raise FileError(name, f'{problem} End the list with "]".', line=_line(text, at), row=len(records))
    at = _skip_blanks(text, at + 1)
    if at < len(text):
        raise FileError(name, "expected the end of the file after the list. Keep one list.", line=_line(text, at))
    return records


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
