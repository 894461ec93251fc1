"""Learning curves in a tree of classes: macro F of the leaves against the number of labels.

20 newsgroups in the tree of its names, and rcv-mcat; both flat as well, since the paper found almost the same
performance for 20 newsgroups either way.
"""

import numpy as np
from matplotlib.figure import Figure

from experiments.data import Source, Split
from experiments.methods import measure
from experiments.study import (
    AGREES,
    DIFFERS,
    NOT_EVERYWHERE,
    PARTLY,
    Row,
    Verdict,
    curves,
    curves_table,
    halves,
    paired,
    scatter,
    select,
    unique,
)

KEYS, RESULTS = ("set", "classes", "n_labeled", "seed", "method"), ("macro_f", "seconds")
SIZES = {"news20_train": (40, 80, 160, 320, 1280, 3187), "rcv_mcat": (20, 40, 80, 160, 320, 1522)}
N_SEEDS = 10
GOOD, ALMOST = 0.03, 0.02
PAPER_SHOWS = (
    "Macro F of 20 newsgroups and rcv-mcat in their trees against the number of labels. A dashed black line is the "
    "supervised classifier, a continuous one the method, and a level red line the supervised classifier that knows "
    "the labels of all training rows. The text adds that the tree makes almost no difference for 20 newsgroups."
)


def grid(smoke: bool) -> list[Row]:
    sets, seeds = ({"rcv_mcat": (40,)}, range(1)) if smoke else (SIZES, range(N_SEEDS))
    cells = []
    for name, sizes in sets.items():
        for seed in seeds:
            for size in sizes:
                for classes in ("tree", "flat"):
                    methods = ["supervised", "paper", "default"] + ["all labels"] * (size == max(sizes))
                    cells += [
                        {"set": name, "classes": classes, "n_labeled": size, "seed": seed, "method": method}
                        for method in methods
                    ]
    return cells


def run(source: Source, cell: Row) -> list[Row]:
    paths = source.tree(cell["set"])
    n_labeled = None if cell["method"] == "all labels" else cell["n_labeled"]
    split = Split(*source.load(cell["set"]), cell["seed"], n_labeled, names=paths)
    more = {"taxonomy": paths} if cell["classes"] == "tree" else {}
    return [measure(split, cell["method"], cell["seed"], **more)]


def named(rows: list[Row]) -> list[Row]:
    return [row | {"set": f"{row['set']}, {row['classes']}"} for row in rows]


def plot(rows: list[Row]) -> Figure:
    return curves(named(rows), "n_labeled", "labels")


def table(rows: list[Row]) -> str:
    return curves_table(named(rows), "n_labeled", "labels")


def verdicts(rows: list[Row]) -> list[Verdict]:
    return [v for name in unique(rows, "set") for v in (*_improvement(rows, name), *_alike(rows, name))]


def _differences(rows: list[Row], one: dict[str, str], other: dict[str, str]) -> dict[int, np.ndarray]:
    """Of the same splits, for each number of labels that both have."""
    ours, others = select(rows, **one), select(rows, **other)
    each = {
        n: paired(select(ours, n_labeled=n), select(others, n_labeled=n))
        for n in sorted(set(unique(ours, "n_labeled")))
    }
    return {n: found for n, found in each.items() if found.size}


def _improvement(rows: list[Row], name: str) -> list[Verdict]:
    tree = {"set": name, "classes": "tree"}
    each = _differences(rows, tree | {"method": "paper"}, tree | {"method": "supervised"})
    if not each:
        return []
    lift = {n: float(found.mean()) for n, found in each.items()}
    few, many = halves(lift)
    is_above = np.mean(list(lift.values())) > 0
    is_all = is_above and max(lift.values()) > GOOD and few > many
    return [
        Verdict(
            f"{name} in its tree: a good improvement over supervised learning, most where labels are few",
            "a curve above",
            ", ".join(f"{value:+z.3f} at {n}" for n, value in lift.items()),
            AGREES if is_all else PARTLY if is_above else DIFFERS,
            f"On average {few:+z.3f} over the fewer labels, {many:+z.3f} over the more." if len(lift) > 1 else "",
        )
    ]


def _alike(rows: list[Row], name: str) -> list[Verdict]:
    """Whether the tree makes almost no difference: at every number of labels, or on average."""
    mine = {"set": name, "method": "paper"}
    each = _differences(rows, mine | {"classes": "tree"}, mine | {"classes": "flat"})
    if not each:
        return []
    apart = {n: float(found.mean()) for n, found in each.items()}
    most = max(apart, key=lambda n: abs(apart[n]))
    mean = float(np.mean(list(apart.values())))
    is_almost = abs(apart[most]) <= ALMOST
    return [
        Verdict(
            f"{name}: almost the same performance flat and in its tree",
            "almost the same" if name == "news20_train" else "not said of this set",
            f"tree less flat between {min(apart.values()):+z.3f} and {max(apart.values()):+z.3f}, "
            f"on average {mean:+z.3f}",
            AGREES if is_almost else PARTLY if abs(mean) <= ALMOST else DIFFERS,
            ""
            if is_almost
            else f"Largest at {most} labels: {scatter(each[most])} (mean ± its standard error) on {each[most].size} "
            "splits.",
            "" if is_almost else NOT_EVERYWHERE,
        )
    ]
