"""Entry point for reading: chooses the reader by the format asked for, the file name or the first bytes."""

import os

from transduce.cli.errors import InputError
from transduce.cli.formats.decoding import FORMATS, decompress, guess_format, parse_format, read_bytes, split_name
from transduce.cli.formats.delimited import read_delimited
from transduce.cli.formats.errors import ContentError, errors_in, printable
from transduce.cli.formats.folder import read_folder
from transduce.cli.formats.json_lines import read_json_lines
from transduce.cli.formats.label_studio import read_json
from transduce.cli.formats.parquet import read_parquet
from transduce.cli.formats.svmlight import read_svmlight
from transduce.cli.formats.table import Table

_EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb")
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How the files of Excel begin: new ones are zip archives."""
_SEQUENCES = (".conll", ".conllu", ".conll2003", ".iob", ".iob2", ".bio", ".bioes")
"""Suffixes of files that only `transduce tag` reads."""


def read_table(source: str, format: str | None = None, limit: int | None = None) -> Table:
    r"""Read documents from a file (plain, .gz or .zst), a folder, or standard input ("-").

    `format` ("csv", "tsv", "jsonl", "json", "parquet", "svmlight", "folder", "label-studio") overrides the file name.
    A file that becomes more than `limit` bytes in memory is refused; None: a hundred times its size, or 100 MB.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "news.csv").write_text("text,label\ngoal!,hockey\nhome run,\n")
    ...     read_table(f"{folder}/news.csv").frame.rows()
    [('goal!', 'hockey'), ('home run', '')]
    """
    name = "standard input" if source == "-" else source
    requested = None if format is None else parse_format(format)
    with errors_in(name):
        if source != "-" and (requested == "folder" or os.path.isdir(source)):
            return _read_folder(source, requested)
        from_name, compression = (None, None) if source == "-" else split_name(source)
        chosen = requested or from_name
        if chosen is None:
            _refuse_unknown_suffix(source)
        data = decompress(read_bytes(source, name), compression, limit)
        _refuse_excel(data, name)
        return _parse(data, name, chosen or guess_format(data), limit)


def _read_folder(source: str, requested: str | None) -> Table:
    if requested not in (None, "folder"):
        raise ContentError(f"expected a {requested} file, but this is a folder. Name a file in it.")
    if not os.path.isdir(source):
        found = "this is a file. Leave out --format" if os.path.exists(source) else "it does not exist. Check the name"
        raise ContentError(f"expected a folder with one subfolder per class, but {found}.")
    return read_folder(source)


def _refuse_unknown_suffix(source: str) -> None:
    """Only pipes and standard input may leave the format to their first bytes."""
    if source.lower().endswith(_EXCEL):
        raise ContentError('Excel files are not supported. Save the file as CSV (in Excel choose "CSV UTF-8").')
    if source != "-" and os.path.isfile(source):
        _refuse_sequences(source)
        suffixes = f"{' '.join(f'.{suffix}' for suffix in FORMATS)} (optionally followed by .gz or .zst)"
        advice = f"Pass --format, or use a name that ends in one of {suffixes}."
        raise ContentError(f"cannot tell the format from the file name. {advice}")


def _refuse_sequences(source: str) -> None:
    name = source.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith(_SEQUENCES):
        raise InputError(f"{printable(source)} has sequences of tokens. Label them with transduce tag.")
    if name.endswith(".xml"):
        advice = "Label tokens in tagged XML with transduce tag, and save documents as CSV or JSONL."
        raise ContentError(f"documents are not read from XML. {advice}")


def _refuse_excel(data: bytes, name: str) -> None:
    """Refuse a workbook that has the name of another format."""
    if data.startswith(_OLD_EXCEL) or (data.startswith(_ZIP) and b"xl/" in data):
        raise InputError(f"{printable(name)} is an Excel workbook, whatever its name. In Excel, save it as CSV UTF-8.")
    if data.startswith(_ZIP):
        raise ContentError("it is a zip archive or an office document. Extract it, or save it as CSV UTF-8.")


def _parse(data: bytes, name: str, format: str, limit: int | None) -> Table:
    match format:
        case "csv" | "tsv":
            return read_delimited(data, name, format)
        case "parquet":
            return Table(name, read_parquet(data, limit), "parquet")
        case "svmlight":
            return read_svmlight(data, name)
        case "label-studio":
            return read_json(data, name, limit, must_be_tasks=True)
        case "json" if guess_format(data) != "jsonl":
            return read_json(data, name, limit)
        case "jsonl" | "json":  # many .json files hold one object per line
            return Table(name, read_json_lines(data, limit), "jsonl")
    raise ContentError(f"cannot read a {format} from standard input. Name a folder.")
