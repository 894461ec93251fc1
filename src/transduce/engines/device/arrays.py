"""Arrays on a device: which library they belong to, copies to and from NumPy, and products with sparse rows.

Everything else in this package is written once, in terms of the array API standard.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from transduce.arrays import Array
from transduce.parallel import row_blocks
from transduce.suggest import install_advice

DeviceArray: TypeAlias = Any
"""An array of the library and on the device of X."""
Cells: TypeAlias = tuple[DeviceArray, DeviceArray, DeviceArray]
"""The cells of sparse rows as in CSR: where rows begin and end (n + 1,), columns and values."""
BLOCK_CELLS = 1 << 23
"""Cells that are in work at once, where work needs memory."""
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
    _numbers: dict[float, DeviceArray] = field(default_factory=dict, repr=False)

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

    def zeros(self, *shape: int) -> DeviceArray:
        """Zeros on the device, as floats."""
        return self.xp.zeros(shape, dtype=self.dtype, device=self.device)

    def number(self, x: float) -> DeviceArray:
        """A number that operations take as an array, which a GPU can replay only if it is there; made once."""
        if x not in self._numbers:
            self._numbers[x] = self.xp.full((), x, dtype=self.dtype, device=self.device)
        return self._numbers[x]

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

    def dot(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        """Σ x y over all entries."""
        return self.xp.reshape(x, (-1,)) @ self.xp.reshape(y, (-1,))

    # one operation where the library has it

    def rows_of(self, values: DeviceArray, at: DeviceArray) -> DeviceArray:
        """The values of some rows."""
        fused = getattr(self.xp, "index_select", None)
        return fused(values, 0, at) if fused else self.xp.take(values, at, axis=0)

    def plus_product(self, a: DeviceArray, x: DeviceArray, y: DeviceArray, factor: float = 1.0) -> DeviceArray:
        """a + factor · x y."""
        fused = getattr(self.xp, "addcmul", None)
        return fused(a, x, y, value=factor) if fused else a + factor * x * y

    def between(self, a: DeviceArray, b: DeviceArray, t: DeviceArray) -> DeviceArray:
        """a + t (b − a)."""
        fused = getattr(self.xp, "lerp", None)
        return fused(a, b, t) if fused else a + t * (b - a)

    def softmax(self, x: DeviceArray) -> DeviceArray:
        """Exponentials (n, K) of each row, divided by their sum."""
        return self.xp.softmax(x, dim=1) if hasattr(self.xp, "softmax") else self.xp.exp(self.log_softmax(x))

    def log_softmax(self, x: DeviceArray) -> DeviceArray:
        """Their logarithms."""
        if hasattr(self.xp, "log_softmax"):
            return self.xp.log_softmax(x, dim=1)
        x = x - self.xp.max(x, axis=1, keepdims=True)
        return x - self.xp.log(self.xp.sum(self.xp.exp(x), axis=1, keepdims=True))

    def write_product(self, A: Any, B: DeviceArray, out: DeviceArray) -> None:
        """Write A B to an array; A may be sparse."""
        if hasattr(self.xp, "addmm"):
            self.xp.addmm(out, A, B, beta=0.0, out=out)
        else:
            out[:, :] = A @ B


def sum_of_squares(arrays: Arrays, x: DeviceArray) -> float:
    """Sum of the squares of all entries, of one block after another; not finite if an entry is not."""
    total, width = 0.0, math.prod(x.shape[1:])
    for block in row_blocks(x.shape[0], max(BLOCK_CELLS // max(width, 1), 1)):
        values = arrays.xp.astype(x[block, ...], arrays.dtype, copy=False)
        total += float(arrays.total(values * values))
    return total


def in_blocks(arrays: Arrays, function: Callable[[DeviceArray], DeviceArray], S: DeviceArray) -> DeviceArray:
    """Apply a function of rows (n, K) to one block of them after another, so that what it needs between is small."""
    spans = row_blocks(S.shape[0], max(BLOCK_CELLS // S.shape[1], 1))
    if len(spans) == 1:
        return function(S)
    out = arrays.xp.empty_like(S)
    for span in spans:
        out[span, :] = function(S[span, :])
    return out


def device_memory(arrays: Arrays) -> int | None:
    """Bytes of memory of a GPU; None elsewhere."""
    if getattr(arrays.device, "type", "") == "cuda":
        return int(arrays.xp.cuda.mem_get_info(arrays.device)[1])
    return int(arrays.device.mem_info[1]) if hasattr(arrays.device, "mem_info") else None


REPLAYED_CELLS = 1 << 23
"""Largest arrays whose kernels are replayed: those of larger ones take longer to run than to start."""


@dataclass(eq=False)
class Replay:
    """Replays work that changes arrays in place, on a GPU with torch; elsewhere it is done again each time.

    Small kernels take less time to run than to start one by one. From the second time on they are started together, as
    a CUDA graph. So the work must always be the same, on arrays that stay where they are.
    """

    graph: Any = None
    n_done: int = 0

    def __call__(self, work: Callable[[], None], like: DeviceArray) -> None:
        """Do the work, on arrays of at most the size of `like`."""
        self.n_done += 1
        if self.n_done == 1 or not can_record(like):
            work()
            return
        self.graph = self.graph or _recorded(work, like.device)
        self.graph.replay()


def can_record(like: DeviceArray) -> bool:
    """Whether work on arrays of this size is recorded."""
    return bool(getattr(like, "is_cuda", False) and like.numel() <= REPLAYED_CELLS)


@lru_cache
def _recording_stream(device: Any) -> Any:
    """One stream for all recordings: libraries keep memory of their own for every stream."""
    import torch

    return torch.cuda.Stream(device)


def _recorded(work: Callable[[], None], device: Any) -> Any:
    """The kernels of some work, as a CUDA graph of torch."""
    import torch

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize(device)
    with torch.cuda.stream(_recording_stream(device)):
        graph.capture_begin()
        try:
            work()
        finally:
            graph.capture_end()
    return graph


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


def transposed_cells(xp: Any, cells: Cells, n_columns: int) -> Cells:
    """The cells of the transpose of rows with so many columns, by a sort of one block of cells after another."""
    indptr, indices, data = cells
    device, n_cells, kind = _device(indptr), int(data.shape[0]), indptr.dtype
    columns, blocks = xp.arange(n_columns + 1, dtype=indices.dtype, device=device), row_blocks(n_cells, BLOCK_CELLS)
    ends = xp.zeros(n_columns + 1, dtype=kind, device=device)
    for block in blocks:
        ends += xp.astype(xp.searchsorted(xp.sort(indices[block]), columns), kind)
    rows, values, base = xp.empty_like(indices), xp.empty_like(data), ends + 0
    for block in blocks:
        order = xp.argsort(indices[block], stable=True)
        own = xp.take(indices[block], order)
        starts = xp.astype(xp.searchsorted(own, columns), kind)
        to = xp.take(base - starts, own) + xp.arange(own.shape[0], dtype=kind, device=device)
        values[to] = xp.take(data[block], order)
        at = xp.arange(block.start, block.start + own.shape[0], dtype=kind, device=device)
        of_cells = xp.searchsorted(indptr, at, side="right") - 1
        rows[to] = xp.take(xp.astype(of_cells, indices.dtype), order)
        base[:-1] += starts[1:] - starts[:-1]
    return ends, rows, values


def _device(x: DeviceArray) -> Any:
    import array_api_compat

    return array_api_compat.device(x)
