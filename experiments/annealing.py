"""What annealing is worth: 20 newsgroups with 100 labels and 10 000 unlabelled rows, the rest test.

Both copies of the set. The paper does not say how labels are drawn: at random, or as many of each class. Its λ may be
meant for a sum or for a mean of losses, so alpha has two values; our default method is run at its own.
"""

import numpy as np

from experiments.data import Rows, Source, Split
from experiments.methods import TOLD, measure
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, spread, summary, unique

KEYS, RESULTS = ("set", "labels", "alpha", "seed", "method"), ("macro_f", "seconds")
SETS, LABELS, ALPHAS, N_SEEDS = ("news20_train", "20ng_raw"), ("at random", "of each class"), (1e-3, 1e-4), 10
N_LABELED, N_UNLABELED = 100, 10_000
PAPER = {"supervised": 0.4577, "no annealing": 0.5377, "paper": 0.6253}
"""Macro F in the paper, section "Semi-Supervised Learning Algorithm", on ten runs."""
NEAR = 0.05


class LargeSplit(Split):
    """N_LABELED rows, N_UNLABELED others (or half of all, where there are fewer), and the rest for test."""

    def __init__(self, X: Rows, y: np.ndarray, seed: int, of_each: bool) -> None:
        rows = np.random.default_rng(seed).permutation(len(y))
        self.names = np.arange(int(y.max()) + 1)
        if of_each:
            n = N_LABELED // len(self.names)
            first = np.concatenate([np.flatnonzero(y[rows] == k)[:n] for k in self.names])
            rows = np.concatenate((rows[first], np.delete(rows, first)))
        self.n_labeled = n * len(self.names) if of_each else N_LABELED
        n_train = self.n_labeled + (N_UNLABELED if len(y) > N_LABELED + N_UNLABELED else len(y) // 2)
        self.rows, self.test = rows[:n_train], rows[n_train:]
        self.labeled, self.unlabeled = self.rows[: self.n_labeled], self.rows[self.n_labeled :]
        self.X_all, self.y_all, self.X, self.truth = X, y, X[self.rows], y[self.rows]
        self.given = self.truth[: self.n_labeled]
        self.marked = np.concatenate((self.given, np.full(len(self.unlabeled), -1)))
        self.counts = np.bincount(y[self.unlabeled], minlength=len(self.names))
        self.sizes = dict(enumerate(self.counts.tolist()))


def grid(smoke: bool) -> list[Row]:
    sets, seeds = (SETS[:1], range(1)) if smoke else (SETS, range(N_SEEDS))
    return [
        {"set": name, "labels": labels, "alpha": alpha, "seed": seed, "method": method}
        for name in sets
        for labels in LABELS
        for alpha in ALPHAS
        for seed in seeds
        for method in (*PAPER, *(["default"] if (labels, alpha) == (LABELS[0], ALPHAS[0]) else []))
    ]


def run(source: Source, cell: Row) -> list[Row]:
    split = LargeSplit(*source.load(cell["set"]), cell["seed"], cell["labels"] == "of each class")
    return [measure(split, cell["method"], cell["seed"], alpha=cell["alpha"])]


def cases(rows: list[Row]) -> list[tuple[str, str, float]]:
    return list(dict.fromkeys((row["set"], row["labels"], row["alpha"]) for row in rows))


def table(rows: list[Row]) -> str:
    methods = (*PAPER, "default")
    lines = [["the paper's", "", "", *(number(f, 4) for f in PAPER.values()), ""]]
    for name, labels, alpha in cases(rows):
        mine = select(rows, set=name, labels=labels, alpha=alpha)
        lines.append([name, labels, f"{alpha:g}", *(spread(summary(mine, method=method)) for method in methods)])
    return markdown(["set", "labels", "alpha", *(TOLD[method] for method in methods)], lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """For each copy: figures where they are nearest to the paper's, what annealing gains there, and our default."""
    found = []
    for name in unique(rows, "set"):
        means = {}
        for _, labels, alpha in cases(select(rows, set=name)):
            mine = select(rows, set=name, labels=labels, alpha=alpha)
            means[labels, alpha] = {method: summary(mine, method=method).mean for method in unique(mine, "method")}
        whole = {case: f for case, f in means.items() if set(PAPER) <= set(f)}
        if not whole:
            continue
        near = min(whole, key=lambda case: sum(abs(whole[case][method] - PAPER[method]) for method in PAPER))
        found += [_values(whole[near], f"{name}, labels {near[0]}, alpha {near[1]:g}"), _gains(name, near, whole)]
        for case, f in means.items():
            if {"default", "paper"} <= set(f):
                found.append(_ours(f, f"{name}, labels {case[0]}, alpha {case[1]:g}"))
    return found


def _values(f: dict[str, float], where: str) -> Verdict:
    """Whether the figures are the paper's."""
    is_near = [abs(f[method] - PAPER[method]) <= NEAR for method in PAPER]
    return Verdict(
        f"{where}: macro F of supervised learning, without and with annealing",
        ", ".join(number(value) for value in PAPER.values()),
        ", ".join(number(f[method]) for method in PAPER),
        AGREES if all(is_near) else PARTLY if any(is_near) else DIFFERS,
        "Other rows and features of the collection; of the ways to draw labels and to read λ the nearest is shown.",
    )


def _gains(name: str, near: tuple[str, float], whole: dict[tuple[str, float], dict[str, float]]) -> Verdict:
    """Whether the alternation helps, and annealing helps it."""
    gains = {case: (f["no annealing"] - f["supervised"], f["paper"] - f["no annealing"]) for case, f in whole.items()}
    least = min(min(pair) for pair in gains.values())
    others = "; ".join(f"labels {c[0]}, alpha {c[1]:g}: {a:+.3f}, {b:+.3f}" for c, (a, b) in gains.items() if c != near)
    return Verdict(
        f"{name}: the alternation is above supervised learning, and annealing above no annealing",
        f"{PAPER['no annealing'] - PAPER['supervised']:+.3f} and {PAPER['paper'] - PAPER['no annealing']:+.3f}",
        f"{gains[near][0]:+.3f} and {gains[near][1]:+.3f} there" + (f" ({others})" if others else ""),
        AGREES if least > 0.01 else PARTLY if min(gains[near]) > 0.01 else DIFFERS,
        ""
        if least > 0.01
        else "With a larger alpha weight steps are loose while labels move, which anneals by itself.",
    )


def _ours(f: dict[str, float], where: str) -> Verdict:
    lift = f["default"] - f["paper"]
    ours = f"{number(f['default'])}, {lift:+.3f} against the paper's annealing"
    word = AGREES if lift > 0 else DIFFERS
    return Verdict(f"{where}: soft annealing, our default, is better", "not in the paper", ours, word)
