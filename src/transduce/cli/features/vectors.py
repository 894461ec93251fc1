"""Vectors that a user brings, an embedding a document: checked, scaled to length 1, in the order of the table.

They come from a .npy file, a .npz file (of `scipy.sparse.save_npz`, or with a single array) or a column of lists. Rows
are scaled to length 1, which is what `alpha` is meant for; a row of zeros stays. Reading them runs no code.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.cli.errors import InputError

if TYPE_CHECKING:
    from transduce.cli.formats import Table

BLOCK_NUMBERS = 1 << 22
"""Vectors pass through in blocks of so many numbers: a large file never stands in memory twice."""


def read_vectors(source: str, table: "Table") -> csr_matrix:
    """Read vectors (n, d) for the n rows of a table: `source` is a .npy or .npz file, or a column that holds lists.

    >>> from types import SimpleNamespace
    >>> table = SimpleNamespace(name="teas.parquet", frame=pl.DataFrame({"vector": [[3.0, 4.0], [0.0, 0.0]]}))
    >>> read_vectors("vector", table).toarray().astype(float).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    if source in table.frame.columns:
        return unit_rows(_from_column(table.frame[source], f"Column {source!r} of {table.name}"), source)
    if Path(source).suffix.lower() not in (".npy", ".npz"):
        raise InputError(
            f"Vectors must be a .npy or .npz file or a column of {table.name}, but {source!r} is neither. "
            f"The columns are {', '.join(table.frame.columns)}."
        )
    matrix = _from_file(source)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(
            f"{source} must hold a matrix, one row a document, but its shape is {matrix.shape}. "
            "Save it with two dimensions: documents, numbers of each."
        )
    if matrix.shape[0] != table.frame.height:
        raise InputError(
            f"{source} has {matrix.shape[0]} rows, but {table.name} has {table.frame.height}. "
            "Give one vector for each row, in the same order."
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{source} must hold numbers, but holds {matrix.dtype}. Save it as float32.")
    return unit_rows(matrix, source)


def _from_file(source: str) -> Any:
    """An array, left on disk where it can be, or a sparse matrix, of which only the indices are checked yet."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged headers, which end in an error below
            if source.lower().endswith(".npy"):
                return np.load(source, mmap_mode="r", allow_pickle=False)
            with open(source, "rb") as file:
                return _from_archive(file)
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist. Correct the path of the vectors.") from error
    except Exception as error:  # a damaged file can make NumPy and SciPy raise anything
        reason = str(error).split(". ")[0].split("\n")[0].rstrip(".")[:200] or type(error).__name__
        raise InputError(
            f"{source} cannot be read as vectors: {reason}. Save numbers with numpy.save or scipy.sparse.save_npz."
        ) from error


def _from_archive(file: BinaryIO) -> Any:
    members = np.load(file, allow_pickle=False)
    if not isinstance(members, np.lib.npyio.NpzFile):
        raise ValueError("it is no .npz archive")
    if "format" in members.files:
        file.seek(0)
        return _checked_sparse(sparse.load_npz(file))
    if len(members.files) != 1:
        raise ValueError(f"it holds {len(members.files)} arrays instead of one")
    member = members[members.files[0]]
    if not isinstance(member, np.ndarray):  # NumPy hands out the bytes of what is no array
        raise ValueError(f"its member {members.files[0]!r} is no array")
    return member


def _checked_sparse(matrix: Any) -> Any:
    """Indices out of range would be read from memory that is not the matrix's, so none passes."""
    if matrix.ndim == 2 and matrix.format not in ("csr", "csc", "coo"):
        raise ValueError(f"its sparse format is {matrix.format}, not csr, csc or coo")
    if matrix.format in ("csr", "csc"):
        matrix.check_format(full_check=True)
    return matrix


def _from_column(column: pl.Series, name: str) -> NDArray[Any]:
    """A column of lists as a matrix; a list of another length is named by its row."""
    inner = getattr(column.dtype, "inner", None)
    if inner is None or not inner.is_numeric():
        raise InputError(f"{name} must hold lists of numbers, but holds {column.dtype}. Name a column of vectors.")
    lists = column.cast(pl.List(pl.Float64))
    lengths = lists.list.len().fill_null(0).to_numpy()
    width = int(lengths.max()) if lengths.size else 0
    if width == 0:
        raise InputError(f"{name} holds no vectors: all its lists are empty. Name a column of vectors.")
    if np.any(lengths != width):
        usual = int(np.bincount(lengths).argmax())
        row = int(np.argmax(lengths != usual))
        raise InputError(
            f"{name} must hold lists of one length, but that of row {row + 1} has {lengths[row]}, not {usual}. "
            "Complete it, or leave out the row."
        )
    return lists.explode().to_numpy().reshape(-1, width)  # a missing number has become NaN, which is refused by row


def unit_rows(matrix: Any, source: str) -> csr_matrix:
    """Rows of length 1 in float32, scaled in float64 so that no finite number overflows on the way."""
    if sparse.issparse(matrix):
        matrix = matrix.tocsr()
        matrix.sum_duplicates()
    n_rows, n_columns = matrix.shape
    width = matrix.nnz // max(1, n_rows) + 1 if sparse.issparse(matrix) else n_columns
    step = max(1, BLOCK_NUMBERS // width)
    blocks = [_unit_block(matrix[i : i + step], i, source) for i in range(0, n_rows, step)]
    return sparse.vstack(blocks, format="csr", dtype=np.float32) if blocks else csr_matrix((0, n_columns), dtype="f4")


def _unit_block(rows: Any, start: int, source: str) -> csr_matrix:
    block = csr_matrix(rows, dtype=np.float64)
    row_of = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    bad = ~np.isfinite(block.data)
    if bad.any():
        row = start + int(row_of[np.argmax(bad)]) + 1
        raise InputError(
            f"Vectors must be finite numbers, but row {row} of {source!r} has {block.data[bad][0]}. "
            "Compute it again, or leave out the row."
        )
    largest = np.zeros(block.shape[0])
    np.maximum.at(largest, row_of, np.abs(block.data))
    block.data /= largest[row_of]
    block.data /= np.sqrt(np.bincount(row_of, np.square(block.data), block.shape[0]))[row_of]
    return block.astype(np.float32)
