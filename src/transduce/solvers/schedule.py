"""Annealing schedules: the weight of the unlabelled rows and the entropy of their labels, stage by stage.

The paper's labels are hard, and the weight of their rows grows. The mean entropy of soft labels falls, while the weight
grows or has its final value from the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PAPER = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""C^u of Algorithm 1, as fractions of the final weight."""

N_STAGES, ROUNDS, LAST_ENTROPY = 20, 2, 0.01
"""Stages of a cooling schedule, rounds in each, and the relative entropy of the last stage."""
COOLINGS = ((0.03, 0.6), (1.0, 0.9))
"""First weight and first entropy of each cooling schedule: none is best everywhere (see docs/how-to-choose.md)."""


@dataclass(frozen=True)
class SoftStage:
    """Total weight of the unlabelled rows, and mean entropy of their labels relative to the largest possible."""

    weight: float
    entropy: float


def cooling_schedules(final_weight: float) -> tuple[tuple[SoftStage, ...], ...]:
    """Return the schedules of soft annealing: log-linear from the first weight and entropy to the last."""

    def stage(weight: float, entropy: float, t: float) -> SoftStage:
        entropy = round(float(entropy ** (1.0 - t) * LAST_ENTROPY**t), 3)
        return SoftStage(final_weight * float(weight ** (1.0 - t)), entropy)

    return tuple(tuple(stage(*first, t) for t in np.linspace(0.0, 1.0, N_STAGES)) for first in COOLINGS)


def resolve_annealing(annealing: Any, is_dense: bool) -> Any:
    """Return the annealing that "auto" stands for, by the storage of the rows; anything else as it is.

    On dense rows soft labels gain nothing (see docs/how-to-choose.md).

    >>> resolve_annealing("auto", True), resolve_annealing("auto", False), resolve_annealing(None, True)
    ('paper', 'soft', None)
    """
    if not isinstance(annealing, str) or annealing != "auto":
        return annealing
    return "paper" if is_dense else "soft"


def n_restarts_of(annealing: Any) -> int:
    """Return the number of restarts of a fit with this annealing, after `resolve_annealing`."""
    return 1 + len(COOLINGS) if isinstance(annealing, str) and annealing == "soft" else 1


def stages(annealing: str | Sequence[float] | None, final_weight: float) -> tuple[float, ...]:
    """Return the weight of the unlabelled rows in each stage: the paper's, the final one alone, or the user's own."""
    if annealing is None:
        return (float(final_weight),)
    if isinstance(annealing, str) and annealing in ("auto", "paper", "soft"):
        return tuple(fraction * final_weight for fraction in PAPER)
    try:
        weights = np.asarray(annealing, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.zeros(0)
    positive = np.all((weights > 0) & (weights < np.inf))
    if weights.ndim != 1 or weights.size == 0 or not positive or np.any(np.diff(weights) < 0):
        raise ValueError(
            f"annealing must be 'auto', 'soft', 'paper', None or increasing weights, but is {annealing!r}."
        )
    return tuple(float(weight) for weight in weights)
