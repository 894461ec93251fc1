"""The door to all readers: the name, the caller or the first bytes say which one it is."""

import os
import stat

from transduce.cli.formats.decoding import decompress, read_bytes, sniff
from transduce.cli.formats.delimited import read_delimited
from transduce.cli.formats.errors import fault
from transduce.cli.formats.file_names import COMPRESSIONS, EXCEL, FORMATS, named_format, split_name
from transduce.cli.formats.folder import read_folder
from transduce.cli.formats.json_lines import read_json_lines
from transduce.cli.formats.label_studio import read_json
from transduce.cli.formats.parquet import read_parquet
from transduce.cli.formats.svmlight import read_svmlight
from transduce.cli.formats.table import Table


def read_table(source: str, format: str | None = None) -> Table:
    r"""Read documents from a file (plain, .gz or .zst), a folder, or standard input ("-").

    `format` ("csv", "tsv", "jsonl", "json", "parquet", "svmlight", "folder", "label-studio") overrides the name.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "news.csv")
    ...     _ = path.write_text("text,label\ngoal!,hockey\nhome run,\n")
    ...     read_table(str(path)).frame.rows()
    [('goal!', 'hockey'), ('home run', '')]
    """
    name = "standard input" if source == "-" else source
    wanted = None if format is None else named_format(format)
    if source != "-" and (wanted == "folder" or _is_folder(source)):
        return _read_folder(source, name, wanted)
    if wanted is None and source.lower().endswith(EXCEL):
        raise fault(name, 'Excel files are not read. Save it as CSV (in Excel choose "CSV UTF-8").')
    of_name, compression = (None, None) if source == "-" else split_name(source)
    chosen = wanted or of_name
    if chosen is None and _is_plain_file(source):
        known = " ".join(f".{suffix}" for suffix in FORMATS)
        more = " or ".join(f".{suffix}" for suffix in COMPRESSIONS)
        what = f"Say which it is by --format, or end the name in one of {known} ({more})."
        raise fault(name, f"the name does not tell the format. {what}")
    data = decompress(read_bytes(source, name), name, compression)
    return _parse(data, name, chosen or sniff(data))


def _read_folder(source: str, name: str, wanted: str | None) -> Table:
    if wanted not in (None, "folder"):
        raise fault(name, f"expected a {wanted} file, but it is a folder. Name a file in it.")
    if not _is_folder(source):
        found = "it is a file. Leave out --format" if os.path.exists(source) else "there is none. Check the name"
        raise fault(name, f"expected a folder with a folder for each class, but {found}.")
    return read_folder(source, name)


def _parse(data: bytes, name: str, format: str) -> Table:
    match format:
        case "csv" | "tsv":
            return read_delimited(data, name, format)
        case "jsonl":
            return Table(name, read_json_lines(data, name), "jsonl")
        case "parquet":
            return Table(name, read_parquet(data, name), "parquet")
        case "svmlight":
            return read_svmlight(data, name)
        case "label-studio":
            return read_json(data, name, must_be_tasks=True)
        case "json" if sniff(data) == "jsonl":  # many a .json file has one object a line
            return Table(name, read_json_lines(data, name), "jsonl")
        case "json":
            return read_json(data, name)
    raise fault(name, f"{format} cannot come from standard input. Name a folder.")


def _is_folder(source: str) -> bool:
    return "\0" not in source and os.path.isdir(source)


def _is_plain_file(source: str) -> bool:
    """Whether the name is all there is to go by: a pipe or standard input is known by its bytes."""
    try:
        return source != "-" and stat.S_ISREG(os.stat(source).st_mode)
    except (OSError, ValueError):
        return False
