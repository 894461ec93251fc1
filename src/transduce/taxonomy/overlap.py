"""The overlap P Pᵀ (K, K) of the paths of a taxonomy: the number of nodes that two classes have in common."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from transduce.arrays import Array

MAX_DENSE_CLASSES = 500
"""Up to so many classes the largest overlap is computed from a dense matrix."""


def largest_overlap(P: sparse.csr_matrix) -> float:
    """Find the largest eigenvalue of P Pᵀ on vectors that sum to 0, for paths P (K, M).

    For many classes, by Lanczos iterations, rounded up because they approach it from below.
    """
    n_classes = P.shape[0]
    if n_classes <= MAX_DENSE_CLASSES:
        overlap = (P @ P.T).toarray()
        centred = overlap - overlap.mean(axis=0)
        centred -= centred.mean(axis=1, keepdims=True)
        return float(np.linalg.eigvalsh(centred)[-1])

    def matvec(v: Array) -> Array:
        v = v - v.mean()
        v = P @ (P.T @ v)
        return np.asarray(v - v.mean())

    start = np.random.default_rng(0).normal(size=n_classes)
    operator = LinearOperator((n_classes, n_classes), matvec=matvec, dtype=np.float64)
    return 1.0001 * float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])
