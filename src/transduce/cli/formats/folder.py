"""A folder with one subfolder per class and one file per document; nested folders are the path of the class.

Symbolic links that lead out of the folder are refused.
"""

import os
import re
from pathlib import Path

import polars as pl

from transduce.cli.formats.decoding import decode, read_bytes
from transduce.cli.formats.errors import FileError, quoted
from transduce.cli.formats.table import Table

_UNLABELED = re.compile(r"unlabell?ed(_.*)?|unsup", re.IGNORECASE | re.DOTALL)


def read_folder(source: str) -> Table:
    """Read all files below a folder except hidden ones, sorted by path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for file in ("rec/hockey/1.txt", "unlabelled/2.txt"):
    ...         path = Path(root, file)
    ...         path.parent.mkdir(parents=True)
    ...         _ = path.write_text("words")
    ...     read_folder(root).frame.rows()
    [('rec/hockey/1.txt', 'words', 'rec/hockey'), ('unlabelled/2.txt', 'words', None)]
    """
    root = Path(source)
    files = sorted(path.relative_to(root).as_posix() for path in _files(root, source))
    if not files:
        raise FileError(source, "the folder has no files. Use one subfolder per class, and one file per document.")
    columns = {
        "file": files,
        "text": [_text(root, file, source) for file in files],
        "label": [_label(file) for file in files],
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return Table(source, frame, "folder", text="text", label="label")


def _files(root: Path, name: str) -> list[Path]:
    def refuse(error: OSError) -> None:
        problem = f"the folder {quoted(error.filename)} cannot be read ({error.strerror}). Check its permissions."
        raise FileError(name, problem)

    found: list[Path] = []
    for folder, folders, files in os.walk(root, onerror=refuse):
        for subfolder in folders:
            _check_inside(Path(folder, subfolder), root, name)  # os.walk does not follow links: each file is read once
        folders[:] = [one for one in folders if not one.startswith(".")]
        found += [Path(folder, one) for one in files if not one.startswith(".")]
    return found


def _text(root: Path, file: str, name: str) -> str:
    path = root / file
    _check_inside(path, root, name)
    if not path.is_file():
        raise FileError(name, f"{quoted(file)} is not a regular file. Remove it.")
    try:
        file.encode()
    except UnicodeEncodeError:
        raise FileError(name, f"the file name {quoted(file)} is not UTF-8. Rename the file.") from None
    return decode(read_bytes(str(path), str(path)), str(path))


def _check_inside(path: Path, root: Path, name: str) -> None:
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        file = quoted(path.relative_to(root).as_posix())
        raise FileError(name, f"{file} is a link to a place outside the folder. Copy its target, or remove it.")


def _label(file: str) -> str | None:
    top, *rest = file.split("/")
    return None if not rest or _UNLABELED.fullmatch(top) else file.rpartition("/")[0]
