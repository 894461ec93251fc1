"""Check output paths before any long work: known suffix, existing folder, no input overwritten."""

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from transduce.cli.errors import InputError

COMPRESSED = (".gz", ".zst")
PLAIN_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")
TABLES = tuple(f"{suffix}{more}" for suffix in PLAIN_TABLES for more in ("", *COMPRESSED))
MODELS, PAGES = (".safetensors",), (".html", ".htm")


def check(outputs: Iterable[tuple[str | None, Sequence[str]]], options: Mapping[str, Any], *inputs: str | None) -> None:
    """Check that each output, with the suffixes that it may have, can be written; None is no output."""
    sources = [*inputs, *options.get("prior", ()), *options.get("answers", ())]
    sources += [options.get(name) for name in ("vectors", "config")]
    taken: dict[Path, str] = {}
    for name, suffixes in outputs:
        if name is None:
            continue
        if name == "-" and ".csv" in suffixes:
            if options.get("as_json"):
                raise InputError("-o - and --json cannot both write to standard output. Name a file with -o.")
            continue
        path = Path(name)
        _check_place(name, path, suffixes)
        for source in sources:
            if source is not None and os.path.exists(source):  # an option may also name a column
                _check_input(name, path, source)
        other = taken.get(path.resolve())
        if other is not None:
            raise InputError(f"the outputs {other} and {name} are the same file. Name them differently.")
        taken[path.resolve()] = name


def _check_place(name: str, path: Path, suffixes: Sequence[str]) -> None:
    if not name.lower().endswith(tuple(suffixes)):
        plain = [suffix for suffix in suffixes if not suffix.endswith(COMPRESSED)]
        listed = f"{', '.join(plain[:-1])} or {plain[-1]}" if len(plain) > 1 else plain[0]
        raise InputError(f"the output {name} must end in {listed}. Rename it.")
    if path.is_dir():
        raise InputError(f"the output {name} is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise InputError(f"the output {name} is a pipe or a device, which would be replaced. Name a file.")
    if not path.parent.is_dir():
        raise InputError(f"the output {name} cannot be written: there is no folder {path.parent}. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the output {name} cannot be written: {path.parent} is write-protected. Name another folder.")


def _check_input(name: str, path: Path, source: str) -> None:
    if path.exists() and path.samefile(source):
        raise InputError(f"the output {name} is also an input. Name another file, so that nothing is lost.")
    if os.path.isdir(source) and path.resolve().is_relative_to(Path(source).resolve()):
        problem = f"is in the folder {source} that is read, and would become a document"
        raise InputError(f"the output {name} {problem}. Name another folder.")


def unused(source: Path, word: str, suffix: str) -> Path:
    """Return a path beside a source that no file has: its name without a known suffix, a word, a number if needed.

    >>> unused(Path("2024.01.csv"), "reviewed", ".jsonl").name
    '2024.01-reviewed.jsonl'
    """
    stem = next(
        (source.name[: -len(end)] for end in (*TABLES, ".json") if source.name.lower().endswith(end)), source.name
    )
    names = (f"{stem}-{word}{more}" for more in chain([""], (f"-{number}" for number in count(2))))
    free = (name for name in names if not any(source.with_name(name + end).exists() for end in (suffix, ".xml")))
    return source.with_name(next(free) + suffix)
