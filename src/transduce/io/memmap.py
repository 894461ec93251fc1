"""Rows on disk: a CSR matrix in three plain files, written part by part and mapped into memory instead of read.

    data.bin, indices.bin    values and columns of all rows, one row after the other
    indptr.bin               where each row begins, and where the last one ends
    rows.json                shape and types; written last, so that a store without it is not complete

What is opened is a scipy matrix like any other. The fit takes its rows where they are: memory holds the pages that are
being used, and gives them back when it is needed for other things. Only fit_intercept=True copies them, into memory, to
add its column; a column of ones that is packed with the rows does the same without.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]

FORMAT = 1
ABOUT = "rows.json"
MOST = 2**31
"""Columns, and values for short row ends, that a store must stay below."""
_FILES = {"data": "data.bin", "indices": "indices.bin", "indptr": "indptr.bin"}
_CHUNK = 1 << 20


def pack_rows(parts: Iterable[Any], folder: str | Path) -> sparse.csr_matrix:
    """Write rows that come in parts, sparse matrices of the same width, into a new folder, and open them.

    No more than one part is in memory at a time. float32 is kept, other types become float64; a store has one type,
    that of its first part. What fails leaves no files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X = pack_rows((sparse.random(5, 3, 0.5, format="csr", random_state=k) for k in range(4)), f"{folder}/rows")
    ...     X.shape, type(X.data.base).__name__
    ((20, 3), 'memmap')
    """
    place = Path(folder)
    made = not place.exists()
    if not made and any(place.iterdir()):
        raise ValueError(f"rows must be packed into a new or empty folder, but {place} holds files. Name another.")
    place.mkdir(parents=True, exist_ok=True)
    try:
        _pack(parts, place)
        return open_rows(place)
    except BaseException:
        for name in (*_FILES.values(), ABOUT, *map(_beside, (*_FILES.values(), ABOUT))):
            (place / name).unlink(missing_ok=True)
        if made:
            place.rmdir()
        raise


def _pack(parts: Iterable[Any], place: Path) -> None:
    with ExitStack() as stack:
        files = {name: stack.enter_context((place / file).open("wb")) for name, file in _FILES.items()}
        files["indptr"].write(np.zeros(1, np.int64).tobytes())
        packing = _Packing(files)
        for part in parts:
            packing.add(part)
            del part  # before the next is made
    if packing.width is None or packing.kind is None or packing.n_rows == 0:
        raise ValueError("there must be at least one row to pack, but no part holds any.")
    short = packing.n_values < MOST
    if short:
        _shorten(place / _FILES["indptr"])
    about = {
        "format": FORMAT, "n_rows": packing.n_rows, "n_features": packing.width, "n_values": packing.n_values,
        "dtype": packing.kind.name, "indptr": "int32" if short else "int64",
    }  # fmt: skip
    beside = place / _beside(ABOUT)
    beside.write_text(json.dumps(about), encoding="utf-8")
    os.replace(beside, place / ABOUT)


@dataclass
class _Packing:
    """Files that rows are added to, and what they hold so far."""

    files: Mapping[str, IO[bytes]]
    width: int | None = None
    kind: np.dtype[Any] | None = None
    n_parts: int = 0
    n_rows: int = 0
    n_values: int = 0

    def add(self, part: Any) -> None:
        """Write the rows of a part."""
        rows = _plain(part)
        self.kind = rows.dtype if self.kind is None else self.kind
        self.width = rows.shape[1] if self.width is None else self.width
        if rows.shape[1] >= MOST:
            raise ValueError(
                f"parts must have fewer than 2**31 columns, but part {self.n_parts} has {rows.shape[1]}; drop some."
            )
        if rows.shape[1] != self.width:
            raise ValueError(
                f"parts must have {self.width} columns as the first has, but part {self.n_parts} has {rows.shape[1]}."
            )
        if not np.can_cast(rows.dtype, self.kind):
            raise ValueError(
                f"parts must be {self.kind} as the first is, but part {self.n_parts} is "
                f"{getattr(part, 'dtype', None)}; convert it by astype, or the first to {rows.dtype}."
            )
        rows.data.astype(self.kind, copy=False).tofile(self.files["data"])
        rows.indices.astype(np.int32, copy=False).tofile(self.files["indices"])
        (self.n_values + rows.indptr[1:].astype(np.int64)).tofile(self.files["indptr"])
        self.n_parts, self.n_rows = self.n_parts + 1, self.n_rows + rows.shape[0]
        self.n_values += rows.nnz


def _shorten(path: Path) -> None:
    """Make whole numbers of 64 bits such of 32, as those of the columns are: scipy's products copy neither then."""
    beside = path.with_name(_beside(path.name))
    with path.open("rb") as long, beside.open("wb") as short:
        while (ends := np.fromfile(long, np.int64, _CHUNK)).size:
            ends.astype(np.int32).tofile(short)
    os.replace(beside, path)


def _beside(name: str) -> str:
    return f"{name}.part"


def open_rows(folder: str | Path) -> sparse.csr_matrix:
    """The rows in a folder, mapped into memory read-only."""
    place = Path(folder)
    if not (place / ABOUT).is_file():
        raise ValueError(f"{place} must hold packed rows, but has no {ABOUT}; write it by pack_rows.")
    try:
        about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise ValueError(f"{place} must hold rows in format {FORMAT}, but has {about['format']!r}; pack them anew.")
        n_rows, n_features, n_values = (int(about[name]) for name in ("n_rows", "n_features", "n_values"))
        kind, ends = np.dtype(about["dtype"]), np.dtype(about.get("indptr", "int64"))
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{place / ABOUT} must say what rows there are, but is damaged; pack the rows anew.") from None
    data = _mapped(place / _FILES["data"], kind, n_values)
    indices = _mapped(place / _FILES["indices"], np.dtype(np.int32), n_values)
    indptr = _mapped(place / _FILES["indptr"], ends, n_rows + 1)
    X = sparse.csr_matrix((n_rows, n_features), dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr
    X.has_canonical_format = True
    return X


def npz_parts(folder: str | Path) -> Iterator[sparse.csr_matrix]:
    """The matrices of scipy.sparse.save_npz in a folder, in the order of their names, one at a time."""
    paths = sorted(Path(folder).glob("*.npz"))
    if not paths:
        raise ValueError(f"{folder} must hold .npz files of scipy.sparse.save_npz, but there are none.")
    for path in paths:
        yield sparse.load_npz(path)


def _plain(part: Any) -> sparse.csr_matrix:
    """A part as CSR with its columns in order and no column twice."""
    rows = sparse.csr_matrix(part)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _mapped(path: Path, kind: np.dtype[Any], size: int) -> Array:
    found = path.stat().st_size if path.is_file() else -1
    if found != size * kind.itemsize:
        raise ValueError(f"{path} must have {size * kind.itemsize} bytes, but has {max(found, 0)}; pack the rows anew.")
    if size == 0:
        return np.zeros(0, kind)
    return np.memmap(path, kind, mode="r", shape=(size,)).view(np.ndarray)
