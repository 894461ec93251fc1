"""Methods of other packages that users would try first, with settings chosen on labelled rows.

A third of the labelled rows of each class is hidden in turn, but never the only one of a class; the setting with the
best macro F on hidden rows wins, the first of its grid in case of a tie. Methods that learn from unlabelled rows get
some of them for this, and are then fitted to all. Peers get no class sizes. Calibration by temperature needs scikit-
learn 1.8.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import MinMaxScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

from experiments.data import Rows, Split

Predict = Callable[[Rows], np.ndarray]
Fit = Callable[[Any, Rows, np.ndarray], Predict]
"""From a setting, rows and their labels (-1 for none) to a function that labels new rows."""

N_FOLDS = 3
N_BESIDE, N_BESIDE_QUICK = 1000, 4000
"""Unlabelled rows beside the labelled ones while a setting is chosen: for self-training, for what is quicker."""
STRENGTHS = (10.0, 1.0, 100.0, 1000.0)
MARGINS = (1.0, 0.1, 10.0)
CALIBRATIONS = ("temperature",)
SMOOTHINGS = (0.1, 0.01, 1.0)
THRESHOLDS = (0.5, 0.3, 0.8)
WEIGHTS = (0.3, 0.1, 1.0)
NEIGHBORS, SPREADS = (10, 5, 20), (0.8, 0.2)


class Folds:
    """Deals the rows of each class over folds."""

    def split(self, X: Rows, y: np.ndarray, groups: None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        fold = np.full(len(y), -1)
        for k in np.unique(y):
            mine = np.flatnonzero(y == k)
            if mine.size > 1:
                fold[mine] = np.arange(mine.size) % N_FOLDS
        for f in range(fold.max() + 1):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)

    def get_n_splits(self, X: Rows, y: np.ndarray, groups: None = None) -> int:
        return sum(1 for _ in self.split(X, y))


def chosen(settings: Sequence[Any], fit: Fit, X: Rows, y: np.ndarray) -> Any:
    """The setting that labels hidden rows best; those with a label come first in X and y."""
    given = y[y >= 0]
    best, most = settings[0], -1.0
    for setting in settings:
        guesses = np.full(given.size, -1)
        for _, hidden in Folds().split(X, given):
            marked = y.copy()
            marked[hidden] = -1
            guesses[hidden] = fit(setting, X, marked)(X[hidden])
        score = f1_score(given, guesses, labels=np.unique(given), average="macro", zero_division=0)
        if score > most:
            best, most = setting, score
    return best


def supervised(base: Callable[[Any], Any], setting: Any, X: Rows, y: np.ndarray) -> Predict:
    return base(setting).fit(X[y >= 0], y[y >= 0]).predict


def alone(base: Callable, settings: Sequence, clean: Callable, split: Split, seed: int) -> Predict:
    """A supervised classifier of the labelled rows."""
    X, see = clean(split.X[: split.n_labeled])
    fit = partial(supervised, partial(base, seed))
    predict = fit(chosen(settings, fit, X, split.given), X, split.given)
    return lambda rows: predict(see(rows))


def teaching_itself(base: Callable, settings: Sequence, clean: Callable, split: Split, seed: int) -> Predict:
    """Self-training: rows that the base labels with a probability above a threshold are labelled for good."""

    def fit(setting: tuple[Any, float], X: Rows, y: np.ndarray) -> Predict:
        return SelfTrainingClassifier(base(seed, setting[0]), threshold=setting[1]).fit(X, y).predict

    n = split.n_labeled + N_BESIDE
    setting = chosen(list(product(settings, THRESHOLDS)), fit, clean(split.X[:n])[0], split.marked[:n])
    X, see = clean(split.X)
    predict = fit(setting, X, split.marked)
    return lambda rows: predict(see(rows))


def logistic(seed: int, C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000, warm_start=True)


def svc(seed: int, C: float) -> LinearSVC:
    return LinearSVC(C=C, dual="auto", tol=1e-3, random_state=seed)


def bayes(seed: int, alpha: float) -> MultinomialNB:
    return MultinomialNB(alpha=alpha)


def as_it_is(what: Any) -> Any:
    return what


def calibrated(seed: int, method: str) -> CalibratedClassifierCV:
    return CalibratedClassifierCV(svc(seed, MARGINS[0]), method=method, cv=Folds())


def untouched(X: Rows) -> tuple[Rows, Callable]:
    return X, as_it_is


def compact(X: Rows, most: int = 2500) -> tuple[Rows, Callable]:
    """Coordinates of few rows in the space that they span, which is all that an L2 penalty sees of many features."""
    if X.shape[0] > min(most, X.shape[1]):
        return X, as_it_is
    values, vectors = np.linalg.eigh((X @ X.T).toarray())
    kept = values > 1e-10 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return vectors[:, kept] * np.sqrt(values[kept]), lambda rows: (rows @ X.T) @ basis


def not_negative(X: Rows) -> tuple[Rows, Callable]:
    """Features from 0 to 1 where some are below 0."""
    if X.min() >= 0:
        return X, as_it_is
    scaler = MinMaxScaler(clip=True).fit(X.toarray())

    def see(rows: Rows) -> Rows:
        return sparse.csr_matrix(scaler.transform(rows.toarray()))

    return see(X), see


def expecting(setting: tuple[float, float], X: Rows, y: np.ndarray) -> Predict:
    """Multinomial naive Bayes by expectation-maximisation, unlabelled rows with a weight (Nigam et al. 2000)."""
    alpha, weight = setting
    given = y >= 0
    classes, known = np.unique(y[given], return_inverse=True)
    labels = np.eye(classes.size)[known]
    unlabeled, columns = X[~given], X[~given].T.tocsr()
    sums = own = (X[given].T @ labels).T
    sizes = known_sizes = labels.sum(axis=0)
    last = -np.inf
    for _ in range(100):
        words = np.log(sums + alpha)
        words -= logsumexp(words, axis=1, keepdims=True)
        prior = np.log(sizes + 1) - np.log(np.sum(sizes + 1))
        joint = unlabeled @ words.T + prior
        total = logsumexp(joint, axis=1, keepdims=True)
        value = weight * total.sum() + np.sum((own + alpha) * words) + (known_sizes + 1) @ prior
        if value - last < 1e-5 * abs(value):
            break
        last, posterior = value, np.exp(joint - total)
        sums, sizes = own + weight * (columns @ posterior).T, known_sizes + weight * posterior.sum(axis=0)
    return lambda rows: classes[np.argmax(rows @ words.T + prior, axis=1)]


def bayes_em(split: Split, seed: int) -> Predict:
    n = split.n_labeled + N_BESIDE_QUICK
    X, see = not_negative(split.X)
    setting = chosen(list(product(SMOOTHINGS, WEIGHTS)), expecting, X[:n], split.marked[:n])
    predict = expecting(setting, X, split.marked)
    return lambda rows: predict(see(rows))


def nearest(A: Rows, B: Rows, k: int, block: int = 500) -> np.ndarray:
    """Row numbers of the k rows of B nearest to each row of A, all of length 1, nearest first."""
    if A.shape[1] < 1000:
        A, B = (np.asarray(M.toarray(), dtype=np.float32) for M in (A, B))
    found, turned = [], B.T
    for begin in range(0, A.shape[0], block):
        likeness = A[begin : begin + block] @ turned
        likeness = likeness.toarray() if sparse.issparse(likeness) else likeness
        top = np.argpartition(likeness, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(likeness, top, axis=1), axis=1)
        found.append(np.take_along_axis(top, order, axis=1))
    return np.concatenate(found)


def spreading(X: Rows) -> Fit:
    """LabelSpreading with its graph of nearest neighbours, which are looked for once."""
    own = nearest(X, X, max(NEIGHBORS))

    def fit(setting: tuple[int, float], rows: Rows, y: np.ndarray) -> Predict:
        k, alpha = setting

        def graph(train: Rows, new: Rows) -> sparse.csr_matrix:
            near = own[:, :k] if new is train else nearest(new, train, k)
            shape = (near.shape[0], train.shape[0])
            links = sparse.csr_matrix((np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, k)), shape)
            return links if new is train else links.T

        return LabelSpreading(kernel=graph, alpha=alpha, max_iter=100).fit(rows, y).predict

    return fit


def label_spreading(split: Split, seed: int) -> Predict:
    n = split.n_labeled + N_BESIDE_QUICK
    setting = chosen(list(product(NEIGHBORS, SPREADS)), spreading(split.X[:n]), split.X[:n], split.marked[:n])
    return spreading(split.X)(setting, split.X, split.marked)


PEERS: dict[str, Callable[[Split, int], Predict]] = {
    "LinearSVC": partial(alone, svc, MARGINS, untouched),
    "LogisticRegression": partial(alone, logistic, STRENGTHS, compact),
    "SelfTraining, LogisticRegression": partial(teaching_itself, logistic, STRENGTHS, compact),
    "SelfTraining, LinearSVC": partial(teaching_itself, calibrated, CALIBRATIONS, untouched),
    "SelfTraining, MultinomialNB": partial(teaching_itself, bayes, SMOOTHINGS, not_negative),
    "LabelSpreading": label_spreading,
    "naive Bayes, EM": bayes_em,
}
"""By name, a function of a split and a seed that returns a function of new rows."""
