"""Annealing schedules: how heavy and how soft the labels of unlabelled rows are, stage by stage.

The paper's labels are hard, and the weight of their rows grows. Soft labels are distributions whose mean entropy falls,
as a share of the greatest that the class sizes allow, while the weight grows or has its final value from the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PAPER = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""C^u of Algorithm 1, as shares of the final weight."""
KINDS = "'soft', 'paper', None or a list of growing weights"

N_STAGES, ROUNDS, LAST_ENTROPY = 9, 6, 0.01
"""Stages of a cooling, rounds in each, and the entropy at which labels are taken to be hard."""
COOLINGS = ((0.03, 0.6), (1.0, 0.4), (1.0, 0.9))
"""First weight and first entropy of each cooling: no one of them is best everywhere (see docs/how-to-choose.md)."""


@dataclass(frozen=True)
class SoftStage:
    """Weight of the unlabelled rows, and mean entropy of their labels as a share of the greatest."""

    weight: float
    entropy: float


def cooling_schedules(final: float) -> tuple[tuple[SoftStage, ...], ...]:
    """The schedules of soft annealing: each from its first weight and entropy, evenly in logarithms, to the last.

    >>> [(stage.weight, stage.entropy) for stage in coolings(1.0)[1][:2]]
    [(1.0, 0.4), (1.0, 0.252)]
    """
    steps = np.linspace(0.0, 1.0, N_STAGES)
    return tuple(
        tuple(
            SoftStage(final * float(weight ** (1.0 - t)), round(float(entropy ** (1.0 - t) * LAST_ENTROPY**t), 3))
            for t in steps
        )
        for weight, entropy in COOLINGS
    )


def stages(annealing: str | Sequence[float] | None, final: float) -> tuple[float, ...]:
    """Weights of the unlabelled rows for every stage: the paper's, none but the final one, or the user's own.

    Soft annealing has the paper's stages as the first of its ways.

    >>> stages("paper", 1.0)[:3], stages(None, 0.5), stages([0.1, 1.0], 1.0)
    ((0.0001, 0.0003, 0.001), (0.5,), (0.1, 1.0))
    """
    if annealing is None:
        return (float(final),)
    if isinstance(annealing, str):
        if annealing not in ("paper", "soft"):
            raise ValueError(f"annealing must be {KINDS}, but is {annealing!r}.")
        return tuple(share * final for share in PAPER)
    try:
        weights = np.asarray(annealing, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"annealing must be {KINDS}, but is {annealing!r}.") from error
    sound = np.all(weights > 0) and np.all(weights < np.inf)
    if weights.ndim != 1 or weights.size == 0 or not sound or np.any(np.diff(weights) < 0):
        raise ValueError(f"annealing must be {KINDS}, but is {annealing!r}.")
    return tuple(float(weight) for weight in weights)
