"""Locks on files exclude each other, also between processes, and end with the process that holds them."""

import subprocess
import sys

import pytest

from transduce.io import file_lock
from transduce.io.file_lock import FileLock, LockedError

HOLD = """
import sys
from pathlib import Path
from transduce.io.file_lock import FileLock
FileLock(Path(sys.argv[1])).acquire()
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_lock_is_refused_until_the_first_is_released(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(LockedError, match="is locked by another process"):
        second.acquire()
    first.release()
    with second, pytest.raises(LockedError):
        first.acquire()
    first.acquire()
    first.release()
    first.release()


def test_the_lock_of_a_killed_process_is_free_again(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(LockedError):
            FileLock(tmp_path / "lock").acquire()
        holder.kill()
    with FileLock(tmp_path / "lock"):
        pass


def test_acquire_waits_for_the_lock(tmp_path, monkeypatch):
    first, naps = FileLock(tmp_path / "lock"), []
    first.acquire()
    monkeypatch.setattr(file_lock.time, "sleep", lambda seconds: (naps.append(seconds), first.release()))
    with FileLock(tmp_path / "lock", timeout=3600):
        assert len(naps) == 1


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "none" / "lock").acquire()
