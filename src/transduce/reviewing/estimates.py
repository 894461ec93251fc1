"""What a review has reached: accuracy by random documents, the gain that more decisions promise, and when to stop.

Accuracy is the fraction of right labels among random documents, by fits that did not see these labels, with a 90 %
interval of the beta distribution (Jeffreys). The gain follows a learning curve

    error(n) = a n^(−b)

through the errors that earlier fits expected of themselves with n labels; b is shrunk towards a common value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from transduce.arrays import Array

LEVEL, MIN_RANDOM = 0.90, 10
"""Level of the interval, and random documents that an estimate needs."""
SLOPE, SLOPE_WEIGHT = 0.3, 0.5
"""Common exponent of the learning curve, and how strongly it counts."""
NEXT, WORTH = 50, 0.01
"""Decisions that the expected gain is about, and the gain below which going on does not pay."""
MIN_DECISIONS = 50


@dataclass(frozen=True)
class Accuracy:
    """Estimated accuracy of the labels of undecided documents, with a 90 % interval, and how many documents show it."""

    mean: float
    low: float
    high: float
    n: int


def estimate_accuracy(hits: Array | None, was_right: Array, is_random: Array) -> Accuracy | None:
    """Estimate accuracy from random documents; None if there are too few.

    hits (n,) says whether a fit that did not see the label predicts it, was_right (n,) whether the page had proposed it
    when it was decided, which counts where no fit could do without the label; -1 where it is not known.

    >>> right = np.array([1] * 18 + [0, 0])
    >>> found = estimate_accuracy(right, right, np.ones(20, bool))
    >>> round(found.low, 2), round(found.mean, 2), round(found.high, 2), found.n
    (0.75, 0.88, 0.97, 20)
    """
    known = was_right if hits is None else np.where(hits >= 0, hits, was_right)
    shown = known[is_random & (known >= 0)]
    if shown.size < MIN_RANDOM:
        return None
    right = beta(shown.sum() + 0.5, (shown == 0).sum() + 0.5)
    low, high = right.interval(LEVEL)
    return Accuracy(float(right.mean()), float(low), float(high), int(shown.size))


def expected_gain(curve: Sequence[tuple[int, float]], n_next: int = NEXT) -> float | None:
    """Return how much accuracy the next decisions are expected to add; None before the first fit.

    `curve` has the number of labels and the expected error of each fit.

    >>> round(expected_gain([(50, 0.4), (100, 0.3), (200, 0.225)]), 3)
    0.018
    """
    points = {n: error for n, error in curve if n > 0}
    if not points:
        return None
    n, logs = np.array(list(points)), np.log(np.maximum(list(points.values()), 1e-4))
    x = np.log(n) - np.log(n).mean()
    slope = (SLOPE_WEIGHT * SLOPE - x @ (logs - logs.mean())) / (SLOPE_WEIGHT + x @ x)
    last = int(n.max())
    error = points[last]
    return float(error - error * ((last + n_next) / last) ** -np.clip(slope, 0.0, 1.0))


def advice(n_decisions: int, n_undecided: int, accuracy: Accuracy | None, gain: float | None) -> str:
    """Return a sentence on whether to go on.

    >>> advice(200, 5000, Accuracy(0.9, 0.85, 0.94, 40), 0.004)
    'The next 50 decisions would correct about 20 of 5000 labels: you can stop here.'
    """
    if n_undecided == 0:
        return "Every document has a decision."
    if accuracy is None or gain is None:
        return ""
    rows = round(gain * n_undecided)
    if n_decisions >= MIN_DECISIONS and gain < WORTH:
        return f"The next {NEXT} decisions would correct about {rows} of {n_undecided} labels: you can stop here."
    return f"The next {NEXT} decisions would correct about {rows} of {n_undecided} labels."
