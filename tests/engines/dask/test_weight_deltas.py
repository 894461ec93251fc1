"""Deltas of the weights: split, summed, added and taken, they are what dense arrays would give, bit for bit."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.weight_deltas import dense, random_delta, sum_in_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from transduce.design import Design
from transduce.engines.dask.weight_deltas import (
    DENSE,
    MIN_CHUNK_BYTES,
    TrackedWeights,
    WeightDelta,
    add_delta,
    as_delta,
    chunk_bounds,
    split_delta,
    sum_deltas,
)
from transduce.taxonomy import Taxonomy

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=60)


@quick
@given(SEEDS, st.integers(1, 40), st.lists(st.sampled_from([0.0, 0.1, 0.7, 1.0]), min_size=1, max_size=5))
@pytest.mark.parametrize("kind", ["few rows", "any rows", "any rows and all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_is_the_dense_sum_in_the_order_given(dtype, kind, seed, n_rows, fractions):
    rng, among = np.random.default_rng(seed), 0.4 if kind == "few rows" else 1.0
    deltas = [random_delta(rng, n_rows, fraction, dtype=dtype, among=among) for fraction in fractions]
    if kind == "any rows and all":
        deltas.insert(rng.integers(len(deltas) + 1), random_delta(rng, n_rows, None, dtype=dtype))
    before = [delta.values.copy() for delta in deltas]
    found = sum_deltas(deltas, n_rows)
    assert found.values.dtype == dtype
    assert np.array_equal(dense(found, n_rows), sum_in_order(deltas, n_rows))
    assert all(np.array_equal(delta.values, old) for delta, old in zip(deltas, before, strict=True))


@pytest.mark.parametrize(("n_each", "is_dense"), [(20, False), (30, True)], ids=["few rows", "many rows"])
def test_a_sum_of_many_rows_is_dense(n_each, is_dense):
    rows = [np.arange(n_each), np.arange(100 - n_each, 100)]
    found = sum_deltas([WeightDelta(own, np.ones((n_each, 1))) for own in rows], 100)
    assert (found.rows is None) == is_dense == (2 * n_each > DENSE * 100)


@quick
@given(SEEDS, st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.6, None]), st.integers(1, 6), st.booleans())
def test_chunks_of_a_delta_added_to_weights_are_the_delta_added(seed, n_rows, fraction, n_chunks, cleared):
    rng = np.random.default_rng(seed)
    weights, delta = TrackedWeights.create(rng.normal(size=(n_rows, 3))), random_delta(rng, n_rows, fraction, 3)
    bounds = [0, *sorted(rng.integers(0, n_rows + 1, n_chunks - 1).tolist()), n_rows]
    expected = dense(delta, n_rows) + (0.0 if cleared else weights.W)
    if cleared:
        weights.clear()
    weights.add(split_delta(delta, bounds), bounds)
    assert np.array_equal(weights.W, expected)
    assert np.array_equal(weights.base, expected)


@quick
@given(st.integers(1, 200_000), st.integers(1, 30), st.sampled_from([4, 8]), st.integers(1, 70))
def test_chunks_cover_all_rows_once_and_are_large_enough(n_rows, n_columns, itemsize, n_groups):
    bounds = chunk_bounds((n_rows, n_columns), itemsize, n_groups)
    assert (bounds[0], bounds[-1]) == (0, n_rows)
    assert all(low < high for low, high in pairwise(bounds))
    n_chunks, row = len(bounds) - 1, n_columns * itemsize
    assert n_chunks <= n_groups
    if n_chunks > 1:  # bounds are whole rows
        assert all((high - low + 1) * row >= MIN_CHUNK_BYTES for low, high in pairwise(bounds))
    if n_chunks < min(n_groups, n_rows):
        assert n_rows * row < (n_chunks + 1) * MIN_CHUNK_BYTES


def random_design(rng, n_rows=20, n_features=60, dtype=np.float64):
    X = sparse.random(n_rows, n_features, 0.05, format="csr", dtype=dtype, random_state=rng)
    return Design.create(X, Taxonomy.flat("abc"))


def columns_of(design, rows):
    return np.unique(np.concatenate([design.indices[slice(*design.spans[i])] for i in rows] or [[]])).astype(int)


@quick
@given(
    SEEDS, st.lists(st.sampled_from([0, 1, 3, 9, 11, 20]), min_size=1, max_size=3), st.sampled_from([1.0, 0.5, 1 / 3])
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_taking_the_changes_restores_the_weights(dtype, seed, n_visited, scale):
    """Few rows, many (11 of 20 are), and one after the other, with columns in common; twice, for it can be repeated."""
    rng = np.random.default_rng(seed)
    designs = [random_design(rng, dtype=dtype) for _ in range(2)]
    weights = TrackedWeights.create(rng.normal(size=(60, 3)).astype(dtype))
    for _ in range(2):
        before, touched = weights.W.copy(), np.zeros(60, bool)
        for visit, n_rows in enumerate(n_visited):
            design, rows = designs[visit % 2], rng.choice(20, n_rows, replace=False)
            weights.mark(design, rows)
            columns = columns_of(design, rows)
            touched[columns] = True
            weights.W[columns] += rng.normal(size=(columns.size, 3)).astype(dtype)
        changed = weights.W.copy()
        delta = weights.take(scale)
        assert np.array_equal(weights.W, before)
        assert delta.values.dtype == dtype
        is_dense = any(n > DENSE * 20 and designs[visit % 2].n_values >= 60 for visit, n in enumerate(n_visited))
        assert (delta.rows is None) == (is_dense or touched.all())
        if delta.rows is not None:
            assert np.array_equal(delta.rows, np.flatnonzero(touched))
        np.testing.assert_allclose(dense(delta, 60), (changed - before) * scale, rtol=3e-7)


@quick
@given(SEEDS, st.sampled_from([0, 3, 11]), st.sampled_from([0.05, 0.3, None]), st.booleans())
def test_deltas_of_others_are_added_below_the_changes_of_this_shard(seed, n_rows, fraction, revert):
    rng = np.random.default_rng(seed)
    design, W, theirs = random_design(rng), rng.normal(size=(60, 3)), random_delta(rng, 60, fraction, 3)
    weights, before = TrackedWeights.create(W), W.copy()
    rows, own = rng.choice(20, n_rows, replace=False), np.zeros_like(W)
    weights.mark(design, rows)
    own[columns_of(design, rows)] = 1.0
    W += own
    weights.add([theirs])
    np.testing.assert_allclose(W, before + own + dense(theirs, 60))
    delta = weights.take(revert=revert)
    np.testing.assert_allclose(dense(delta, 60), own, atol=1e-12)
    other = before.copy()  # bit for bit what another shard has, which adds both deltas
    add_delta(other, theirs)
    if not revert:
        add_delta(other, delta)
    assert np.array_equal(W, other)
    assert np.array_equal(weights.base, other)


@quick
@given(SEEDS, st.sampled_from([3, 11]))
def test_amplified_changes_are_so_many_times_as_large(seed, n_rows):
    rng = np.random.default_rng(seed)
    design, weights = random_design(rng), TrackedWeights.create(rng.normal(size=(60, 3)))
    rows, before = rng.choice(20, n_rows, replace=False), weights.W.copy()
    weights.mark(design, rows)
    weights.W[columns_of(design, rows)] += 1.0
    change = weights.W - before
    weights.amplify(3.0)
    np.testing.assert_allclose(weights.W, before + 3.0 * change, atol=1e-12)


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.9])
def test_weights_are_a_delta_from_zero(fraction):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(40, 3)) * (rng.random((40, 1)) < fraction)
    delta, found = as_delta(W), np.zeros((40, 3))
    add_delta(found, delta)
    assert np.array_equal(found, W)
    assert (delta.rows is None) == (fraction > DENSE)
