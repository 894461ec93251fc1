"""Rows on disk: a CSR matrix in three plain files, written part by part and mapped into memory instead of read.

    data.bin, indices.bin    values and columns of all rows, one row after the other
    indptr.bin               where each row begins, and where the last one ends
    rows.json                shape and types; written last, so that a store without it is not complete

What is opened is a scipy matrix like any other. The fit takes its rows where they are: memory holds the pages that are
being used, and gives them back when it is needed for other things.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]

FORMAT = 1
ABOUT = "rows.json"
_FILES = {"data": "data.bin", "indices": "indices.bin", "indptr": "indptr.bin"}


def pack_rows(parts: Iterable[Any], folder: str | Path) -> sparse.csr_matrix:
    """Write rows that come in parts, sparse matrices of the same width, into a new folder, and open them.

    No more than one part is in memory at a time. float32 is kept, other types become float64.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X = pack_rows((sparse.random(5, 3, 0.5, format="csr", random_state=k) for k in range(4)), f"{folder}/rows")
    ...     X.shape, type(X.data.base).__name__
    ((20, 3), 'memmap')
    """
    place = Path(folder)
    if (place / ABOUT).exists() or (place.exists() and any(place.iterdir())):
        raise ValueError(f"rows must be packed into a new or empty folder, but {place} holds files. Name another.")
    place.mkdir(parents=True, exist_ok=True)
    width: int | None = None
    kind: np.dtype[Any] | None = None
    n_rows = n_values = 0
    with (
        (place / _FILES["data"]).open("wb") as data,
        (place / _FILES["indices"]).open("wb") as indices,
        (place / _FILES["indptr"]).open("wb") as indptr,
    ):
        indptr.write(np.zeros(1, np.int64).tobytes())
        for number, part in enumerate(parts):
            rows = _plain(part)
            kind = rows.dtype if kind is None else kind
            width = rows.shape[1] if width is None else width
            if rows.shape[1] != width:
                raise ValueError(
                    f"parts must have {width} columns as the first has, but part {number} has {rows.shape[1]}."
                )
            rows.data.astype(kind, copy=False).tofile(data)
            rows.indices.astype(np.int32, copy=False).tofile(indices)
            (n_values + rows.indptr[1:].astype(np.int64)).tofile(indptr)
            n_rows, n_values = n_rows + rows.shape[0], n_values + rows.nnz
    if width is None or kind is None or n_rows == 0:
        raise ValueError("there must be at least one row to pack, but no part holds any.")
    about = {"format": FORMAT, "n_rows": n_rows, "n_features": width, "n_values": n_values, "dtype": kind.name}
    (place / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    return open_rows(place)


def open_rows(folder: str | Path) -> sparse.csr_matrix:
    """The rows in a folder, mapped into memory read-only."""
    place = Path(folder)
    if not (place / ABOUT).is_file():
        raise ValueError(f"{place} must hold packed rows, but has no {ABOUT}; write it by pack_rows.")
    about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
    if about.get("format") != FORMAT:
        raise ValueError(f"{place} must hold rows in format {FORMAT}, but has {about.get('format')!r}; pack them anew.")
    n_rows, n_values = about["n_rows"], about["n_values"]
    data = _mapped(place / _FILES["data"], np.dtype(about["dtype"]), n_values)
    indices = _mapped(place / _FILES["indices"], np.dtype(np.int32), n_values)
    indptr = _mapped(place / _FILES["indptr"], np.dtype(np.int64), n_rows + 1)
    X = sparse.csr_matrix((n_rows, about["n_features"]), dtype=data.dtype)
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
