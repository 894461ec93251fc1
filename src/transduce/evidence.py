"""Evidence about the labels from elsewhere, such as another model's scores or class names, as costs of the labels.

    costs[i, k] = −log softmax_k(a S_i + b),      J(W, y) = λ/2 ‖W‖² + Σ_i κ_i (ξ(S_i, y_i) + ω costs[i, y_i])

The slope a and the biases b of the classes make labels most likely: those that are known, else those found from the
texts. The weight ω falls from 1 as the unlabelled rows gain weight, to what the texts do not say themselves: the part
of the variance of S within the classes that a linear model of the texts does not explain. Cosines of texts and class
names are a function of the texts, and end at nearly 0; the answers of a person would keep their weight.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from transduce.arrays import Array

DECADES = 4.0
"""Powers of 10 of the weight of the unlabelled rows over which ω falls from its first to its last value."""
MIN_WEIGHT = 0.01
"""Least final ω, so that evidence decides where texts are the same."""
SAMPLE_ROWS, RIDGE, CLASS_WEIGHT = 1500, 1e-3, 100.0
"""Rows that show how much of the scores the texts explain, and the relative weights of the ridge and the classes."""
BIAS_PRIOR, SLOPE_PRIOR = 1.0, 1.0
"""Costs of b² and of (log a)², in units of the log-likelihood: with few labels the scores are used as they are."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about the rows of a problem, in their order.

    scores  (n, K) scores, centred in each row and of mean square 1; rows of zeros say nothing
    costs   (n, K) costs of the labels, None before calibration
    first   ω while the unlabelled rows have little weight
    final   ω at their final weight
    full    final weight of the unlabelled rows
    is_judged  whether costs are those of texts and guesses together, and count in full
    """

    scores: Array
    costs: Array | None = None
    first: float = 1.0
    final: float = MIN_WEIGHT
    full: float = 1.0
    is_judged: bool = False

    @classmethod
    def create(cls, scores: Array) -> "Evidence":
        """Standardise scores (n, K); NaN in some cells of a row counts as the mean of the others.

        >>> Evidence.create(np.array([[3.0, 1.0], [np.nan, np.nan]])).scores.tolist()
        [[1.0, -1.0], [0.0, 0.0]]
        """
        known = np.isfinite(scores)
        n_known = known.sum(axis=1, keepdims=True)
        mean = np.where(known, scores, 0.0).sum(axis=1, keepdims=True) / np.maximum(n_known, 1)
        centered = np.where(known, scores - mean, 0.0)
        scale = np.sqrt(np.mean(centered[n_known[:, 0] > 0] ** 2))
        return cls(centered / scale)

    @property
    def is_known(self) -> Array:
        """Whether there are scores for each row (n,)."""
        return np.asarray(self.scores.any(axis=1))

    def select(self, rows: Array) -> "Evidence":
        """Evidence about some rows."""
        return replace(self, scores=self.scores[rows], costs=None if self.costs is None else self.costs[rows])

    def weight(self, unlabeled_weight: float) -> float:
        """ω at this weight of the unlabelled rows: log-linear from `first` to `final`.

        >>> [round(Evidence(np.zeros((1, 2)), final=0.01).weight(weight), 3) for weight in (0.0, 1e-4, 1e-2, 1.0)]
        [1.0, 1.0, 0.1, 0.01]
        """
        if unlabeled_weight <= 0.0:
            return self.first
        part = 1.0 + np.log10(unlabeled_weight / self.full) / DECADES
        t = float(np.clip(part, 0.0, 1.0))
        return float(self.first ** (1.0 - t) * self.final**t)

    def weighted_costs(self, n_labeled: int, unlabeled_weight: float) -> Array | float:
        """ω times the costs of the rows without a full label, which follow the labelled ones; 0 before calibration."""
        return 0.0 if self.costs is None else self.weight(unlabeled_weight) * self.costs[n_labeled:]

    def calibrated(self, slope: float, bias: Array) -> "Evidence":
        """Evidence with costs by this slope and these biases (K,)."""
        costs = -log_softmax(slope * self.scores + bias, axis=1)
        return replace(self, costs=np.where(self.is_known[:, None], costs, 0.0))


def calibrate(scores: Array, labels: Array) -> tuple[float, Array]:
    """Slope a and biases b (K,) that make labels (m,) of rows with scores (m, K) most likely, with priors on both.

    >>> slope, bias = calibrate(np.array([[1.0, -1.0], [-1.0, 1.0]] * 50), np.array([0, 1] * 50))
    >>> slope > 1.5, bool(np.allclose(bias, 0.0, atol=1e-3))
    (True, True)
    """
    n_classes = scores.shape[1]
    one_hot = np.eye(n_classes)[labels]

    def value_and_gradient(parameters: Array) -> tuple[float, Array]:
        log_slope, bias = parameters[0], parameters[1:]
        slope = np.exp(log_slope)
        logs = log_softmax(slope * scores + bias, axis=1)
        errors = np.exp(logs) - one_hot
        value = -float((logs * one_hot).sum()) + BIAS_PRIOR / 2 * float(bias @ bias) + SLOPE_PRIOR / 2 * log_slope**2
        gradient = slope * float((errors * scores).sum()) + SLOPE_PRIOR * log_slope
        return value, np.append(gradient, errors.sum(axis=0) + BIAS_PRIOR * bias)

    found = minimize(value_and_gradient, np.zeros(1 + n_classes), jac=True, method="L-BFGS-B").x
    return float(np.exp(found[0])), np.asarray(found[1:])


def part_not_in_texts(X: Any, scores: Array, labels: Array) -> float:
    """Fraction of the variance of scores (m, K) within classes that rows X (m, d) do not explain, from 0 to 1.

    A ridge regression on X and the classes (m,), fitted to two thirds of the rows, predicts the other third. It is
    compared with the one on the classes alone.
    """
    gram, n_fit = X @ X.T, 2 * len(scores) // 3
    gram = np.asarray(gram.toarray() if hasattr(gram, "toarray") else gram, dtype=np.float64)
    scale = max(float(np.trace(gram)) / max(len(gram), 1), 1e-12)
    same = CLASS_WEIGHT * scale * np.equal.outer(labels, labels)

    def error(kernel: Array) -> float:
        ridge = RIDGE * scale * np.eye(n_fit)
        solution = np.linalg.solve(kernel[:n_fit, :n_fit] + ridge, scores[:n_fit])
        return float(((scores[n_fit:] - kernel[n_fit:, :n_fit] @ solution) ** 2).sum())

    total = error(same)
    return min(error(gram + same) / total, 1.0) if total > 0.0 else 0.0


class NamedScores(NamedTuple):
    """Scores (n, m) with the names of their columns, as a data frame has them."""

    columns: list[Any]
    values: Array

    def to_numpy(self) -> Array:
        """Return the scores."""
        return self.values


def check_agreement(scores: Array, labels: Array) -> None:
    """Raise ValueError if standardised scores (m, K) contradict the labels (m,) of their rows."""
    own = scores[np.arange(labels.size), labels]
    if labels.size >= 10 and own.mean() < -3.0 * own.std() / np.sqrt(labels.size):
        raise ValueError(
            f"scores contradict the labels: on average {labels.size} labelled rows have a lower score for their own "
            "class than for others. Pass -scores if low ones are good, or check the order of the columns."
        )
