"""Interface between the estimators and solvers on one side and the data on the other.

    TrainingData     X, y and sample weights as the user passed them; encodes the labels, then builds an Engine
    Engine           all rows of one training problem, in this process (`local`) or on the workers of a cluster (`dask`)
    Restart          one run of a solver over these rows: weights, labels and the state of the weight step
    AnnealedEngine   an engine in this process, which very many rows have a sample in; its restarts can be annealed
    AnnealedRestart  a restart that finds its first labels by itself: greedy ones, or soft ones that cool
    SoftLabels       distributions over the labels of a restart

`transduce.base` calls `encode` and `build`, passes the engine to a solver, and gathers the labels in the end. After a
failure it may call `encode` and `build` again, which must then start from scratch and give the same answers. What an
engine holds for each row stays where the row is.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.engines.common import Calibration
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.label_step import LabelStep
from transduce.losses import Loss
from transduce.taxonomy import Taxonomy


class LabelOptions(NamedTuple):
    """Parameters of the estimator that y is read with."""

    class_prior: object
    taxonomy: object
    unlabeled: object


class LabelSummary(NamedTuple):
    """Classes, and what the labels of all rows say about their sizes.

    n_features   columns of X
    classes      (K,) names of the classes, sorted
    taxonomy     tree whose leaves are the classes, in this order
    labels       (l,) class index of every row with a full label, in the order of the rows
    weights      (l,) sample weights of these rows, or None
    n_unlabeled  rows without a full label
    forbidden    (r, K) labels that rows without a full label must not get, or None if there are no such rows; rows
                 without any may be left out
    sampled      (l,) whether each full label was drawn at random, or None if that is not known
    """

    n_features: int
    classes: Array
    taxonomy: Taxonomy
    labels: Array
    weights: Array | None
    n_unlabeled: int
    forbidden: Array | None
    sampled: Array | None = None


class ProblemSettings(NamedTuple):
    """Parameters of the estimator that define the training problem; `constant` is the feature of the intercept."""

    loss: Loss
    alpha: float
    fit_intercept: bool
    partial_as_labeled: bool
    n_jobs: int | None
    constant: float = 1.0


class FittedLabels(NamedTuple):
    """Classes of the training rows, and distributions if the loss has a posterior, in the containers and order of y.

    `class_counts` (K,) are rows without a full label that each class got, `predicted_counts` (K,) the same by the best
    allowed scores, without prices. `mean_confidence` is the mean of the largest probabilities of rows without a full
    label, by their scores and prices; NaN if the loss has no posterior.
    """

    transduction: Any
    class_counts: Array
    predicted_counts: Array
    distributions: Any
    mean_confidence: float = np.nan


class StepSettings(NamedTuple):
    """Settings that all restarts of a fit share: class counts, label step, and the most sweeps of a weight step."""

    bounds: Bounds
    label_step: LabelStep
    max_sweeps: int


class WeightSummary(NamedTuple):
    """Result of a weight step: J at the new weights, the gap left to the optimum, and the work done."""

    objective: float
    gap: float
    n_sweeps: float
    converged: bool


class LabelProposal(NamedTuple):
    """Result of a label step: prices, rows that would change label, the change of J, and the loss of the old labels."""

    prices: Array
    n_moved: int
    change: float
    old_loss: float


class SoftRoundSummary(NamedTuple):
    """Result of one round with soft labels."""

    objective: float
    gap: float
    n_moved: int
    temperature: float


class Sizes(Protocol):
    """Numbers of a training problem."""

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""


class SoftLabels(Protocol):
    """Distributions over the labels of a restart, with weights of their own."""

    def start(self) -> None:
        """Learn weights from the labelled rows alone; all other rows get the class proportions."""

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Choose distributions of this entropy at the present weights, then improve the weights a little."""

    def harden(self, weight: float) -> None:
        """Give the restart the best hard labels at the present weights, and reset its weights to 0."""

    def save(self, slot: CheckpointSlot, metadata: dict[str, Any]) -> None:
        """Save the state and this metadata."""

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Restore the state; return the metadata, or None if nothing was saved."""


class Restart(Sizes, Protocol):
    """One run of a solver over the rows of an engine.

    It holds accepted weights and labels, and the weights of the last weight step, which may be better or worse.
    """

    def supervise(self, tol: float) -> WeightSummary:
        """Steps 1 and 2 of Algorithm 1: learn weights from the labelled rows alone, and accept them."""

    def start_at(self, W: Array, weight: float) -> None:
        """Accept these weights, and the best labels by them; the weight step starts at 0.

        The unlabelled rows weigh `weight` together.
        """

    def weights(self, weight: float, tol: float) -> WeightSummary:
        """Step 12: weight step for the present labels; the unlabelled rows weigh `weight` together."""

    def descend(self, objective: float) -> tuple[float, float]:
        """Move from the accepted weights towards the new ones as far as J stays below `objective`.

        Returns J at that point, and the step length between 0 and 1.
        """

    def propose(self, prices: Array) -> LabelProposal:
        """Step 13: label step at the weights that `descend` reached."""

    def accept(self, take_labels: bool) -> None:
        """Accept the weights that `descend` reached, and the proposed labels if `take_labels`."""

    def result(self, result: FitResult) -> None:
        """Write the accepted weights and labels into the result."""

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        """Save the state with these arrays and metadata; without that of the weight step if the restart is done."""

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Restore the state; return arrays and metadata, or None if nothing was saved."""


class AnnealedRestart(Restart, Protocol):
    """A restart that finds its first labels by itself."""

    def greedy(self) -> None:
        """Steps 3 to 9: greedy labels; optimal ones under bounds on groups, which greedy labels may not meet."""

    def soft_labels(self) -> SoftLabels:
        """Start soft labels for this restart."""

    def stop_above(self, limit: float) -> None:
        """Allow weight steps to end where J at their labels is proven to be above a limit."""


class Engine(Sizes, Protocol):
    """All rows of a training problem, with the labels that are known."""

    @property
    def is_dense(self) -> bool:
        """Whether all values of all rows are stored, zeros too."""

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> Restart:
        """Start a restart with weights 0."""

    def predicted_counts(self, W: Array) -> Array:
        """Count rows without a full label by the class of the best allowed score (K,)."""

    def sample(self, max_rows: int, rng: np.random.Generator) -> Any:
        """Return an engine in this process with all labelled rows and at most so many others, drawn at random."""

    def in_original_order(self, W: Array) -> Array:
        """Reorder weights so that they have one row for each column of X."""

    def fitted_labels(
        self, result: FitResult, bounds: Bounds, classes: Array, calibration: Calibration
    ) -> FittedLabels:
        """Gather labels and distributions of all rows."""

    def held_out_scores(self, result: FitResult) -> Array:
        """Scores (n_unlabeled, K) of the rows without a full label as if they were new, at the labels of a result."""

    def set_aside(
        self,
        result: FitResult,
        bounds: Bounds,
        n_outliers: tuple[int, int],
        temperature: float,
        shift: Array,
        held_out: Array | None,
    ) -> tuple[Array, float]:
        """Return the labels of a result with K, one more class, for rows that fit no class: so many at least and most.

        At the prices of the result it costs a row as much as its best label, and more if its best held-out score is
        above a threshold: rows below it are doubtful, by the probabilities of scores / temperature. Other rows keep
        their label, unless bounds on the counts of the classes, in proportion to what is left, ask for another. Rows
        with a partial label take it only where these bounds leave no choice. The second value is a score that as many
        rows are below by their best held-out one, after adding `shift` (K,); for two classes, by the difference of the
        two. Without held-out scores, those of the result take their place.
        """

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        """Open the checkpoint folder of the fit with these parameters to this data."""


class AnnealedEngine(Engine, Protocol):
    """An engine in this process, whose restarts can be annealed."""

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> AnnealedRestart:
        """Start a restart with weights 0."""

    def in_memory(self) -> Any:
        """Return the same rows in the memory of this process."""

    @property
    def problem(self) -> Any:
        """The training problem."""

    @property
    def is_large(self) -> bool:
        """Whether the states of several restarts would need too much memory."""

    def in_single_precision(self) -> "AnnealedEngine":
        """Return the same rows in single precision where that is faster; results keep the precision of X."""

    def split_threads(self, n_restarts: int) -> tuple[int, "AnnealedEngine"]:
        """Return how many restarts to run at the same time, and the engine that each of them uses."""


class TrainingData(Protocol):
    """X, y and sample weights as the user passed them."""

    def encode(self, options: LabelOptions) -> LabelSummary:
        """Read and check the labels."""

    def mean_squared_length(self, n_jobs: int | None) -> float:
        """Average ‖x_i‖² over all rows, after `encode`; see `design.mean_squared_length`."""

    def build(self, settings: ProblemSettings) -> Engine:
        """Build the training problem from the encoded labels."""
