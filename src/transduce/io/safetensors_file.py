"""Safetensors files: ValueError says why a file is invalid, InputError why it cannot be opened."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transduce.suggest import install_advice

try:
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import save as serialize
except ImportError as error:
    raise ImportError(
        f"model files need the package safetensors, which is not installed. {install_advice('app')}."
    ) from error

from transduce.errors import InputError
from transduce.io.atomic_write import atomic_write
from transduce.io.strict_json import JsonError, loads

Description = TypeVar("Description")
MAX_HEADER_BYTES = 1 << 25
MAX_HEADER_VALUES = 1 << 21
"""Values of its JSON, of which each takes some 100 bytes of memory."""
MAX_TENSORS = 16
MAX_REASON = 200
"""Letters of what the library says is wrong with a file."""
DTYPES = ("F32", "F64", "U8")
_OTHER_FORMATS = {
    b"PK": "it is a zip archive",
    b"\x80": "it is a pickle, which could run code when read",
    b"\x1f\x8b": "it is a gzip archive",
    b"\x93NUMPY": "it is a NumPy array",
    b"PAR1": "it is a Parquet table",
}


def write_tensors(target: str, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata to one file, completely or not at all."""
    content = serialize({name: np.ascontiguousarray(array) for name, array in tensors.items()}, dict(metadata))
    if int.from_bytes(content[:8], "little") > MAX_HEADER_BYTES:
        raise ValueError(f"the description of a model must fit into {MAX_HEADER_BYTES} bytes. Shorten it.")
    with atomic_write(target) as file:
        file.write(content)


def read_tensors(
    source: str, judge: Callable[[Mapping[str, str], Mapping[str, tuple[int, ...]]], Description]
) -> tuple[dict[str, NDArray[Any]], Description]:
    """Read all tensors, after `judge` has accepted the metadata and the shape of each; return what it returns too."""
    with _opened(source) as file:
        names = list(file.keys())
        parts = {name: file.get_slice(name) for name in names}
        for name, part in parts.items():
            if part.get_dtype() not in DTYPES:
                raise ValueError(f"tensor {name!r} must have a type of {', '.join(DTYPES)}")
        description = judge(file.metadata() or {}, {name: tuple(part.get_shape()) for name, part in parts.items()})
        return {name: file.get_tensor(name) for name in names}, description


def read_metadata(source: str) -> Mapping[str, str]:
    """Read the metadata only."""
    with _opened(source) as file:
        return file.metadata() or {}


@contextmanager
def _opened(source: str) -> Iterator[Any]:
    """Open a file whose header has been checked."""
    try:
        if not stat.S_ISREG(os.stat(source).st_mode):  # checked before opening, because opening a pipe would block
            raise InputError(f"{source} is a folder or a device, not a model file. Name the file itself.")
        _check_start(source)
        with safe_open(source, framework="numpy") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(
            f"{source or 'a file without a name'} does not exist. Correct the path of the model file."
        ) from error
    except OSError as error:
        raise InputError(f"{source} cannot be opened: {error.strerror or error}. Check its permissions.") from error
    except SafetensorError as error:
        reason = "".join(letter if letter.isprintable() else "?" for letter in str(error))  # it may quote the file
        reason = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"
        raise ValueError(f"it is not a complete safetensors file ({reason})") from error


def _check_start(source: str) -> None:
    """Check the size of the header, and name other formats that people confuse with model files."""
    with open(source, "rb") as file:
        start = file.read(8)
        if not start:
            raise ValueError("it is empty")
        length = int.from_bytes(start, "little")
        if length > MAX_HEADER_BYTES:
            known = [reason for prefix, reason in _OTHER_FORMATS.items() if start.startswith(prefix)]
            raise ValueError(known[0] if known else "it is not a safetensors file")
        header = file.read(length)
    if header.count(b",") + header.count(b"[") > MAX_HEADER_VALUES or header.count(b'"data_offsets"') > MAX_TENSORS:
        raise ValueError("its description has more parts than that of any model")


def parse_json(text: str) -> Any:
    """Parse the JSON of a model file; a ValueError says what is wrong with its description."""
    try:
        return loads(text)
    except JsonError as error:
        reason = "its description is not JSON" if error.is_syntax else f"in its description {error.problem}"
        raise ValueError(reason) from error
