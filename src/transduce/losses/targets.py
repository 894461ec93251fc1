"""Targets of either kind, labels (n,) or distributions (n, K), where a loss need not tell one from the other."""

import numpy as np

from transduce.losses.base import FloatArray, Targets


def pick(values: FloatArray, targets: Targets) -> FloatArray:
    """Of each row the value of its label, or the mean under its distribution."""
    return mean_under(values, targets) if targets.ndim == 2 else np.asarray(values[np.arange(len(values)), targets])


def mean_under(values: FloatArray, distributions: Targets) -> FloatArray:
    """The mean (n,) of each row's values under its distribution."""
    return np.asarray((values * distributions).sum(axis=1), values.dtype)


def take_off(targets: Targets, out: FloatArray) -> None:
    """Subtract targets in place."""
    if targets.ndim == 2:
        np.subtract(out, targets, out=out, casting="same_kind")
    else:
        out[np.arange(len(out)), targets] -= 1.0


def as_posterior(targets: Targets, S: FloatArray) -> FloatArray:
    """Targets as distributions (n, K)."""
    if targets.ndim == 2:
        return targets.astype(S.dtype, copy=False)
    posterior = np.zeros_like(S)
    posterior[np.arange(len(S)), targets] = 1.0
    return posterior
