"""Learning curves of `transduce review` by simulated answers: its queue against other rules on the same classifier.

Of each set, 3 000 documents are reviewed, or two thirds of a small set, and others are test. The review begins with one
label of each class. Answers are true labels; after 25 of them the classifier learns. `review` asks what its queue asks,
a fifth of it random; every other rule chooses all documents itself: random ones, those with the smallest margin between
two classes (small-text's breaking ties), the least confident ones (as in label-sleuth), the largest entropy, or the
middles of k-means clusters (small-text's embedding k-means). Macro F is that of test documents.

The interval of the accuracy is that which the page shows, from the random documents alone; true is the accuracy of the
labels of the undecided documents. `stop` says whether the page advised to stop.
"""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import f1_score

from experiments.data import Source
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, unique
from transduce.reviewing.documents import Documents
from transduce.reviewing.log import DecisionLog
from transduce.reviewing.proposals import Labels, Proposals
from transduce.reviewing.session import Session

KEYS = ("set", "seed", "method")
RESULTS = ("n", "macro_f", "low", "high", "true", "gain", "stop")
SETS = ("r8_text", "clinc150", "clinc150_intents", "20ng_raw", "dmoz4")
OURS, RANDOM = "review", "random"
METHODS = (OURS, RANDOM, "margin", "least confident", "entropy", "k-means")
N_ROWS, N_SEEDS, N_DECISIONS, STEP, SHOWN = 3000, 3, 200, 25, (50, 100, 200)
MORE_CODE = ("src/transduce/reviewing/*.py", "src/transduce/selection.py")
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [{"set": "clinc150", "seed": 0, "method": method} for method in (OURS, RANDOM)]
    return [{"set": name, "seed": seed, "method": m} for seed in range(N_SEEDS) for name in SETS for m in METHODS]


def run(source: Source, cell: Row) -> list[Row]:
    X, y = load(source, cell["set"])
    rows = np.random.default_rng(cell["seed"]).permutation(len(y))
    inside, test = np.split(rows[: 2 * N_ROWS], [min(N_ROWS, 2 * len(rows) // 3)])
    truth = np.array([f"c{k:03d}" for k in range(y.max() + 1)])[y]
    n = min(N_DECISIONS, len(inside) // 10)
    with tempfile.TemporaryDirectory() as folder:
        texts = [f"document {row}" for row in inside]
        given = [None] * len(inside)
        for k in np.unique(y[inside]):
            row = int(np.flatnonzero(y[inside] == k)[0])
            given[row] = truth[inside][row]
        session = Simulated(cell["method"], Documents(texts, X[inside]), DecisionLog(Path(folder), texts), given)
        found = answer(session, truth[inside], X[test], truth[test], n)
        session.close()
    return found


def load(source: Source, name: str) -> tuple[Any, np.ndarray]:
    """Rows of length 1 and classes; intents of the built-in corpus, or its domains."""
    if name != "clinc150_intents":
        return source.load(name)
    from transduce.datasets import load_clinc150

    return source.load("clinc150")[0], np.unique(load_clinc150().labels, return_inverse=True)[1]


class Simulated(Session):
    """A session whose queue follows another rule."""

    def __init__(self, method: str, documents: Documents, log: DecisionLog, given: Sequence[str | None]) -> None:
        self.method = method
        super().__init__(documents, log, given, fits=False)

    def _plan(self, proposals: Proposals | None, labels: Labels) -> list[int]:
        if self.method == OURS or proposals is None:
            return super()._plan(proposals, labels)
        rows = np.flatnonzero(labels.codes == -1)
        return rows[choose(self.method, proposals.probabilities[rows], self.documents.vectors[rows])].tolist()

    def next_rows(self) -> list[tuple[int, bool]]:
        if self.method == OURS:
            return self.queue(STEP)
        if self.method == RANDOM:
            drawn = self._random[self.state.codes()[self._random] == -1]
            return [(row, True) for row in drawn[:STEP].tolist()]
        return [(row, False) for row in self.planned[:STEP]]


def choose(method: str, P: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Positions of the rows that a rule asks about next, best first."""
    two = np.sort(P, axis=1)[:, -2:]
    if method == "k-means":
        means = KMeans(STEP, n_init=1, random_state=0).fit(Z)
        return np.unique(means.transform(Z).argmin(axis=0))
    worth = {
        RANDOM: np.zeros(len(P)),
        "margin": two[:, 0] - two[:, 1],
        "least confident": -two[:, 1],
        "entropy": -(P * np.log(np.maximum(P, 1e-9))).sum(axis=1),
    }[method]
    return np.argsort(-worth, kind="stable")[:STEP]


def answer(session: Simulated, truth: np.ndarray, X: Any, y: np.ndarray, n_decisions: int) -> list[Row]:
    """Answer truly, learn after every few answers, and measure."""
    found, n_done = [], 0
    while True:
        session.fit_now()
        if n_done % (2 * STEP) == 0 or n_done == n_decisions:
            found.append(measure(session, truth, X, y) | {"n": n_done})
        if n_done >= n_decisions:
            return found
        p = session.proposals
        for row, random in session.next_rows():
            event = {"op": "decide", "rows": [row], "label": str(truth[row]), "how": "random" if random else "queue"}
            session.submit([event | {"proposed": p.classes[p.label[row]]}])
        n_done += STEP


def measure(session: Simulated, truth: np.ndarray, X: Any, y: np.ndarray) -> Row:
    p, summary = session.proposals, session.summary()
    undecided, names = session.state.codes() == -1, np.array(p.classes)
    accuracy = summary["accuracy"] or {"low": np.nan, "high": np.nan}
    guesses = names[(np.asarray(X @ p.coef[0].T) + p.coef[1]).argmax(axis=1)]
    return {
        "macro_f": round(float(f1_score(y, guesses, average="macro", labels=np.unique(truth), zero_division=0)), 5),
        "low": round(accuracy["low"], 5),
        "high": round(accuracy["high"], 5),
        "true": round(float(np.mean(names[p.label[undecided]] == truth[undecided])), 5),
        "gain": np.nan if summary["gain"] is None else round(summary["gain"], 5),
        "stop": int(summary["advice"].endswith("stop here.")),
    }


def curve(rows: Sequence[Row], name: str, method: str) -> dict[int, float]:
    """Mean macro F by the number of decisions."""
    mine = select(rows, set=name, method=method)
    return {n: float(np.mean([row["macro_f"] for row in select(mine, n=n)])) for n in sorted({r["n"] for r in mine})}


def saved(rows: Sequence[Row], name: str) -> float:
    """Fraction of random decisions that `review` saves on the way to the highest macro F that both reach.

    It is negative where random ones need fewer.
    """
    ours, other = curve(rows, name, OURS), curve(rows, name, RANDOM)
    if not ours or not other:
        return np.nan
    level = min(max(ours.values()), max(other.values()))
    return 1.0 - needed(ours, level) / max(needed(other, level), 1.0)


def needed(found: dict[int, float], level: float) -> float:
    """Decisions after which a curve first reaches a level, linear between two points.

    >>> needed({0: 0.0, 50: 0.5, 100: 0.25}, 0.25)
    25.0
    """
    points = list(found.items())
    for (n, low), (end, high) in pairwise([points[0], *points]):
        if high >= level:
            return n + (end - n) * (level - low) / (high - low) if end > n else float(n)
    return np.inf


def table(rows: list[Row]) -> str:
    """Macro F of each rule by set and number of decisions, and how many decisions `review` saves."""
    lines = []
    for name in unique(rows, "set"):
        for method in unique(select(rows, set=name), "method"):
            found = curve(rows, name, method)
            values = [number(found[n]) if n in found else "–" for n in (0, *SHOWN)]
            lines.append([name, method, *values, f"{saved(rows, name):.0%}" if method == OURS else ""])
    return markdown(["set", "queue", "0", *map(str, SHOWN), "fewer decisions than random"], lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own targets."""
    fewer = {name: saved(rows, name) for name in unique(rows, "set")}
    gains = {name: _area(rows, name, OURS) - _area(rows, name, RANDOM) for name in fewer}
    shown = [row for row in rows if row["n"] > 0 and np.isfinite(float(row["low"])) and row["method"] in (OURS, RANDOM)]
    covered = float(np.mean([row["low"] <= row["true"] <= row["high"] for row in shown])) if shown else np.nan
    mean, worst = float(np.nanmean(list(fewer.values()))), min(gains, key=lambda name: gains[name])
    return [
        Verdict(
            "a third fewer decisions than random to the same macro F, on the mean of the sets", OWN,
            f"{mean:.0%} fewer", AGREES if mean >= 1 / 3 else PARTLY if mean > 0 else DIFFERS,
            "" if mean >= 1 / 3 else "Some sets gain less than others.",
        ),
        Verdict(
            "no set where random decisions gain more on the mean of 50, 100 and 200", OWN,
            f"least lead {gains[worst]:+z.3f} ({worst})", AGREES if gains[worst] >= 0 else DIFFERS,
            "" if gains[worst] >= 0 else "The queue asks for other documents there.",
        ),
        Verdict(
            "the interval of the accuracy covers the truth in 85 to 95 % of the sessions", OWN, f"{covered:.0%}",
            AGREES if 0.85 <= covered <= 0.95 else PARTLY if 0.8 <= covered <= 0.98 else DIFFERS,
            "" if 0.85 <= covered <= 0.95 else "Few random documents give wide intervals.",
        ),
    ]  # fmt: skip


def _area(rows: Sequence[Row], name: str, method: str) -> float:
    found = curve(rows, name, method)
    return float(np.mean([found[n] for n in SHOWN if n in found])) if found else np.nan
