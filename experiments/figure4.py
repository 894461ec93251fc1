"""Learning curves of flat classes: macro F against the number of labels, half of the rows unlabelled.

Counts are weighted by tf-idf and rows scaled to length 1; pixels of usps and mnist are scaled to length 1 too, mnist by
all of its 70 000 rows. sector_part is the fifth of the paper's sector that could be had.
"""

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
    select,
    summary,
    unique,
)

KEYS, RESULTS = ("set", "n_labeled", "seed", "method"), ("macro_f", "seconds")
SIZES = {
    "la1": (20, 40, 80, 160, 320, 640),
    "webkb7": (20, 40, 80, 160, 320, 640, 1656),
    "ohscal": (20, 40, 80, 160, 320, 640, 1280, 2232),
    "r8": (20, 40, 80, 160, 320, 640, 1534),
    "sector_part": (105, 150, 210, 365),
    "mnist": (20, 80, 320, 1280),
    "usps": (20, 40, 80, 160, 320, 640, 1859),
}
N_SEEDS = 10


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [
            {"set": "la1", "n_labeled": 30, "seed": 0, "method": m}
            for m in ("supervised", "paper", "default", "all labels")
        ]
    cells = []
    for name, sizes in SIZES.items():
        for seed in range(N_SEEDS):
            for size in sizes:
                methods = ["supervised", "paper", "default"] + ["all labels"] * (size == max(sizes))
                cells += [{"set": name, "n_labeled": size, "seed": seed, "method": method} for method in methods]
    return cells


def run(source: Source, cell: Row) -> list[Row]:
    """For "all labels" those of the unlabelled rows and of the whole pool are known."""
    split = Split(
        *source.load(cell["set"]), cell["seed"], None if cell["method"] == "all labels" else cell["n_labeled"]
    )
    return [measure(split, cell["method"], cell["seed"])]


def plot(rows: list[Row]) -> Figure:
    return curves(rows, "n_labeled", "labels")


def table(rows: list[Row]) -> str:
    return curves_table(rows, "n_labeled", "labels")


def lifts(rows: list[Row], name: str, method: str) -> dict[int, float]:
    """By how much a method is above the supervised classifier, for each number of labels."""
    mine = select(rows, set=name)
    return {
        n: summary(mine, method=method, n_labeled=n).mean - summary(mine, method="supervised", n_labeled=n).mean
        for n in sorted(set(unique(select(mine, method=method), "n_labeled")))
    }


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for name in unique(rows, "set"):
        paper, ours = lifts(rows, name, "paper"), lifts(rows, name, "default")
        few, most = min(paper), max(paper)
        told = (
            f"the paper's method {paper[few]:+.3f} at {few} labels, {paper[most]:+.3f} at {most}; default "
            + ", ".join(f"{lift:+.3f} at {n}" for n, lift in ours.items())
        )
        best = max(max(paper.values()), max(ours.values()))
        word = AGREES if best > 0.03 and max(paper.values()) > 0.03 else PARTLY if best > 0.01 else DIFFERS
        claim, said = f"{name}: a good improvement over supervised learning, most where labels are few", "a curve above"
        if name in ("sector_part", "r8"):
            said = {"sector_part": "mild on sector", "r8": "sharp on reut8"}[name]
        ceiling = summary(rows, set=name, method="all labels").mean
        found.append(Verdict(claim, said, f"{told}; all labels known {number(ceiling)}", word))
    return found
