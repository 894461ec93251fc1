"""Atomic writes: a file is written under a temporary name and then renamed, so that it is complete or not there."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
def atomic_write(target: str | Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `target` when the block ends, and is removed if it fails.

    A symbolic link stays one: the file that it points to is replaced. An existing file keeps its permissions. With
    `sync`, the content is on the disk before the file is renamed. Raises `WriteError` where writing fails.
    """
    path = Path(os.path.realpath(target))
    temporary = path.with_name(f".transduce-{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise WriteError(target, error) from error
    finally:  # also after KeyboardInterrupt
        temporary.unlink(missing_ok=True)
