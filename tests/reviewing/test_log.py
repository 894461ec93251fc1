"""The log of decisions: what was appended is there, also after a crash, on a full disk and beside a second process."""

import errno
import json
import os

import pytest

from transduce.errors import InputError
from transduce.reviewing.log import LOG_NAME, DecisionLog, SaveError, read_events

TEXTS = ["green tea", "an espresso"]
EVENTS = [{"op": "decide", "rows": [0], "label": "tea \u2028 \ud800"}, {"op": "undo"}]


def append_all(folder, events=EVENTS):
    with DecisionLog(folder, TEXTS) as log:
        for event in events:
            log.append(event)


def test_events_come_back_in_order(tmp_path):
    append_all(tmp_path / "project")
    append_all(tmp_path / "project", [{"op": "redo"}])
    with DecisionLog(tmp_path / "project", TEXTS) as log:
        assert log.events == [*EVENTS, {"op": "redo"}]
    assert read_events(tmp_path / "project", TEXTS) == [*EVENTS, {"op": "redo"}]


def test_every_beginning_of_a_log_is_readable(tmp_path):
    append_all(tmp_path)
    data = (tmp_path / LOG_NAME).read_bytes()
    for end in range(len(data) + 1):
        (tmp_path / LOG_NAME).write_bytes(data[:end])
        complete = data[:end].count(b"\n")
        assert read_events(tmp_path, TEXTS) == EVENTS[: max(complete - 1, 0)]
        append_all(tmp_path, [{"op": "redo"}])
        assert read_events(tmp_path, TEXTS) == [*EVENTS[: max(complete - 1, 0)], {"op": "redo"}]


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    write = os.write

    def fill_up(file, data):
        if len(data) > 4:
            return write(file, data[:4])
        raise OSError(errno.ENOSPC, "No space left on device")

    with DecisionLog(tmp_path, TEXTS) as log:
        log.append(EVENTS[0])
        before = log.path.read_bytes()
        monkeypatch.setattr(os, "write", fill_up)
        with pytest.raises(SaveError, match=r"Not saved.*No space left.*Free some space"):
            log.append(EVENTS[1])
        assert log.path.read_bytes() == before
        monkeypatch.undo()
        log.append(EVENTS[1])
    assert read_events(tmp_path, TEXTS) == EVENTS


def test_a_log_that_cannot_even_be_shortened_is_mended_before_the_next_event(tmp_path, monkeypatch):
    write, ftruncate = os.write, os.ftruncate

    def fail(file, _):
        raise OSError(errno.EIO, "Input/output error")

    with DecisionLog(tmp_path, TEXTS) as log:
        log.append(EVENTS[0])
        monkeypatch.setattr(os, "write", lambda file, data: (write(file, data[:4]), fail(file, data)))
        monkeypatch.setattr(os, "ftruncate", fail)
        for _ in range(2):
            with pytest.raises(SaveError, match=r"Not saved.*Input/output error.*Check that its folder"):
                log.append(EVENTS[1])
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(SaveError, match="Not saved"):  # never after half a line
            log.append(EVENTS[1])
        monkeypatch.setattr(os, "ftruncate", ftruncate)
        log.append(EVENTS[1])
    assert read_events(tmp_path, TEXTS) == EVENTS


def test_folders_above_a_new_project_are_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("transduce.reviewing.log.sync_folder", synced.append)
    DecisionLog(tmp_path / "a" / "b", TEXTS).close()
    assert set(synced) == {tmp_path, tmp_path / "a", tmp_path / "a" / "b"}


def test_append_syncs_before_it_returns(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync
    with DecisionLog(tmp_path, TEXTS) as log:
        monkeypatch.setattr(os, "fsync", lambda file: (fsync(file), synced.append(os.fstat(file).st_size)))
        log.append(EVENTS[0])
        assert synced == [log.path.stat().st_size]


def test_a_second_process_is_refused(tmp_path):
    with DecisionLog(tmp_path, TEXTS), pytest.raises(InputError, match="open in another review"):
        DecisionLog(tmp_path, TEXTS)
    DecisionLog(tmp_path, TEXTS).close()


@pytest.mark.parametrize(
    ("line", "problem"),
    [("[1]", "line 2"), ("{", "line 2"), ('{"op": "x"', "line 2")],
)
def test_a_damaged_line_is_an_error_that_names_it(tmp_path, line, problem):
    append_all(tmp_path, [])
    with open(tmp_path / LOG_NAME, "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=problem):
        DecisionLog(tmp_path, TEXTS)


def test_a_log_of_other_documents_is_refused(tmp_path):
    append_all(tmp_path)
    with pytest.raises(InputError, match="other documents: 2 texts"):
        DecisionLog(tmp_path, TEXTS[::-1])
    (tmp_path / LOG_NAME).write_text(json.dumps({"op": "decide"}) + "\n")
    with pytest.raises(InputError, match="not a log"):
        DecisionLog(tmp_path, TEXTS)


def test_a_changed_byte_is_found_or_cuts_the_log(tmp_path):
    append_all(tmp_path)
    data = (tmp_path / LOG_NAME).read_bytes()
    for place in range(len(data)):
        (tmp_path / LOG_NAME).write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            events = read_events(tmp_path, TEXTS)
        except InputError:
            continue
        assert events == EVENTS[: len(events)]


@pytest.mark.parametrize("lines", [[0, 2], [0, 2, 1], [0, 1, 1, 2]], ids=["removed", "moved", "repeated"])
def test_lines_that_are_not_in_their_place_are_found(tmp_path, lines):
    append_all(tmp_path)
    written = (tmp_path / LOG_NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / LOG_NAME).write_bytes(b"".join(written[place] for place in lines))
    with pytest.raises(InputError, match="is not a decision as it was saved"):
        read_events(tmp_path, TEXTS)


def test_a_log_without_checksums_is_continued_with_them(tmp_path):
    append_all(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / LOG_NAME).read_bytes().splitlines()]
    old = [{**line, "version": 1} if line["op"] == "documents" else line for line in lines]
    without = [{key: value for key, value in line.items() if key != "crc"} for line in old]
    (tmp_path / LOG_NAME).write_text("".join(f"{json.dumps(line)}\n" for line in without))
    append_all(tmp_path, [{"op": "redo"}])
    assert read_events(tmp_path, TEXTS) == [*EVENTS, {"op": "redo"}]
    data = (tmp_path / LOG_NAME).read_bytes()
    (tmp_path / LOG_NAME).write_bytes(data.replace(b'"rows": [0]', b'"rows": [1]'))
    with pytest.raises(InputError, match="line 4"):
        read_events(tmp_path, TEXTS)
