"""Class sizes estimated from all rows: what classifiers predict, corrected by their errors on labels hidden from them.

Labels that were drawn at random are corrected as in prediction-powered inference (Angelopoulos et al., 2023):

    φ = λ mean_u p_u + mean_l (e_{y_l} − λ p_l)        u unlabelled rows, l labelled rows, p predicted probabilities

with the λ of least variance. The result is smoothed like labelled counts, of as many labels as would be as precise.

Labels that were chosen in another way say nothing about class sizes, but show which classes are confused. With M_kj the
mean probability of class j for labelled rows of class k, sizes φ predict the mean probabilities φᵀM, and a few steps of
the EM algorithm lead from those observed, mean_u p_u, to sizes that explain them better. More steps fit noise.
Labels that were chosen because they are hard, such as answers to a queue, would make M too pessimistic, so rows are
weighted by exp(t c), c the largest probability, to be as clear as the unlabelled ones on average.

M is right if labels were chosen by class. If they were chosen by their predictions, classes are as frequent among rows
with the same prediction as elsewhere, and mean_u p_u is corrected by the weighted errors e_{y_l} − p_l. Unless the
numbers of labels are equal by design, they may have been chosen in both ways, and the result is the mean of both.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc

from transduce.arrays import Array, FloatArray
from transduce.class_prior.proportions import SizeEstimate, are_balanced_by_design, disagreement, labeled_proportions

WIDENING = 1.4
"""Factor of the deviations that errors on hidden labels suggest: the classifiers share most of their labels."""
EM_STEPS, PRIOR_LABELS = 5, 2.0
"""Steps of the EM algorithm, and the weight of the average errors in those of each class, in labels."""
MAX_TILT = 20.0
"""Largest |t| in the weights exp(t c) of hidden labels, c the largest probability of the row."""
MIN_SAMPLED = 10
"""Labels drawn at random that are needed to correct predictions."""
CONTRADICTED = (0.05, 0.005)
"""Labels are no sample if chance makes both disagreements in `contradicts` as large with lower probabilities."""


class HiddenLabels(NamedTuple):
    """Predictions for labelled rows by classifiers that these labels were hidden from.

    labels       (l,) class of each labelled row
    predicted    (l, K) probabilities of the classes
    was_hidden   (l,) whether the label was hidden; the only label of a class never is
    unlabeled    (K,) mean probabilities of the unlabelled rows
    n_unlabeled  number of unlabelled rows
    confidence   mean of the largest probability of the unlabelled rows, or NaN if it is not known
    """

    labels: Array
    predicted: FloatArray
    was_hidden: Array
    unlabeled: FloatArray
    n_unlabeled: int
    confidence: float = np.nan

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.unlabeled.size)

    @property
    def truth(self) -> FloatArray:
        """One-hot labels (l, K)."""
        truth = np.zeros((self.labels.size, self.n_classes))
        truth[np.arange(self.labels.size), self.labels] = 1.0
        return truth


def estimate_from_predictions(predicted_counts: Array) -> SizeEstimate:
    """Estimate class sizes from the numbers of rows (K,) that a classifier predicts; they are uncertain."""
    mean = (predicted_counts + 1.0) / (predicted_counts + 1.0).sum()
    return SizeEstimate(mean, mean)


def estimate_sizes(hidden: HiddenLabels, sampled: Array) -> SizeEstimate:
    """Estimate class sizes from hidden labels; `sampled` (l,) marks those that were drawn at random.

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice(2, p=[0.8, 0.2], size=100)
    >>> predicted = 0.1 + 0.8 * np.eye(2)[np.where(rng.random(100) < 0.9, labels, 1 - labels)]
    >>> hidden = HiddenLabels(labels, predicted, np.ones(100, bool), np.array([0.7, 0.3]), 1000)
    >>> estimate_sizes(hidden, np.ones(100, bool)).mean.round(2).tolist()
    [0.71, 0.29]
    """
    if int(sampled.sum()) >= MIN_SAMPLED:
        return _smoothed(*_rectified(hidden, sampled))
    truth, predicted = hidden.truth[hidden.was_hidden], hidden.predicted[hidden.was_hidden]
    n_labels = _as_labels(truth, truth - predicted, hidden.n_unlabeled)
    sizes = _adjusted(hidden)
    if not are_balanced_by_design(np.bincount(hidden.labels, minlength=hidden.n_classes)):
        sizes = (sizes + _corrected(hidden)) / 2.0
    return _smoothed(sizes, max(n_labels, 1.0))


def contradicts(hidden: HiddenLabels, sampled: Array) -> bool:
    """Whether predictions contradict that the labels marked by `sampled` (l,) were drawn at random.

    Both must be unlikely by chance: what is predicted for their rows, compared with the unlabelled rows, and their
    numbers, compared with the sizes that explain the predictions. The first is sure to be rare by chance however poor
    the classifiers are, the second shows best what is wrong.

    >>> labels, every = np.arange(60) % 2, np.ones(60, bool)
    >>> found = [HiddenLabels(labels, np.eye(2)[labels], every, np.array([p, 1 - p]), 500) for p in (0.5, 0.9)]
    >>> [contradicts(hidden, every) for hidden in found]
    [False, True]
    """
    shown = hidden._replace(was_hidden=hidden.was_hidden & sampled)
    if not shown.was_hidden.any():
        return False
    sizes, counts = _adjusted(shown), np.bincount(hidden.labels[sampled], minlength=hidden.n_classes)
    ratios = np.array([_contradiction(shown), disagreement(counts, sizes, sizes)])
    freedom = max(hidden.n_classes - 1, 1)
    return bool(np.all(gammainc(freedom / 2, freedom * ratios / 2) > 1.0 - np.array(CONTRADICTED)))


def _contradiction(hidden: HiddenLabels) -> float:
    """Disagreement of the mean probabilities of labelled and unlabelled rows: about 1 if labels were drawn at random.

    Probabilities vary less than counts would, which the correction of Rao and Scott (1981) takes into account.
    """
    predicted = hidden.predicted[hidden.was_hidden]
    mean = predicted.mean(axis=0)
    effect = float(predicted.var(axis=0).sum() / max(float((mean * (1.0 - mean)).sum()), 1e-12))
    effect *= 1.0 + len(predicted) / max(hidden.n_unlabeled, 1)
    return disagreement(len(predicted) * mean, hidden.unlabeled, hidden.unlabeled) / max(effect, 1e-6)


def _smoothed(sizes: FloatArray, n_labels: float) -> SizeEstimate:
    """Sizes that are as precise as those of so many labels, smoothed as these are, with wider intervals."""
    estimate = labeled_proportions(sizes * n_labels)
    return SizeEstimate(estimate.mean, WIDENING * estimate.deviation)


def _rectified(hidden: HiddenLabels, sampled: Array) -> tuple[FloatArray, float]:
    """Prediction-powered sizes from labels drawn at random, and the number of labels that are as precise."""
    truth, was_hidden = hidden.truth[sampled], hidden.was_hidden[sampled]
    predicted = np.where(was_hidden[:, None], hidden.predicted[sampled], truth)
    deviations = predicted[was_hidden] - predicted[was_hidden].mean(axis=0) if was_hidden.any() else np.zeros((0, 1))
    common = (
        float((deviations * (truth[was_hidden] - truth[was_hidden].mean(axis=0))).sum()) if was_hidden.any() else 0.0
    )
    n_labels = len(truth)
    scale = float((deviations**2).sum()) * (1.0 + n_labels / max(hidden.n_unlabeled, 1))
    weight = float(np.clip(common / scale, 0.0, 1.0)) if scale > 0 else 0.0
    errors = truth - weight * predicted
    mean = np.maximum(weight * hidden.unlabeled + errors.mean(axis=0), 0.0)
    return mean / mean.sum(), _as_labels(truth, errors, hidden.n_unlabeled)


def _as_labels(truth: FloatArray, errors: FloatArray, n_unlabeled: int) -> float:
    """Number of labels alone that would be as precise as labels (l, K) that predictions reduce to errors (l, K)."""
    if not len(truth):
        return 0.0
    plain = float((truth.mean(axis=0) * (1.0 - truth.mean(axis=0))).sum())
    gain = plain / max(float(errors.var(axis=0).sum()), plain / n_unlabeled, 1e-12)
    return len(truth) * max(gain, 1.0)


def _adjusted(hidden: HiddenLabels) -> FloatArray:
    """Sizes that explain the mean probabilities of the unlabelled rows by the errors on hidden labels of each class."""
    labels, predicted = hidden.labels[hidden.was_hidden], hidden.predicted[hidden.was_hidden]
    observed = (hidden.unlabeled + 1e-4) / (hidden.unlabeled + 1e-4).sum()
    weights = _likeness(labels, predicted.max(axis=1), observed, hidden.confidence)
    weights /= (
        np.bincount(labels, weights, observed.size) / np.maximum(np.bincount(labels, minlength=observed.size), 1)
    )[labels]
    truth = weights[:, None] * hidden.truth[hidden.was_hidden]
    accuracy = (float((truth * predicted).sum()) + 1.0) / (len(truth) + 2.0)
    mean = weights @ predicted / len(truth) + 1e-3 if len(truth) else 1.0
    others = np.where(np.eye(hidden.n_classes, dtype=bool), 0.0, mean)
    others /= np.maximum(others.sum(axis=1, keepdims=True), 1e-12)
    average = accuracy * np.eye(hidden.n_classes) + (1.0 - accuracy) * others
    confusion = (truth.T @ predicted + PRIOR_LABELS * average) / (truth.sum(axis=0)[:, None] + PRIOR_LABELS)
    sizes = observed
    for _ in range(EM_STEPS):
        sizes = sizes * (confusion @ (observed / np.maximum(sizes @ confusion, 1e-12)))
        sizes = sizes / sizes.sum()
    return np.asarray(sizes)


def _corrected(hidden: HiddenLabels) -> FloatArray:
    """Mean probabilities of the unlabelled rows, corrected by errors on hidden labels with similar predictions."""
    truth, predicted = hidden.truth[hidden.was_hidden], hidden.predicted[hidden.was_hidden]
    weights = _likeness(predicted.argmax(axis=1), predicted.max(axis=1), hidden.unlabeled, hidden.confidence)
    sizes = np.maximum(hidden.unlabeled + weights @ (truth - predicted), 1e-3)
    return np.asarray(sizes / sizes.sum())


def _likeness(classes: Array, sure: FloatArray, sizes: FloatArray, confidence: float) -> FloatArray:
    """Weights (l,) that make rows of these classes similar to the unlabelled ones: in class sizes, and as clear.

    They are φ_k / n_k exp(t c) in a class of size φ_k with n_k rows, c the largest probability of the row (l,). At t
    the mean of c is the mean confidence of the unlabelled rows.
    """
    if not len(classes):
        return np.zeros(0)
    each = (sizes / np.maximum(np.bincount(classes, minlength=sizes.size), 1))[classes] + 1e-12
    low, high = (-MAX_TILT, MAX_TILT) if np.isfinite(confidence) else (0.0, 0.0)
    for _ in range(20):
        tilt = (low + high) / 2.0
        weights = each * np.exp(tilt * (sure - 1.0))
        low, high = (tilt, high) if weights @ sure < confidence * weights.sum() else (low, tilt)
    weights = each * np.exp((low + high) / 2.0 * (sure - 1.0))
    return np.asarray(weights / weights.sum())
