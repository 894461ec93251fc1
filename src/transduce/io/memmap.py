"""Rows on disk: a CSR matrix in three plain files, written in parts and memory-mapped.

    data.bin, indices.bin    values and columns of all rows, one row after the other
    indptr.bin               where each row begins, and where the last one ends
    rows.json                shape, types and a digest of the three files; written last, so that a folder without it
                             is incomplete

A fit uses the mapped pages without copying them.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.contract import check_structure
from transduce.io.atomic_write import atomic_write
from transduce.io.strict_json import JsonError, dumps, loads
from transduce.suggest import short_repr
from transduce.validation import check_path

FORMAT = 1
HEADER = "rows.json"
INT32_LIMIT = 2**31
"""Columns must be fewer; with fewer values too, indptr.bin has 32 bits like indices.bin, which spares scipy a copy."""
_DATA, _INDICES, _INDPTR = _FILES = "data.bin", "indices.bin", "indptr.bin"
_CHUNK = 1 << 20


def pack_rows(parts: Iterable[Any], folder: str | Path) -> sparse.csr_matrix:
    """Write rows into a new folder and open them; if it fails, no file is left.

    Parameters
    ----------
    parts : iterable of sparse matrices
        Consecutive rows, all with the same number of columns; one part is in memory at a time. The first part decides
        the type: float32, or float64 for all other types.
    folder : str or Path
        New or empty folder.

    Returns
    -------
    csr_matrix
        The rows, memory-mapped and read-only.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X = pack_rows((sparse.random(5, 3, 0.5, format="csr", random_state=k) for k in range(4)), f"{folder}/rows")
    ...     X.shape, type(X.data.base).__name__, open_rows(f"{folder}/rows").nnz == X.nnz
    ((20, 3), 'memmap', True)
    """
    path = Path(check_path("folder", folder))
    is_new = not path.exists()
    if not is_new and not path.is_dir():
        raise ValueError(f"rows must be packed into a folder, but {path} is a file. Name another.")
    if not is_new and any(path.iterdir()):
        raise ValueError(f"rows must be packed into a new or empty folder, but {path} contains files.")
    path.mkdir(parents=True, exist_ok=True)
    try:
        _write(parts, path)
        return open_rows(path)
    except BaseException:
        for name in (*_FILES, HEADER):
            (path / name).unlink(missing_ok=True)
        if is_new:
            path.rmdir()
        raise


def open_rows(folder: str | Path) -> sparse.csr_matrix:
    """Open the rows that `pack_rows` wrote into a folder; all of it is read once, to find out if it was changed.

    Parameters
    ----------
    folder : str or Path
        Folder of packed rows.

    Returns
    -------
    csr_matrix
        The rows, memory-mapped and read-only.
    """
    path = Path(check_path("folder", folder))
    if not (path / HEADER).is_file():
        raise ValueError(f"{path} has no {HEADER}, so it is not a complete folder of packed rows. Use pack_rows.")
    try:
        header = loads((path / HEADER).read_bytes())
        if header["format"] != FORMAT:
            raise ValueError(f"{path} has rows in format {header['format']!r}, not {FORMAT}. Pack the rows again.")
        X = _mapped(path, header)
    except (JsonError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path / HEADER} is damaged. Pack the rows again.") from None
    if "digest" in header:  # folders written before 0.2 have none
        if header["digest"] != _digest(X):
            raise ValueError(f"the files of {path} are not those that were packed. Pack the rows again.")
    else:
        check_structure(X)
    X.has_canonical_format = True
    return X


def _mapped(path: Path, header: dict[str, Any]) -> sparse.csr_matrix:
    """Map the files as the header describes them."""
    n_rows, n_features, n_values = (_size(header[name]) for name in ("n_rows", "n_features", "n_values"))
    dtype, indptr_dtype = _type(header["dtype"], "f"), _type(header.get("indptr", "int64"), "i")
    types = {_DATA: dtype, _INDICES: np.dtype(np.int32), _INDPTR: indptr_dtype}
    sizes = {_DATA: n_values, _INDICES: n_values, _INDPTR: n_rows + 1}
    arrays = {name: _map(path / name, types[name], sizes[name]) for name in _FILES}  # their sizes are right, so:
    X = sparse.csr_matrix((n_rows, n_features), dtype=dtype)
    X.data, X.indices, X.indptr = (arrays[name] for name in _FILES)
    return X


def _size(value: object) -> int:
    """A number of rows, columns or values in the header."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise TypeError
    return value


def _type(name: object, kind: str) -> np.dtype[Any]:
    """A type of 32 or 64 bits in the header: of floats for kind "f", of integers for "i"."""
    names = {"f": ("float32", "float64"), "i": ("int32", "int64")}[kind]
    if name not in names:
        raise TypeError
    return np.dtype(str(name))


def _digest(X: sparse.csr_matrix) -> str:
    """Digest of shape and content."""
    found = hashlib.sha256(repr((X.shape, X.dtype.name, X.indptr.dtype.name)).encode())
    for array in (X.indptr, X.indices, X.data):
        found.update(array)
    return found.hexdigest()


def npz_parts(folder: str | Path) -> Iterator[sparse.csr_matrix]:
    """Read parts of rows from .npz files, one at a time; made for `pack_rows`.

    Parameters
    ----------
    folder : str or Path
        Folder with files of scipy.sparse.save_npz, which are read in the order of their names.

    Yields
    ------
    csr_matrix
    """
    paths = sorted(Path(check_path("folder", folder)).glob("*.npz"))
    if not paths:
        raise ValueError(f"{folder} has no .npz files of scipy.sparse.save_npz. Name their folder.")
    for path in paths:
        try:
            with path.open("rb") as file:
                part = sparse.load_npz(file)
        except Exception as error:  # NumPy and SciPy raise exceptions of all kinds for damaged files
            raise ValueError(f"{path} cannot be read. Write it again with scipy.sparse.save_npz.") from error
        yield part


def _write(parts: Iterable[Any], path: Path) -> None:
    n_parts = n_rows = n_features = n_values = 0
    dtype = np.dtype(np.float64)
    with ExitStack() as stack:
        data, indices, indptr = (stack.enter_context((path / name).open("wb")) for name in _FILES)
        np.zeros(1, np.int64).tofile(indptr)
        for part in _listed(parts):
            rows = _canonical(part)
            if n_parts == 0:
                n_features, dtype = rows.shape[1], rows.dtype
            _check_part(part, rows, n_parts, n_features, dtype)
            rows.data.astype(dtype, copy=False).tofile(data)
            rows.indices.astype(np.int32, copy=False).tofile(indices)
            (n_values + rows.indptr[1:].astype(np.int64)).tofile(indptr)
            n_parts, n_rows, n_values = n_parts + 1, n_rows + rows.shape[0], n_values + rows.nnz
            del part, rows  # before the next ones are made
    if n_rows == 0:
        raise ValueError("there are no rows to pack. Pass parts with at least one row.")
    is_short = n_values < INT32_LIMIT
    if is_short:
        _to_int32(path / _INDPTR)
    header = {
        "format": FORMAT, "n_rows": n_rows, "n_features": n_features, "n_values": n_values, "dtype": dtype.name,
        "indptr": "int32" if is_short else "int64",
    }  # fmt: skip
    header["digest"] = _digest(_mapped(path, header))
    with atomic_write(path / HEADER) as file:
        file.write(dumps(header).encode())


def _listed(parts: Any) -> Iterable[Any]:
    if sparse.issparse(parts) or isinstance(parts, (str, np.ndarray)) or not hasattr(parts, "__iter__"):
        raise TypeError(f"parts must be an iterable of matrices, but is {short_repr(parts)}. Pass [X] for one matrix.")
    return parts  # type: ignore[no-any-return]


def _check_part(part: Any, rows: sparse.csr_matrix, number: int, n_features: int, dtype: np.dtype[Any]) -> None:
    """Raise ValueError unless the rows of a part have as many columns as the first, and its type holds their values."""
    if rows.shape[1] >= INT32_LIMIT:
        raise ValueError(f"part {number} has {rows.shape[1]} columns, but rows must have fewer than 2**31.")
    if rows.shape[1] != n_features:
        raise ValueError(f"part {number} has {rows.shape[1]} columns, but the first has {n_features}.")
    if not np.can_cast(rows.dtype, dtype):
        problem = f"part {number} is {getattr(part, 'dtype', None)}, but the first is {dtype}"
        raise ValueError(f"{problem}. Convert it by astype, or convert the first to {rows.dtype}.")


def _to_int32(path: Path) -> None:
    """Rewrite a file of 64-bit integers with 32 bits."""
    with path.open("rb") as source, atomic_write(path) as target:
        while (chunk := np.fromfile(source, np.int64, _CHUNK)).size:
            target.write(chunk.astype(np.int32).data)


def _canonical(part: Any) -> sparse.csr_matrix:
    """Return rows as CSR of float32 or float64, with columns sorted and no column repeated."""
    check_structure(part)
    kind = part.dtype.kind if sparse.issparse(part) else np.asarray(part, dtype=None).dtype.kind
    if kind not in "biuf" or np.ndim(part) != 2:
        raise ValueError(f"a part must be a sparse matrix or an array of real numbers, but is {short_repr(part)}.")
    rows = sparse.csr_matrix(part)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _map(path: Path, dtype: np.dtype[Any], size: int) -> Array:
    n_bytes, expected = path.stat().st_size if path.is_file() else 0, size * dtype.itemsize
    if n_bytes != expected:
        raise ValueError(f"{path} should have {expected} bytes, but has {n_bytes}. Pack the rows again.")
    if size == 0:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r", shape=(size,)).view(np.ndarray)
