"""Rows to ask a person about next: those that reduce the expected error most, spread over the data.

Rows and labels are clustered together, into as many clusters as there are labels and rows to choose. What a cluster is
worth is the expected error of its rows, divided by the labels that cover it already:

    worth(c) = Σ_{i in c} w_i / (1 + labels in c)²,     w_i = Σ_k p_ik (1 − p_ik) / √size_k

w_i is the expected error of a row, p its probabilities; errors in small classes count more, as they do in macro F. Of
each of the best clusters, the row with the largest w_i times its mean cosine with its neighbours is chosen: a typical
one, of which the classifier is not sure. With one row a cluster, rows are as diverse as the data.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from transduce.arrays import Array, FloatArray, IntArray
from transduce.errors import InputError, LabelError, LabelErrorKind
from transduce.labels.missing import find_labeled
from transduce.suggest import short_repr
from transduce.validation import has_methods, random_generator

N_DIMENSIONS, MAX_POOL, MAX_CLUSTERS, MAX_ITER = 64, 4000, 500, 20
"""Dimensions of the rows that are clustered, rows to choose from, clusters and steps of k-means."""
N_NEAR, MAX_OTHERS, BLOCK_ROWS = 20, 3000, 1000
"""Neighbours that make a row typical, rows that these are sought among, and rows of a block of cosines."""
SIZE_POWER, COVER_POWER, LEAST = 0.5, 2.0, 1e-3


def select_rows(
    clf: Any,
    X: Any,
    n: int,
    *,
    y: Any = None,
    random_fraction: float = 0.0,
    random_state: Any = None,
) -> IntArray:
    """Choose n rows to ask a person about, most useful first.

    Parameters
    ----------
    clf : classifier with predict_proba, or None
        A fitted classifier, such as `TransductiveClassifier` or any of scikit-learn. None chooses rows that represent
        the data, as before there are any labels.
    X : array or sparse matrix of shape (n_samples, n_features), or texts
        Rows as the classifier takes them; texts for a `TextClassifier`.
    n : int
        Number of rows to choose; fewer come back if there are fewer distinct ones.
    y : array-like of shape (n_samples,), default=None
        Labels so far, -1, None or "" for rows without one. Only these are chosen. None: no row has a label.
    random_fraction : float, default=0.0
        Fraction of the rows that is drawn at random instead, for honest estimates of accuracy. They come last.
    random_state : int, RandomState instance or None, default=None
        Seed of the clusters and of the random rows.

    Returns
    -------
    rows : ndarray of int
        Positions in X.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveClassifier
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.7, 0.7], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> clf = TransductiveClassifier(random_state=0).fit(X, y)
    >>> select_rows(clf, X, 1, y=y, random_state=0).tolist()
    [4]
    """
    random = random_generator(random_state)
    if clf is not None and not has_methods(clf, "predict_proba"):
        found = f"is {short_repr(clf)}"
        raise TypeError(f"clf must be a fitted classifier with predict_proba, or None, but {found}. Pass one.")
    if not isinstance(n, Integral) or n < 1:
        raise InputError(f"n must be a whole number of rows, 1 or more, but is {short_repr(n)}.")
    if not isinstance(random_fraction, Real) or not 0 <= random_fraction <= 1:
        raise InputError(f"random_fraction must be from 0 to 1, but is {short_repr(random_fraction)}.")
    vectorizer = getattr(clf, "vectorizer_", None)
    probabilities = None if clf is None else np.asarray(clf.predict_proba(X))
    if vectorizer is not None:
        from transduce.features.text_rows import transform_texts

        X = transform_texts(vectorizer, list(X), clf._encoding())
    X = X if isinstance(X, np.ndarray) else sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)
    missing = np.ones(X.shape[0], bool) if y is None else ~find_labeled(y, warn=False)[1]
    if missing.size != X.shape[0]:
        raise LabelError(LabelErrorKind.LENGTH, n_rows=X.shape[0], n_labels=missing.size)
    if not missing.any():
        return np.zeros(0, np.int64)
    rows, vectors = np.flatnonzero(missing), reduce_rows(X)
    n_random = round(random_fraction * min(n, rows.size))
    drawn = rows[random.permutation(rows.size)[:n_random]]
    rest = np.setdiff1d(rows, drawn)
    p = None if probabilities is None else probabilities[rest]
    seed = int(random.randint(2**31 - 1))
    found = spread_rows(p, vectors[rest], n - n_random, vectors[~missing], X=normalize(X[rest]), seed=seed)
    return np.concatenate((rest[found], drawn))


def spread_rows(
    probabilities: Array | None, vectors: Array, n: int, labeled: Array | None = None, *, X: Any = None, seed: int = 0
) -> IntArray:
    """Choose n rows by probabilities (m, K) and dense vectors (m, d), given vectors (l, d) of labelled rows.

    Neighbours are found by the rows X (m, D), from which the vectors were made; by the vectors without them.
    """
    if not n or not len(vectors):
        return np.zeros(0, np.int64)
    rng = np.random.default_rng(seed)
    pool = _distinct(vectors, rng)[: max(MAX_POOL, n)]
    weights = np.ones(pool.size) if probabilities is None else expected_error(probabilities)[pool]
    weights = np.where(vectors[pool].any(axis=1), weights, 0.0)  # an empty text teaches nothing
    known = np.zeros((0, vectors.shape[1])) if labeled is None else labeled
    known = known[rng.permutation(len(known))[: max(MAX_CLUSTERS - n, 1)]]
    k = min(n + len(known), pool.size)
    means = KMeans(k, n_init=1, max_iter=MAX_ITER, random_state=seed).fit(np.vstack((vectors[pool], known)))
    cluster, cover = means.labels_[: pool.size], np.bincount(means.labels_[pool.size :], minlength=k)
    typical = np.maximum(nearness((vectors if X is None else X)[pool]), LEAST) * np.maximum(weights, LEAST)
    return np.asarray(pool[_best_of_clusters(cluster, weights, typical, cover, min(n, pool.size))])


def nearness(X: Any) -> FloatArray:
    """Mean cosine (m,) of each row, of length 1, with its nearest neighbours among the first rows."""
    others, found = X[:MAX_OTHERS].T, np.zeros(X.shape[0])
    k = min(N_NEAR, others.shape[1] - 1)
    for start in range(0, X.shape[0] if k > 0 else 0, BLOCK_ROWS):
        cosines = X[start : start + BLOCK_ROWS] @ others
        cosines = cosines.toarray() if sparse.issparse(cosines) else cosines
        rows = np.arange(len(cosines))
        inside = rows + start < cosines.shape[1]
        cosines[rows[inside], rows[inside] + start] = 0.0  # not with itself
        found[start : start + BLOCK_ROWS] = np.partition(cosines, -k, axis=1)[:, -k:].mean(axis=1)
    return found


def expected_error(probabilities: Array) -> FloatArray:
    """Expected error of each row (m,) that counts more in small classes, from probabilities (m, K)."""
    p = np.asarray(probabilities, dtype=np.float64)
    sizes = np.maximum(p.mean(axis=0), LEAST) ** SIZE_POWER
    return np.asarray((p * (1.0 - p) / sizes).sum(axis=1))


def reduce_rows(X: Any, seed: int = 0) -> FloatArray:
    """Dense rows of length 1 with few columns: by a truncated SVD if they are sparse with many; zeros stay zeros."""
    if sparse.issparse(X) and X.shape[1] <= N_DIMENSIONS:
        X = X.toarray()
    if sparse.issparse(X):
        k = min(N_DIMENSIONS, *(side - 1 for side in X.shape)) if X.nnz else 0
        X = TruncatedSVD(k, random_state=seed).fit_transform(X) if k > 0 else X[:, :1].toarray()
    Z = np.asarray(X, dtype=np.float64)
    return np.asarray(Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-9))


def _best_of_clusters(cluster: Array, weights: FloatArray, typical: FloatArray, cover: Array, n: int) -> IntArray:
    """Take the most typical row of each cluster, best cluster first; then the next of each, until there are n."""
    order = np.lexsort((-typical, cluster))
    start = np.searchsorted(cluster[order], np.arange(cover.size + 1))
    worth = np.bincount(cluster, weights, cover.size) / (1.0 + cover) ** COVER_POWER
    best_first, chosen, turn = np.argsort(-worth, kind="stable"), list[int](), 0
    while len(chosen) < n:
        have = best_first[np.diff(start)[best_first] > turn]
        chosen += order[start[have] + turn].tolist()
        turn += 1
    return np.array(chosen[:n], dtype=np.int64)


def _distinct(vectors: Array, rng: np.random.Generator) -> IntArray:
    """One of each group of equal rows, in random order; rows of zeros last."""
    keys = np.round(vectors @ rng.standard_normal(vectors.shape[1]), 9)
    order = rng.permutation(len(keys))
    first = order[np.sort(np.unique(keys[order], return_index=True)[1])]
    empty = ~vectors[first].any(axis=1)
    return np.concatenate((first[~empty], first[empty]))
