"""Fit on a device of PyTorch, such as a GPU: rows go there as single-precision floats, the model comes back."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from transduce.cli.errors import InputError
from transduce.engines.device.arrays import to_host
from transduce.estimators import TransductiveClassifier
from transduce.suggest import install_advice


def check_device(device: str | None, options: Mapping[str, Any]) -> None:
    """Check the device, and the options that do not go with one, before anything is read."""
    if device is None:
        return
    for other in ("dask", "workers", "none"):
        if options[other] is not None:
            raise InputError(f"--device cannot be combined with --{other}. Leave one of them out.")
    try:
        import array_api_compat  # noqa: F401
        import torch
    except ImportError as error:
        raise InputError(f"--device needs {error.name}. {install_advice('gpu')}") from None
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(f"--device {device} is not a device that PyTorch can use here. Leave it out.") from None


def fit_on_device(
    clf: TransductiveClassifier, X: Any, y: NDArray[Any], device: str, sampled: NDArray[np.bool_] | None
) -> TransductiveClassifier:
    """Fit a classifier to rows on a device, and bring what it has learnt to memory."""
    clf.fit(on_device(X, device), y, sampled=sampled)
    clf.coef_, clf.intercept_ = to_host(clf.coef_), to_host(clf.intercept_)
    clf.label_distributions_ = to_host(clf.label_distributions_)
    return clf


def on_device(X: Any, device: str) -> Any:
    """Copy rows to a device."""
    import torch

    if not sparse.issparse(X):
        return torch.asarray(np.array(X, np.float32), device=device)
    X = X.tocsr()
    kind = np.int32 if X.nnz < 2**31 else np.int64
    parts = (X.indptr.astype(kind), X.indices.astype(kind), X.data.astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that sparse rows are new in torch
        return torch.sparse_csr_tensor(*(torch.asarray(part, device=device) for part in parts), size=X.shape)
