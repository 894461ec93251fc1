"""Atomic writes: a file is written under a temporary name and then renamed, so that it is complete or not there."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


class WriteError(OSError):
    """A file could not be written: `path` is the file, `reason` what the operating system reported."""

    def __init__(self, path: str | Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.path = Path(path)
        self.reason = error.strerror or str(error)

    def __str__(self) -> str:
        return f"{self.path} cannot be written ({self.reason}). Free some space, or write to another place."


@contextmanager
def atomic_write(target: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `target` when the block ends, and is removed if it fails.

    A symbolic link stays one: the file that it points to is replaced. An existing file keeps its permissions; what is
    not a plain file, such as a pipe or a device, is never replaced. The content is on the disk before the file is
    renamed, and the new name before the block ends. Raises `WriteError` where writing fails.
    """
    path = Path(os.path.realpath(target))
    temporary = path.with_name(f".transduce-{secrets.token_hex(6)}.part")
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a plain file")
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(target, error) from error
    finally:  # also after KeyboardInterrupt
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Put new names in a folder on the disk; not every system can (Windows, some network shares)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
