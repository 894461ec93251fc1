"""Reading bytes, decompressing and decoding them, and telling their format from the file name or the first bytes."""

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath

import zstandard

from transduce.cli.errors import InputError
from transduce.cli.formats.errors import ContentError, FileError, quoted

_ALIASES = {"tab": "tsv", "ndjson": "jsonl", "pq": "parquet", "svm": "svmlight", "libsvm": "svmlight"}
FORMATS = {name: name for name in ("csv", "tsv", "jsonl", "json", "parquet", "svmlight")} | _ALIASES
"""The format of each suffix."""
SEQUENCE_FORMATS = ("conll", "xml")
"""Formats that `transduce tag` reads."""
COMPRESSIONS = {"gz": "gzip", "zst": "zstd"}
BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGICS = (b"\x28\xb5\x2f\xfd", *(bytes([n]) + b"\x2a\x4d\x18" for n in range(0x50, 0x60)))
_MAX_ZSTD_WINDOW = 2**31
_BYTES_TO_GUESS_FROM = 1 << 16
_ALWAYS_ALLOWED, _MAX_EXPANSION = 100_000_000, 100
_PART = 1 << 20
_ZSTD_PART = 1 << 11
"""Bytes of zstd input at a time: four can become 128 KiB, so these become at most 64 MiB."""
RAISE_LIMIT = "Check that it is the right file, or allow more with --max-size."


def read_bytes(source: str, name: str) -> bytes:
    """Read a whole file, or standard input for "-"."""
    if not source:
        raise InputError("the name of the file is empty. Name a file, or - for standard input.")
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except FileNotFoundError:
        raise FileError(name, "there is no such file. Check the name and the folder.") from None
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"the file cannot be read ({reason}). Check that it is a file and that you may read it."
        raise FileError(name, problem) from None


def expansion_limit(n_bytes: int) -> int:
    """Bytes that a file of this size may become in memory, unless the user allows more."""
    return max(_ALWAYS_ALLOWED, _MAX_EXPANSION * n_bytes)


def decompress(data: bytes, compression: str | None, limit: int | None = None) -> bytes:
    """Decompress gzip or zstd, recognised by the file name or by the first bytes, up to a limit in bytes."""
    if compression is None:
        compression = "gz" if data.startswith(_GZIP_MAGIC) else "zst" if data.startswith(_ZSTD_MAGICS) else None
    if compression is None:
        return data
    most = expansion_limit(len(data)) if limit is None else limit
    try:
        parts = _gzip_parts(data) if compression == "gz" else _zstd_parts(data)
        return _joined(parts, most)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        expected = f"expected a complete {COMPRESSIONS[compression]} file"
        raise ContentError(f"{expected}, but it is truncated or corrupt. Download or compress it again.") from None


def _joined(parts: Iterator[bytes], limit: int) -> bytes:
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > limit:
            raise ContentError(f"it expands to more than {megabytes(limit)}. {RAISE_LIMIT}")
    return bytes(content)


def megabytes(n_bytes: int) -> str:
    """A number of bytes as people write it."""
    return f"{n_bytes / 1e6:,.0f} MB".replace(",", " ")


def _gzip_parts(data: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while part := file.read(_PART):
            yield part


def _zstd_parts(data: bytes) -> Iterator[bytes]:
    """Decompress all frames, little at a time; the library's stream reader would not notice a missing end."""
    view, begin = memoryview(data), 0
    while begin < len(view):
        frame = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).decompressobj()
        while not frame.eof:
            if begin >= len(view):
                raise EOFError
            yield frame.decompress(view[begin : begin + _ZSTD_PART])
            begin = min(begin + _ZSTD_PART, len(view))
        begin -= len(frame.unused_data)


def decode(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark, or UTF-16 with one; NUL characters are refused."""
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].decode(encoding, "replace").count("\n") + 1
        expected = "UTF-16" if encoding == "utf-16" else "UTF-8"
        advice = (
            'Save the file as UTF-8 (in Excel choose "CSV UTF-8", in LibreOffice the character set "Unicode (UTF-8)").'
        )
        raise ContentError(f"expected {expected} text, but the encoding is different. {advice}", line) from None
    nul = text.find("\0")
    if nul >= 0:
        problem = "expected text, but found a NUL character. Save the file as UTF-8, or remove the character."
        raise ContentError(problem, text.count("\n", 0, nul) + 1)
    return text


def _encoding(data: bytes) -> str:
    return "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def split_name(path: str) -> tuple[str | None, str | None]:
    """Return format and compression by the last one or two suffixes of a name in any case, None where it has none."""
    suffixes = [suffix[1:].lower() for suffix in PurePath(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else None
    return FORMATS.get(suffixes[-1]) if suffixes else None, compression


def parse_format(name: str) -> str:
    """Return the format for a name given by the user, such as "NDJSON"."""
    if name in SEQUENCE_FORMATS:
        raise InputError(f"{name} files hold sequences of tokens. Label them with transduce tag.")
    names = {**FORMATS, "label-studio": "label-studio", "folder": "folder"}
    known = names.get(name.lower().lstrip("."))
    if known is None:
        raise InputError(f"unknown format {quoted(name)}. Choose one of {', '.join(sorted(set(names.values())))}.")
    return known


def guess_format(data: bytes) -> str:
    """Guess the format from the first bytes."""
    if data.startswith(b"PAR1"):
        return "parquet"
    text = data[:_BYTES_TO_GUESS_FROM].decode(_encoding(data), "ignore").lstrip()
    if text[:1] in ("{", "["):
        return "jsonl" if text[0] == "{" else "json"
    first_line = text.partition("\n")[0]
    return "tsv" if "\t" in first_line and "," not in first_line else "csv"
