"""When stated class sizes and the data disagree: the figures for each class, and a warning where it foretells harm.

Labelled rows that were drawn at random have about the stated shares. Where they are far from them (a likelihood ratio
of more than 4 a class; see `shares.disagreement`), labels are likely to come out worse than those of the supervised
classifier: two of three such fits did, and three of four that did were such (docs/class-sizes.md).

Labels that are equal in number by design are no witness. There the supervised classifier is: stated sizes that would
have more than half of the rows change the class that it gives them are doubted.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds, Groups
from transduce.class_prior.proportions import are_balanced_by_design, contributions, disagreement, distance

Array = NDArray[Any]

HARMFUL = 4.0
"""Disagreement from which harm is more likely than not."""
FAR = 0.5
"""Share of the rows that stated sizes may move from the supervised classifier's class, where labels are no witness."""

_NAMED, _WORTH_NAMING = 3, 0.2
"""Classes that a warning names at most, each of which adds at least this share of what the worst one does."""

_NOISE = 1e-6
"""Of a row, or of a thousandth: by so little no range is widened."""


class PriorWarning(UserWarning):
    """Class sizes and what is known disagree so much that labels are likely to be worse than without class_prior."""


@dataclass(frozen=True, eq=False)
class PriorDiagnostics:
    """What is stated of each class and what else is known; shares (K,) of the unlabelled rows.

    low, high     stated
    labeled       of the labelled rows
    own           where sizes are doubted or labels are by design, that the supervised classifier gives it, learnt from
                  the labelled rows alone; else that the fitted classifier would give it without prices
    prices        what the label step pays for a row of it
    disagreement  between stated and labelled shares, about 1 by chance; of classes or of branches, whichever is larger
    farthest      up to three classes that are farthest off, the worst first; or branches, K and up
    n_rows        unlabelled rows
    in_rows       whether sizes were stated in rows
    groups        branches that sizes were stated of
    by_design     whether the labels are too even to have been drawn at random, and so no witness
    distance      share of the rows that stated sizes move away from `own`; 0 where that is not the supervised
                  classifier's
    """

    low: Array
    high: Array
    labeled: Array
    own: Array
    prices: Array
    disagreement: float
    farthest: tuple[int, ...] = (0,)
    n_rows: int = 1
    in_rows: bool = False
    groups: Groups | None = None
    by_design: bool = False
    distance: float = 0.0

    @property
    def are_open(self) -> bool:
        """Whether the supervised classifier is to be asked, which costs a fit to the labelled rows."""
        return self.disagreement > HARMFUL or self.by_design

    def judged(self, supervised_counts: Array) -> "PriorDiagnostics":
        """The same, with the unlabelled rows (K,) as the supervised classifier labels them."""
        doubts = replace(self, own=supervised_counts / max(int(supervised_counts.sum()), 1))
        low, high, _, own = doubts.of_parts()
        levels = doubts._levels()
        far = [distance(own[parts], low[parts], high[parts]) for parts in levels]
        doubts = replace(doubts, distance=max(far))
        if not self.by_design:
            return doubts
        parts = levels[int(np.argmax(far))]
        return replace(doubts, farthest=_worst(parts, np.abs(np.clip(own, low, high) - own)[parts]))

    def relaxed(self) -> list[tuple[float, float]]:
        """For each class, then each branch, a range in which its price would not pull.

        It goes from what is stated to what labels, if they are a witness, and rows say, in rows where sizes were stated
        so, else in shares.
        """
        low, high, labeled, own = self.of_parts()
        labeled = own if self.by_design else labeled
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

    def _levels(self) -> list[Array]:
        """The parts that rows are cut into, by branches and by classes."""
        return [np.arange(self.low.size)] if self.groups is None else list(self.groups.levels())


def diagnose_prior(
    bounds: Bounds, labeled_counts: Array, predicted_counts: Array, prices: Array, in_rows: bool = False
) -> PriorDiagnostics:
    """Doubts from counts (K,) of labelled rows, and of unlabelled rows as the classifier alone would label them.

    >>> bounds = Bounds(np.array([50, 50]), np.array([50, 50]))
    >>> doubts = doubts_of(bounds, np.array([38, 2]), np.array([80, 20]), np.array([-0.3, 0.3]))
    >>> doubts.disagreement > HARMFUL, doubts.relaxed()
    (True, [(0.5, 0.95), (0.05, 0.5)])
    """
    n_rows, n_labeled = max(int(predicted_counts.sum()), 1), max(float(labeled_counts.sum()), 1.0)
    low, high, labeled, own = (
        bounds.low / n_rows,
        bounds.high / n_rows,
        labeled_counts / n_labeled,
        predicted_counts / n_rows,
    )
    design = are_balanced_by_design(labeled_counts)
    known = PriorDiagnostics(low, high, labeled, own, prices, 0.0, (0,), n_rows, in_rows, bounds.groups, design)
    return _compared(known, labeled_counts) if predicted_counts.sum() else known


def _with_groups(values: Array, groups: Groups) -> Array:
    """Values of classes (K,), then their sums over the groups."""
    return np.concatenate((values, groups.members(values.size) @ values))


def _compared(doubts: PriorDiagnostics, labeled_counts: Array) -> PriorDiagnostics:
    """Compare stated and labelled shares of the parts that rows are cut into, by branches and by classes."""
    low, high, labeled, _ = doubts.of_parts()
    counts = labeled_counts if doubts.groups is None else _with_groups(labeled_counts, doubts.groups)
    levels = doubts._levels()
    found = [disagreement(counts[parts], low[parts], high[parts]) for parts in levels]
    parts = levels[int(np.argmax(found))]
    outside = (labeled < low) | (labeled > high)  # what is open is nothing to name
    worst = _worst(parts, contributions(counts[parts], low[parts], high[parts]) * outside[parts])
    return replace(doubts, disagreement=max(found), farthest=worst)


def _worst(parts: Array, off: Array) -> tuple[int, ...]:
    """The parts that are farthest off, the worst first, and those that are hardly better."""
    order = np.argsort(-off, kind="stable")[:_NAMED]
    return tuple(int(parts[k]) for k in order if k == order[0] or off[k] >= _WORTH_NAMING * max(off[order[0]], _NOISE))


def warn_harmful_prior(doubts: PriorDiagnostics, classes: Array, n_labeled: int, stacklevel: int) -> None:
    """Name the classes or branches whose stated shares are farthest from what is known, if there is reason to."""
    if doubts.by_design:
        if doubts.distance > FAR:
            warnings.warn(
                f"class_prior and the rows disagree: {' '.join(_told(doubts, classes, None))} The classes have so "
                "equal numbers of labels that these say nothing of sizes. Unless you are sure of class_prior, leave it "
                "out: sizes are then estimated from all rows.",
                PriorWarning,
                stacklevel=stacklevel,
            )
    elif doubts.disagreement > HARMFUL:
        warnings.warn(
            f"class_prior and the labels disagree: {' '.join(_told(doubts, classes, n_labeled))} If the labelled rows "
            "were drawn at random, expect worse labels than without class_prior; class_prior='labeled' goes by the "
            "labels.",
            PriorWarning,
            stacklevel=stacklevel,
        )


def warn_balanced_labels(stacklevel: int) -> None:
    """Say that class_prior="labeled" goes by labels that say nothing of sizes."""
    warnings.warn(
        "class_prior='labeled' takes the labels for a sample of the rows, but the classes have so equal numbers of "
        "labels that these say nothing of sizes. Use class_prior='estimate', or state sizes.",
        PriorWarning,
        stacklevel=stacklevel,
    )


def _told(doubts: PriorDiagnostics, classes: Array, n_labeled: int | None) -> list[str]:
    """A sentence for each class or branch that is farthest off; without labels, if those are no witness."""
    low, high, labeled, own = doubts.of_parts()
    relaxed, said = doubts.relaxed(), []
    for k in doubts.farthest:
        sizes = list(dict.fromkeys(f"{end[k]:.1%}" for end in (low, high)))
        branch = doubts.groups is not None and k >= len(classes)
        name = doubts.groups.name_of(k - len(classes)) if doubts.groups and branch else repr(classes.tolist()[k])
        of_labels = "" if n_labeled is None else f"has {labeled[k]:.1%} of the {n_labeled} labels, and "
        said.append(
            f"{name} is to get {' to '.join(sizes)} of the rows, but {of_labels}the supervised classifier gives it "
            f"{own[k]:.1%}; {relaxed[k]} would not pull."
        )
    return said
