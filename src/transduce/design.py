"""Where the rows live: scores of all rows at given weights, and the way back from scores to weights.

    S = (X W) Pᵀ        pullback(R) = Xᵀ R P

X is held as one CSR matrix, W (d, M) in C order with a column for each node of the tree, P (K, M) says which nodes a
class passes through. Everything above works on scores; other engines can stand in this one's place.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from transduce.kernels import kernel
from transduce.kernels.rows import Array, all_scores, pullback
from transduce.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class Design:
    """Rows in memory, and the classes they are scored for.

    >>> design = Design.create(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), Taxonomy.flat("ab"))
    >>> design.scores(np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[1., 0.],
           [1., 2.]])
    """

    data: Array
    indices: Array
    indptr: Array
    n_features: int
    taxonomy: Taxonomy

    @classmethod
    def create(cls, X: Any, taxonomy: Taxonomy) -> "Design":
        """Take a CSR matrix or array as it is; anything else is converted, float32 and float64 kept."""
        rows = sparse.csr_matrix(X) if not sparse.issparse(X) else X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        data = rows.data if rows.dtype in (np.float32, np.float64) else rows.data.astype(np.float64)
        return cls(data, rows.indices, rows.indptr, rows.shape[1], taxonomy)

    @property
    def n_rows(self) -> int:
        """Rows."""
        return int(self.indptr.size - 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the data, and so of weights and scores."""
        return self.data.dtype

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """The arrays of the CSR matrix, as kernels take them."""
        return self.data, self.indices, self.indptr

    @cached_property
    def tree(self) -> tuple[Array, Array]:
        """Nodes on the path of each class, first and nodes, as kernels take them; without nodes for flat classes."""
        if self.taxonomy.is_flat:
            return np.zeros(1, np.int64), np.zeros(0, np.int64)
        paths = self.taxonomy.paths
        return np.concatenate(([0], np.cumsum(paths.sum(axis=1)))).astype(np.int64), np.nonzero(paths)[1]

    @cached_property
    def squared_norms(self) -> Array:
        """‖x_i‖² (n,)."""
        norms = np.zeros(self.n_rows)
        _squared_norms(self.data, self.indptr, norms)
        return norms

    @cached_property
    def overlap(self) -> Array:
        """P Pᵀ (K, K): nodes that two classes share."""
        paths = self.taxonomy.paths.astype(np.float64)
        return paths @ paths.T

    def zeros(self) -> Array:
        """Weights (d, M) of 0."""
        return np.zeros((self.n_features, self.taxonomy.n_nodes), self.dtype)

    def scores(self, W: Array) -> Array:
        """Scores (n, K) of the classes."""
        out = np.empty((self.n_rows, self.taxonomy.n_classes), W.dtype)
        all_scores(*self.rows, *self.tree, W, out)
        return out

    def pullback(self, R: Array) -> Array:
        """Xᵀ R P (d, M) for residuals R (n, K)."""
        out = self.zeros()
        pullback(*self.rows, *self.tree, R, out)
        return out


@kernel
def _squared_norms(data: Array, indptr: Array, out: Array) -> None:
    for i in range(out.size):
        for p in range(indptr[i], indptr[i + 1]):
            out[i] += data[p] * data[p]
