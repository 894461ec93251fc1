"""Macro F against the number of unlabelled rows, at 80 labels.

The paper shows 20 newsgroups and says that the same holds for other sets; here these are la1 and ohscal. Smaller sets
of rows are subsets of larger ones.
"""

from itertools import pairwise

from matplotlib.figure import Figure

from experiments.data import Source, Split
from experiments.methods import measure
from experiments.study import (
    AGREES,
    DIFFERS,
    PARTLY,
    Row,
    Verdict,
    curves,
    curves_table,
    number,
    paired,
    scatter,
    select,
    summary,
    unique,
)

KEYS, RESULTS = ("set", "n_unlabeled", "seed", "method"), ("macro_f", "seconds")
SIZES = {
    "news20_train": (250, 500, 1000, 2000, 4000, 7967),
    "la1": (100, 200, 400, 800, 1602),
    "ohscal": (250, 500, 1000, 2000, 5581),
}
N_LABELED, N_SEEDS = 80, 10
PAPER_SHOWS = (
    "Macro F of 20 newsgroups, with 80 labels, against the number of unlabelled rows. The text says that the same "
    "holds for the other sets."
)


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [
            {"set": "la1", "n_unlabeled": n, "seed": 0, "method": m} for n in (60, 200) for m in ("paper", "default")
        ]
    return [
        {"set": name, "n_unlabeled": n, "seed": seed, "method": method}
        for name, sizes in SIZES.items()
        for seed in range(N_SEEDS)
        for n in sizes
        for method in ("paper", "default")
    ]


def run(source: Source, cell: Row) -> list[Row]:
    split = Split(*source.load(cell["set"]), cell["seed"], N_LABELED, n_unlabeled=cell["n_unlabeled"])
    return [measure(split, cell["method"], cell["seed"])]


def plot(rows: list[Row]) -> Figure:
    return curves(rows, "n_unlabeled", "unlabelled rows")


def table(rows: list[Row]) -> str:
    return curves_table(rows, "n_unlabeled", "unlabelled rows")


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for name in unique(rows, "set"):
        mine = select(rows, set=name, method="paper")
        sizes = sorted(set(unique(mine, "n_unlabeled")))
        if len(sizes) < 2:
            continue
        means = [summary(mine, n_unlabeled=n).mean for n in sizes]
        falls = [(a, b) for (a, f), (b, g) in pairwise(zip(sizes, means, strict=True)) if g < f]
        found.append(
            Verdict(
                f"{name}: performance improves steadily as unlabelled rows are added (80 labels)",
                "a rising curve",
                f"from {number(means[0])} to {number(means[-1])}, {len(falls)} of {len(means) - 1} steps down",
                DIFFERS if means[-1] < means[0] else PARTLY if falls else AGREES,
                _falls(mine, falls),
            )
        )
    return found


def _falls(rows: list[Row], falls: list[tuple[int, int]]) -> str:
    """What the same splits lose from one number of rows to the next, where the mean falls."""
    text = []
    for a, b in falls:
        lost = paired(select(rows, n_unlabeled=b), select(rows, n_unlabeled=a))
        if lost.size:
            text.append(f"{a} to {b} {scatter(lost)} on {lost.size} splits")
    return f"Steps down, the same splits compared (mean ± its standard error): {'; '.join(text)}." if text else ""
