"""Nearest class means, and means that unlabelled rows correct: BD-CSPN (Liu, Song and Qin, 2020).

BD-CSPN moves the unlabelled rows so that their mean is that of the labelled ones, labels them by the most similar class
mean, and takes each class mean again over labelled and newly labelled rows, a row weighted by the softmax of its
similarities at its class.
"""

import numpy as np

from experiments.few_shot.task import Fitted, Task, applied

SHARPNESS = 10.0
"""Factor of the cosine in the weights of BD-CSPN, as published."""


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def softmax(scores: np.ndarray) -> np.ndarray:
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return found


def class_means(task: Task) -> np.ndarray:
    """Mean (K, d) of the labelled rows of each class."""
    return (task.one_hot.T @ task.X) / task.one_hot.sum(axis=0)[:, None]


def nearest_mean(setting: None, task: Task) -> Fitted:
    """Cosine of a row and each class mean."""
    means = unit(class_means(task))
    return applied(lambda rows: unit(rows) @ means.T, task)


def bd_cspn(setting: float, task: Task) -> Fitted:
    """Cosine of a row and each corrected mean; the setting is the fraction of unlabelled rows that correct them.

    The surest rows of each class are used, as many as this fraction of all rows with its label.
    """
    shift = unit(task.X).mean(axis=0) - unit(task.Q).mean(axis=0)
    rows = np.concatenate((unit(task.X), unit(task.Q) + shift))
    cosines = unit(rows) @ unit(class_means(task)).T
    guesses, weights = cosines.argmax(axis=1), softmax(SHARPNESS * cosines)
    guesses[: len(task.y)] = task.y
    means = np.stack([_corrected(k, setting, rows, guesses, weights[:, k], len(task.y)) for k in np.unique(task.y)])
    means = unit(means)
    return applied(lambda new: unit(unit(new) + shift) @ means.T, task)


def _corrected(k: int, fraction: float, rows: np.ndarray, guesses: np.ndarray, weights: np.ndarray, n_labeled: int):
    """Weighted mean of the labelled rows of a class and of the surest of the rows that were given its label."""
    mine = np.flatnonzero(guesses == k)
    labeled, found = mine[mine < n_labeled], mine[mine >= n_labeled]
    surest = found[np.argsort(-weights[found], kind="stable")[: int(np.ceil(fraction * found.size))]]
    used = np.concatenate((labeled, surest))
    return weights[used] @ rows[used] / weights[used].sum()
