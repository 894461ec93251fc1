"""Records of a fit: one history row for each round, the final status, and the result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from transduce.arrays import Array


class FitStatus(Enum):
    """How a fit ended; the value is the sentence for the user."""

    CONVERGED = "Converged."
    CONSTRAINTS_MET = "Converged: the predicted class sizes meet class_prior."
    NEARBY = "Converged: distributions close to the predicted ones meet class_prior."
    PENALIZED = "Converged: the predicted class sizes are as close to class_prior as the penalty asks."
    UNMET = "The predicted class sizes are still off by more than 0.1 %. Increase max_iter, or decrease alpha."
    STILL_FALLING = "Stopped after max_iter rounds while the objective was still decreasing. Increase max_iter."
    OUT_OF_ROUNDS = "Stopped after max_iter rounds while labels were still changing. Increase max_iter."
    NOT_CONVERGED = "The last weight step stopped before it reached its tolerance. Increase max_iter, tol or alpha."
    SUPERVISED = "All rows are labelled, so this is the supervised classifier."
    INTERRUPTED = "The fit was interrupted. The labels are the best found so far."


@dataclass(frozen=True)
class HistoryRow:
    """One round of a fit: a weight step and a label step, or one minimisation of a direct method.

    Attributes
    ----------
    stage : int
        0 for the supervised start, then 1, 2, ...
    unlabeled_weight : float
        Total weight of the unlabelled rows in this stage.
    objective : float
        Objective J after the round.
    n_moved : int
        Number of unlabelled rows whose label changed.
    gap : float
        Accuracy of the weight step: an upper bound on J − J* for losses with a dual, else the norm of the gradient.
    seconds : float
        Time since the start of the fit.
    temperature : float, default=0
        Temperature of the soft labels; 0 for hard labels.
    restart : int, default=0
        Number of the restart, from 0; -1, -2, ... for the fits that labels are hidden from, to estimate class sizes.
    residual : float, default=0
        Largest relative error of a class size, for methods that meet class sizes approximately.
    """

    stage: int
    unlabeled_weight: float
    objective: float
    n_moved: int
    gap: float
    seconds: float = 0.0
    temperature: float = 0.0
    restart: int = 0
    residual: float = 0.0

    @property
    def restart_name(self) -> str:
        """The restart for people, who count from 1: "restart 1", or "hidden labels 1" for a fit with hidden labels."""
        return f"hidden labels {-self.restart}" if self.restart < 0 else f"restart {self.restart + 1}"


@dataclass(eq=False)
class FitResult:
    """Weights, labels of all rows and prices of the classes, with the objective, the status and the history.

    W and labels are None until an engine fills them in; an engine may put a reference in the place of labels.
    `evidence` (n_unlabeled, K) are costs of the labels by the evidence at the end, None without any.
    """

    prices: Array
    W: Any = None
    labels: Any = None
    objective: float = np.inf
    status: FitStatus = FitStatus.CONVERGED
    history: list[HistoryRow] = field(default_factory=list)
    evidence: Any = None


def progress_callback(verbose: Any) -> Callable[[HistoryRow], None]:
    """Return what is called after each round: the user's function, one that prints, or one that does nothing."""
    if callable(verbose):
        return verbose  # type: ignore[no-any-return]
    return _print_round if verbose else lambda row: None


def _print_round(row: HistoryRow) -> None:
    print(  # noqa: T201 -- verbose asks for it
        f"{row.restart_name}  stage {row.stage}  unlabelled weight {row.unlabeled_weight:<8.4g} "
        f"T {row.temperature:<8.3g} objective {row.objective:<12.6g} moved {row.n_moved:<7} gap {row.gap:<9.2e} "
        f"off {row.residual:<8.1e} {row.seconds:.2f} s"
    )
