"""Vectors provided by the user, one per document: read, validated and scaled to length 1.

They come from a .npy file, a .npz file (written by `scipy.sparse.save_npz`, or with a single array) or a column of
lists. A row then counts as much as any other; rows of zeros are kept. Pickles are refused, so reading runs no code.
"""

import warnings
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.cli.errors import InputError
from transduce.cli.formats import Table

BLOCK_SIZE = 1 << 22
"""Numbers converted at a time, so that a large file is never in memory twice."""


def read_vectors(source: str, table: Table) -> Any:
    """Read vectors (n, d) for the n rows of a table; `source` is a .npy or .npz file, or a column of lists.

    They are scaled to length 1, and an array, or CSR where the file holds a sparse matrix.

    >>> table = Table("teas.parquet", pl.DataFrame({"vector": [[3.0, 4.0], [0.0, 0.0]]}), "parquet")
    >>> read_vectors("vector", table).astype(float).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    columns, n_rows = table.frame.columns, table.frame.height
    if source in columns:
        return unit_rows(_from_column(table.frame[source], f"Column {source!r} of {table.name}"), source)
    if Path(source).suffix.lower() not in (".npy", ".npz"):
        problem = f"Vectors must be a .npy or .npz file or a column of {table.name}, but {source!r} is neither."
        raise InputError(f"{problem} The columns are {', '.join(columns)}.")
    matrix = _from_file(source)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        problem = f"{source} must contain a matrix with one row per document, but its shape is {matrix.shape}."
        raise InputError(f"{problem} Save an array with two dimensions.")
    if matrix.shape[0] != n_rows:
        problem = f"{source} has {matrix.shape[0]} rows, but {table.name} has {n_rows}."
        raise InputError(f"{problem} Provide one vector for each row, in the same order.")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{source} must contain numbers, but contains {matrix.dtype}. Save it as float32.")
    return unit_rows(matrix, source)


def _from_file(source: str) -> Any:
    """Load an array, memory-mapped where possible, or a sparse matrix with valid indices."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged headers, which end in an error below
            if source.lower().endswith(".npy"):
                return np.load(source, mmap_mode="r", allow_pickle=False)
            with open(source, "rb") as file:
                return _from_archive(file)
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist. Check the path of the vectors.") from error
    except Exception as error:  # NumPy and SciPy raise exceptions of all kinds for damaged files
        problem = f"{source} cannot be read as vectors{f' ({error})' if isinstance(error, _ArchiveError) else ''}."
        raise InputError(f"{problem} Save numbers with numpy.save or scipy.sparse.save_npz.") from error


class _ArchiveError(ValueError):
    """A .npz archive without usable vectors."""


def _from_archive(file: BinaryIO) -> Any:
    members = np.load(file, allow_pickle=False)
    if not isinstance(members, np.lib.npyio.NpzFile):
        raise _ArchiveError("it is not an .npz archive")
    if "format" in members.files:
        file.seek(0)
        matrix = sparse.load_npz(file)
        if matrix.ndim == 2 and matrix.format not in ("csr", "csc", "coo"):
            raise _ArchiveError(f"its sparse format is {matrix.format}, not csr, csc or coo")
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)  # indices out of range would read memory outside the matrix
        return matrix
    if len(members.files) != 1:
        raise _ArchiveError(f"it contains {len(members.files)} arrays instead of one")
    member = members[members.files[0]]
    if not isinstance(member, np.ndarray):  # NumPy returns the bytes of members that are not arrays
        raise _ArchiveError(f"its member {members.files[0]!r} is not an array")
    return member


def _from_column(column: pl.Series, name: str) -> NDArray[Any]:
    inner = getattr(column.dtype, "inner", None)
    if inner is None or not inner.is_numeric():
        raise InputError(f"{name} must contain lists of numbers, but contains {column.dtype}. Name a vector column.")
    lists = column.cast(pl.List(pl.Float64))
    lengths = lists.list.len().fill_null(0).to_numpy()
    width = int(lengths.max()) if lengths.size else 0
    if width == 0:
        raise InputError(f"{name} contains only empty lists. Name a column of vectors.")
    if np.any(lengths != width):
        usual = int(np.bincount(lengths).argmax())
        row = int(np.argmax(lengths != usual))
        found = f"row {row + 1} has length {lengths[row]} instead of {usual}"
        raise InputError(f"{name} must contain lists of equal length, but {found}. Complete it, or remove the row.")
    return lists.explode().to_numpy().reshape(-1, width)  # null numbers become NaN, which unit_rows refuses


def unit_rows(matrix: Any, source: str) -> Any:
    """Scale rows to length 1 in float32; the work is done in float64, so that finite numbers cannot overflow."""
    n_rows, n_columns = matrix.shape
    if not sparse.issparse(matrix):
        out, step = np.empty(matrix.shape, np.float32), max(1, BLOCK_SIZE // n_columns)
        for start in range(0, n_rows, step):
            out[start : start + step] = _unit_dense_block(matrix[start : start + step], start, source)
        return out
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    step = max(1, BLOCK_SIZE // (matrix.nnz // max(1, n_rows) + 1))
    blocks = [_unit_block(matrix[i : i + step], i, source) for i in range(0, n_rows, step)]
    return sparse.vstack(blocks, format="csr", dtype=np.float32) if blocks else csr_matrix((0, n_columns), dtype="f4")


def _unit_dense_block(rows: Any, start: int, source: str) -> NDArray[np.float64]:
    block = np.array(rows, dtype=np.float64)
    _check_finite(block, np.arange(len(block))[:, np.newaxis], start, source)
    largest = np.abs(block).max(axis=1, keepdims=True)
    block /= np.where(largest == 0, 1, largest)
    block /= np.where(largest == 0, 1, np.linalg.norm(block, axis=1, keepdims=True))
    return block


def _unit_block(rows: Any, start: int, source: str) -> csr_matrix:
    block = csr_matrix(rows, dtype=np.float64)
    block.eliminate_zeros()  # a row of stored zeros has length 0
    row_of = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    _check_finite(block.data, row_of, start, source)
    largest = np.zeros(block.shape[0])
    np.maximum.at(largest, row_of, np.abs(block.data))
    block.data /= largest[row_of]
    block.data /= np.sqrt(np.bincount(row_of, np.square(block.data), block.shape[0]))[row_of]
    return block.astype(np.float32)


def _check_finite(values: NDArray[np.float64], row_of: NDArray[np.intp], start: int, source: str) -> None:
    """Refuse values that are not finite; `row_of` has the row of each, counted from `start`."""
    invalid = ~np.isfinite(values)
    if invalid.any():
        row = start + int(np.broadcast_to(row_of, values.shape)[invalid][0]) + 1
        found = f"row {row} of {source!r} contains {values[invalid][0]}"
        raise InputError(f"Vectors must be finite, but {found}. Compute it again, or remove the row.")
