"""What a review reads as fuzz targets: its log and project folder, answers, exported files, and events of the page."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.target import TARGETS, Read, joined, split, target
from transduce.cli.formats import read_table
from transduce.cli.main import cli
from transduce.reviewing.documents import Documents
from transduce.reviewing.log import LOG_NAME, DecisionLog, read_events
from transduce.reviewing.session import Session
from transduce.reviewing.state import ReviewState, replay

TEXTS = ["green tea", "black\ntea", "an espresso", ""]
GIVEN = ["tea", None, None, None]
EVENTS: list[Mapping[str, Any]] = [
    {"op": "add_class", "name": "coffee", "id": "a"},
    {"op": "decide", "rows": [2], "label": "coffee", "how": "queue", "id": "b"},
    {"op": "decide", "rows": [1, 3], "label": "tea", "how": "list", "id": "c"},
    {"op": "note", "row": 1, "text": "why?", "id": "d"},
    {"op": "undo"},
    {"op": "sizes", "sizes": {"tea": "20%:60%"}, "id": "e"},
    {"op": "rename_class", "name": "tea", "to": "drinks/tea", "id": "f"},
    {"op": "merge_class", "name": "coffee", "into": "drinks/tea", "id": "g"},
]
CSV = b'text,label\n"green tea",tea\n"black\ntea",\nan espresso,\n,\n'
PROJECT = ("docs.csv", "docs.csv.review/decisions.jsonl")
OUT = "out.csv"


def _log() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with DecisionLog(Path(folder), TEXTS) as log:
            for event in EVENTS:
                log.append(event)
        return Path(folder, LOG_NAME).read_bytes()


def _first_logs() -> bytes:
    """A log of the first version, whose lines have no checksum."""
    lines = [json.loads(line) for line in _log().splitlines()]
    header = {**lines[0], "version": 1}
    events = [{key: value for key, value in line.items() if key != "crc"} for line in (header, *lines[1:])]
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@target("log", lambda: [_log()])
def _read_log(data: bytes, folder: Path) -> None:
    """What is read are the first decisions, as they were made, and the log can be continued."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / LOG_NAME).write_bytes(data)
    events = read_events(project, TEXTS)
    assert events == EVENTS[: len(events)], "a decision was altered"
    replay(len(TEXTS), GIVEN, events)
    with DecisionLog(project, TEXTS) as log:
        assert log.events == events
        log.append({"op": "skip", "rows": [0]})
    assert read_events(project, TEXTS) == [*events, {"op": "skip", "rows": [0]}]


@target("log-1", lambda: [_first_logs()])
def _read_first_log(data: bytes, folder: Path) -> None:
    """Lines without checksum may say something else, which is a state all the same."""
    (folder / LOG_NAME).write_bytes(data)
    _check(replay(len(TEXTS), GIVEN, read_events(folder, TEXTS)))


def _check(state: ReviewState) -> None:
    assert len(state.labels()) == state.n_rows
    assert set(filter(None, state.labels())) <= set(state.classes)


@target("project", lambda: [joined([CSV, _log()]), joined([CSV, _first_logs()])], share=0.25)
def _export(data: bytes, folder: Path) -> None:
    """The exported file has all cells of the documents."""
    split(data, folder, PROJECT)
    _run("export", str(folder / PROJECT[0]), "-o", str(folder / OUT), "--decisions-only", "--keep-formulas", "--quiet")
    documents, exported = (read_table(str(folder / name)).frame for name in (PROJECT[0], OUT))
    for name in documents.columns:
        assert name.lower() == "label" or exported[name].to_list() == documents[name].to_list()


def _run(*arguments: str) -> None:
    cli.main(list(arguments), prog_name="transduce", standalone_mode=False)


def _answers(suffix: str) -> Read:
    """Answers of a person, to documents with a review."""

    def read(data: bytes, folder: Path) -> None:
        split(joined([CSV, _log_of_target()]), folder, PROJECT)
        (folder / f"answers.{suffix}").write_bytes(data)
        command = ("export", str(folder / PROJECT[0]), "-o", str(folder / OUT), "--decisions-only", "--keep-formulas")
        _run(*command, "--answers", str(folder / f"answers.{suffix}"), "--quiet")
        exported = read_table(str(folder / OUT)).frame
        assert exported["text"].to_list() == ["green tea", "black\ntea", "an espresso", ""]

    return read


def _log_of_target() -> bytes:
    return TARGETS["log"].seeds[0]


QUEUE = b'row,label,suggested,confidence,text\n3,tea,tea,0.5,an espresso\n2,,tea,0.4,"black\ntea"\n'
JSON_QUEUE = b'{"row": 3, "label": "tea", "text": "an espresso"}\n{"row": 2, "label": null, "text": "black\\ntea"}\n'
STUDIO = json.dumps(
    [
        {
            "id": 7,
            "data": {"row": 3, "text": "an espresso"},
            "annotations": [{"result": [{"value": {"choices": ["tea"]}}]}],
        }
    ]
).encode()


def _exported() -> list[bytes]:
    """A queue, and the file that `export` itself writes."""
    with tempfile.TemporaryDirectory() as folder:
        split(joined([CSV, _log()]), Path(folder), PROJECT)
        _run("export", f"{folder}/{PROJECT[0]}", "-o", f"{folder}/{OUT}", "--decisions-only", "--quiet")
        return [QUEUE, Path(folder, OUT).read_bytes()]


target("answers.csv", _exported, share=0.25)(_answers("csv"))
target("answers.jsonl", [JSON_QUEUE], share=0.25)(_answers("jsonl"))
target("answers.json", [STUDIO], share=0.25)(_answers("json"))


@target("events", lambda: [json.dumps(event).encode() for event in EVENTS])
def _submit(data: bytes, folder: Path) -> None:
    """An event of the page changes the state and the log alike, or neither."""
    from transduce.io.strict_json import JsonError, loads

    try:
        event = loads(data)
    except JsonError:
        return
    if not isinstance(event, dict):
        return
    with tempfile.TemporaryDirectory(dir=folder) as project:
        session = Session(Documents(TEXTS, np.eye(4)), DecisionLog(Path(project), TEXTS), GIVEN, fits=False)
        try:
            session.submit([{"op": "add_class", "name": "coffee"}])
            session.submit([event])
        finally:
            session.close()
            again = replay(len(TEXTS), GIVEN, read_events(Path(project), TEXTS))
            assert again.labels() == session.state.labels(), "the log says something else"
