"""A folder with one subfolder per class and one file per document; nested folders are the path of the class.

Symbolic links that lead out of the folder are refused.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from transduce.cli.formats.decoding import decode, read_bytes
from transduce.cli.formats.errors import ContentError, errors_in, quoted
from transduce.cli.formats.table import Table

_UNLABELED = re.compile(r"unlabell?ed(_.*)?|unsup", re.IGNORECASE | re.DOTALL)


def read_folder(source: str) -> Table:
    """Read all files below a folder except hidden ones, sorted by path."""
    root = Path(source)
    files = sorted(path.relative_to(root).as_posix() for path in _files(root))
    if not files:
        raise ContentError("the folder has no files. Use one subfolder per class, and one file per document.")
    rows = [(file, _text(root, file), _label(file)) for file in files]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("file", "text", "label"), pl.String), orient="row")
    return Table(source, frame, "folder", text="text", label="label")


def _files(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        problem = f"the folder {quoted(error.filename)} cannot be read ({error.strerror}). Check its permissions."
        raise ContentError(problem)

    for folder, folders, files in os.walk(root, onerror=refuse):
        for subfolder in folders:
            _check_inside(Path(folder, subfolder), root)  # os.walk does not follow links: each file is read once
        folders[:] = [one for one in folders if not one.startswith(".")]
        yield from (Path(folder, one) for one in files if not one.startswith("."))


def _text(root: Path, file: str) -> str:
    path = root / file
    _check_inside(path, root)
    if not path.is_file():
        raise ContentError(f"{quoted(file)} is not a regular file. Remove it.")
    try:
        file.encode()
    except UnicodeEncodeError:
        raise ContentError(f"the file name {quoted(file)} is not UTF-8. Rename the file.") from None
    with errors_in(str(path)):
        return decode(read_bytes(str(path), str(path)))


def _check_inside(path: Path, root: Path) -> None:
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        file = quoted(path.relative_to(root).as_posix())
        raise ContentError(f"{file} is a link to a place outside the folder. Copy its target, or remove it.")


def _label(file: str) -> str | None:
    top, *rest = file.split("/")
    return None if not rest or _UNLABELED.fullmatch(top) else file.rpartition("/")[0]
