"""Guesses of which some are wrong: the corrected column, compared with confident learning and LogisticRegression.

Up to 5 000 rows of each set, all with a guess: the true class, or in 10, 30 or 50 % of the rows another one, drawn at
random ("uniform") or the class whose name has the best cosine of the wrong ones ("by a model"). No class sizes are
stated and no row has a label. Accuracy is that of the corrected column. Peers: the guesses as they are; the predictions
of a LogisticRegression that was fitted to all guesses; and confident learning (Northcutt et al., 2021), with the
probabilities of LogisticRegression in five folds: guesses that are pruned by their noise rates get the predicted class.
With a second fit, that is cleanlab's CleanLearning, a LogisticRegression fitted to the rows that are left predicts all
rows: by cleanlab itself where it is installed, else, as for the first, by our own implementation. `suspicious` is the
fraction of wrong guesses in the 100 most suspicious rows. 30 % errors have three seeds, the others one.
"""

import time
import warnings
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from experiments.class_names import SETS, lacking_vectors, load_with_names
from experiments.data import Source
from experiments.few_shot.prototypes import unit
from experiments.study import AGREES, DIFFERS, Row, Verdict, markdown, number, summary, unique
from transduce import TransductiveClassifier

KEYS, RESULTS = ("set", "errors", "rate", "seed", "method"), ("accuracy", "suspicious", "seconds")
UNIFORM, BY_MODEL = "uniform", "by a model"
RATES = (0.0, 0.1, 0.3, 0.5)
OURS, AS_THEY_ARE, FITTED, CONFIDENT = "transduce", "guesses", "LogisticRegression", "confident learning"
REFITTED = "CleanLearning"
METHODS = (OURS, CONFIDENT, REFITTED, FITTED, AS_THEY_ARE)
MAX_ROWS, N_SUSPICIOUS, N_FOLDS, MAX_ITER = 5000, 100, 5, 200
N_SEEDS = {0.3: 3}
"""Seeds of rates that have more than one."""
LEAD, LOSS, WRONG = 0.03, 0.005, 0.9
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    sets, rates, n_seeds = (SETS[:1], (0.3,), {}) if smoke else (SETS, RATES, N_SEEDS)
    return [
        {"set": name, "errors": errors, "rate": rate, "seed": seed, "method": method}
        for rate in rates
        for seed in range(n_seeds.get(rate, 1))
        for name in sets
        for errors in ((UNIFORM, BY_MODEL) if rate else (UNIFORM,))
        for method in METHODS
    ]


def peer_code(cell: Row) -> tuple[str, ...]:
    """Files behind the cell of a peer, none for ours (experiments.versions)."""
    return () if cell["method"] == OURS else ("experiments/class_names.py",)


def unready(source: Source, cells: Sequence[Row]) -> str | None:
    """Why cells cannot be run."""
    return lacking_vectors(source, unique(cells, "set"))


def run(source: Source, cell: Row) -> list[Row]:
    V, y, N = load_with_names(source, cell["set"])
    rng = np.random.default_rng(cell["seed"])
    rows = rng.permutation(len(y))[:MAX_ROWS]
    V, y = V[rows], y[rows]
    guesses = with_errors(y, V @ N.T, cell["errors"], cell["rate"], rng)
    begin = time.perf_counter()
    labels, suspicion = correct(cell["method"], unit(V - V.mean(axis=0)), guesses, cell["seed"])
    seconds = time.perf_counter() - begin
    worst = np.argsort(-suspicion, kind="stable")[:N_SUSPICIOUS]
    return [
        {
            "accuracy": round(float(np.mean(labels == y)), 5),
            "suspicious": round(float(np.mean(guesses[worst] != y[worst])), 5),
            "seconds": round(seconds, 3),
        }
    ]


def with_errors(y: np.ndarray, scores: np.ndarray, errors: str, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Guesses, wrong in this fraction of the rows."""
    n_classes, guesses = scores.shape[1], y.copy()
    wrong = np.flatnonzero(rng.random(len(y)) < rate)
    others = scores[wrong].copy()
    others[np.arange(wrong.size), y[wrong]] = -np.inf
    drawn = (y[wrong] + rng.integers(1, n_classes, wrong.size)) % n_classes
    guesses[wrong] = drawn if errors == UNIFORM else others.argmax(axis=1)
    return guesses


def correct(method: str, X: np.ndarray, guesses: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The corrected column, and how suspicious each guess is."""
    if method == OURS:
        model = TransductiveClassifier(random_state=seed, n_jobs=1).fit(X, np.full(len(X), -1), guesses=guesses)
        return model.transduction_, model.suspicion_
    if method == AS_THEY_ARE:
        return guesses, np.zeros(len(guesses))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
        if method == FITTED:
            fitted = LogisticRegression(max_iter=MAX_ITER).fit(X, guesses)
            P = fitted.predict_proba(X)
            own = P[np.arange(len(P)), np.searchsorted(fitted.classes_, guesses)]
            return fitted.predict(X), -own
        if method == REFITTED and find_spec("cleanlab"):
            return by_cleanlab(X, guesses, seed)
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
        classes, codes = np.unique(guesses, return_inverse=True)
        P = cross_val_predict(LogisticRegression(max_iter=MAX_ITER), X, codes, cv=folds, method="predict_proba")
        is_issue = label_issues(codes, P)
        corrected = classes[np.where(is_issue, P.argmax(axis=1), codes)]
        if method == REFITTED:
            corrected = LogisticRegression(max_iter=MAX_ITER).fit(X[~is_issue], guesses[~is_issue]).predict(X)
    return corrected, -P[np.arange(len(P)), codes]


def by_cleanlab(X: np.ndarray, guesses: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What cleanlab's CleanLearning predicts for all rows, and how low it rates each guess."""
    from cleanlab.classification import CleanLearning

    classes, codes = np.unique(guesses, return_inverse=True)
    one_process = {"n_jobs": 1}  # processes of its own fail in those of a study
    model = CleanLearning(
        LogisticRegression(max_iter=MAX_ITER), seed=seed, cv_n_folds=N_FOLDS, find_label_issues_kwargs=one_process
    )
    labels = model.fit(X, codes).predict(X)
    return classes[labels], -model.get_label_issues()["label_quality"].to_numpy()


def label_issues(guesses: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Which guesses (n,) confident learning prunes, given held-out probabilities (n, K).

    The confident joint counts rows by guess and by the likeliest class whose probability is at least its mean among
    rows with that guess. Of rows with guess g, as many as it counts for class k are pruned: those with the largest
    difference of the probabilities of k and g, unless g is the predicted class.
    """
    n, n_classes = P.shape
    thresholds = np.array([P[guesses == k, k].mean() if np.any(guesses == k) else 1.0 for k in range(n_classes)])
    above = np.where(thresholds - 1e-6 <= P, P, -1.0)
    confident, joint = above.max(axis=1) > 0, np.zeros((n_classes, n_classes))
    np.add.at(joint, (guesses[confident], above[confident].argmax(axis=1)), 1.0)
    joint = np.maximum(joint, np.eye(n_classes))
    counts = np.bincount(guesses, minlength=n_classes)
    joint *= (counts / joint.sum(axis=1))[:, None]
    is_issue = np.zeros(n, bool)
    for g in range(n_classes):
        rows = np.flatnonzero(guesses == g)
        for k in range(n_classes) if rows.size > 1 else ():
            n_pruned = round(joint[g, k])
            if k != g and n_pruned:
                margins = P[rows, k] - P[rows, g]
                is_issue[rows[np.argsort(-margins, kind="stable")[:n_pruned]]] = True
    return is_issue & (P.argmax(axis=1) != guesses)


def table(rows: list[Row]) -> str:
    """Accuracy of the corrected column, and wrong guesses among the most suspicious rows."""
    sets, lines = unique(rows, "set"), []
    for errors in unique(rows, "errors"):
        for rate in unique(rows, "rate"):
            for method in METHODS:
                where = {"errors": errors, "rate": rate, "method": method}
                found = [summary(rows, "accuracy", set=name, **where).mean for name in sets]
                if np.isfinite(found).any():
                    wrong = np.nanmean([summary(rows, "suspicious", set=name, **where).mean for name in sets])
                    mean = number(float(np.nanmean(found)))
                    shown = "" if method == AS_THEY_ARE or not rate else f"{wrong:.0%}"
                    lines.append([f"{rate:.0%} {errors}", method, *map(number, found), mean, shown])
    return markdown(["errors", "method", *sets, "mean", "suspicious and wrong"], lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our targets."""
    sets = unique(rows, "set")

    def means(method: str, rate: float, errors: str, result: str = "accuracy") -> np.ndarray:
        where = {"method": method, "rate": rate, "errors": errors}
        return np.array([summary(rows, result, set=name, **where).mean for name in sets])

    found = []
    for errors in (UNIFORM, BY_MODEL):
        peers = [float(np.mean(means(method, 0.3, errors))) for method in (CONFIDENT, REFITTED)]
        lead = float(np.mean(means(OURS, 0.3, errors))) - max(peers)
        wrong = means(OURS, 0.3, errors, "suspicious")
        found.append(
            Verdict(
                f"30 % errors, {errors}: .03 above the best confident learning, 90 of the 100 most suspicious wrong",
                OWN,
                f"{lead:+.3f}; {wrong.mean():.0%} on average, {wrong.min():.0%} at worst",
                AGREES if lead >= LEAD and wrong.mean() >= WRONG else DIFFERS,
                "" if lead >= LEAD else "ahead on the mean, by less than asked" if lead > 0 else "behind",
            )
        )
    clean = means(OURS, 0.0, UNIFORM)
    claim, word = (
        "without errors, at most .005 of the guesses are changed",
        AGREES if clean.min() >= 1 - LOSS else DIFFERS,
    )
    found.append(Verdict(claim, OWN, f"{1 - clean.min():.4f} at most", word))
    return found
