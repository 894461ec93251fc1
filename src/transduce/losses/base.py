"""What every loss can do, and the arrays that it is asked about."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Targets: TypeAlias = NDArray[Any]


class Loss(Protocol):
    """What every loss can do; see the package's docstring."""

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K): the loss of each row if its label were k."""
        ...

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        ...

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K) of the losses in the scores; a subgradient where there is a corner."""
        ...
