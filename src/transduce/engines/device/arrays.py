"""Arrays on a device: which library they belong to, copies to and from NumPy, and products with sparse rows.

Everything else in this package is written once, in terms of the array API standard.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from transduce.arrays import Array
from transduce.suggest import install_advice

DeviceArray: TypeAlias = Any
"""An array of the library and on the device of X."""
Cells: TypeAlias = tuple[DeviceArray, DeviceArray, DeviceArray]
"""The cells of sparse rows as in CSR: where rows begin and end (n + 1,), columns and values."""
LIBRARIES = ("torch", "cupy", "cupyx", "array_api_strict")


def is_on_device(X: object) -> bool:
    """Whether X is an array of a library that may keep it on a device.

    >>> is_on_device(np.zeros(2))
    False
    """
    return type(X).__module__.split(".")[0] in LIBRARIES


def is_sparse(X: Any) -> bool:
    """Whether these rows are in CSR format."""
    return str(getattr(X, "layout", "")) == "torch.sparse_csr" or getattr(X, "format", "") == "csr"


def to_host(x: Any) -> Array:
    """Copy an array to NumPy, if it is not one."""
    x = x.detach().cpu() if hasattr(x, "detach") else x
    return np.asarray(x.get() if hasattr(x, "get") and not isinstance(x, np.ndarray) else x)


@dataclass(frozen=True, eq=False)
class Arrays:
    """How to make arrays: the namespace of the library, the type of floats, and the device."""

    xp: Any
    dtype: Any
    device: Any

    @classmethod
    def of(cls, X: Any) -> "Arrays":
        """Those of X; float64 stays float64, and all else becomes float32."""
        try:
            import array_api_compat
        except ImportError as error:
            raise ImportError(f"rows on a device need array-api-compat. {install_advice('gpu')}") from error
        values = csr_cells(X)[2] if is_sparse(X) else X
        xp = array_api_compat.array_namespace(values)
        return cls(xp, xp.float64 if values.dtype == xp.float64 else xp.float32, array_api_compat.device(values))

    def floats(self, x: Any) -> DeviceArray:
        """Copy numbers to the device as floats."""
        if isinstance(x, np.ndarray):
            x = np.array(x, np.float64 if self.dtype == self.xp.float64 else np.float32, order="C")  # never shared
        return self.xp.asarray(x, dtype=self.dtype, device=self.device)

    def copied(self, x: Array) -> DeviceArray:
        """Copy an array to the device as it is."""
        return self.xp.asarray(np.array(x, order="C"), device=self.device)

    def ints(self, x: Array) -> DeviceArray:
        """Copy whole numbers to the device."""
        return self.copied(np.asarray(x, np.int64))

    def bools(self, x: Array | None) -> DeviceArray:
        """Copy flags to the device; None stays None."""
        return None if x is None else self.copied(x)

    def one_hot(self, labels: DeviceArray, n_classes: int) -> DeviceArray:
        """Labels (n,) as distributions (n, K)."""
        return self.xp.astype(self.is_label(labels, n_classes), self.dtype)

    def is_label(self, labels: DeviceArray, n_classes: int) -> DeviceArray:
        """Whether each class (n, K) is the label (n,) of the row."""
        return labels[:, None] == self.xp.arange(n_classes, dtype=labels.dtype, device=self.device)[None, :]

    def total(self, x: DeviceArray) -> DeviceArray:
        """The sum of all entries in double precision, on the device."""
        return self.xp.sum(x, dtype=self.xp.float64)


def device_memory(arrays: Arrays) -> int | None:
    """Bytes of memory of a GPU; None elsewhere."""
    if getattr(arrays.device, "type", "") == "cuda":
        return int(arrays.xp.cuda.mem_get_info(arrays.device)[1])
    return int(arrays.device.mem_info[1]) if hasattr(arrays.device, "mem_info") else None


def replayable(visit: Callable[[int], None], arrays: Arrays) -> Callable[[int], None]:
    """A function of the number of a batch, which changes arrays in place; on a GPU, torch replays it.

    Small kernels take less time to run than to start one by one. From the second visit to a batch on, they are started
    together, as a CUDA graph. All graphs share their temporary memory, since nothing in it outlives a visit.
    """
    if getattr(arrays.device, "type", "") != "cuda":
        return visit
    import torch

    graphs: dict[int, Any] = {}
    pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(arrays.device)

    def recorded(batch: int) -> Any:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=pool)
            visit(batch)
            graph.capture_end()
        return graph

    def call(batch: int) -> None:
        if batch not in graphs:
            graphs[batch] = None
            visit(batch)
            return
        graphs[batch] = graphs[batch] or recorded(batch)
        graphs[batch].replay()

    return call


# ---- sparse rows


def csr_cells(X: Any) -> Cells:
    """The cells of sparse rows."""
    if hasattr(X, "crow_indices"):
        return X.crow_indices(), X.col_indices(), X.values()
    return X.indptr, X.indices, X.data


def csr_rows(like: Any, cells: Cells, shape: tuple[int, int]) -> Any:
    """Sparse rows of the library of `like`, with these cells."""
    indptr, indices, data = cells
    if not hasattr(like, "crow_indices"):
        return type(like)((data, indices, indptr), shape=shape)
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that sparse rows are new in torch
        return torch.sparse_csr_tensor(indptr, indices, data, size=shape, check_invariants=False)


def take_cells(xp: Any, cells: Cells, rows: DeviceArray) -> Cells:
    """The cells of some of the rows, in this order."""
    indptr, indices, data = cells
    starts = xp.take(indptr, rows)
    lengths = xp.take(indptr, rows + 1) - starts
    ends = xp.cumulative_sum(lengths, include_initial=True)
    ends = xp.astype(ends, indptr.dtype)
    at = xp.repeat(starts - ends[:-1], lengths)
    at = at + xp.arange(at.shape[0], dtype=at.dtype, device=_device(at))
    return ends, xp.take(indices, at), xp.take(data, at)


def with_column(xp: Any, cells: Cells, column: int, value: float) -> Cells:
    """The cells of rows with one more at the end of each, in this column."""
    indptr, indices, data = cells
    n_rows, device = indptr.shape[0] - 1, _device(indptr)
    ends = indptr + xp.arange(n_rows + 1, dtype=indptr.dtype, device=device)
    # sorted by row, with the new cell of each row after the others
    keys = xp.concat(
        (xp.repeat(xp.arange(n_rows, device=device), indptr[1:] - indptr[:-1]), xp.arange(n_rows, device=device))
    )
    order = xp.argsort(keys, stable=True)
    indices = xp.concat((indices, xp.full(n_rows, column, dtype=indices.dtype, device=device)))
    data = xp.concat((data, xp.full(n_rows, value, dtype=data.dtype, device=device)))
    return ends, xp.take(indices, order), xp.take(data, order)


def transposed_cells(xp: Any, cells: Cells, n_columns: int) -> Cells:
    """The cells of the transpose of rows with so many columns."""
    indptr, indices, data = cells
    n_rows, device = indptr.shape[0] - 1, _device(indptr)
    rows = xp.repeat(xp.arange(n_rows, dtype=indices.dtype, device=device), indptr[1:] - indptr[:-1])
    order = xp.argsort(indices, stable=True)
    columns = xp.arange(n_columns + 1, dtype=indices.dtype, device=device)
    ends = xp.astype(xp.searchsorted(xp.take(indices, order), columns), indptr.dtype)
    return ends, xp.take(rows, order), xp.take(data, order)


def _device(x: DeviceArray) -> Any:
    import array_api_compat

    return array_api_compat.device(x)
