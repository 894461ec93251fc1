"""Rows that fit no class: how well they are found among the unlabelled ones, compared with thresholds on confidence.

clinc150's ten domains, 80 and 450 labels drawn at random; among the 12 450 unlabelled rows are the 1 200 requests that
its authors collected because they belong to no domain. `outlier_fraction` is their true fraction, with default settings
and with the paper's annealing, or a range from 0 to twice that with the paper's annealing.

Peers leave rows without a class whose confidence is below a threshold: that of LogisticRegression, its best
probability, and that of our classifier trained on the labels alone, its best score. The threshold is tuned on the same
labels, each class in turn taken as one that fits no other and labels hidden in five parts, for the best F of such rows;
or, as an upper line, it leaves out the true fraction. One more upper line needs no labels to find such rows: the true
fraction with the lowest mean cosine to their twenty nearest rows.
"""

import gzip
import json
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from benchmarks.methods import logistic
from experiments.data import Source
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, spread, summary, unique
from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150

KEYS, RESULTS = ("n_labeled", "seed", "method"), ("none_f", "macro_f", "n_none", "fraction", "seconds")
N_LABELED, N_SEEDS = (80, 450), 5
OURS, PAPER = "transduce", "transduce by the paper's annealing"
RANGE = f"{PAPER} with a range"
PEERS = ("LogisticRegression", "large margin")
TUNED, UPPER = " with a tuned threshold", " at the true fraction"
NEIGHBORS = "neighbours and LogisticRegression" + UPPER
METHODS = (OURS, PAPER, RANGE, *(f"{peer}{kind}" for peer in PEERS for kind in (TUNED, UPPER)), NEIGHBORS)
N_FOLDS, N_NEAREST, BLOCK = 5, 20, 1000
NONE = -2
"""The true class of rows that fit none."""
TARGET, SLACK = 0.15, 0.05
OWN = "not in the paper; our target"

Confidence = Callable[[Any, Any], np.ndarray]


def grid(smoke: bool) -> list[Row]:
    labels, n_seeds = (N_LABELED[:1], 1) if smoke else (N_LABELED, N_SEEDS)
    return [
        {"n_labeled": n, "seed": seed, "method": method}
        for seed in range(n_seeds)
        for n in labels
        for method in METHODS
    ]


def peer_code(cell: Row) -> tuple[str, ...]:
    """Files behind the cell of a peer, none for ours (experiments.versions)."""
    return () if cell["method"].startswith((OURS, PEERS[1])) else ("benchmarks/methods.py",)


@lru_cache(maxsize=1)
def load(folder: str | None) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of length 1 and classes, NONE for rows that fit none: without a folder, those of two intents of twelve."""
    if folder is None:
        X, y = Source(None).load("clinc150")
        return X, np.where(y >= y.max() - 1, NONE, y)
    texts, paths, _ = load_clinc150()
    with gzip.open(Path(folder) / "clinc150" / "oos.jsonl.gz", "rt", encoding="utf-8") as file:
        others = [json.loads(line)["text"] for line in file]
    domains = np.unique([path.split("/")[0] for path in paths], return_inverse=True)[1]
    X = TfidfVectorizer(sublinear_tf=True).fit_transform([*texts, *others]).tocsr()
    return X, np.append(domains, np.full(len(others), NONE))


def run(source: Source, cell: Row) -> list[Row]:
    X, y = load(source.folder)
    rows = np.random.default_rng(cell["seed"]).permutation(np.flatnonzero(y != NONE))
    half = len(rows) // 2
    labeled, unlabeled = rows[half : half + cell["n_labeled"]], np.append(rows[:half], np.flatnonzero(y == NONE))
    truth, begin = y[unlabeled], time.perf_counter()
    fraction = float(np.mean(truth == NONE))
    guess = labels_by(cell["method"], X[labeled], y[labeled], X[unlabeled], fraction, cell["seed"])
    classes = np.unique(y[y != NONE])
    return [
        {
            "none_f": round(float(f1_score(truth == NONE, guess == NONE)), 5),
            "macro_f": round(float(f1_score(truth, guess, labels=classes, average="macro", zero_division=0)), 5),
            "n_none": int(np.count_nonzero(guess == NONE)),
            "fraction": round(fraction, 5),
            "seconds": round(time.perf_counter() - begin, 3),
        }
    ]


def labels_by(method: str, X: Any, y: np.ndarray, X_new: Any, fraction: float, seed: int) -> np.ndarray:
    """Labels of the unlabelled rows by a method, from labelled rows and the fraction that fits no class."""
    if method in (OURS, PAPER, RANGE):
        model = TransductiveClassifier(random_state=seed, n_jobs=1, outlier_fraction=fraction)
        if method == RANGE:
            model.set_params(outlier_fraction=(0.0, 2 * fraction))
        if method != OURS:
            model.set_params(annealing="paper")
        model.fit(sparse.vstack((X, X_new)).tocsr(), np.append(y, np.full(X_new.shape[0], -1)))
        found = model.transduction_[len(y) :]
        return np.where(found == -1, NONE, found)
    is_margin = method.startswith(PEERS[1])
    make, confidence = (new_margin, best_score) if is_margin else (logistic, best_probability)
    model = make(len(y)).fit(X, y)
    values, guess = confidence(model, X_new), model.predict(X_new)
    if method == NEIGHBORS:
        values = nearness(X_new)
    if method.endswith(TUNED):
        return np.where(values < tuned_threshold(make, confidence, X, y, seed), NONE, guess)
    guess[np.argsort(values, kind="stable")[: round(fraction * len(guess))]] = NONE
    return guess


def new_margin(n_labeled: int) -> Any:
    return TransductiveClassifier(fit_intercept=False, n_jobs=1, random_state=0)


def best_probability(model: Any, X: Any) -> np.ndarray:
    return model.predict_proba(X).max(axis=1)


def best_score(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X).max(axis=1)


def tuned_threshold(make: Callable[[int], Any], confidence: Confidence, X: Any, y: np.ndarray, seed: int) -> float:
    """The threshold with the best F for labelled rows of a class that is unknown, each class in turn.

    Every row is judged by a model that neither it nor the unknown class took part in.
    """
    rng, fold = np.random.default_rng(seed), np.zeros(len(y), int)
    for k in np.unique(y):
        mine = rng.permutation(np.flatnonzero(y == k))
        fold[mine] = np.arange(mine.size) % N_FOLDS
    values, unknown = [], []
    for k in np.unique(y):
        for f in np.unique(fold):
            train, judged = (fold != f) & (y != k), fold == f
            values.append(confidence(make(int(train.sum())).fit(X[train], y[train]), X[judged]))
            unknown.append(y[judged] == k)
    return best_threshold(np.concatenate(values), np.concatenate(unknown))


def best_threshold(values: np.ndarray, positive: np.ndarray) -> float:
    """The threshold for which the values below it have the best F for the positive ones.

    >>> best_threshold(np.array([0.1, 0.2, 0.3, 0.9]), np.array([True, False, True, False]))
    0.9
    """
    order = np.argsort(values, kind="stable")
    right = np.cumsum(positive[order])
    f = 2 * right / (np.arange(1, len(values) + 1) + positive.sum())
    best = int(np.argmax(f))
    return float(values[order[best + 1]]) if best + 1 < len(values) else np.inf


def nearness(X: Any) -> np.ndarray:
    """Mean cosine of each row with its nearest rows, without itself."""
    found = []
    for start in range(0, X.shape[0], BLOCK):
        cosines = (X[start : start + BLOCK] @ X.T).toarray()
        here = np.arange(cosines.shape[0])
        cosines[here, start + here] = -1.0
        found.append(np.partition(cosines, -N_NEAREST, axis=1)[:, -N_NEAREST:].mean(axis=1))
    return np.concatenate(found)


def table(rows: list[Row]) -> str:
    """F of rows that fit no class and macro F of the others: methods by numbers of labels."""
    n_seeds, labels = len(unique(rows, "seed")), unique(rows, "n_labeled")
    fractions = sorted({row["fraction"] for row in rows})
    parts = [f"Splits: {n_seeds}. True fraction of rows that fit no class: {', '.join(map(number, fractions))}."]
    head = ["method", *(f"{what}, {n} labels" for n in labels for what in ("F of none", "macro F", "rows"))]
    lines = []
    for method in unique(rows, "method"):
        line = [method]
        for n in labels:
            mine = select(rows, method=method, n_labeled=n)
            line += [spread(summary(mine, "none_f")), spread(summary(mine)), f"{summary(mine, 'n_none').mean:.0f}"]
        lines.append(line)
    return "\n\n".join([*parts, markdown(head, lines)])


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own target: F of the rows that fit no class at least `TARGET` above tuned thresholds, of each peer."""
    found = []
    for n in unique(rows, "n_labeled"):
        for peer in PEERS:
            lead = _lead(rows, f"{peer}{TUNED}", n_labeled=n)
            if lead.size:
                above = f"at least {number(TARGET)} above a tuned threshold on {peer}"
                claim = f"with {n} labels, F of rows that fit no class is {above}"
                found.append(_verdict(claim, float(lead.mean()), TARGET))
        lead = _lead(rows, f"{PEERS[0]}{TUNED}", "macro_f", n_labeled=n)
        if lead.size:
            claim = f"with {n} labels, macro F of the classes is above that of {PEERS[0]} with a tuned threshold"
            found.append(_verdict(claim, float(lead.mean()), 0.0))
    return found


def _lead(rows: Sequence[Row], other: str, result: str = "none_f", **values: Any) -> np.ndarray:
    """Result of ours less that of another method, for each seed that both have."""
    one, two = ({r["seed"]: r[result] for r in select(rows, method=m, **values)} for m in (OURS, other))
    return np.array([one[seed] - two[seed] for seed in sorted(one.keys() & two.keys())], dtype=float)


def _verdict(claim: str, value: float, target: float) -> Verdict:
    word = AGREES if value >= target else PARTLY if value >= target - SLACK else DIFFERS
    return Verdict(claim, OWN, f"{value:+z.3f}", word)
