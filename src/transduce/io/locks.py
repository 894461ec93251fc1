"""A lock that one process has at a time: a file with its number, which nobody minds once that process is dead."""

import os
import secrets
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 10.0
"""Seconds in which a process that has made its file will have put its number into it."""

_held: set[str] = set()
_guard = threading.Lock()


@dataclass(frozen=True)
class Lock:
    """A lock that was taken.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock.take(Path(folder, "lock"))
    ...     Lock.take(Path(folder, "lock")) is None
    ...     lock.release()
    ...     Lock.take(Path(folder, "lock")) is None
    True
    False
    """

    path: Path

    @classmethod
    def take(cls, path: Path) -> "Lock | None":
        """The lock at this place, or None where another fit has it, in this process or in one that lives."""
        path = path.resolve()
        with _guard:
            for _ in range(3):  # others may take it, or give it back, in between
                try:
                    place = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                except FileExistsError:
                    if not _remove_if_stale(path):
                        return None
                    continue
                try:
                    os.write(place, f"{os.getpid()} {socket.gethostname()}".encode())
                except BaseException:
                    os.close(place)
                    path.unlink(missing_ok=True)
                    raise
                os.close(place)
                _held.add(str(path))
                return cls(path)
        return None

    def release(self) -> None:
        """Give it back; twice is no harm."""
        with _guard:
            if str(self.path) in _held:
                _held.discard(str(self.path))
                self.path.unlink(missing_ok=True)


def _remove_if_stale(path: Path) -> bool:
    """Whether nobody alive has the lock; then it is gone.

    It is moved aside before it goes, so that of two who find it stale none can remove the lock of the other.
    """
    found = _read(path)
    if found is None:
        return True
    if not _is_stale(path, found):
        return False
    aside = path.with_suffix(f".{secrets.token_hex(6)}.part")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return True
    if _read(aside) != found:  # another one has taken it over since
        os.rename(aside, path)
        return False
    aside.unlink(missing_ok=True)
    return True


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _is_stale(path: Path, found: str) -> bool:
    number, _, host = found.partition(" ")
    if not number.isdecimal():
        try:
            return time.time() - path.stat().st_mtime > PATIENCE
        except FileNotFoundError:
            return True
    if host != socket.gethostname():
        return False
    if int(number) == os.getpid():  # an earlier process may have had this number
        return str(path) not in _held
    return not is_alive(int(number))


def is_alive(number: int) -> bool:
    """Whether there is a process of this number.

    >>> is_alive(os.getpid())
    True
    """
    if number < 1:
        return False
    if sys.platform == "win32":
        import ctypes

        kernel, code = ctypes.windll.kernel32, ctypes.c_ulong()
        process = kernel.OpenProcess(0x1000, False, number)  # may only ask
        if not process:
            return False
        kernel.GetExitCodeProcess(process, ctypes.byref(code))
        kernel.CloseHandle(process)
        return code.value == 259  # still active
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
