"""Losses as functions of scores alone: what a row would lose under each label, never how its scores came about.

large margin   ξ(s, y) = max_k [1 − δ(k, y) + s_k − s_y]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class LargeMargin:
    """The multi-class hinge: a label costs nothing once its score leads every other by 1.

    >>> LargeMargin().label_costs([[2.0, 0.5, -1.0]])
    array([[0. , 2.5, 4. ]])
    """

    def label_costs(self, scores: ArrayLike) -> NDArray[np.floating]:
        """Costs (n, K) of every label for every row, from scores (n, K); float32 stays float32."""
        scores = np.asarray(scores)
        if scores.dtype != np.float32:
            scores = scores.astype(np.float64)
        if scores.shape[1] == 1:
            return np.zeros_like(scores)
        second, first = np.moveaxis(np.partition(scores, scores.shape[1] - 2, axis=1)[:, -2:], 1, 0)
        rival = np.where(scores == first[:, None], second[:, None], first[:, None])
        rival -= scores
        rival += 1.0
        np.maximum(rival, 0.0, out=rival)
        return np.asarray(rival)
