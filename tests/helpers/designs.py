"""Rows for tests of the design matrix, with columns of very different frequency, and taxonomies to score them for."""

import numpy as np
import pytest
from scipy import sparse

from transduce.design import rows
from transduce.losses import blockwise
from transduce.taxonomy import Taxonomy

TAXONOMIES = {
    "two": Taxonomy.flat("ab"),
    "flat": Taxonomy.flat(range(7)),
    "tree": Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b", "c/z"]),
}

every_taxonomy = pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES)


def use_threads_and_blocks(monkeypatch):
    """Use threads and blocks even for problems as small as these."""
    monkeypatch.setattr(rows, "MIN_PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 64)
    monkeypatch.setattr(blockwise, "MIN_BLOCK_ROWS", 4)
    monkeypatch.setattr(blockwise, "MIN_BLOCKS_PER_THREAD", 1)


def some_rows(n: int = 300, d: int = 50, dtype: object = np.float64, seed: int = 0) -> sparse.csr_matrix:
    """Columns of very different frequency, one in every row and one in none; some rows are empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < np.linspace(0.5, 0.0, d))
    X[:, 3] = 1.0
    X[::17] = 0.0
    return sparse.csr_matrix(X.astype(dtype))
