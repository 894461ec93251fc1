"""A lock that one process at a time holds on a file; the operating system releases it when the process ends."""

import os
import sys
import time
from pathlib import Path
from typing import Self

_POLL_SECONDS = 0.05


class LockedError(OSError):
    """Somebody else held the lock for all of the time that was given."""


class FileLock:
    """Lock on a file, which is created if needed and stays when the lock is released.

    Two locks on the same file exclude each other, in one process as in two. One object is not to be acquired twice.

    Parameters
    ----------
    path : Path
        The file. Its content is never read.
    timeout : float, default 0
        How many seconds `acquire` waits for others to release the lock.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, FileLock(Path(folder, "lock")):
    ...     FileLock(Path(folder, "lock")).acquire()
    Traceback (most recent call last):
    transduce.io.file_lock.LockedError: ...
    """

    def __init__(self, path: Path, timeout: float = 0) -> None:
        self.path, self.timeout = path, timeout
        self._file = -1

    def acquire(self) -> None:
        """Take the lock; LockedError if somebody else has it until the time is over, OSError if the file is refused."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        end = time.monotonic() + self.timeout
        try:
            while not _try_lock(file):
                if time.monotonic() >= end:
                    raise LockedError(f"{self.path} is locked by another process")
                time.sleep(_POLL_SECONDS)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def release(self) -> None:
        """Release the lock, if it is held."""
        file, self._file = self._file, -1
        if file >= 0:
            _unlock(file)
            os.close(file)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *reason: object) -> None:
        self.release()


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> bool:
        """Lock the first byte, which need not exist, and return whether that worked."""
        os.lseek(file, 0, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        """Lock the file and return whether that worked."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
