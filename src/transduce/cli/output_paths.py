"""Check output paths before any long work: known suffix, existing folder, no input overwritten."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.cli.errors import InputError

COMPRESSED = (".gz", ".zst")
TABLES = tuple(
    f"{suffix}{more}"
    for suffix in (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")
    for more in ("", *COMPRESSED)
)


def sources(file: str, options: Mapping[str, Any]) -> list[str | None]:
    """Everything that a command may read besides a model; an option may name a column or a file."""
    return [file, *options.get("prior", ()), *(options.get(name) for name in ("answers", "vectors", "config"))]


def check(names: Iterable[str | None], suffixes: Sequence[str], *inputs: str | None) -> None:
    """Check that each name can be written.

    >>> check(["out.txt"], (".csv",), "in.csv")
    Traceback (most recent call last):
    transduce.cli.errors.InputError: the output out.txt must end in .csv. Rename it.
    """
    for name in names:
        if name is not None and not (name == "-" and ".csv" in suffixes):
            _check_suffix(name, suffixes)
            _check_folder(name, Path(name))
            _check_inputs(name, Path(name), inputs)


def _check_suffix(name: str, suffixes: Sequence[str]) -> None:
    if not name.lower().endswith(tuple(suffixes)):
        plain = [suffix for suffix in suffixes if not suffix.endswith(COMPRESSED)]
        raise InputError(f"the output {name} must end in {', '.join(plain)}. Rename it.")


def _check_folder(name: str, path: Path) -> None:
    if path.is_dir():
        raise InputError(f"the output {name} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InputError(f"the output {name} cannot be written: there is no folder {path.parent}. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the output {name} cannot be written: {path.parent} is write-protected. Name another folder.")


def _check_inputs(name: str, path: Path, inputs: Iterable[str | None]) -> None:
    """An input may be anything that the user typed, so it need not exist."""
    for source in inputs:
        if source is None or not os.path.exists(source):
            continue
        if path.exists() and path.samefile(source):
            raise InputError(f"the output {name} is also an input. Name another file, so that nothing is lost.")
        if os.path.isdir(source) and path.resolve().is_relative_to(Path(source).resolve()):
            raise InputError(
                f"the output {name} is in the folder {source} that is read, and would become a document. Name another "
                "folder."
            )


def check_different(*names: str | None) -> None:
    """Check that no two outputs are the same file."""
    taken: dict[Path, str] = {}
    for name in filter(None, names):
        path = Path(name).resolve()
        if path in taken:
            raise InputError(f"the outputs {taken[path]} and {name} are the same file. Name them differently.")
        taken[path] = name


def check_standard_output(name: str, as_json: bool) -> None:
    """Check that only one thing goes to standard output."""
    if name == "-" and as_json:
        raise InputError("-o - and --json cannot both write to standard output. Name a file with -o.")
