"""No labels: classes from their names alone, with class sizes and without, and names beside one or five labels a class.

Frozen all-MiniLM-L6-v2 vectors of texts and of class names. All rows of a set are to be labelled, and macro F is that
of the rows without a label. The scores are cosines. Peers: the best name; prior matching, which shifts
log-probabilities until their means are the sizes; OTTER (Shin et al., 2024), which transports them; and Gaussians
near the probabilities of the names by a Kullback-Leibler term, as in TransCLIP (Zanella et al., 2024), without
its graph. Without sizes, peers that need them take the counts of the best name. Probabilities are softmax(20 cosines).
"""

import time
from collections.abc import Sequence

import numpy as np
from sklearn.metrics import f1_score

from experiments.class_names import SETS, lacking_vectors, load_with_names
from experiments.data import Source
from experiments.few_shot.prototypes import softmax, unit
from experiments.few_shot.transport import sinkhorn
from experiments.study import AGREES, DIFFERS, Row, Verdict, markdown, number, select, summary, unique
from transduce import TransductiveClassifier, solve_labels

KEYS, RESULTS = ("set", "given", "sizes", "seed", "method"), ("macro_f", "accuracy", "seconds")
NAMES, LABELS, ONE, BOTH = "names", "5 labels", "names and 1 label", "names and 5 labels"
EACH = {NAMES: 0, LABELS: 5, ONE: 1, BOTH: 5}
TRUE, ESTIMATED, EQUAL = "true", "estimated", "equal"
OURS, ARGMAX, MATCHING, OTTER, MIXTURE = "transduce", "best name", "prior matching", "OTTER", "Gaussians near names"
PEERS = (ARGMAX, MATCHING, OTTER, MIXTURE)
N_SEEDS, SCALE, N_ROUNDS = 3, 20.0, 20
TARGETS = {"r8_text": 0.83, "20ng_raw": 0.68, "clinc150 intents": 0.78}
LEAD, BELOW, BELOW_EITHER = 0.05, 0.01, 0.005
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    sets, n_seeds = (SETS[:1], 1) if smoke else (SETS, N_SEEDS)
    names = [(NAMES, sizes, 0, method) for sizes in (TRUE, ESTIMATED, EQUAL) for method in (OURS, *PEERS)]
    labels = [(given, TRUE, seed, OURS) for given in (LABELS, ONE, BOTH) for seed in range(n_seeds)]
    return [
        {"set": name, "given": given, "sizes": sizes, "seed": seed, "method": method}
        for name in sets
        for given, sizes, seed, method in (*names, *labels)
    ]


def peer_code(cell: Row) -> tuple[str, ...]:
    """Files behind the cell of a peer, none for ours (experiments.versions)."""
    return () if cell["method"] == OURS else ("experiments/few_shot/transport.py", "src/transduce/label_step/*.py")


def unready(source: Source, cells: Sequence[Row]) -> str | None:
    """Why cells cannot be run."""
    return lacking_vectors(source, unique(cells, "set"))


def run(source: Source, cell: Row) -> list[Row]:
    V, y, N = load_with_names(source, cell["set"])
    S, n_classes = V @ N.T, len(N)
    rng, each = np.random.default_rng(cell["seed"]), EACH[cell["given"]]
    labeled = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:each] for k in range(n_classes)])
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    counts = np.bincount(y[rest], minlength=n_classes)
    if cell["sizes"] == EQUAL:
        counts = len(rest) // n_classes + (np.arange(n_classes) < len(rest) % n_classes)
    begin = time.perf_counter()
    if cell["method"] == OURS:
        labels = ours(V, y, S, labeled, counts, cell)[rest]
    else:
        if cell["sizes"] == ESTIMATED:
            counts = np.bincount(S.argmax(axis=1), minlength=n_classes)
        labels = peer(cell["method"], V, S, counts)
    seconds = time.perf_counter() - begin
    macro_f = f1_score(y[rest], labels, average="macro", labels=range(n_classes), zero_division=0)
    accuracy = float(np.mean(labels == y[rest]))
    return [{"macro_f": round(macro_f, 5), "accuracy": round(accuracy, 5), "seconds": round(seconds, 3)}]


def ours(V: np.ndarray, y: np.ndarray, S: np.ndarray, labeled: np.ndarray, counts: np.ndarray, cell: Row) -> np.ndarray:
    """Labels of all rows."""
    prior = dict(enumerate(counts.tolist())) if cell["sizes"] != ESTIMATED else "estimate"
    marked = np.full(len(y), -1)
    marked[labeled] = y[labeled]
    model = TransductiveClassifier(class_prior=prior, random_state=cell["seed"], n_jobs=1)
    scores = None if cell["given"] == LABELS else S
    return model.fit(unit(V - V.mean(axis=0)), marked, scores=scores).transduction_


def peer(method: str, V: np.ndarray, S: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Labels of all rows by a peer that knows scores and counts."""
    logs = SCALE * S.astype(np.float64)
    if method == ARGMAX:
        return S.argmax(axis=1)
    if method == OTTER:
        return solve_labels(-logs, counts).labels
    proportions = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    shifted = logs + sinkhorn(logs, proportions)
    return shifted.argmax(axis=1) if method == MATCHING else mixture(unit(V - V.mean(axis=0)), shifted)


def mixture(X: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Labels by Gaussians of one diagonal variance whose posterior is held near softmax(logs)."""
    q = softmax(logs)
    prior = np.log(np.maximum(q, 1e-12))
    for _ in range(N_ROUNDS):
        means = (q.T @ X) / np.maximum(q.sum(axis=0), 1e-9)[:, None]
        variance = np.maximum((X**2).mean(axis=0) - (q.sum(axis=0)[:, None] * means**2).sum(axis=0) / len(X), 1e-6)
        weighted = means / variance
        q = softmax(X @ weighted.T - 0.5 * (means * weighted).sum(axis=1) + prior)
    return q.argmax(axis=1)


def table(rows: list[Row]) -> str:
    """Macro F of each method with names alone, for each kind of sizes, then with labels."""
    sets = unique(rows, "set")
    lines = []
    for sizes in unique(rows, "sizes"):
        for method in unique(select(rows, given=NAMES, sizes=sizes), "method"):
            found = [summary(rows, given=NAMES, sizes=sizes, method=method, set=name).mean for name in sets]
            lines.append([sizes, method, *map(number, found), number(float(np.mean(found)))])
    for given in (LABELS, ONE, BOTH):
        found = [summary(rows, given=given, sizes=TRUE, method=OURS, set=name).mean for name in sets]
        if np.isfinite(found).any():
            lines.append([TRUE, f"{OURS}, {given}", *map(number, found), number(float(np.mean(found)))])
    return markdown(["sizes", "method", *sets, "mean"], lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our targets."""
    sets = unique(rows, "set")

    def means(given: str, sizes: str, method: str = OURS) -> np.ndarray:
        return np.array([summary(rows, given=given, sizes=sizes, method=method, set=name).mean for name in sets])

    true, otter = means(NAMES, TRUE), means(NAMES, TRUE, OTTER)
    free, best = means(NAMES, ESTIMATED), means(NAMES, ESTIMATED, ARGMAX)
    both, either = means(BOTH, TRUE), np.maximum(means(LABELS, TRUE), true)
    reached = all(value >= TARGETS[name] for name, value in zip(sets, true, strict=True) if name in TARGETS)
    shown = ", ".join(f"{name} {number(value)}" for name, value in zip(sets, true, strict=True))
    lead, gain, least = float(np.mean(true - otter)), float(np.mean(free - best)), float(np.min(free - best))
    worst = float(np.min(both - either))
    return [
        Verdict(
            "names and sizes alone: .83 on r8_text, .68 on 20ng_raw, .78 on clinc150 intents, and .05 above OTTER",
            OWN,
            f"{shown}; {lead:+.3f} against OTTER",
            AGREES if reached and lead >= LEAD else DIFFERS,
        ),
        Verdict(
            "names alone, no sizes: .05 above the best name on average, and never .01 below it",
            OWN,
            f"{gain:+.3f} on average, {least:+.3f} at worst",
            AGREES if gain >= LEAD and least >= -BELOW else DIFFERS,
        ),
        Verdict(
            "names and five labels a class are never more than .005 below either alone",
            OWN,
            f"{worst:+.3f} at worst",
            AGREES if worst >= -BELOW_EITHER else DIFFERS,
        ),
    ]
