"""A few-shot task, what a method returns for it, and the choice of its settings on labelled rows.

A task has labelled rows X (l, d) with classes y (l,) from 0 to K - 1, each of them present, and unlabelled rows Q
(n, d). `proportions` (K,) are the class sizes of Q as fractions, None if they are unknown.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import f1_score

from transduce import solve_labels
from transduce.class_prior.rounding import counts_from_fractions

N_FOLDS = 3
"""Folds in which labels are hidden while a setting is chosen."""


class Task(NamedTuple):
    """Labelled rows, their classes, unlabelled rows, and the class sizes of these if they are known."""

    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    proportions: np.ndarray | None = None

    @property
    def one_hot(self) -> np.ndarray:
        """Labels as a matrix (l, K) of 0 and 1."""
        return np.eye(int(self.y.max()) + 1, dtype=self.X.dtype)[self.y]

    @property
    def labeled_fractions(self) -> np.ndarray:
        return self.one_hot.mean(axis=0, dtype=np.float64)


class Fitted(NamedTuple):
    """Scores (n, K) of the unlabelled rows, and a function that scores new rows; the largest score wins."""

    queries: np.ndarray
    score: Callable[[np.ndarray], np.ndarray]


Fit = Callable[[Any, Task], Fitted]
"""From a setting and a task to scores."""


def applied(score: Callable[[np.ndarray], np.ndarray], task: Task) -> Fitted:
    """A method that scores unlabelled rows as it scores new ones."""
    return Fitted(score(task.Q), score)


def transported(fitted: Fitted, proportions: np.ndarray) -> Fitted:
    """Scores shifted by the prices at which the best labels of the unlabelled rows have the given sizes.

    With costs that are negative log probabilities this is OTTER (Shin et al., 2024): optimal transport of rows to
    classes. The prices of its dual problem serve new rows.
    """
    counts = counts_from_fractions(proportions, len(fitted.queries))
    prices = solve_labels(-fitted.queries.astype(np.float64), counts).prices
    return Fitted(fitted.queries + prices, lambda rows: fitted.score(rows) + prices)


def folds(y: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers of each fold; rows of a class are dealt over the folds, and the only row of a class is in none."""
    fold = np.full(len(y), -1)
    for k in np.unique(y):
        mine = np.flatnonzero(y == k)
        if mine.size > 1:
            fold[mine] = np.arange(mine.size) % N_FOLDS
    return (np.flatnonzero(fold == f) for f in range(fold.max() + 1))


def hidden(task: Task, fold: np.ndarray, n_beside: int) -> Task:
    """The task without the labels of a fold, whose rows come first among the unlabelled ones."""
    left = np.setdiff1d(np.arange(len(task.y)), fold)
    return Task(task.X[left], task.y[left], np.concatenate((task.X[fold], task.Q[:n_beside])), task.proportions)


def chosen(settings: Sequence[Any], fit: Fit, task: Task, n_beside: int) -> Any:
    """The setting with the best macro F on hidden labels, the first in case of a tie.

    The first `n_beside` unlabelled rows take part.
    """
    if len(settings) == 1:
        return settings[0]
    scores = []
    for setting in settings:
        guesses = task.y.copy()
        known = np.ones(len(task.y), dtype=bool)
        for fold in folds(task.y):
            found = fit(setting, hidden(task, fold, n_beside)).queries[: len(fold)]
            guesses[fold], known[fold] = found.argmax(axis=1), False
        y, guesses = task.y[~known], guesses[~known]
        scores.append(f1_score(y, guesses, labels=np.unique(y), average="macro", zero_division=0))
    return settings[int(np.argmax(scores))]
