"""Exponentials and logarithms of kernels against those of NumPy."""

import numpy as np
import pytest

from transduce.kernels import kernel
from transduce.kernels.exponentials import LARGEST, exp, log


@kernel
def exp_all(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.size):
        out[i] = exp(x[i])


@kernel
def log_all(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.size):
        out[i] = log(x[i])


def applied(function, x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    function(x, out)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_have_eleven_digits(dtype):
    halves = np.log(2.0) * (np.arange(-100, 100) + 0.5)  # where the nearest integer changes
    x = np.concatenate((np.linspace(-700, 700, 100_001), np.linspace(-1, 1, 10_001), halves, [0.0, -0.0])).astype(dtype)
    x = x if dtype == np.float64 else x[np.abs(x) < 80]
    np.testing.assert_allclose(applied(exp_all, x), np.exp(x), rtol=1e-11 if dtype == np.float64 else 1e-6)


def test_exponentials_of_large_numbers_are_those_at_the_end_of_the_range():
    x = np.array([-np.inf, -1e300, -701.0, 701.0, 1e300, np.inf])
    np.testing.assert_allclose(applied(exp_all, x), np.exp(np.clip(x, -LARGEST, LARGEST)), rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_have_ten_digits(dtype):
    powers = np.ldexp(1.0, np.arange(-120, 120))
    near = np.outer(powers, [1.0, np.nextafter(1.0, 0.0), np.sqrt(0.5), np.nextafter(np.sqrt(0.5), 0.0)]).ravel()
    x = np.concatenate((np.geomspace(1e-37, 1e37, 100_001), np.linspace(0.5, 2.0, 10_001), near)).astype(dtype)
    x = x if dtype == np.float32 else np.concatenate((x, [np.finfo(np.float64).tiny, np.finfo(np.float64).max]))
    rtol = 1e-10 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(applied(log_all, x), np.log(x), rtol=rtol, atol=1e-13)
