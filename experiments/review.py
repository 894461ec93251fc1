"""Learning curves of `transduce review` by simulated answers: its queue against other rules on the same classifier.

Of each set, 3 000 documents are reviewed, or two thirds of a small set, and others are test. The review begins with one
label of each class. Answers are true; after ten of them the classifier learns. `review` asks what its queue asks,
random documents among it; every other rule chooses all documents itself: random ones, or as small-text and label-sleuth
do (`experiments.queue_rules`). Macro F is that of test documents.

The interval of the accuracy is that which the page shows, from the random documents alone; true is the accuracy of the
labels of the undecided documents. `stop` says whether the page advised to stop. On some sets sessions of the review go
on for 600 decisions: the reachable gain is that to the highest macro F in such a session.
"""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from experiments.data import Source
from experiments.queue_rules import RULES, choose
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, unique
from transduce.arrays import Array
from transduce.reviewing.documents import Documents
from transduce.reviewing.log import DecisionLog, Event
from transduce.reviewing.proposals import Labels, Proposals
from transduce.reviewing.session import FIT_AFTER, Session

KEYS = ("set", "seed", "method")
RESULTS = ("n", "macro_f", "low", "high", "true", "gain", "stop")
SETS = ("r8_text", "clinc150", "clinc150_intents", "20ng_raw", "dmoz4")
OURS, RANDOM = "review", "random"
METHODS = (OURS, RANDOM, *RULES)
SEEDS, PEER_SEEDS = range(10, 22), range(10, 14)
"""Splits: none of them was used to choose the rule of the queue."""
N_ROWS, N_DECISIONS, MEASURE, SHOWN = 3000, 200, 50, (50, 100, 200)
LONG_SETS, N_LONG = ("r8_text", "clinc150", "dmoz4"), 600
"""Sets on which sessions of the review are long, and how many decisions these have."""
REACHED, MOST = 0.8, 3.0
"""The advice to stop may come after this part of the reachable gain, and until so many times the decisions for it."""
MORE_CODE = ("src/transduce/reviewing/*.py", "src/transduce/selection.py", "experiments/queue_rules.py")
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [{"set": "clinc150", "seed": 10, "method": method} for method in (OURS, RANDOM)]
    seeds = {method: SEEDS if method in (OURS, RANDOM) else PEER_SEEDS for method in METHODS}
    cells = [{"set": name, "seed": seed, "method": m} for name in SETS for m in METHODS for seed in seeds[m]]
    first = {OURS: 0, RANDOM: 1}  # the longest first, so that all workers end together, and peers last
    return sorted(cells, key=lambda cell: (not _is_long(cell), first.get(cell["method"], 2)))


def _is_long(cell: Row) -> bool:
    return cell["method"] == OURS and cell["set"] in LONG_SETS


def run(source: Source, cell: Row) -> list[Row]:
    X, y = load(source, cell["set"])
    rows = np.random.default_rng(cell["seed"]).permutation(len(y))
    inside, test = np.split(rows[: 2 * N_ROWS], [min(N_ROWS, 2 * len(rows) // 3)])
    truth = np.array([f"c{k:03d}" for k in range(y.max() + 1)])[y]
    n = min(N_LONG if _is_long(cell) else N_DECISIONS, len(inside) // 5)
    with tempfile.TemporaryDirectory() as folder:
        texts = [f"document {row}" for row in inside]
        given = [None] * len(inside)
        for k in np.unique(y[inside]):
            row = int(np.flatnonzero(y[inside] == k)[0])
            given[row] = truth[inside][row]
        session = Simulated(cell["method"], Documents(texts, X[inside]), MemoryLog(Path(folder), texts), given)
        found = answer(session, truth[inside], X[test], truth[test], n)
        session.close()
    return found


def load(source: Source, name: str) -> tuple[Any, np.ndarray]:
    """Rows of length 1 and classes; intents of the built-in corpus, or its domains."""
    if name != "clinc150_intents":
        return source.load(name)
    from transduce.datasets import load_clinc150

    return source.load("clinc150")[0], np.unique(load_clinc150().labels, return_inverse=True)[1]


class MemoryLog(DecisionLog):
    """A log that waits for no disk."""

    def append(self, event: Event) -> None:
        """Forget the event: the state has it."""


class Simulated(Session):
    """A session whose queue follows another rule, without a map."""

    def __init__(self, method: str, documents: Documents, log: DecisionLog, given: Sequence[str | None]) -> None:
        self.method = method
        super().__init__(documents, log, given, fits=False)

    def _place(self, proposals: Proposals | None) -> Array:
        return self.points

    def _plan(self, proposals: Proposals | None, labels: Labels) -> list[int]:
        if self.method == RANDOM:
            return []
        if self.method == OURS or proposals is None:
            return super()._plan(proposals, labels)
        is_open, Z = labels.codes == -1, self.documents.vectors
        return choose(self.method, proposals.probabilities, Z, is_open, FIT_AFTER).tolist()

    def next_rows(self) -> list[tuple[int, bool]]:
        if self.method in (OURS, RANDOM):
            return self.queue(FIT_AFTER)
        return [(row, False) for row in self.planned]


def answer(session: Simulated, truth: np.ndarray, X: Any, y: np.ndarray, n_decisions: int) -> list[Row]:
    """Answer truly, learn after every few answers, and measure."""
    found, n_done = [], 0
    while True:
        session.fit_now()
        if session.status != "Up to date.":
            raise RuntimeError(session.status)
        if n_done >= MEASURE * len(found) or n_done >= n_decisions:
            found.append(measure(session, truth, X, y) | {"n": n_done})
        if n_done >= n_decisions:
            return found
        p, rows = session.proposals, session.next_rows()
        for row, random in rows:
            event = {"op": "decide", "rows": [row], "label": str(truth[row]), "how": "random" if random else "queue"}
            session.submit([event | {"proposed": p.classes[p.label[row]]}])
        n_done += len(rows)


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
        "stop": int(summary["stop"]),
    }


def curve(rows: Sequence[Row], name: str, method: str) -> dict[int, float]:
    """Mean macro F by the number of decisions, up to N_DECISIONS."""
    mine = [row for row in select(rows, set=name, method=method) if row["n"] <= N_DECISIONS]
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


def stopped(rows: Sequence[Row]) -> tuple[float, float]:
    """Part of the reachable gain when a session was first advised to stop, and decisions by those for REACHED of it.

    Without such advice the first is NaN, and the last measurement counts for the second.

    >>> points = [(0, 0.5, 0), (50, 0.7, 0), (100, 0.85, 0), (150, 0.9, 1), (200, 0.9, 0)]
    >>> [round(x, 2) for x in stopped([{"n": n, "macro_f": a, "stop": s} for n, a, s in points])]
    [1.0, 1.67]
    """
    found = {row["n"]: row["macro_f"] for row in sorted(rows, key=lambda row: row["n"])}
    first, reachable = found[0], max(found.values()) - found[0]
    end = min((row["n"] for row in rows if row["stop"]), default=None)
    n_needed = max(needed(found, first + REACHED * reachable), 1.0)
    if end is None:
        return np.nan, max(found) / n_needed
    return (found[end] - first) / max(reachable, 1e-9), end / n_needed


def long_sessions(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of each session of the review with N_LONG decisions."""
    mine = select(rows, method=OURS)
    each = [select(mine, set=name, seed=seed) for name in unique(mine, "set") for seed in unique(mine, "seed")]
    return [session for session in each if max((row["n"] for row in session), default=0) >= N_LONG]


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
    return [*_curve_verdicts(rows), _coverage(rows), _stopping(rows)]


def _curve_verdicts(rows: list[Row]) -> list[Verdict]:
    fewer = {name: saved(rows, name) for name in unique(rows, "set")}
    gains = {name: _area(rows, name, OURS) - _area(rows, name, RANDOM) for name in fewer}
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
    ]  # fmt: skip


def _coverage(rows: list[Row]) -> Verdict:
    """Of the last measurement of each session, so that sessions count once."""
    shown = [row for row in rows if row["n"] == N_DECISIONS and row["method"] == OURS and np.isfinite(row["low"])]
    covered = float(np.mean([row["low"] <= row["true"] <= row["high"] for row in shown])) if shown else np.nan
    is_met = 0.85 <= covered <= 0.95
    return Verdict(
        f"the interval of the accuracy covers the truth in 85 to 95 % of the sessions, after {N_DECISIONS} decisions",
        OWN, f"{covered:.0%} of {len(shown)}", AGREES if is_met else PARTLY if 0.8 <= covered <= 0.98 else DIFFERS,
        "" if is_met else "Few random documents give wide intervals.",
    )  # fmt: skip


def _stopping(rows: list[Row]) -> Verdict:
    found = np.array([stopped(session) for session in long_sessions(rows)]).reshape(-1, 2)
    early, late = int(np.sum(found[:, 0] < REACHED)), int(np.sum(found[:, 1] > MOST))
    return Verdict(
        f"the advice to stop comes neither before {REACHED:.0%} of the reachable gain nor after {MOST:.0f} times the "
        f"decisions needed for that, in sessions of {N_LONG}",
        OWN, f"{early} of {len(found)} sessions too early, {late} too late",
        AGREES if not early + late else PARTLY if early + late < len(found) / 4 else DIFFERS,
        "" if not early + late else "The curve of one session is not smooth.",
    )  # fmt: skip


def _area(rows: Sequence[Row], name: str, method: str) -> float:
    found = curve(rows, name, method)
    return float(np.mean([found[n] for n in SHOWN if n in found])) if found else np.nan
