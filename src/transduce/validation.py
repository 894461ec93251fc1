"""Checks of the parameters of estimators; those of data are in `contract`."""

import os
from numbers import Integral, Real
from typing import Any

import numpy as np

from transduce.suggest import short_repr


def check_positive(estimator: object, *names: str) -> None:
    """Raise ValueError unless these parameters are finite numbers above 0."""
    for name in names:
        value = getattr(estimator, name)
        if not is_positive(value):
            raise ValueError(f"{name} must be a number above 0, but is {short_repr(value)}.")


def is_positive(value: object) -> bool:
    """Whether a value is a finite number above 0."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf
    except OverflowError:  # a whole number beyond float64
        return False


def check_alpha(alpha: object) -> None:
    """Raise ValueError unless alpha is a finite number above 0, or "auto"."""
    if not is_positive(alpha) and not (isinstance(alpha, str) and alpha == "auto"):
        raise ValueError(f'alpha must be a number above 0, or "auto", but is {short_repr(alpha)}.')


def check_iterations(max_iter: object, n_jobs: object) -> None:
    """Raise ValueError unless max_iter is a positive integer, and n_jobs None or an integer other than 0."""
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter must be a whole number, 1 or more, but is {short_repr(max_iter)}.")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, but is {short_repr(n_jobs)}.")


def check_flag(name: str, value: object) -> None:
    """Raise ValueError unless a parameter is True or False; 1 and 0 count as these."""
    if not (isinstance(value, (Integral, np.bool_)) and value in (0, 1)):
        raise ValueError(f"{name} must be True or False, but is {short_repr(value)}.")


def random_generator(random_state: object) -> Any:
    """Return the RandomState of a `random_state`, or raise ValueError."""
    from sklearn.utils import check_random_state  # here, because it takes long to import

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, but is "
            f"{short_repr(random_state)}."
        ) from None


def check_path(name: str, path: object) -> str:
    """Return a path as a string, or raise TypeError."""
    if isinstance(path, (str, os.PathLike)) and isinstance(found := os.fspath(path), str):
        return found
    raise TypeError(f"{name} must be a path, as a str or Path, but is {short_repr(path)}.")


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
        f"{name} must be a fraction of at least 0 and below 1, or a pair (low, high) of these, but is "
        f"{short_repr(value)}."
    )
