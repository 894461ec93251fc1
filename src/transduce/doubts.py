"""When stated class sizes and the data disagree: the figures for each class, and a warning where it foretells harm.

Labelled rows that were drawn at random have about the stated shares. Where they are far from them (a likelihood ratio
of more than 4 a class; see `shares.disagreement`), labels are likely to come out worse than those of the supervised
classifier: two of three such fits did, and three of four that did were such (docs/class-sizes.md).
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.counts import Bounds
from transduce.shares import disagreement

Array = NDArray[Any]

HARMFUL = 4.0
"""Disagreement from which harm is more likely than not."""


class PriorWarning(UserWarning):
    """Class sizes and labels disagree so much that the labels are likely to be worse than without class_prior."""


@dataclass(frozen=True, eq=False)
class Doubts:
    """What is stated of each class and what else is known; shares (K,) of the unlabelled rows.

    low, high     stated
    labeled       of the labelled rows
    own           that the classifier alone would give it
    prices        what the label step pays for a row of it
    disagreement  between stated and labelled shares, about 1 by chance
    """

    low: Array
    high: Array
    labeled: Array
    own: Array
    prices: Array
    disagreement: float

    def relaxed(self) -> list[tuple[float, float]]:
        """For each class a range in which its price would not pull: from what is stated to what labels and rows say."""
        low = np.minimum(self.low, np.minimum(self.own, self.labeled))
        high = np.maximum(self.high, np.maximum(self.own, self.labeled))
        return [(round(float(a), 3), round(float(b), 3)) for a, b in zip(low, high, strict=True)]


def doubts_of(bounds: Bounds, labeled_counts: Array, own_counts: Array, prices: Array) -> Doubts:
    """Doubts from counts (K,) of labelled rows, and of unlabelled rows as the classifier alone would label them.

    >>> bounds = Bounds(np.array([50, 50]), np.array([50, 50]))
    >>> doubts = doubts_of(bounds, np.array([38, 2]), np.array([80, 20]), np.array([-0.3, 0.3]))
    >>> doubts.disagreement > HARMFUL, doubts.relaxed()
    (True, [(0.5, 0.95), (0.05, 0.5)])
    """
    n_rows, n_labeled = max(int(own_counts.sum()), 1), max(float(labeled_counts.sum()), 1.0)
    low, high = bounds.low / n_rows, bounds.high / n_rows
    return Doubts(
        low,
        high,
        labeled_counts / n_labeled,
        own_counts / n_rows,
        prices,
        disagreement(labeled_counts, low, high) if own_counts.sum() else 0.0,
    )


def warn_of_harm(doubts: Doubts, classes: Array, n_labeled: int, stacklevel: int) -> None:
    """Name the class whose labelled rows are farthest from its stated share, if there is reason to."""
    if doubts.disagreement <= HARMFUL:
        return
    stated = np.clip(doubts.labeled, doubts.low, doubts.high)
    k = int(np.argmax(np.abs(doubts.labeled - stated) / np.sqrt(np.maximum(stated, 1.0 / n_labeled))))
    low, high = doubts.relaxed()[k]
    size = f"{doubts.low[k]:.1%}" if doubts.low[k] == doubts.high[k] else f"{doubts.low[k]:.1%} to {doubts.high[k]:.1%}"
    warnings.warn(
        f"class_prior and the labels disagree: {classes.tolist()[k]!r} is to get {size} of the rows, but has "
        f"{doubts.labeled[k]:.1%} of the {n_labeled} labels, and the classifier alone would give it "
        f"{doubts.own[k]:.1%}. If the labelled rows were drawn at random, expect worse labels than without "
        f"class_prior; ({low}, {high}) would not pull, and class_prior='labeled' goes by the labels.",
        PriorWarning,
        stacklevel=stacklevel,
    )
