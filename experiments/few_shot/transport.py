"""Methods that transport rows to classes of given sizes: PT-MAP and OTTER.

PT-MAP (Hu, Gripon and Pateux, 2021) takes roots of the features, centres labelled and unlabelled rows apart, and
alternates between an entropic transport of the unlabelled rows to the class means and a step of the means towards the
rows that they receive. OTTER (Shin et al., 2024) transports the log probabilities of any classifier once. Without sizes
PT-MAP takes all classes as equally large, or as frequent as among the labels, and OTTER estimates sizes by black box
shift estimation from hidden probabilities, or takes them from the labels.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from experiments.few_shot.classifiers import logistic
from experiments.few_shot.prototypes import unit
from experiments.few_shot.task import Fitted, Task, folds, hidden, transported

N_EPOCHS, STEP = 20, 0.2
N_SINKHORN, TOLERANCE = 1000, 1e-6


class PowerSetting(NamedTuple):
    """The exponent of the features, the factor of squared distances, and the sizes where none are known."""

    power: float = 0.5
    sharpness: float = 10.0
    prior: str = "uniform"


class ShiftSetting(NamedTuple):
    """C of LogisticRegression, and the sizes where none are known: "estimate" or "labeled"."""

    C: float
    prior: str = "estimate"


def assumed(prior: str, task: Task) -> np.ndarray:
    """Class proportions: the given ones; else those of the labels, or all the same if the prior is "uniform"."""
    if task.proportions is not None:
        return np.maximum(task.proportions, 1e-6)
    fractions = task.labeled_fractions
    return fractions if prior == "labeled" else np.full(fractions.size, 1 / fractions.size)


def sinkhorn(scores: np.ndarray, proportions: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Logarithms v (K,) such that the softmax of scores + v has column means equal to the proportions."""
    affinity = np.exp(scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    scale = np.ones(len(proportions)) if start is None else np.exp(start - start.max())
    for _ in range(N_SINKHORN):
        received = scale * (affinity.T @ (1 / (affinity @ scale))) / len(scores)
        if np.max(np.abs(received - proportions)) < TOLERANCE:
            break
        scale *= proportions / received
        scale /= scale.max()
    return np.log(scale)


def powered(rows: np.ndarray, power: float) -> np.ndarray:
    """Features to a power, their signs kept, in rows of length 1."""
    return unit(np.sign(rows) * np.abs(rows) ** power)


def pt_map(setting: PowerSetting, task: Task) -> Fitted:
    X, Q = powered(task.X, setting.power), powered(task.Q, setting.power)
    center = Q.mean(axis=0)
    X, Q = unit(X - X.mean(axis=0)), unit(Q - center)
    proportions, one_hot = assumed(setting.prior, task), task.one_hot
    own, n_own = one_hot.T @ X, one_hot.sum(axis=0)
    means, shift = own / n_own[:, None], None

    def scores(rows: np.ndarray) -> np.ndarray:
        return setting.sharpness * (2 * rows @ means.T - np.sum(means**2, axis=1))

    for _ in range(N_EPOCHS):
        shift = sinkhorn(scores(Q), proportions, shift)
        joint = scores(Q) + shift
        P = np.exp(joint - joint.max(axis=1, keepdims=True))
        P = (P / P.sum(axis=1, keepdims=True)).astype(Q.dtype)
        found = (own + P.T @ Q) / (n_own + P.sum(axis=0))[:, None]
        means = means + STEP * (found - means)
    shift = sinkhorn(scores(Q), proportions, shift)
    return Fitted(scores(Q) + shift, lambda rows: scores(unit(powered(rows, setting.power) - center)) + shift)


def shift_estimate(C: float, task: Task) -> np.ndarray:
    """Class proportions of the unlabelled rows by black box shift estimation with soft predictions.

    Column k of the confusion matrix is the mean probability vector of hidden rows of class k; the proportions are the
    mixture of columns nearest to the mean probability vector of the unlabelled rows.
    """
    fitted = logistic(C, task)
    P = np.exp(fitted.score(task.X))
    for fold in folds(task.y):
        P[fold] = np.exp(logistic(C, hidden(task, fold, 0)).queries)
    confusion = (P.T @ task.one_hot) / task.one_hot.sum(axis=0)
    found = np.maximum(nnls(confusion, np.exp(fitted.queries).mean(axis=0))[0], 0.5 / len(task.y))
    return found / found.sum()


def otter(setting: ShiftSetting, task: Task) -> Fitted:
    """Log probabilities of LogisticRegression, transported to the class sizes."""
    if setting.prior == "estimate" and task.proportions is None:
        proportions = shift_estimate(setting.C, task)
    else:
        proportions = assumed(setting.prior, task)
    return transported(logistic(setting.C, task), proportions)
