"""A folder for each class, a file for each document; folders within folders are the path of the class.

Nothing outside the folder is read, whatever links lie in it.
"""

import os
import re
from pathlib import Path

import polars as pl

from transduce.cli.formats.decoding import decode, read_bytes
from transduce.cli.formats.errors import fault, quoted
from transduce.cli.formats.table import Table

_UNLABELLED = re.compile(r"unlabell?ed(_.*)?|unsup", re.IGNORECASE | re.DOTALL)


def read_folder(source: str, name: str) -> Table:
    """Read all files below a folder, hidden ones apart, sorted by their path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for file in ("rec/hockey/1.txt", "unlabelled/2.txt"):
    ...         path = Path(root, file)
    ...         path.parent.mkdir(parents=True)
    ...         _ = path.write_text("words")
    ...     read_folder(root, root).frame.rows()
    [('rec/hockey/1.txt', 'words', 'rec/hockey'), ('unlabelled/2.txt', 'words', None)]
    """
    root = Path(source)
    files = sorted(path.relative_to(root).as_posix() for path in _files(root, name))
    if not files:
        raise fault(name, "there is no file in the folder. Give a folder for each class, and a file for each document.")
    columns = {
        "file": files,
        "text": [_text(root / file, file, name) for file in files],
        "label": [_label(file) for file in files],
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return Table(name, frame, "folder", text="text", label="label")


def _files(root: Path, name: str) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise fault(name, f"the folder {quoted(error.filename)} cannot be read ({error.strerror}).")

    found: list[Path] = []
    for folder, folders, files in os.walk(root, onerror=refuse):
        for link in (Path(folder, one) for one in folders if Path(folder, one).is_symlink()):
            _check_inside(link, root, name)  # links to folders inside are not followed: their files are read anyway
        folders[:] = [one for one in folders if not one.startswith(".")]
        found += [Path(folder, one) for one in files if not one.startswith(".")]
    return found


def _text(path: Path, file: str, name: str) -> str:
    _check_inside(path, path.parents[file.count("/")], name)
    if not path.is_file():
        raise fault(name, f"{quoted(file)} is not a plain file. Remove it.")
    try:
        file.encode()
        return decode(read_bytes(str(path), str(path)), str(path))
    except UnicodeEncodeError:
        raise fault(name, f"the name of the file {quoted(file)} is not UTF-8. Rename it.") from None


def _check_inside(path: Path, root: Path, name: str) -> None:
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        file = path.relative_to(root).as_posix()
        raise fault(
            name, f"{quoted(file)} is a link that leads out of the folder. Copy what it points to, or remove it."
        )


def _label(file: str) -> str | None:
    top, *rest = file.split("/")
    return None if not rest or _UNLABELLED.fullmatch(top) else file.rpartition("/")[0]
