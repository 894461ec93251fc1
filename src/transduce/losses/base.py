"""The interface of a loss."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Targets: TypeAlias = NDArray[Any]
"""Labels (n,) or distributions (n, K)."""


class Loss(Protocol):
    """The methods that every loss has; a loss of your own is any object with these three.

    Four more members are optional:

    - ``default_alpha`` is the weight of the regulariser that ``alpha="auto"`` uses for rows of length 1. Without it,
      1e-3 is used.
    - ``smoothed()`` returns a loss to use while labels are distributions. Without it, `Averaged` is used.
    - ``posterior(scores)`` returns class probabilities (n, K). With it, classifiers have ``predict_proba``.
    - ``price_scale`` is the factor that turns prices of the label step into an offset of the scores. Without it, new
      rows are labelled by their scores alone. Costs of maxent fall by 1 when the score of a label rises by 1, so its
      factor is 1. Labels of a margin loss compare by twice the difference of their scores, so its factor is 1/2.
    """

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Compute the loss of every row under every label.

        Parameters
        ----------
        scores : array-like of shape (n_rows, n_classes)
            Scores of the classes.

        Returns
        -------
        costs : ndarray of shape (n_rows, n_classes)
            ``costs[i, k]`` is the loss of row i if its label were k.
        """

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the loss of every row.

        Parameters
        ----------
        scores : array-like of shape (n_rows, n_classes)
            Scores of the classes.
        targets : array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels. The built-in losses also take distributions over labels.

        Returns
        -------
        losses : ndarray of shape (n_rows,)
            The losses.
        """

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the gradient, or a subgradient, of the losses with respect to the scores.

        Parameters
        ----------
        scores, targets
            As in `value`.

        Returns
        -------
        gradient : ndarray of shape (n_rows, n_classes)
        """
