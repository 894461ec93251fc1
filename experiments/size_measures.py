"""Measures of what a fitted classifier says about class sizes, its accuracy and its confidence in each row.

`size_estimate_` and `accuracy_estimate_` have the fields mean, low and high, the last two a 90 % interval; the
confidence in a label is its probability in `label_distributions_`. A measure is None for a classifier without them.
"""

from typing import Any

import numpy as np

from experiments.data import Split

N_BINS = 15
TOLERANCE = 1e-9
"""Intervals of exact sizes have length 0: how far rounding may put the true value outside."""


def measures(model: Any, split: Split) -> dict[str, float | None]:
    """Errors and coverage of the fitted attributes on unlabelled rows; true labels serve only to measure."""
    truth, labels = split.truth[split.n_labeled :], model.transduction_[split.n_labeled :]
    is_right = labels == truth
    return {
        **size_measures(getattr(model, "size_estimate_", None), model.classes_, split.counts / split.counts.sum()),
        **accuracy_measures(getattr(model, "accuracy_estimate_", None), float(is_right.mean())),
        "ece": calibration_error(confidence(model), is_right, split.n_labeled),
    }


def confidence(model: Any) -> np.ndarray | None:
    """Probability (n_rows,) of the label of each row."""
    distributions = getattr(model, "label_distributions_", None)
    if distributions is None:
        return None
    return distributions[np.arange(len(distributions)), np.searchsorted(model.classes_, model.transduction_)]


def size_measures(estimate: Any, classes: np.ndarray, fractions: np.ndarray) -> dict[str, float | None]:
    """L1 error of the estimate, and the fraction of the classes whose interval covers the true value.

    `classes` are numbers from 0; a class that the model does not know is estimated at 0, and has no interval.
    """
    if estimate is None:
        return {"size_l1": None, "size_coverage": None}
    mean, low, high = (spread_over(values, classes, fractions.size) for values in _fields(estimate))
    covered = (low - TOLERANCE <= fractions) & (fractions <= high + TOLERANCE)
    return {
        "size_l1": l1(mean, fractions),
        "size_coverage": round(float(covered[np.asarray(classes, dtype=int)].mean()), 5),
    }


def accuracy_measures(estimate: Any, accuracy: float) -> dict[str, float | None]:
    """The estimated accuracy, and 1 if its interval covers the true one, else 0."""
    if estimate is None:
        return {"accuracy_estimate": None, "accuracy_covered": None}
    mean, low, high = _fields(estimate)
    is_covered = low - TOLERANCE <= accuracy <= high + TOLERANCE
    return {"accuracy_estimate": round(float(mean), 5), "accuracy_covered": int(is_covered)}


def calibration_error(confidence: np.ndarray | None, is_right: np.ndarray, n_labeled: int) -> float | None:
    """Expected calibration error of the unlabelled rows, in bins of equally many rows with similar confidence."""
    if confidence is None:
        return None
    mine = np.asarray(confidence, dtype=float)[n_labeled:]
    bins = np.array_split(np.argsort(mine, kind="stable"), min(N_BINS, mine.size))
    gaps = [abs(mine[rows].mean() - is_right[rows].mean()) * rows.size for rows in bins]
    return round(float(np.sum(gaps)) / mine.size, 5)


def spread_over(values: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Values of some classes as an array of all classes, 0 for the rest."""
    found = np.zeros(n_classes)
    found[np.asarray(classes, dtype=int)] = values
    return found


def l1(fractions: np.ndarray, others: np.ndarray) -> float:
    """Sum of absolute differences."""
    return round(float(np.abs(fractions - others).sum()), 5)


def _fields(estimate: Any) -> tuple[Any, Any, Any]:
    return estimate.mean, estimate.low, estimate.high
