"""Entry point for reading: chooses the reader by the format asked for, the file name or the first bytes."""

import os
import stat

from transduce.cli.formats.decoding import decompress, guess_format, read_bytes
from transduce.cli.formats.delimited import read_delimited
from transduce.cli.formats.errors import FileError
from transduce.cli.formats.file_names import COMPRESSIONS, EXCEL, FORMATS, parse_format, split_name
from transduce.cli.formats.folder import read_folder
from transduce.cli.formats.json_lines import read_json_lines
from transduce.cli.formats.label_studio import read_json
from transduce.cli.formats.parquet import read_parquet
from transduce.cli.formats.svmlight import read_svmlight
from transduce.cli.formats.table import Table


def read_table(source: str, format: str | None = None) -> Table:
    r"""Read documents from a file (plain, .gz or .zst), a folder, or standard input ("-").

    `format` ("csv", "tsv", "jsonl", "json", "parquet", "svmlight", "folder", "label-studio") overrides the file name.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "news.csv")
    ...     _ = path.write_text("text,label\ngoal!,hockey\nhome run,\n")
    ...     read_table(str(path)).frame.rows()
    [('goal!', 'hockey'), ('home run', '')]
    """
    name = "standard input" if source == "-" else source
    requested = None if format is None else parse_format(format)
    is_folder = source != "-" and "\0" not in source and os.path.isdir(source)
    if is_folder or (requested == "folder" and source != "-"):
        return _read_folder(source, requested, is_folder)
    if requested is None and source.lower().endswith(EXCEL):
        raise FileError(name, 'Excel files are not supported. Save the file as CSV (in Excel choose "CSV UTF-8").')
    from_name, compression = (None, None) if source == "-" else split_name(source)
    chosen = requested or from_name
    if chosen is None and _is_regular_file(source):
        suffixes = " ".join(f".{suffix}" for suffix in FORMATS)
        compressed = " or ".join(f".{suffix}" for suffix in COMPRESSIONS)
        raise FileError(
            name,
            "cannot tell the format from the file name. "
            f"Pass --format, or use a name that ends in one of {suffixes} (optionally followed by {compressed}).",
        )
    data = decompress(read_bytes(source, name), name, compression)
    return _parse(data, name, chosen or guess_format(data))


def _read_folder(source: str, requested: str | None, is_folder: bool) -> Table:
    if requested not in (None, "folder"):
        raise FileError(source, f"expected a {requested} file, but this is a folder. Name a file in it.")
    if not is_folder:
        found = "this is a file. Leave out --format" if os.path.exists(source) else "it does not exist. Check the name"
        raise FileError(source, f"expected a folder with one subfolder per class, but {found}.")
    return read_folder(source)


def _parse(data: bytes, name: str, format: str) -> Table:
    match format:
        case "csv" | "tsv":
            return read_delimited(data, name, format)
        case "parquet":
            return Table(name, read_parquet(data, name), "parquet")
        case "svmlight":
            return read_svmlight(data, name)
        case "label-studio":
            return read_json(data, name, must_be_tasks=True)
        case "json" if guess_format(data) != "jsonl":
            return read_json(data, name)
        case "jsonl" | "json":  # many .json files hold one object per line
            return Table(name, read_json_lines(data, name), "jsonl")
    raise FileError(name, f"cannot read a {format} from standard input. Name a folder.")


def _is_regular_file(source: str) -> bool:
    """Whether only the name can tell the format; for pipes and standard input the first bytes do."""
    try:
        return source != "-" and stat.S_ISREG(os.stat(source).st_mode)
    except (OSError, ValueError):
        return False
