"""Rows that benchmarks make of halves of documents."""

import numpy as np
from scipy import sparse

from benchmarks.document_halves import mix


def test_a_row_has_half_of_the_words_of_each_of_two_documents():
    rng = np.random.default_rng(0)
    counts = sparse.random(12, 40, 0.4, format="csr", random_state=0, data_rvs=lambda n: rng.integers(1, 6, n))
    counts.data = counts.data.astype(np.int32)
    idf = (1.0 + rng.random(40)).astype(np.float32)
    pairs = rng.integers(0, 12, (2, 50))
    n_tokens = np.asarray(counts.sum(axis=1)).ravel().astype(np.int64)
    size = int(np.diff(counts.indptr)[pairs].sum())
    data, columns, ends = np.empty(size, np.float32), np.empty(size, np.int32), np.zeros(51, np.int64)
    chance = rng.random(int(n_tokens[pairs].sum()), np.float32)
    mix(pairs, counts.data, counts.indices, counts.indptr, idf, chance, data, columns, ends)
    X = sparse.csr_matrix((data[: ends[-1]], columns[: ends[-1]], ends), (50, 40))
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0, rtol=1e-5)
    both = counts[pairs[0]] + counts[pairs[1]]
    assert (X.astype(bool) > both.astype(bool)).nnz == 0
    lengths, most = np.diff(X.indptr), np.diff(both.indptr)
    assert np.all((lengths > 0) & (lengths <= most))
    assert np.any(lengths < most)
