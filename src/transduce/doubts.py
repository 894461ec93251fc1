"""When stated class sizes and the data disagree: the figures for each class, and a warning where it foretells harm.

Labelled rows that were drawn at random have about the stated shares. Where they are far from them (a likelihood ratio
of more than 4 a class; see `shares.disagreement`), labels are likely to come out worse than those of the supervised
classifier: two of three such fits did, and three of four that did were such (docs/class-sizes.md).
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.counts import Bounds, Groups
from transduce.shares import are_by_design, disagreement

Array = NDArray[Any]

HARMFUL = 4.0
"""Disagreement from which harm is more likely than not."""

_NOISE = 1e-6
"""Of a row, or of a thousandth: by so little no range is widened."""


class PriorWarning(UserWarning):
    """Class sizes and labels disagree so much that the labels are likely to be worse than without class_prior."""


@dataclass(frozen=True, eq=False)
class Doubts:
    """What is stated of each class and what else is known; shares (K,) of the unlabelled rows.

    low, high     stated
    labeled       of the labelled rows
    own           that the classifier alone would give it
    prices        what the label step pays for a row of it
    disagreement  between stated and labelled shares, about 1 by chance; of classes or of branches, whichever is larger
    farthest      the class that is farthest off; or the branch, K and up
    n_rows        unlabelled rows
    in_rows       whether sizes were stated in rows
    groups        branches that sizes were stated of
    by_design     whether the labels are too even to have been drawn at random, and so no witness
    """

    low: Array
    high: Array
    labeled: Array
    own: Array
    prices: Array
    disagreement: float
    farthest: int = 0
    n_rows: int = 1
    in_rows: bool = False
    groups: Groups | None = None
    by_design: bool = False

    def relaxed(self) -> list[tuple[float, float]]:
        """For each class, then each branch, a range in which its price would not pull.

        It goes from what is stated to what labels and rows say, in rows where sizes were stated so, else in shares.
        """
        low, high, labeled, own = self.of_parts()
        unit = self.n_rows if self.in_rows else 1000
        least = np.floor(np.minimum(low, np.minimum(own, labeled)) * unit + _NOISE)
        most = np.ceil(np.maximum(high, np.maximum(own, labeled)) * unit - _NOISE)
        if self.in_rows:
            return [(int(a), int(b)) for a, b in zip(least, most, strict=True)]
        return [(float(a), float(b)) for a, b in zip(least / unit, most / unit, strict=True)]

    def of_parts(self) -> tuple[Array, Array, Array, Array]:
        """Low, high, labelled and own shares (K+G,) of classes, then branches."""
        if self.groups is None:
            return self.low, self.high, self.labeled, self.own
        low = np.concatenate((self.low, self.groups.low / self.n_rows))
        high = np.concatenate((self.high, self.groups.high / self.n_rows))
        return low, high, _with_groups(self.labeled, self.groups), _with_groups(self.own, self.groups)


def doubts_of(bounds: Bounds, labeled_counts: Array, own_counts: Array, prices: Array, in_rows: bool = False) -> Doubts:
    """Doubts from counts (K,) of labelled rows, and of unlabelled rows as the classifier alone would label them.

    >>> bounds = Bounds(np.array([50, 50]), np.array([50, 50]))
    >>> doubts = doubts_of(bounds, np.array([38, 2]), np.array([80, 20]), np.array([-0.3, 0.3]))
    >>> doubts.disagreement > HARMFUL, doubts.relaxed()
    (True, [(0.5, 0.95), (0.05, 0.5)])
    """
    n_rows, n_labeled = max(int(own_counts.sum()), 1), max(float(labeled_counts.sum()), 1.0)
    low, high, labeled, own = bounds.low / n_rows, bounds.high / n_rows, labeled_counts / n_labeled, own_counts / n_rows
    design = are_by_design(labeled_counts)
    known = Doubts(low, high, labeled, own, prices, 0.0, 0, n_rows, in_rows, bounds.groups, design)
    return _compared(known, labeled_counts) if own_counts.sum() else known


def _with_groups(values: Array, groups: Groups) -> Array:
    """Values of classes (K,), then their sums over the groups."""
    return np.concatenate((values, groups.members(values.size) @ values))


def _compared(doubts: Doubts, labeled_counts: Array) -> Doubts:
    """Compare stated and labelled shares of the parts that rows are cut into, by branches and by classes."""
    low, high, labeled, _ = doubts.of_parts()
    counts = labeled_counts if doubts.groups is None else _with_groups(labeled_counts, doubts.groups)
    levels = [np.arange(doubts.low.size)] if doubts.groups is None else list(doubts.groups.levels())
    found = [disagreement(counts[parts], low[parts], high[parts]) for parts in levels]
    parts = levels[int(np.argmax(found))]
    stated = np.clip(labeled, low, high)
    off = np.abs(labeled - stated) / np.sqrt(np.maximum(stated, 1.0 / max(float(labeled_counts.sum()), 1.0)))
    return replace(doubts, disagreement=max(found), farthest=int(parts[np.argmax(off[parts])]))


def warn_of_harm(doubts: Doubts, classes: Array, n_labeled: int, stacklevel: int) -> None:
    """Name the class or branch whose labelled rows are farthest from its stated share, if there is reason to."""
    if doubts.disagreement <= HARMFUL or doubts.by_design:
        return
    k = doubts.farthest
    least, most, labeled, own = (float(of[k]) for of in doubts.of_parts())
    low, high = doubts.relaxed()[k]
    size = f"{least:.1%}" if least == most else f"{least:.1%} to {most:.1%}"
    branch = doubts.groups is not None and k >= len(classes)
    name = doubts.groups.name_of(k - len(classes)) if doubts.groups and branch else repr(classes.tolist()[k])
    warnings.warn(
        f"class_prior and the labels disagree: {name} is to get {size} of the rows, but has "
        f"{labeled:.1%} of the {n_labeled} labels, and the classifier alone would give it "
        f"{own:.1%}. If the labelled rows were drawn at random, expect worse labels than without "
        f"class_prior; ({low}, {high}) would not pull, and class_prior='labeled' goes by the labels.",
        PriorWarning,
        stacklevel=stacklevel,
    )
