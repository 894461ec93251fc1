"""Entry point for reading: chooses the reader by the format asked for, the file name or the first bytes."""

import os

from transduce.cli.formats.decoding import FORMATS, decompress, guess_format, parse_format, read_bytes, split_name
from transduce.cli.formats.delimited import read_delimited
from transduce.cli.formats.errors import ContentError, errors_in
from transduce.cli.formats.folder import read_folder
from transduce.cli.formats.json_lines import read_json_lines
from transduce.cli.formats.label_studio import read_json
from transduce.cli.formats.parquet import read_parquet
from transduce.cli.formats.svmlight import read_svmlight
from transduce.cli.formats.table import Table

_EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb")


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
        suffixes = f"{' '.join(f'.{suffix}' for suffix in FORMATS)} (optionally followed by .gz or .zst)"
        advice = f"Pass --format, or use a name that ends in one of {suffixes}."
        raise ContentError(f"cannot tell the format from the file name. {advice}")


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
