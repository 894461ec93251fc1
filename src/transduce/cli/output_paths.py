"""Where results go, checked before any long work: a place that exists, a name that says the format, no input lost."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from transduce.cli.errors import InputError

COMPRESSED = (".gz", ".zst")
TABLES = tuple(
    f"{suffix}{more}"
    for suffix in (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")
    for more in ("", *COMPRESSED)
)


def check(names: Iterable[str | None], suffixes: Sequence[str], *sources: str | None) -> None:
    """See that each name can be written: suffix, folder, and not one of the files that are read.

    >>> check(["out.txt"], (".csv",), "in.csv")
    Traceback (most recent call last):
    transduce.cli.errors.InputError: the output out.txt must end in .csv; rename it.
    """
    for name in names:
        if name is None or (name == "-" and ".csv" in suffixes):
            continue
        path = Path(name)
        if not name.lower().endswith(tuple(suffixes)):
            plain = [suffix for suffix in suffixes if not suffix.endswith(COMPRESSED)]
            raise InputError(f"the output {name} must end in {' or '.join(plain)}; rename it.")
        if path.is_dir():
            raise InputError(f"the output {name} is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise InputError(f"the output {name} cannot be written: there is no folder {path.parent}; make it first.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"the output {name} cannot be written: you may not write to {path.parent}; name another.")
        if any(_is_same(path, source) for source in sources):
            raise InputError(f"the output {name} is a file that is read; name another, so that nothing is lost.")
        if any(_is_inside(path, source) for source in sources):
            raise InputError(
                f"the output {name} lies in a folder that is read, and would be a document there; name another place."
            )


def _is_same(path: Path, source: str | None) -> bool:
    """Whether both are one file that exists; a source may be anything that a user typed."""
    return source is not None and path.exists() and os.path.exists(source) and path.samefile(source)


def _is_inside(path: Path, source: str | None) -> bool:
    return source is not None and os.path.isdir(source) and path.resolve().is_relative_to(Path(source).resolve())


def check_different(*names: str | None) -> None:
    """See that no two outputs are one file."""
    taken: dict[Path, str] = {}
    for name in filter(None, names):
        path = Path(name).resolve()
        if path in taken:
            raise InputError(f"the outputs {taken[path]} and {name} have the same name; name them differently.")
        taken[path] = name


def check_standard_output(name: str, as_json: bool) -> None:
    """See that only one thing goes to standard output."""
    if name == "-" and as_json:
        raise InputError("-o - and --json cannot both go to standard output; name a file by -o.")
