"""Whoever holds the rows, as the driver sees it: it asks for weights, labels and sums, and never sees a row.

    rows      what is to be learnt from: in this process (`local`), or on the workers of a cluster
    engine    one way to the labels over these rows: its weights, its labels and what its weight step holds
    cooling   the soft labels that a way may begin with

One driver plays all of them. What an engine holds for each row stays where the row is.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import LabelStep

Array = NDArray[Any]


class StepSettings(NamedTuple):
    """What every way of a fit shares: class sizes, the label step, and sweeps that a weight step may take."""

    bounds: Bounds
    label_step: LabelStep
    max_sweeps: int


class WeightSummary(NamedTuple):
    """What a weight step reports: J at its weights, what separates it from the optimum, and the work done."""

    objective: float
    gap: float
    n_sweeps: float
    converged: bool


class LabelProposal(NamedTuple):
    """Labels that wait to be taken: their prices, rows that would move, what J would gain, loss of the old labels."""

    prices: Array
    n_moved: int
    change: float
    old: float


class SoftRoundSummary(NamedTuple):
    """What a round of soft labels reports."""

    objective: float
    gap: float
    n_moved: int
    temperature: float


class SoftLabels(Protocol):
    """Labels that are distributions."""

    def begin(self) -> None:
        """Weights of the labelled rows alone; of the others nothing is known but the class sizes."""
        ...

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Distributions of this entropy at the present weights, then a little work on weights for them."""
        ...

    def harden(self, weight: float) -> None:
        """Hand the engine the best hard labels at the present weights, and weights 0."""
        ...

    def save(self, slot: CheckpointSlot, facts: dict[str, Any]) -> None:
        """Keep all that is needed to go on."""
        ...

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Be as when this was kept; gives the facts, or None where there is nothing."""
        ...


class Restart(Protocol):
    """One way to the labels."""

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        ...

    @property
    def n_classes(self) -> int:
        """Classes."""
        ...

    def supervise(self, tol: float) -> WeightSummary:
        """Weights of the labelled rows alone, which are kept."""
        ...

    def greedy(self) -> None:
        """First labels for all others, at the scores of these weights."""
        ...

    def weights(self, weight: float, tol: float) -> WeightSummary:
        """Step 12: weights for the present labels, where the unlabelled rows weigh `weight` in all."""
        ...

    def descend(self, objective: float) -> tuple[float, float]:
        """Look at the new weights, or as far towards them as lowers J below `objective`; J there, and how far it is."""
        ...

    def propose(self, weight: float, prices: Array) -> LabelProposal:
        """Step 13: the best labels at the weights that are looked at."""
        ...

    def settle(self, take_labels: bool) -> None:
        """Keep the weights that are looked at, and the proposed labels or the old ones."""
        ...

    def soft_labels(self) -> SoftLabels:
        """The soft labels of this way."""
        ...

    def result(self, outcome: FitResult) -> None:
        """Write weights and labels that were kept into the outcome."""
        ...

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
        """Keep all that is needed to go on, beside these arrays and facts; less where the way is done."""
        ...

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Be as when this was kept; gives arrays and facts, or None where there is nothing."""
        ...


class Engine(Protocol):
    """All rows, labelled ones and others, with the labels that are given."""

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        ...

    @property
    def n_classes(self) -> int:
        """Classes."""
        ...

    @property
    def forbids(self) -> bool:
        """Whether some rows may not get some labels."""
        ...

    def engine(self, task: StepSettings, rng: np.random.Generator) -> Restart:
        """A new way to the labels."""
        ...

    def split_threads(self, n_restarts: int) -> tuple[int, "Engine"]:
        """How many of these ways to run at the same time, and the rows for each."""
        ...

    def predicted_counts(self, W: Array) -> Array:
        """Rows without a full label of each class (K,) by the best scores, heeding what is forbidden."""
        ...

    def predicted_proportions(self, W: Array) -> Array:
        """Class shares (K,) of these rows by the posterior alone; by the best scores, where there is none."""
        ...
