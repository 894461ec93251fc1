"""Checks of parameters and sample weights."""

from types import SimpleNamespace

import numpy as np
import pytest

from transduce.validation import (
    check_alpha,
    check_iterations,
    check_labeled_weight,
    check_positive,
    check_sample_weight,
    has_methods,
)


@pytest.mark.parametrize("value", [0, -1, True, np.inf, np.nan, "1", None])
def test_positive_numbers(value):
    check_positive(SimpleNamespace(alpha=1e-3, tol=2), "alpha", "tol")
    with pytest.raises(ValueError, match="alpha must be a number above 0"):
        check_positive(SimpleNamespace(alpha=value), "alpha")


@pytest.mark.parametrize("value", [0, True, np.nan, "small", None, ["auto"], np.array(["auto", "auto"])])
def test_alpha_is_a_positive_number_or_auto(value):
    check_alpha("auto")
    check_alpha(np.float32(1e-3))
    with pytest.raises(ValueError, match='alpha must be a number above 0, or "auto", but is'):
        check_alpha(value)


@pytest.mark.parametrize(
    ("max_iter", "n_jobs", "name"), [(0, None, "max_iter"), (2.5, 1, "max_iter"), (1, 0, "n_jobs")]
)
def test_iterations_and_jobs(max_iter, n_jobs, name):
    check_iterations(1, -1)
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        check_iterations(max_iter, n_jobs)


def test_methods_of_objects_but_not_of_classes():
    assert has_methods([], "append", "pop")
    assert not has_methods(list, "append")
    assert not has_methods("text", "upper")
    assert not has_methods([], "append", "missing")


def test_sample_weights():
    assert check_sample_weight(None, 3) is None
    assert check_sample_weight(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert check_sample_weight([1, 0, 2], 3).tolist() == [1.0, 0.0, 2.0]
    for bad in ([1, 2], [1, np.nan, 1], [1, -1, 1]):
        with pytest.raises(ValueError, match="sample_weight must"):
            check_sample_weight(bad, 3)
    with pytest.raises(TypeError, match="sample_weight must be numbers"):
        check_sample_weight(["much"] * 3, 3)
    check_labeled_weight(None)
    with pytest.raises(ValueError, match="every weight is zero"):
        check_labeled_weight(np.zeros(2))
