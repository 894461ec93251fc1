"""What a file's name says: the format and the compression, from its last one or two suffixes, in any case."""

from pathlib import PurePath

from transduce.cli.formats.errors import fault, quoted

FORMATS = {
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "parquet": "parquet",
    "pq": "parquet",
    "svmlight": "svmlight",
    "svm": "svmlight",
    "libsvm": "svmlight",
}
COMPRESSIONS = ("gz", "zst")
EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb")
_NAMED_FORMATS = {**FORMATS, "label-studio": "label-studio", "folder": "folder"}


def split_name(path: str) -> tuple[str | None, str | None]:
    """Return format and compression; None for what the name does not say.

    >>> split_name("News.CSV.gz"), split_name("notes.txt")
    (('csv', 'gz'), (None, None))
    """
    suffixes = [suffix[1:].lower() for suffix in PurePath(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else None
    return FORMATS.get(suffixes[-1]) if suffixes else None, compression


def named_format(format: str) -> str:
    """Return the format that a user asks for by name.

    >>> named_format("NDJSON")
    'jsonl'
    """
    known = _NAMED_FORMATS.get(format.lower().lstrip("."))
    if known is None:
        choices = ", ".join(sorted(set(_NAMED_FORMATS.values())))
        raise fault("format", f"{quoted(format)} is not known. Choose one of {choices}.")
    return known
