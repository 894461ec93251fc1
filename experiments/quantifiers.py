"""Quantifiers: methods of others that estimate class sizes from labelled rows and the features of unlabelled ones.

All of them use the posteriors of one LogisticRegression on the labelled rows, and posteriors of labelled rows that were
hidden from it in turn (5 folds; the only row of a class is never hidden). C has the lowest log loss on hidden rows. EMQ
(expectation-maximisation of the class prior, posteriors calibrated by bias-corrected temperature scaling), KDEy-ML (a
mixture of kernel densities of posteriors) and PACC (adjusted mean probabilities) are those of QuaPy with its defaults.
QuaPy's own folds need a class with at least as many labels as folds, so ours are passed in. It is optional:
`pip install quapy abstention`.
"""

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from experiments.data import Rows, Split
from experiments.peers import STRENGTHS, compact

LABELED, COUNTS, PROBABILITIES = "labelled fractions", "LogisticRegression, counts", "LogisticRegression, probabilities"
EM, DENSITIES, ADJUSTED = "EMQ, calibrated", "KDEy-ML", "PACC"
OPTIONAL = ("quapy", "abstention")
N_FOLDS = 5
FLOOR = 1e-6
"""Smallest probability in the log loss that selects C."""


class Posteriors(NamedTuple):
    """A fitted classifier, its posteriors of hidden labelled rows and of unlabelled rows (n, K), and the labels."""

    model: LogisticRegression
    hidden: np.ndarray
    unlabeled: np.ndarray
    y: np.ndarray


def estimates(split: Split) -> list[tuple[str, np.ndarray, float]]:
    """Name, class proportions (K,) and CPU seconds of each quantifier; classes without a label get 0."""
    begin = time.process_time()
    X, see = compact(split.X[: split.n_labeled])
    posteriors = fit(X, split.given, see(split.X[split.n_labeled :]))
    shared = time.process_time() - begin
    found = []
    for name, quantify in quantifiers().items():
        begin = time.process_time()
        fractions = np.zeros(len(split.names))
        fractions[posteriors.model.classes_] = quantify(posteriors)
        found.append((name, fractions, time.process_time() - begin + shared * (name != LABELED)))
    return found


def quantifiers() -> dict[str, Callable[[Posteriors], np.ndarray]]:
    """Functions from posteriors to class proportions; those of QuaPy only where it is installed."""
    found: dict[str, Callable[[Posteriors], np.ndarray]] = {
        LABELED: lambda p: np.unique(p.y, return_counts=True)[1] / p.y.size,
        COUNTS: lambda p: np.eye(p.unlabeled.shape[1])[p.unlabeled.argmax(axis=1)].mean(axis=0),
        PROBABILITIES: lambda p: p.unlabeled.mean(axis=0),
    }
    if all(find_spec(name) is not None for name in OPTIONAL):
        found |= {EM: emq, DENSITIES: kdey, ADJUSTED: pacc}
    return found


def libraries() -> str:
    """Versions of the optional packages."""
    return " ".join(f"{name} {_installed(name)}" for name in OPTIONAL)


def _installed(name: str) -> str:
    try:
        return installed(name)
    except PackageNotFoundError:
        return "missing"


def fit(X: Rows, y: np.ndarray, unlabeled: Rows) -> Posteriors:
    """With the C that has the lowest log loss on hidden rows, the first of the grid in case of a tie."""
    fold = folds(y)
    candidates = [hidden_posteriors(X, y, fold, strength) for strength in STRENGTHS]
    best = int(np.argmin([log_loss(P[fold >= 0], y[fold >= 0], y) for P in candidates]))
    model = logistic(STRENGTHS[best]).fit(X, y)
    return Posteriors(model, candidates[best], model.predict_proba(unlabeled), y)


def folds(y: np.ndarray) -> np.ndarray:
    """The fold of each row, the rows of a class dealt evenly; -1 for the only row of a class."""
    fold = np.full(len(y), -1)
    for k in np.unique(y):
        mine = np.flatnonzero(y == k)
        if mine.size > 1:
            fold[mine] = (np.arange(mine.size) + k) % N_FOLDS
    return fold


def hidden_posteriors(X: Rows, y: np.ndarray, fold: np.ndarray, strength: float) -> np.ndarray:
    """Posteriors of each row by a model of the other folds; by a model of all rows where a row is never hidden."""
    P = np.empty((len(y), np.unique(y).size))
    for f in np.unique(fold):
        train = fold != f if f >= 0 else np.ones(len(y), dtype=bool)
        P[fold == f] = logistic(strength).fit(X[train], y[train]).predict_proba(X[fold == f])
    return P


def log_loss(P: np.ndarray, labels: np.ndarray, y: np.ndarray) -> float:
    own = P[np.arange(labels.size), np.searchsorted(np.unique(y), labels)]
    return float(-np.log(np.maximum(own, FLOOR)).mean()) if labels.size else 0.0


def logistic(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=1000)


def emq(p: Posteriors) -> np.ndarray:
    """Saerens, Latinne and Decaestecker (2002), calibrated as in Alexandari, Kundaje and Shrikumar (2020)."""
    from quapy.method.aggregative import EMQ

    model = EMQ(p.model, fit_classifier=False, exact_train_prev=False, calib="bcts", on_calib_error="backup")
    model.aggregation_fit(p.hidden, np.searchsorted(p.model.classes_, p.y))
    return model.aggregate(p.unlabeled)


def kdey(p: Posteriors) -> np.ndarray:
    """Moreo, González and del Coz (2025)."""
    from quapy.method.aggregative import KDEyML

    model = KDEyML(p.model, fit_classifier=False, val_split=None, random_state=0)
    return model.aggregation_fit(p.hidden, p.y).aggregate(p.unlabeled)


def pacc(p: Posteriors) -> np.ndarray:
    """Bella, Ferri, Hernández-Orallo and Ramírez-Quintana (2010)."""
    from quapy.method.aggregative import PACC

    model = PACC(p.model, fit_classifier=False, val_split=None)
    model.aggregation_fit(p.hidden, p.y)
    return model.aggregate(p.unlabeled)
