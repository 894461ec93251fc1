"""A file is written beside its place and then put there whole: a failure leaves neither half a file nor a lost one."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from transduce.cli.errors import OutputError


@contextmanager
def replacing(target: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `target` if all goes well, and is gone otherwise.

    A link stays a link: the file that it leads to is replaced. Permissions of a file that was there are kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/note.txt") as file:
    ...         _ = file.write(b"tea")
    ...     os.listdir(folder), Path(folder, "note.txt").read_text()
    (['note.txt'], 'tea')
    """
    path = Path(os.path.realpath(target))
    beside = path.with_name(f".transduce-{secrets.token_hex(6)}.part")
    try:
        with open(beside, "xb") as file:
            yield file
        if path.exists():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except OSError as error:
        raise OutputError(
            f"{target} cannot be written ({error.strerror or error}); make room, or name another place."
        ) from error
    finally:  # Ctrl-C too
        beside.unlink(missing_ok=True)
