"""Rows of libraries that may keep them on a device, here in memory: torch, dense and CSR, and the strict array API."""

import warnings

import numpy as np
import pytest
from scipy import sparse


def torch_dense(X):
    return pytest.importorskip("torch").asarray(X.toarray() if sparse.issparse(X) else X)


def torch_csr(X):
    torch, X = pytest.importorskip("torch"), sparse.csr_matrix(X)
    parts = (torch.asarray(part) for part in (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data))
    with warnings.catch_warnings(action="ignore"):  # torch announces that CSR is new
        return torch.sparse_csr_tensor(*parts, size=X.shape)


def strict(X):
    return pytest.importorskip("array_api_strict").asarray(X.toarray() if sparse.issparse(X) else X)


LIBRARIES = {"torch": torch_dense, "torch-csr": torch_csr, "strict": strict}
libraries = pytest.mark.parametrize("on_device", LIBRARIES.values(), ids=LIBRARIES)


def on_one_thread() -> None:
    """Keep torch from starting threads for small arrays."""
    pytest.importorskip("array_api_compat")
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
