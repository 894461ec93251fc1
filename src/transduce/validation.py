"""Checks of the parameters of estimators; those of data are in `contract`."""

from numbers import Integral, Real

import numpy as np


def check_positive(estimator: object, *names: str) -> None:
    """Raise ValueError unless these parameters are finite numbers above 0."""
    for name in names:
        value = getattr(estimator, name)
        if not is_positive(value):
            raise ValueError(f"{name} must be a number above 0, but is {value!r}.")


def is_positive(value: object) -> bool:
    """Whether a value is a finite number above 0."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def check_alpha(alpha: object) -> None:
    """Raise ValueError unless alpha is a finite number above 0, or "auto"."""
    if not is_positive(alpha) and not (isinstance(alpha, str) and alpha == "auto"):
        raise ValueError(f'alpha must be a number above 0, or "auto", but is {alpha!r}.')


def check_iterations(max_iter: object, n_jobs: object) -> None:
    """Raise ValueError unless max_iter is a positive integer, and n_jobs None or an integer other than 0."""
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter must be a whole number, 1 or more, but is {max_iter!r}.")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, but is {n_jobs!r}.")


def has_methods(value: object, *names: str) -> bool:
    """Whether a value is an object, not a class or a name, with these methods."""
    return not isinstance(value, (str, type)) and all(callable(getattr(value, name, None)) for name in names)


def check_fractions(name: str, value: object) -> tuple[float, float]:
    """Return a fraction, or a pair (low, high) of fractions, as a pair; both are at least 0 and below 1."""
    try:
        low, high = value if isinstance(value, (tuple, list)) else (value, value)
        if 0.0 <= float(low) <= float(high) < 1.0:
            return float(low), float(high)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"{name} must be a fraction of at least 0 and below 1, or a pair (low, high) of these, but is {value!r}."
    )
