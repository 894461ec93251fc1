"""Margins between classes: a matrix (K, K) with a row for each right label, or None where every mistake costs 1."""

import numpy as np
from numpy.typing import NDArray

from transduce.losses.base import FloatArray, Targets
from transduce.losses.row_blocks import Kind

SOFTNESS = 0.25
"""Scores of the margins are divided by this to be read as log probabilities; see docs/how-to-choose.md."""


def checked_margins(margins: NDArray[np.float64] | None, n_classes: int) -> NDArray[np.float64]:
    """The margins as a matrix, checked against the number of classes."""
    if margins is None:
        return 1.0 - np.eye(n_classes)
    margins = np.asarray(margins, dtype=np.float64)
    if margins.shape != (n_classes, n_classes):
        raise ValueError(f"margins must be {n_classes} by {n_classes}, a row a class, but have shape {margins.shape}.")
    if not np.all(np.isfinite(margins)) or np.any(margins < 0) or np.any(np.diag(margins) != 0):
        raise ValueError("margins must be finite, 0 or more, and 0 on the diagonal. Correct them, or leave them out.")
    return margins


def margin_size(margins: FloatArray | None) -> float:
    """The largest margin, which scores are measured by."""
    return 1.0 if margins is None else float(np.max(margins, initial=0.0)) or 1.0


def lifts_of(targets: Targets, margins: FloatArray | None, n_classes: int, kind: Kind) -> FloatArray:
    """What the margins of the targets, 1 without them, add to the scores of every class (n, K); a new array."""
    if margins is not None:
        return np.asarray(margins[targets] if targets.ndim == 1 else (targets @ margins).astype(kind, copy=False))
    if targets.ndim == 2:
        return np.subtract(1.0, targets, dtype=kind, casting="same_kind")
    ones = np.ones((len(targets), n_classes), kind)
    ones[np.arange(len(targets)), targets] = 0.0
    return ones
