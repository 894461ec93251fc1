"""Bounds on class counts: centres lie within them."""

import numpy as np
import pytest

from transduce.class_prior.bounds import Bounds


def test_the_center_of_bounds_lies_within_them():
    rng = np.random.default_rng(0)
    for n_rows in range(1, 40):
        counts = rng.multinomial(n_rows, rng.dirichlet(np.ones(4)))
        low, high = np.maximum(counts - rng.integers(0, 9, 4), 0), counts + rng.integers(0, 9, 4)
        center = Bounds(low, high).center(n_rows)
        assert center.sum() == pytest.approx(1.0)
        assert np.all((low <= n_rows * center + 1e-9) & (n_rows * center <= high + 1e-9))
        np.testing.assert_array_equal(Bounds(counts, counts).center(n_rows), counts / n_rows)


def test_exact_counts_stay_exact_in_a_sample():
    low, high, *_ = Bounds.exact(np.array([10, 25, 65])).scaled(100, 33)
    np.testing.assert_array_equal(low, [3, 8, 22])
    np.testing.assert_array_equal(high, low)
    low, high, *_ = Bounds(np.array([10, 25]), np.array([60, 90])).scaled(100, 33)
    np.testing.assert_array_equal((low, high), [[3, 8], [20, 30]])
