"""Learning curves in a tree of classes: macro F of the leaves against the number of labels.

20 newsgroups in the tree of its names, and rcv-mcat; each flat too, since the paper found
almost the same performance of 20 newsgroups either way.
"""

from matplotlib.figure import Figure

from experiments.data import Source, Split
from experiments.methods import measure
from experiments.study import AGREES, PARTLY, Row, Verdict, curves, curves_table, number, select, summary, unique

KEYS, RESULTS = ("set", "classes", "n_labeled", "seed", "method"), ("macro_f", "seconds")
SIZES = {"news20_train": (40, 80, 160, 320, 1280, 3187), "rcv_mcat": (20, 40, 80, 160, 320, 1522)}
N_SEEDS = 10
ALMOST = 0.02


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
    return curves(named(rows), "n_labeled", "labels", n_columns=2)


def table(rows: list[Row]) -> str:
    return curves_table(named(rows), "n_labeled", "labels")


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for name in unique(rows, "set"):
        mine = select(rows, set=name, classes="tree")
        sizes = sorted(set(unique(select(mine, method="paper"), "n_labeled")))
        lift = {
            n: summary(mine, method="paper", n_labeled=n).mean - summary(mine, method="supervised", n_labeled=n).mean
            for n in sizes
        }
        few, most = sizes[0], sizes[-1]
        found.append(
            Verdict(
                f"{name} in its tree: a good improvement over supervised learning, most where labels are few",
                "a curve above",
                f"{lift[few]:+.3f} at {few} labels, {lift[most]:+.3f} at {most}",
                AGREES if lift[few] > 0.03 and lift[few] >= lift[most] else PARTLY,
            )
        )
        apart = {
            n: summary(mine, method="paper", n_labeled=n).mean
            - summary(rows, set=name, classes="flat", method="paper", n_labeled=n).mean
            for n in sizes
        }
        most_apart = max(apart, key=lambda n: abs(apart[n]))
        is_almost = abs(apart[most_apart]) <= ALMOST
        found.append(
            Verdict(
                f"{name}: almost the same performance flat and in its tree",
                "almost the same" if name == "news20_train" else "not said of this set",
                f"tree less flat between {min(apart.values()):+.3f} and {max(apart.values()):+.3f}, "
                f"on average {number(sum(apart.values()) / len(apart))}",
                AGREES if is_almost else PARTLY,
                ""
                if is_almost
                else f"Largest at {most_apart} labels, where splits scatter by "
                f"{number(summary(mine, method='paper', n_labeled=most_apart).deviation)}.",
            )
        )
    return found
