"""Choose unlabelled rows where a person's label would help most, by the rule of `transduce.select_rows`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from transduce.cli.errors import InputError
from transduce.selection import reduce_rows, spread_rows

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MAX_ROWS = 20_000
"""Rows, and labelled ones, that the queue is chosen by; of more, a random sample."""


def choose_rows(
    probabilities: NDArray[Any],
    X: Any,
    n: int,
    *,
    labeled: Any = None,
    seed: int = 0,
    fits_none: NDArray[np.bool_] | None = None,
) -> IntArray:
    """Choose n rows to ask about, most useful first; fewer where there are fewer distinct texts.

    probabilities (m, K) and features X (m, d), sparse or an array, are those of the unlabelled rows, and so are the
    row numbers returned; `labeled` (l, d) are rows that have a label. `fits_none` (m,) marks rows that fit no class.
    """
    P, X = np.array(probabilities, dtype=np.float64), X if isinstance(X, np.ndarray) else sparse.csr_matrix(X)
    if n < 1:
        raise InputError(f"the number of rows to queue must be 1 or more, but is {n}.")
    if P.ndim != 2 or P.shape[0] != X.shape[0] or P.shape[1] == 0:
        raise ValueError(f"probabilities must be (rows, classes) for the {X.shape[0]} rows of X, but are {P.shape}.")
    if not np.isfinite(P).all() or not np.isfinite(X if isinstance(X, np.ndarray) else X.data).all():
        raise ValueError("probabilities and X must be finite, but hold NaN or infinity.")
    if fits_none is not None:
        P[fits_none] = 1.0 / P.shape[1]  # any class is as wrong as another
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(X.shape[0])[: max(MAX_ROWS, n)])
    known = X[:0] if labeled is None else labeled[np.sort(rng.permutation(labeled.shape[0])[:MAX_ROWS])]
    vectors = reduce_rows(sparse.vstack((X[rows], known)) if sparse.issparse(X) else np.vstack((X[rows], known)))
    chosen = spread_rows(
        P[rows], vectors[: rows.size], n, vectors[rows.size :], X=normalize(X[rows]), seed=int(rng.integers(2**31))
    )
    return np.asarray(rows[chosen])


def suspicious_first(suspicion: FloatArray, chosen: IntArray) -> IntArray:
    """Rows whose guess looks wrong, the clearest first, then chosen rows; as many as were chosen.

    >>> suspicious_first(np.array([0.0, 1.0, 0.0, 5.0]), np.array([2, 1, 0])).tolist()
    [3, 1, 2]
    """
    order = np.argsort(-suspicion, kind="stable")
    suspects = order[suspicion[order] > 0]
    rest = chosen[~np.isin(chosen, suspects)]
    return np.concatenate((suspects, rest))[: chosen.size]
