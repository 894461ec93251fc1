"""Estimates of accuracy and macro F on the unlabelled rows, from hidden labels.

    accuracy = mean_u c_u + mean_l ([ŷ_l = y_l] − c_l)

c is the confidence in a label: its calibrated probability. Errors on hidden labels correct the mean confidence in the
labels of the unlabelled rows, as in prediction-powered inference. A random sample has made the confidence what it is;
correcting it again by the same labels adds noise, so the correction is shrunk by its variance (James and Stein, 1961)
unless there are classes that nobody labelled.
The classifiers that labels are hidden from have fewer labels than the final one; its higher confidence makes up for
that.

The only label of a class is never hidden: its row would then be one of a class that nobody labelled, and surely wrong.
If labels are a random sample, the fraction of such labels is that of the rows of classes without any label (Good,
1953), so they count as errors. If all class sizes are known, there are no such classes, and classes with a single label
are represented by those with the fewest labels: while one of two labels is hidden, one is left.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.estimation import HiddenLabels

Array: TypeAlias = NDArray[Any]

Z, N_RESAMPLES = 1.645, 400
"""Half the length of a 90 % interval in standard deviations, and bootstrap samples for macro F."""
WIDENINGS = (1.3, 1.7)
"""Factors of the deviations of accuracy and macro F that errors on hidden labels suggest: the final fit is another."""
MIN_REPRESENTATIVES = 10
"""Hidden labels that represent classes with a single label, if there are as many."""
SINGLE_DEVIATION = 0.15
"""Standard deviation of the accuracy of classes with a single label, as far as others show it."""


class AccuracyEstimate(NamedTuple):
    """Estimated quality of the labels of the unlabelled rows, each with a 90 % interval.

    Attributes
    ----------
    mean, low, high : float
        Fraction of the labels that are right.
    macro_f, macro_f_low, macro_f_high : float
        Macro F of the classes with at least two labels, which alone can be hidden; those with the fewest labels count
        for classes with a single one, too, and classes without a label are left out.
    n_labels : int
        Number of labels that were hidden.
    n_single : int
        Number of labels that are the only one of their class; 0 if all class sizes are known. If there are any, there
        may be classes without a label, of which the estimate knows little.
    """

    mean: float
    low: float
    high: float
    macro_f: float
    macro_f_low: float
    macro_f_high: float
    n_labels: int
    n_single: int = 0


def estimate_accuracy(
    hidden: HiddenLabels, confidence: float, sizes: Array, is_sample: bool, is_complete: bool = False
) -> AccuracyEstimate:
    """Estimate accuracy from hidden labels and the mean confidence in the labels of the unlabelled rows.

    Unless the labels are a random sample, they are weighted so that classes have these sizes (K,). `is_complete` says
    that the sizes are known, so that no row is of another class.

    >>> labels, predicted = np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> hidden = HiddenLabels(labels, predicted, np.ones(4, bool), np.array([0.5, 0.5]), 100)
    >>> estimate = estimate_accuracy(hidden, 0.8, np.array([0.5, 0.5]), True)
    >>> round(estimate.mean, 2), round(estimate.macro_f, 2)
    (0.8, 0.78)
    """
    labels, predicted = hidden.labels[hidden.was_hidden], hidden.predicted[hidden.was_hidden]
    guesses, sure = predicted.argmax(axis=1), predicted.max(axis=1)
    masses, unknown, single = _class_masses(hidden, sizes, is_sample, is_complete)
    weights = (masses / np.maximum(np.bincount(labels, minlength=masses.size), 1))[labels]
    if not weights.sum() > 0.0:  # all hidden labels are of classes of size 0
        weights = np.ones(labels.size)
    weights = weights / weights.sum()
    errors = np.append(
        (guesses == labels) - sure, -_confidence_of_unknown(hidden, float(np.dot(weights, sure)), unknown)
    )
    each = np.append((1.0 - unknown) * weights, unknown)
    shift = float(np.dot(each, errors))
    spread = float(np.dot(each[:-1], each[:-1])) + unknown / hidden.labels.size
    variance = float(np.dot(each, (errors - shift) ** 2)) * spread
    shrinking = max(1.0 - variance / max(shift**2, 1e-12), 0.0) if is_sample and not unknown else 1.0
    mean = float(np.clip(confidence + shrinking * shift, 0.0, 1.0))
    smoothed = (mean * labels.size + 1.0) / (labels.size + 2.0)  # no errors among a few labels do not mean none at all
    least = smoothed * (1.0 - smoothed) / (labels.size + 2.0)
    right = float(np.dot(each[:-1], guesses == labels))
    f, f_variance, f_single = _estimate_macro_f(hidden, labels, guesses, weights, unknown)
    f = min(f * mean / right, 1.0) if right > 0 else f  # macro F is higher in the final fit as accuracy is
    found = ((mean, variance, single), (f, f_variance, f_single))
    intervals = [
        _interval(one, max(widening**2 * v, least), fraction)
        for (one, v, fraction), widening in zip(found, WIDENINGS, strict=True)
    ]
    n_single = 0 if is_complete else int(np.count_nonzero(np.bincount(hidden.labels) == 1))
    return AccuracyEstimate(*intervals[0], *intervals[1], int(labels.size), n_single)


def _interval(mean: float, variance: float, single: float) -> tuple[float, float, float]:
    """An estimate with its 90 % interval, wider by the fraction that depends on classes with a single label."""
    half = Z * float(np.sqrt(variance + (SINGLE_DEVIATION * single) ** 2))
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)


def _estimate_macro_f(
    hidden: HiddenLabels, labels: Array, guesses: Array, weights: Array, unknown: float
) -> tuple[float, float, float]:
    """Macro F of hidden labels with these guesses, its variance by the bootstrap, and how many classes have one label.

    The last value is a fraction of the classes with labels.
    """
    checked, alone = _label_counts(hidden)
    classes, rng = _represented(hidden, np.ones(hidden.n_classes)), np.random.default_rng(0)
    draws = (rng.choice(labels.size, labels.size, p=weights) for _ in range(N_RESAMPLES))
    found = [macro_f(labels[rows], guesses[rows], classes, None, unknown) for rows in draws]
    single = np.count_nonzero(alone) / np.count_nonzero(checked + alone)
    return macro_f(labels, guesses, classes, weights, unknown), float(np.var(found)), float(single)


def _class_masses(hidden: HiddenLabels, sizes: Array, is_sample: bool, is_complete: bool) -> tuple[Array, float, float]:
    """Fractions of rows (K,) that the hidden labels of each class stand for, and those that have none of their own.

    The second value is that of classes without a label, whose rows are wrong, and the third one that of classes with a
    single label, for which others stand.
    """
    checked, alone = _label_counts(hidden)
    masses = (checked + alone) / (checked + alone).sum() if is_sample else sizes
    if is_sample and not is_complete:
        return np.where(checked > 0, masses, 0.0), float(masses[alone > 0].sum()), 0.0
    return _represented(hidden, masses), float(sizes[checked + alone == 0].sum()), float(masses[alone > 0].sum())


def _confidence_of_unknown(hidden: HiddenLabels, of_hidden: float, unknown: float) -> float:
    """Mean confidence in the labels of rows whose class has no label: what is left of that in all unlabelled rows."""
    if not unknown or np.isnan(hidden.confidence):
        return of_hidden
    return float(np.clip((hidden.confidence - (1.0 - unknown) * of_hidden) / unknown, 0.0, 1.0))


def _represented(hidden: HiddenLabels, masses: Array) -> Array:
    """Masses (K,) of the classes with hidden labels; those with the fewest stand for those with a single label, too."""
    checked, alone = _label_counts(hidden)
    found = np.where(checked > 0, masses, 0.0)
    up_to = np.cumsum(np.bincount(checked) * np.arange(checked.max() + 1))  # hidden labels of classes with so many
    few = (checked > 0) & (checked <= np.searchsorted(up_to, min(MIN_REPRESENTATIVES, checked.sum())))
    if found[few].sum() > 0:
        found[few] *= 1.0 + masses[alone > 0].sum() / found[few].sum()
    return found


def _label_counts(hidden: HiddenLabels) -> tuple[Array, Array]:
    """Hidden labels of each class (K,), and labels (K,) of classes without a hidden one."""
    labeled, checked = (
        np.bincount(labels, minlength=hidden.n_classes) for labels in (hidden.labels, hidden.labels[hidden.was_hidden])
    )
    return checked, np.where(checked > 0, 0, labeled)


def macro_f(labels: Array, guesses: Array, classes: Array, weights: Array | None = None, unknown: float = 0.0) -> float:
    """Mean F of the classes that occur among the labels, with a weight above 0, by the weights (K,) of the classes.

    A fraction `unknown` of all rows is of none of these classes; they are guessed to be of each as often as others.
    """
    n_classes = classes.size
    right = np.bincount(labels[guesses == labels], None if weights is None else weights[guesses == labels], n_classes)
    true, guessed = (np.bincount(each, weights, n_classes) for each in (labels, guesses))
    present = true > 0
    f = 2.0 * right[present] / (true + guessed / max(1.0 - unknown, 1e-9))[present]
    return float(np.average(f, weights=classes[present]))
