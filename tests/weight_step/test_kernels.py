"""The update of one row: the projection onto the simplex, and steps in pairs of classes."""

import numpy as np
import pytest
from helpers.weight_problems import TREE

from transduce.weight_step._kernels import margin


def test_the_projection_meets_its_optimality_condition():
    """p = max(z − τ, 0) for the τ that makes it sum to 1."""
    rng = np.random.default_rng(0)
    for trial in range(300):
        z = rng.normal(size=rng.integers(1, 12)) * 10.0 ** rng.integers(-3, 4)
        if trial % 5 == 0:
            z = np.rint(z)
        p = np.empty_like(z)
        margin.project_onto_simplex(z, p)
        scale = 1e-12 * max(np.abs(z).max(), 1.0)
        assert p.sum() == pytest.approx(1.0, abs=10 * scale)
        threshold = (z - p)[p > 0]
        assert np.ptp(threshold) <= scale
        assert np.all(z[p == 0] <= threshold.max() + scale)


def test_pairwise_ascent_on_flat_classes_equals_the_projection():
    rng = np.random.default_rng(1)
    for _ in range(300):
        k = int(rng.integers(1, 9))
        curvature = float(10.0 ** rng.uniform(-2, 2))
        p, G = rng.dirichlet(np.full(k, 0.5)), rng.normal(size=k)
        expected = np.empty(k)
        margin.project_onto_simplex(p + G / curvature, expected)
        found = p.copy()
        margin.pairwise_ascent(G.copy(), curvature, np.eye(k), found, 1e-12)
        np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, 1.0 / curvature))


def test_pairwise_ascent_in_a_tree_is_optimal_and_returns_its_gradient():
    """At the optimum no class has a larger gradient than the classes with positive probability."""
    rng = np.random.default_rng(2)
    paths = TREE.paths.astype(float)
    overlap = paths @ paths.T
    for _ in range(200):
        curvature = float(10.0 ** rng.uniform(-2, 2))
        p, G = rng.dirichlet(np.full(TREE.n_classes, 0.5)), rng.normal(size=TREE.n_classes)
        found, gradient = p.copy(), G.copy()
        margin.pairwise_ascent(gradient, curvature, overlap, found, 1e-9)
        assert found.sum() == pytest.approx(1.0)
        assert np.all(found >= 0)
        np.testing.assert_allclose(gradient, G - curvature * overlap @ (found - p), atol=1e-9 * (1 + curvature))
        assert gradient.max() - gradient[found > 0].min() <= 1e-8 * (1 + curvature)
