"""Terms in the posterior: gradients by finite differences, and ranges that are met cost nothing."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from transduce.class_prior.bounds import Bounds
from transduce.losses import MaxEnt
from transduce.solvers.penalties import CountConstraint, Entropy, Mismatch, SizeBounds, through_posterior


def bounds(low: np.ndarray, high: np.ndarray) -> SizeBounds:
    return SizeBounds.create(Bounds(low, high))


PENALTIES = {
    "entropy": lambda low, high: Entropy(0.7, np.full(9, 1 / 9)),
    "mismatch": lambda low, high: Mismatch(3.0, bounds(low, high)),
    "constraint": lambda low, high: CountConstraint(bounds(low, high), np.array([0.2, -0.1, 0.3]), 5.0),
}


@pytest.mark.parametrize("ranges", [False, True], ids=["counts", "ranges"])
@pytest.mark.parametrize("make", PENALTIES.values(), ids=PENALTIES)
def test_gradients_equal_differences(make, ranges):
    low = np.array([5, 1, 3])
    penalty = make(low, low + ranges * np.array([1, 4, 0]))
    S = np.random.default_rng(1).normal(size=(9, 3))
    value = lambda flat: penalty.value_and_gradient(MaxEnt().posterior(flat.reshape(9, 3)))[0]  # noqa: E731
    p = MaxEnt().posterior(S)
    gradient = through_posterior(p, penalty.value_and_gradient(p)[1])
    np.testing.assert_allclose(gradient.ravel(), approx_fprime(S.ravel(), value, 1e-7), atol=1e-5)


def test_a_range_that_holds_costs_nothing():
    p = MaxEnt().posterior(np.random.default_rng(0).normal(size=(9, 3)))
    low, high = np.floor(p.sum(axis=0)), np.ceil(p.sum(axis=0))
    met = bounds(low, high)
    assert Mismatch(3.0, met).value_and_gradient(p)[0] == 0.0
    assert CountConstraint(met, np.zeros(3), 5.0).value_and_gradient(p)[0] == 0.0
    assert met.residual(p) == 0.0
