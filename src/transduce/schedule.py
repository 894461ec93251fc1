"""Annealing schedules: the weights of the unlabelled rows, stage by stage, always growing to the final one."""

from collections.abc import Sequence

import numpy as np

PAPER = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""C^u of Algorithm 1, as shares of the final weight."""


def stages(annealing: str | Sequence[float] | None, final: float) -> tuple[float, ...]:
    """Weights of the unlabelled rows for every stage: the paper's, none but the final one, or the user's own.

    >>> stages("paper", 1.0)[:3], stages(None, 0.5), stages([0.1, 1.0], 1.0)
    ((0.0001, 0.0003, 0.001), (0.5,), (0.1, 1.0))
    """
    if annealing is None:
        return (float(final),)
    if isinstance(annealing, str):
        if annealing != "paper":
            raise ValueError(f"annealing must be 'paper', None or a list of growing weights, but is {annealing!r}.")
        return tuple(share * final for share in PAPER)
    try:
        weights = np.asarray(annealing, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"annealing must be 'paper', None or a list of growing weights, but is {annealing!r}."
        ) from error
    sound = np.all(weights > 0) and np.all(weights < np.inf)
    if weights.ndim != 1 or weights.size == 0 or not sound or np.any(np.diff(weights) < 0):
        raise ValueError(f"annealing must be 'paper', None or a list of growing weights, but is {annealing!r}.")
    return tuple(float(weight) for weight in weights)
