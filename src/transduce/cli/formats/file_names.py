"""Format and compression from the last one or two suffixes of a file name, in any case."""

from pathlib import PurePath

from transduce.cli.errors import InputError
from transduce.cli.formats.errors import quoted

_ALIASES = {"tab": "tsv", "ndjson": "jsonl", "pq": "parquet", "svm": "svmlight", "libsvm": "svmlight"}
FORMATS = {name: name for name in ("csv", "tsv", "jsonl", "json", "parquet", "svmlight")} | _ALIASES
"""The format of each suffix."""
COMPRESSIONS = ("gz", "zst")
EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb")
_NAMES = {**FORMATS, "label-studio": "label-studio", "folder": "folder"}


def split_name(path: str) -> tuple[str | None, str | None]:
    """Return format and compression, None where the name does not tell.

    >>> split_name("News.CSV.gz"), split_name("notes.txt")
    (('csv', 'gz'), (None, None))
    """
    suffixes = [suffix[1:].lower() for suffix in PurePath(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else None
    return FORMATS.get(suffixes[-1]) if suffixes else None, compression


def parse_format(name: str) -> str:
    """Return the format for a name given by the user, such as "NDJSON"."""
    known = _NAMES.get(name.lower().lstrip("."))
    if known is None:
        raise InputError(f"unknown format {quoted(name)}. Choose one of {', '.join(sorted(set(_NAMES.values())))}.")
    return known
