"""What can happen to a process: it is killed or interrupted, or its disk, folder, network share or clock fails.

A moment is a time, or a number of operations on files: Python reports each before it happens (`sys.addaudithook`),
so that a fault can come between any two of them.
"""

import errno
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FILE_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.rmdir", "os.chmod", "os.listdir")
Fault = Callable[[Path, random.Random, int, float], None]
"""Prepares a fault in the process that will suffer it: folder, random numbers, file operations and seconds of a run."""


def at_file_operation(folder: Path, number: int, happen: Callable[[], None], *, forever: bool = False) -> None:
    """Let something happen before the operation with this number on files of a folder; `forever`, before all later."""
    seen, inside = 0, str(folder)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event in FILE_EVENTS and isinstance(arguments[0], str | Path) and str(arguments[0]).startswith(inside):
            seen += 1
            if seen == number or (forever and seen > number):
                happen()

    sys.addaudithook(watch)


def _signal_in_time(kind: signal.Signals) -> Fault:
    def prepare(folder: Path, rng: random.Random, n_operations: int, seconds: float) -> None:
        timer = threading.Timer(rng.uniform(0.0, 1.1 * seconds), os.kill, (os.getpid(), kind))
        timer.daemon = True
        timer.start()

    return prepare


def _signal_at_file(kind: signal.Signals) -> Fault:
    def prepare(folder: Path, rng: random.Random, n_operations: int, seconds: float) -> None:
        at_file_operation(folder, rng.randint(1, max(1, n_operations)), lambda: os.kill(os.getpid(), kind))

    return prepare


def _raise(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def _lost_share(folder: Path, rng: random.Random, n_operations: int, seconds: float) -> None:
    """From some operation on, the folder cannot be reached."""
    number = rng.choice((errno.ESTALE, errno.EIO, errno.ENOTCONN))
    at_file_operation(folder, rng.randint(1, max(1, n_operations)), _raise(number), forever=True)


def _full_disk(folder: Path, rng: random.Random, n_operations: int, seconds: float) -> None:
    """No file can become larger than so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(0, 5)),) * 2)


def _read_only(folder: Path, rng: random.Random, n_operations: int, seconds: float) -> None:
    """Files can be read, not written."""

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event not in FILE_EVENTS or not str(arguments[0]).startswith(str(folder)) or event == "os.listdir":
            return
        mode, flags = (arguments[1], arguments[2]) if event == "open" else ("w", 0)
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        is_written = set(mode) & set("wax+") if isinstance(mode, str) else isinstance(flags, int) and flags & writes
        if is_written:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    sys.addaudithook(watch)


def _clock_backwards(folder: Path, rng: random.Random, n_operations: int, seconds: float) -> None:
    """Every look at the clock shows an earlier time."""
    now, step = time.time(), rng.uniform(0.1, 1e6)

    def earlier() -> float:
        nonlocal now
        now = max(0.0, now - step)
        return now

    time.time = earlier


SIGNALS: dict[str, Fault] = {
    "kill at a time": _signal_in_time(signal.SIGKILL),
    "kill at a file": _signal_at_file(signal.SIGKILL),
    "interrupt at a time": _signal_in_time(signal.SIGINT),
    "interrupt at a file": _signal_at_file(signal.SIGINT),
}
FAULTS: dict[str, Fault] = {
    "lost share": _lost_share,
    "full disk": _full_disk,
    "read-only folder": _read_only,
    "clock backwards": _clock_backwards,
}
