"""Estimates of accuracy and macro F on the unlabelled rows, from hidden labels.

    accuracy = mean_u c_u + mean_l ([ŷ_l = y_l] − c_l)

c is the confidence in a label: its calibrated probability. Errors on hidden labels correct the mean confidence in the
labels of the unlabelled rows, as in prediction-powered inference. The classifiers that labels are hidden from have
fewer labels than the final one; its higher confidence makes up for that.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.estimation import HiddenLabels

Array: TypeAlias = NDArray[Any]

Z, N_RESAMPLES = 1.645, 400
"""Half the length of a 90 % interval in standard deviations, and bootstrap samples for macro F."""
ACCURACY_WIDENING = 1.6
"""Factor of the deviation that errors on hidden labels suggest: the final classifier is another one."""


class AccuracyEstimate(NamedTuple):
    """Estimated quality of the labels of the unlabelled rows, each with a 90 % interval.

    Attributes
    ----------
    mean, low, high : float
        Fraction of the labels that are right.
    macro_f, macro_f_low, macro_f_high : float
        Macro F of labels that were hidden from the fit.
    n_labels : int
        Number of labels that were hidden.
    """

    mean: float
    low: float
    high: float
    macro_f: float
    macro_f_low: float
    macro_f_high: float
    n_labels: int


def estimate_accuracy(hidden: HiddenLabels, confidence: float, sizes: Array, is_sample: bool) -> AccuracyEstimate:
    """Estimate accuracy from hidden labels and the mean confidence in the labels of the unlabelled rows.

    Unless the labels are a random sample, they are weighted so that classes have these sizes (K,).

    >>> labels, predicted = np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> hidden = HiddenLabels(labels, predicted, np.ones(4, bool), np.array([0.5, 0.5]), 100)
    >>> estimate = estimate_accuracy(hidden, 0.8, np.array([0.5, 0.5]), True)
    >>> round(estimate.mean, 2), round(estimate.macro_f, 2)
    (0.8, 0.73)
    """
    labels, predicted = hidden.labels[hidden.was_hidden], hidden.predicted[hidden.was_hidden]
    weights = np.ones(labels.size)
    if not is_sample:
        weights = (sizes / np.maximum(np.bincount(labels, minlength=sizes.size), 1))[labels]
    if not weights.sum() > 0.0:  # all hidden labels are of classes of size 0
        weights = np.ones(labels.size)
    weights = weights / weights.sum()
    guesses = predicted.argmax(axis=1)
    errors = (guesses == labels) - predicted.max(axis=1)
    shift = float(np.dot(weights, errors))
    mean = float(np.clip(confidence + shift, 0.0, 1.0))
    variance = float(np.dot(weights, (errors - shift) ** 2) * np.dot(weights, weights)) * ACCURACY_WIDENING**2
    smoothed = (mean * labels.size + 1.0) / (labels.size + 2.0)  # no errors among a few labels do not mean none at all
    half = Z * float(np.sqrt(max(variance, smoothed * (1.0 - smoothed) / (labels.size + 2.0))))
    rng = np.random.default_rng(0)
    draws = (rng.choice(labels.size, labels.size, p=weights) for _ in range(N_RESAMPLES))
    f = [macro_f(labels[rows], guesses[rows], hidden.n_classes) for rows in draws]
    low, high = np.quantile(f, (0.05, 0.95))
    middle = macro_f(labels, guesses, hidden.n_classes, weights)
    return AccuracyEstimate(
        mean, max(mean - half, 0.0), min(mean + half, 1.0), middle, float(low), float(high), int(labels.size)
    )


def macro_f(labels: Array, guesses: Array, n_classes: int, weights: Array | None = None) -> float:
    """Mean F of the classes that occur among the labels, with a weight above 0."""
    right = np.bincount(labels[guesses == labels], None if weights is None else weights[guesses == labels], n_classes)
    both = np.bincount(labels, weights, n_classes) + np.bincount(guesses, weights, n_classes)
    present = np.bincount(labels, weights, n_classes) > 0
    return float((2.0 * right[present] / both[present]).mean())
