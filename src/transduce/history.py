"""What happened: one row a round, how it ended, and what came out; whoever wants to see it renders it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class FitStatus(Enum):
    """How a fit ended; the value is the sentence for the user."""

    SETTLED = "No label moves any more at the final weight of the unlabelled rows."
    MET = "The objective does not fall any more, and the model's own class sizes are those asked for."
    NEARBY = "The objective does not fall any more; distributions near the model's own meet the class sizes."
    PENALISED = "The objective does not fall any more; the model's own class sizes are as near as their penalty asks."
    UNMET = "The model's own class sizes are still off by more than a thousandth; raise max_iter, or lower alpha."
    STILL_FALLING = "The rounds allowed were spent with the objective still falling; raise max_iter."
    OUT_OF_ROUNDS = "The last stage ended with labels still moving; raise max_iter to let it settle."
    NOT_CONVERGED = "The last weight step ended before it reached its tolerance; raise max_iter, tol or alpha."
    SUPERVISED = "There were no unlabelled rows: this is the supervised classifier."
    INTERRUPTED = "It was interrupted; weights and labels are those of the last complete round, or way."


@dataclass(frozen=True)
class HistoryRow:
    """One round: a weight step and a label step, or for the direct methods a minimisation.

    stage             0 for the supervised start, then 1, 2, ...
    unlabeled_weight  C of the stage
    objective         J after the round
    n_moved           unlabelled rows whose label changed
    gap               what the weight step left open: a bound on J − J* for losses with a dual, else the gradient
    seconds           since the start
    temperature       T of the soft labels, 0 where they are hard
    way               which of several ways to the labels: 0 for the first, or the only one; −1 for the fit that
                      class sizes are estimated by
    residual          largest share by which a class size is off, for methods that have to work to meet them
    """

    stage: int
    unlabeled_weight: float
    objective: float
    n_moved: int
    gap: float
    seconds: float
    temperature: float = 0.0
    restart: int = 0
    residual: float = 0.0


@dataclass(eq=False)
class FitResult:
    """Weights, labels of all rows, prices of the classes, and what happened on the way."""

    W: Array
    labels: Array
    prices: Array
    objective: float = np.inf
    status: FitStatus = FitStatus.SETTLED
    history: list[HistoryRow] = field(default_factory=list)
