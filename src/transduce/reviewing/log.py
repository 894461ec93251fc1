"""The log of a review: JSON Lines in a project folder, only ever appended to, on the disk before `append` returns.

The first line says which documents the log belongs to. A line without its line break was being written when the process
ended; it was never reported as saved, and is removed when the log is opened again. Every line ends with a checksum of
itself and of all lines before it, so that a line that was changed, removed or moved is found. Logs of version 1 have no
checksums; lines that are appended to them have.
"""

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Self
from zlib import crc32

from transduce.errors import InputError
from transduce.io.atomic_write import sync_folder
from transduce.io.file_lock import FileLock, LockedError

Event = Mapping[str, Any]
LOG_NAME, LOCK_NAME, VERSION = "decisions.jsonl", "review.lock", 2
_CHECKSUM = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n\Z')


class SaveError(OSError):
    """An event could not be saved; the log is as it was before."""


def digest_texts(texts: Sequence[str]) -> str:
    """Identify documents by their texts and the order of these."""
    found = sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def read_events(folder: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Read the events of a review of these documents, without opening the log for writing; none if there is no log."""
    path = folder / LOG_NAME
    data = path.read_bytes() if path.exists() else b""
    return _parse(data[: data.rfind(b"\n") + 1], path, texts)


class DecisionLog:
    """Log of decisions that one process may append to.

    Parameters
    ----------
    folder : Path
        Project folder; it is made if there is none.
    texts : sequence of str
        Documents. A log of other documents is refused.

    Attributes
    ----------
    events : list of dict
        Events that were in the log when it was opened.
    """

    def __init__(self, folder: Path, texts: Sequence[str]) -> None:
        new = [each for each in (folder, *folder.parents) if not each.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = "is a file" if folder.exists() else f"cannot be made ({error.strerror})"
            raise InputError(f"the folder of decisions {folder} {problem}. Name another folder.") from None
        for each in new:
            sync_folder(each.parent)
        self.path = folder / LOG_NAME
        self._lock = FileLock(folder / LOCK_NAME)
        try:
            self._lock.acquire()
        except LockedError:
            raise InputError(f"{folder} is open in another review. Close that one, or go on in its browser.") from None
        self._file, self._is_clean = -1, True
        self._size, self._crc = 0, 0
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            self.events = self._recover(texts)
        except BaseException:
            self.close()
            raise

    def append(self, event: Event) -> None:
        """Append an event; when this returns, it is on the disk."""
        line = _with_checksum(event, self._crc)
        try:
            if not self._is_clean:
                self._truncate()
            self._write(line)
        except OSError as error:
            self._is_clean = False
            with suppress(OSError):  # else before the next event
                self._truncate()
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = "Free some space." if is_full else "Check that its folder is there and that you may write to it."
            problem = f"{self.path} cannot be written ({error.strerror or error})"
            raise SaveError(error.errno, f"Not saved: {problem}. {advice}") from None
        self._size, self._crc = self._size + len(line), crc32(line, self._crc)

    def close(self) -> None:
        """Let other processes open the log."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _recover(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Read all complete lines, remove an incomplete one, and start an empty log with its header."""
        data = self.path.read_bytes()
        self._size = data.rfind(b"\n") + 1
        self._crc = crc32(data[: self._size])
        events = _parse(data[: self._size], self.path, texts)
        if self._size < len(data):
            self._truncate()
        os.lseek(self._file, 0, os.SEEK_END)
        if not self._size:
            self.append({"op": "documents", "version": VERSION, "n": len(texts), "digest": digest_texts(texts)})
            sync_folder(self.path.parent)
        return events

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)

    def _truncate(self) -> None:
        os.ftruncate(self._file, self._size)
        os.lseek(self._file, self._size, os.SEEK_SET)
        self._is_clean = True


def _with_checksum(event: Event, before: int) -> bytes:
    """The line of an event; `before` is the checksum of all lines before it."""
    body = json.dumps(event, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()[:-1]
    return body + b',"crc":"%08x"}\n' % crc32(body, before)


def _parse(data: bytes, path: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    events = list(_lines(data, path))
    if not events:
        return []
    header = events[0]
    if header.get("op") != "documents" or header.get("version") not in (1, VERSION):
        raise InputError(f"{path} is not a log of decisions of this version. Name another folder with --project.")
    if header.get("digest") != digest_texts(texts):
        raise InputError(
            f"{path} belongs to other documents: {header.get('n')} texts, or in another order. Restore the file, or "
            "name another folder with --project."
        )
    return events[1:]


def _lines(data: bytes, path: Path) -> Iterator[dict[str, Any]]:
    """Parse the lines; one whose checksum is wrong, or missing where others have one, is an error."""
    before, is_checked = 0, False
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        event, checksum = _event(line), _CHECKSUM.search(line)
        is_checked |= checksum is not None or (number == 1 and event is not None and event.get("version") == VERSION)
        is_whole = not is_checked or (checksum and int(checksum[1], 16) == crc32(line[: checksum.start()], before))
        if event is None or not is_whole:
            raise InputError(f"line {number} of {path} is not a decision as it was saved. Restore the file.")
        if checksum is not None:
            del event["crc"]
        before = crc32(line, before)
        yield event


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("op"), str) else None
