"""Columns divided among threads."""

import numpy as np
import pytest
from scipy import sparse

from transduce.design import Design, columns
from transduce.taxonomy import Taxonomy


def many_words(n_rows: int = 500, n_words: int = 100_000):
    """Rows of words with frequencies by Zipf's law."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, size=(n_rows, 200)) - 1, n_words - 1)
    return sparse.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 200)), (n_rows, n_words))


@pytest.mark.parametrize("n_parts", [1, 2, 3, 8, 16, 64, 100])
def test_parts_of_the_columns_cover_all_of_them(monkeypatch, n_parts):
    monkeypatch.setattr(columns, "MIN_PRODUCTS_TO_REORDER", 1)
    X = many_words()
    X.sum_duplicates()
    design = Design.create(X, Taxonomy.flat(range(20))).reordered_by_frequency()
    ends = design.column_ends(n_parts)
    assert design.groups is not None
    assert ends.size == n_parts + 1
    assert (ends[0], ends[-1]) == (0, 100_000)
    assert np.all(np.diff(ends) >= 0)


@pytest.mark.parametrize("n_rare", [0, 9, 32])
@pytest.mark.parametrize("n_parts", [2, 4, 8])
def test_parts_have_about_equal_costs(n_rare, n_parts):
    costs = np.where(np.arange(64) < 64 - n_rare, 1.0, columns.RARE_COST)
    ends = columns.nearest_ends(costs, n_parts)
    parts = np.add.reduceat(costs, ends[:-1])
    assert parts.max() <= (1.0 + n_parts * columns.RARE_COST / costs.sum()) * parts.mean()
