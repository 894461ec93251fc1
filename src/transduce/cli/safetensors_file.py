"""Read and write safetensors files; every size is checked against the file before memory is allocated.

    8 bytes   n, the length of the header, little endian
    n bytes   JSON: {"__metadata__": {name: text}, name: {"dtype", "shape", "data_offsets"}, ...}
    the rest  the numbers, without gaps

Reading runs no code. An invalid file raises ValueError with the reason; one that cannot be opened, InputError.
"""

import math
import os
import stat
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as serialize

from transduce.cli.errors import InputError
from transduce.io.atomic_write import atomic_write
from transduce.io.strict_json import JsonError, loads

MAX_HEADER_BYTES = 1 << 25
DTYPES: Mapping[str, str] = {"F32": "<f4", "F64": "<f8", "U8": "|u1"}
_OTHER_FORMATS = {
    b"PK": "a zip archive",
    b"\x80": "a pickle, which could run code when read",
    b"\x1f\x8b": "a gzip archive",
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet table",
}


def write_tensors(target: str, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata to one file, completely or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensors(f"{folder}/a.model", {"a": np.array([1.5])}, {"note": "hot"})
    ...     tensors, metadata = read_tensors(f"{folder}/a.model")
    >>> tensors, metadata
    ({'a': array([1.5])}, {'note': 'hot'})
    """
    content = serialize({name: np.ascontiguousarray(array) for name, array in tensors.items()}, dict(metadata))
    if int.from_bytes(content[:8], "little") > MAX_HEADER_BYTES:
        raise ValueError(f"the description of a model must fit into {MAX_HEADER_BYTES} bytes. Shorten it.")
    with atomic_write(target) as file:
        file.write(content)


def read_tensors(source: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read all tensors and the metadata; see `write_tensors` for an example."""
    try:
        if not stat.S_ISREG(os.stat(source).st_mode):  # checked before opening, because opening a pipe would block
            raise InputError(f"{source} is a folder or a device, not a model file. Name the file itself.")
        with open(source, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = _header(file, size)
            start = file.tell()
            metadata = _metadata(header.pop("__metadata__", {}))
            places = _places(header, size - start)
            return {name: _tensor(file, start, *place) for name, place in places.items()}, metadata
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist. Correct the path of the model file.") from error
    except OSError as error:
        raise InputError(f"{source} cannot be opened: {error.strerror or error}. Check its permissions.") from error


def parse_json(text: bytes | str) -> Any:
    """Parse the JSON of a model file; a ValueError says what is wrong with its description."""
    try:
        return loads(text)
    except JsonError as error:
        raise ValueError(
            "its description is not JSON" if error.is_syntax else f"in its description {error.problem}"
        ) from error


def _header(file: BinaryIO, size: int) -> dict[str, Any]:
    if size == 0:
        raise ValueError("it is empty")
    beginning = file.read(8)
    length = int.from_bytes(beginning, "little")
    if len(beginning) < 8 or not 2 <= length <= size - 8 or length > MAX_HEADER_BYTES:
        known = [kind for prefix, kind in _OTHER_FORMATS.items() if beginning.startswith(prefix)]
        raise ValueError(f"it is {known[0] if known else 'another kind of file, or only a part of one'}")
    header = parse_json(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    return header


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("its metadata is not a mapping of strings")
    return value


def _places(header: Mapping[str, Any], n_bytes: int) -> dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]]:
    """Offset, type and shape of each tensor; together they must fill the bytes exactly."""
    places = {}
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"tensor {name!r} is not described by dtype, shape and data_offsets")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
            raise ValueError(f"tensor {name!r} must have a type of {', '.join(DTYPES)}")
        dtype, shape, ends = np.dtype(DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        if not _are_sizes(shape) or not _are_sizes(ends) or len(shape) > 2 or len(ends) != 2:
            raise ValueError(f"tensor {name!r} has an invalid shape or offset")
        if math.prod(shape) * dtype.itemsize != ends[1] - ends[0]:
            raise ValueError(f"tensor {name!r} does not fit its offsets")
        places[name] = (ends[0], dtype, tuple(shape), ends[1])
    reached = 0
    for begin, *_, end in sorted(places.values(), key=lambda place: (place[0], place[-1])):
        if begin != reached:
            raise ValueError("its tensors overlap or leave gaps")
        reached = end
    if reached != n_bytes:
        raise ValueError(f"it has {n_bytes} bytes of numbers, but its header says {reached}")
    return {name: place[:3] for name, place in places.items()}


def _tensor(file: BinaryIO, start: int, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    file.seek(start + offset)
    numbers = np.fromfile(file, dtype, math.prod(shape))
    if numbers.size != math.prod(shape):
        raise ValueError("it was truncated while it was read")
    return numbers.astype(dtype.newbyteorder("="), copy=False).reshape(shape)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**48 for value in values)
