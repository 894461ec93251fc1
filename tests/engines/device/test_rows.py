"""Rows on a device: products, norms and copies are those of the same rows in memory."""

import numpy as np
import pytest
from helpers.device_arrays import libraries
from helpers.weight_problems import TREE, flat_and_tree, some_rows
from scipy import sparse

from transduce.design import Design
from transduce.engines.device.arrays import to_host
from transduce.engines.device.rows import DeviceRows


def both(taxonomy, on_device, constant=0.3, n=40, dtype=np.float64):
    X = some_rows(taxonomy.n_classes, n=n)[0].astype(dtype)
    order = np.random.default_rng(1).permutation(n)
    design = Design.create(X[order], taxonomy, constant=constant)
    return design, DeviceRows.create(on_device(X), taxonomy, 1, order, constant)


@libraries
@flat_and_tree
@pytest.mark.parametrize("constant", [0.0, 0.3])
def test_products_and_norms_are_those_of_rows_in_memory(taxonomy, on_device, constant):
    design, rows = both(taxonomy, on_device, constant)
    rng = np.random.default_rng(0)
    W, R = rng.normal(size=design.zeros().shape), rng.normal(size=(design.n_rows, taxonomy.n_classes))
    floats = rows.arrays.floats
    np.testing.assert_allclose(to_host(rows.in_problem_order(rows.scores(floats(W)))), design.scores(W), atol=1e-12)
    found, S = rows.zeros(), rows.arrays.zeros(*R.shape)
    rows.write_pullback(rows.on_device(floats(R)), found)
    features = slice(None, -1 if constant else None)
    np.testing.assert_allclose(to_host(found)[features], design.pullback(R)[features], atol=1e-12)
    rows.write_scores(floats(W), S)
    S = S + rows.bias(floats(W)) if constant else S
    np.testing.assert_allclose(to_host(rows.in_problem_order(S)), design.scores(W), atol=1e-12)
    np.testing.assert_array_equal(rows.order[rows.positions], np.arange(design.n_rows))
    assert rows.largest_overlap == pytest.approx(design.largest_overlap)


@libraries
@flat_and_tree
@pytest.mark.parametrize("shift", [0.0, 0.2], ids=["nonnegative", "signed"])
def test_coupling_bounds_the_curvature_of_the_dual(taxonomy, on_device, shift):
    """‖Σ_i r_i x_i z_iᵀ P‖² ≤ Σ_i r_i c_i ‖z_i‖² where Σ_k z_ik = 0, nearly reached by the leading eigenvector."""
    X = some_rows(taxonomy.n_classes, n=40)[0].toarray() - shift
    rows, rng = DeviceRows.create(on_device(X), taxonomy, 1, np.arange(40)), np.random.default_rng(0)
    rates, P, K = rng.random(40), np.asarray(taxonomy.paths), taxonomy.n_classes
    by_class = np.linalg.svd((np.eye(K) - 1.0 / K) @ P)[0][:, 0]
    coupling = to_host(rows.coupling(rows.arrays.floats(rates)))
    by_row = np.linalg.svd(np.sqrt(rates)[:, None] * X)[0][:, 0] / np.sqrt(rates)
    random = rng.normal(size=(40, K))
    for z, slack in ((np.outer(by_row, by_class), 1.5), (random - random.mean(axis=1, keepdims=True), np.inf)):
        square = np.sum((X.T @ (rates[:, None] * z) @ P) ** 2)
        bound = np.sum(rates * coupling * np.sum(z**2, axis=1))
        assert square <= bound * (1 + 1e-9)
        assert bound <= slack * square


@libraries
def test_float32_stays_float32(on_device):
    _, rows = both(TREE, on_device, dtype=np.float32)
    assert to_host(rows.zeros()).dtype == np.float32 == rows.dtype
    assert to_host(rows.scores(rows.zeros())).dtype == np.float32


@libraries
def test_selected_rows_are_copied(on_device):
    design, rows = both(TREE, on_device)
    some, W = np.array([3, 0, 17]), np.random.default_rng(0).normal(size=design.zeros().shape)
    chosen = rows.select_rows(some)
    found = to_host(chosen.in_problem_order(chosen.scores(rows.arrays.floats(W))))
    np.testing.assert_allclose(found, design.select_rows(some).scores(W), atol=1e-12)


@libraries
def test_rows_come_to_memory(on_device):
    design, rows = both(TREE, on_device)
    some = np.array([3, 0, 17])
    found, expected = rows.in_memory(some).matrix(), design.select_rows(some).matrix()
    found, expected = (X.toarray() if sparse.issparse(X) else X for X in (found, expected))
    np.testing.assert_array_equal(found, expected)
