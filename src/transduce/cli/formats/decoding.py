"""Reading bytes, decompressing and decoding them, and guessing their format; truncated input is an error."""

import gzip
import sys
import zlib
from pathlib import Path

import zstandard

from transduce.cli.formats.errors import FileError

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGICS = (b"\x28\xb5\x2f\xfd", *(bytes([n]) + b"\x2a\x4d\x18" for n in range(0x50, 0x60)))
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_MAX_ZSTD_WINDOW = 2**31
_BYTES_TO_GUESS_FROM = 1 << 16


def read_bytes(source: str, name: str) -> bytes:
    """Read a whole file, or standard input for "-"."""
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except FileNotFoundError:
        raise FileError(name, "there is no such file. Check the name and the folder.") from None
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"the file cannot be read ({reason}). Check that it is a file and that you may read it."
        raise FileError(name, problem) from None


def decompress(data: bytes, name: str, compression: str | None) -> bytes:
    """Decompress gzip or zstd, recognised by the file name or by the first bytes.

    >>> decompress(gzip.compress(b"text"), "data.csv", None)
    b'text'
    """
    if compression is None:
        compression = "gz" if data.startswith(_GZIP_MAGIC) else "zst" if data.startswith(_ZSTD_MAGICS) else None
    if compression is None:
        return data
    try:
        return gzip.decompress(data) if compression == "gz" else _decompress_zstd(data)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        kind = "gzip" if compression == "gz" else "zstd"
        problem = f"expected a complete {kind} file, but it is truncated or corrupt. Download or compress it again."
        raise FileError(name, problem) from None


def _decompress_zstd(data: bytes) -> bytes:
    """Decompress all frames; the library's stream reader would not notice a missing end."""
    parts: list[bytes] = []
    while data:
        frame = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError
        data = frame.unused_data
    return b"".join(parts)


def has_byte_order_mark(data: bytes) -> bool:
    """Whether text begins with a byte order mark."""
    return data.startswith((_UTF8_BOM, *_UTF16_BOMS))


def decode(data: bytes, name: str) -> str:
    r"""Decode UTF-8, with or without a byte order mark, or UTF-16 with one; NUL characters are refused.

    >>> decode("\ufeffgrün".encode("utf-16-le"), "data.csv")
    'grün'
    """
    encoding = _UTF16_BOMS.get(data[:2])
    data = data[2:] if encoding else data.removeprefix(_UTF8_BOM)
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding or "utf-8", "replace").count("\n") + 1
        expected = "UTF-16" if encoding else "UTF-8"
        advice = 'Save the file as UTF-8 (in Excel choose "CSV UTF-8").'
        raise FileError(name, f"expected {expected} text, but the encoding is different. {advice}", line=line) from None
    nul = text.find("\0")
    if nul >= 0:
        problem = "expected text, but found a NUL character. Save the file as UTF-8, or remove the character."
        raise FileError(name, problem, line=text.count("\n", 0, nul) + 1)
    return text


def guess_format(data: bytes) -> str:
    r"""Guess the format from the first bytes.

    >>> guess_format(b'{"text": "a"}'), guess_format(b"text,label"), guess_format(b"text\tlabel")
    ('jsonl', 'csv', 'tsv')
    """
    if data.startswith(b"PAR1"):
        return "parquet"
    head = data[:_BYTES_TO_GUESS_FROM]
    text = head.decode(_UTF16_BOMS.get(head[:2], "utf-8"), "ignore").removeprefix("\ufeff").lstrip()
    if text[:1] in ("{", "["):
        return "jsonl" if text[0] == "{" else "json"
    first_line = text.partition("\n")[0]
    return "tsv" if "\t" in first_line and "," not in first_line else "csv"
