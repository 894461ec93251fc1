"""transduce against the methods that users would try first, on fourteen sets with 5, 10 and 20 labels per class.

Every method has the same splits. The settings of peers are chosen with labelled rows (experiments.peers), ours has its
defaults; seconds are those of one fit, for a peer including its selection. Ours appears twice: with the true class
sizes, as it is meant to be used, and without. The latter is hard, because equal numbers of labels per class say
nothing about sizes. sector_part, whose smallest classes have 4 rows, appears with 5 labels per class only; a class
with fewer rows in the pool of labels uses all of them.
"""

import time
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata

from experiments.data import Source, Split
from experiments.methods import measure
from experiments.peers import PEERS
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, spread, summary, unique
from transduce import TransductiveClassifier

KEYS, RESULTS = ("set", "each", "seed", "method"), ("macro_f", "seconds")
SETS = (
    "la1", "ohscal", "webkb7", "r8", "news20_train", "20ng_raw", "industry_sector12", "sector_part", "rcv_mcat",
    "rcv1_topics", "dmoz4", "clinc150", "usps", "mnist",
)  # fmt: skip
EACH = (5, 10, 20)
N_SEEDS = 3
FEWER_LABELS = {"sector_part": (5,)}
OURS, WITHOUT_SIZES = "default", "default, sizes unknown"
METHODS = (OURS, WITHOUT_SIZES, *PEERS)
SHOWN = {OURS: "transduce", WITHOUT_SIZES: "transduce, sizes unknown"}


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [{"set": "la1", "each": 5, "seed": 0, "method": method} for method in METHODS]
    return [
        {"set": name, "each": each, "seed": seed, "method": method}
        for seed in range(N_SEEDS)
        for name in SETS
        for each in FEWER_LABELS.get(name, EACH)
        for method in METHODS
    ]


def run(source: Source, cell: Row) -> list[Row]:
    method, seed = cell["method"], cell["seed"]
    split = Split(*source.load(cell["set"]), seed, each=cell["each"])
    if method == OURS:
        return [measure(split, method, seed)]
    begin = time.perf_counter()
    if method == WITHOUT_SIZES:
        predict = TransductiveClassifier(random_state=seed, n_jobs=1).fit(split.X, split.marked).predict
    else:
        predict = PEERS[method](split, seed)
    seconds = time.perf_counter() - begin
    guesses = predict(split.X_all[split.test])
    return [{"macro_f": round(split.macro_f(guesses), 5), "seconds": round(seconds, 4)}]


def compared(rows: Sequence[Row]) -> list[Row]:
    """Rows of the splits that have results of all methods, so that all are compared on the same splits."""
    methods: dict[tuple, set[str]] = {}
    for row in rows:
        methods.setdefault((row["set"], row["each"], row["seed"]), set()).add(row["method"])
    return [row for row in rows if methods[row["set"], row["each"], row["seed"]] == set(METHODS)]


def cells_of(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Sets and numbers of labels."""
    return [
        (name, each) for name in unique(rows, "set") for each in sorted(set(unique(select(rows, set=name), "each")))
    ]


def ranks(rows: Sequence[Row], ours: str = OURS) -> dict[str, np.ndarray]:
    """Ranks of the peers and of one of ours in each cell, 1 the best mean macro F."""
    methods = (ours, *PEERS)
    means = [
        [summary(rows, set=name, each=each, method=method).mean for method in methods] for name, each in cells_of(rows)
    ]
    found = rankdata(-np.array(means).reshape(-1, len(methods)), axis=1)
    return dict(zip(methods, found.T, strict=True))


def table(rows: list[Row]) -> str:
    """Mean results of each method over all cells, and the results of each cell."""
    rows = compared(rows)
    standing = {**ranks(rows, WITHOUT_SIZES), **ranks(rows)}
    everything = cells_of(rows)
    total = []
    for method in METHODS:
        means = [summary(rows, set=name, each=each, method=method).mean for name, each in everything]
        seconds = [summary(rows, "seconds", set=name, each=each, method=method).mean for name, each in everything]
        rank = standing[method]
        figures = [number(float(np.mean(v)), d) if len(v) else "" for v, d in ((means, 3), (rank, 2), (seconds, 1))]
        total.append([SHOWN.get(method, method), *figures[:2], str(np.sum(rank == 1)), figures[2]])
    lines = []
    for name, each in cells_of(rows):
        found = [summary(rows, set=name, each=each, method=method) for method in METHODS]
        best = max(s.mean for s in found if s.n)
        text = [f"**{spread(s)}**" if s.n and s.mean == best else spread(s) for s in found]
        lines.append([name, str(each), *text])
    n_splits = len(unique(rows, "seed"))
    note = (
        f"Means over {len(everything)} cells (a set and a number of labels per class), at most {n_splits} splits each. "
        f'Ranks are those of the peers and "{SHOWN[OURS]}"; "{SHOWN[WITHOUT_SIZES]}" has the rank it '
        "would get in its place."
    )
    return "\n\n".join((
        note,
        markdown(["method", "mean macro F", "mean rank", "first in", "mean seconds"], total),
        "Macro F on test rows, mean ± deviation over the seeds.",
        markdown(["set", "labels per class", *(SHOWN.get(method, method) for method in METHODS)], lines),
    ))  # fmt: skip


def verdicts(rows: list[Row]) -> list[Verdict]:
    rows = compared(rows)
    if not rows:
        return []
    return [*_targets(rows, OURS, "with the class sizes"), *_targets(rows, WITHOUT_SIZES, "without the class sizes")]


def _targets(rows: list[Row], ours: str, text: str) -> list[Verdict]:
    """Compare one of our methods with the peers, by mean rank and by the number of cells that it wins."""
    found = ranks(rows, ours)
    mean = {method: float(r.mean()) for method, r in found.items()}
    peer = min(PEERS, key=mean.__getitem__)
    n, first = found[ours].size, int(np.sum(found[ours] == 1))
    above = sum(mean[method] > mean[ours] for method in PEERS)
    best = {method: int(np.sum(found[method] == 1)) for method in PEERS}
    leader = max(PEERS, key=best.__getitem__)
    return [
        Verdict(
            f"our own target: {text}, ours is first by mean rank", "not in the paper",
            f"mean rank {mean[ours]:.2f} of {len(mean)} methods over {n} cells; the best peer, {peer}, "
            f"{mean[peer]:.2f}",
            AGREES if above == len(PEERS) else PARTLY if above == len(PEERS) - 1 else DIFFERS,
        ),
        Verdict(
            f"our own target: {text}, ours is first outright on at least two thirds of the cells", "not in the paper",
            f"first in {first} of {n}; the peer most often first, {leader}, in {best[leader]}",
            AGREES if 3 * first >= 2 * n else PARTLY if 2 * first >= n else DIFFERS,
        ),
    ]  # fmt: skip


def plot(rows: list[Row]) -> Figure:
    """Plot the mean rank of each method, with its rank in every cell."""
    rows = compared(rows)
    standing = {**ranks(rows, WITHOUT_SIZES), **ranks(rows)}
    order = sorted((m for m in METHODS if standing[m].size), key=lambda m: -standing[m].mean())
    figure = Figure(figsize=(7, 0.6 + 0.35 * len(METHODS)), layout="constrained")
    panel = figure.subplots()
    for place, method in enumerate(order):
        color = "tab:blue" if method in SHOWN else "black"
        spots = place + np.linspace(-0.25, 0.25, standing[method].size + 2)[1:-1]
        panel.plot(standing[method], spots, ".", color=color, alpha=0.25, markersize=4)
        panel.plot(standing[method].mean(), place, "o", color=color, markersize=7)
    panel.set_yticks(range(len(order)), [SHOWN.get(method, method) for method in order])
    panel.set_xlabel("rank by macro F, 1 the best: mean over cells, and each cell")
    panel.grid(axis="x", alpha=0.3)
    return figure
