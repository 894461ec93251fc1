"""What a weight step holds between calls, and what it reports after one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class WeightState:
    """Weights and what belongs to them; weight steps change the arrays in place.

    W (d, M)        weights
    targets         labels (n,), or distributions (n, K)
    kappa (n,)      row weights
    posterior       (n, K) dual distributions p; empty for smooth steps
    gaps (n,)       about how far each row is from its best, inf when it has changed since last seen; empty likewise
    objective       J when it was last computed
    scores (n, K)   scores at W, or None since W has changed
    """

    W: Array
    targets: Array
    kappa: Array
    posterior: Array
    gaps: Array
    objective: float = np.inf
    scores: Array | None = None


@dataclass(frozen=True, eq=False)
class WeightReport:
    """J at the weights, the scores it was computed from, what separates it from the optimum, and the work done.

    gap is a bound on J − J* for dual steps, and the norm of the gradient for smooth ones.
    """

    objective: float
    scores: Array
    gap: float
    n_sweeps: float
    converged: bool
