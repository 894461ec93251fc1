"""Classifiers of scikit-learn as few-shot methods: LogisticRegression, SelfTraining with it, and LabelSpreading."""

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from experiments.few_shot.laplacian import neighbors
from experiments.few_shot.task import Fitted, Task, applied

FLOOR = 1e-12


def log_probabilities(P: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(P, FLOOR))


def logistic(setting: float, task: Task) -> Fitted:
    """The setting is C."""
    model = LogisticRegression(C=setting, max_iter=1000).fit(task.X, task.y)
    return applied(lambda rows: log_probabilities(model.predict_proba(rows)), task)


def _marked(task: Task) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate((task.X, task.Q)), np.concatenate((task.y, np.full(len(task.Q), -1)))


def self_training(setting: tuple[float, float], task: Task) -> Fitted:
    """The setting is C and the probability above which a row keeps its label."""
    base = LogisticRegression(C=setting[0], max_iter=200, tol=1e-3)
    model = SelfTrainingClassifier(base, threshold=setting[1]).fit(*_marked(task))
    return applied(lambda rows: log_probabilities(model.predict_proba(rows)), task)


def label_spreading(setting: tuple[int, float], task: Task) -> Fitted:
    """The setting is the number of neighbours and the fraction of its label that a row takes from them."""
    k, alpha = setting

    def graph(train: np.ndarray, rows: np.ndarray) -> sparse.csr_matrix:
        near = neighbors(rows, train, k)
        numbers = np.repeat(np.arange(len(rows)), near.shape[1])
        links = sparse.csr_matrix((np.ones(near.size), (numbers, near.ravel())), (len(rows), len(train)))
        return links if rows is train else links.T

    model = LabelSpreading(kernel=graph, alpha=alpha, max_iter=100).fit(*_marked(task))
    queries = log_probabilities(model.label_distributions_[len(task.y) :])
    return Fitted(queries, lambda rows: log_probabilities(model.predict_proba(rows)))
