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
GOOD, SHARP, MILD, ALIKE = 0.03, 0.1, 0.06, 0.05
"""What we take a good, a sharp and a mild improvement to be, and a similar one."""
REASONS: dict[str, str] = {}


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
    found = [_improvement(rows, name) for name in unique(rows, "set")]
    names = set(unique(rows, "set"))
    if {"usps", "mnist"} <= names:
        found.append(_alike(rows, "usps", "mnist"))
    return found


def _improvement(rows: list[Row], name: str) -> Verdict:
    """Whether the method is above supervised learning, and most so where labels are few; by how much, where said."""
    paper, ours = lifts(rows, name, "paper"), lifts(rows, name, "default")
    most = max(paper.values())
    is_good = {"r8": most >= SHARP, "sector_part": 0 < most <= MILD}.get(name, most >= GOOD)
    falls = paper[max(paper)] <= most and paper[max(paper)] < SHARP
    told = "; ".join(
        f"{method} " + ", ".join(f"{lift:+.3f} at {n}" for n, lift in found.items())
        for method, found in (("the paper's method", paper), ("default", ours))
    )
    ceiling = summary(rows, set=name, method="all labels").mean
    said = {"r8": "a sharp improvement (reut8)", "sector_part": "a mild improvement (sector)"}.get(
        name, "a curve above"
    )
    return Verdict(
        f"{name}: an improvement over supervised learning, most where labels are sparse",
        said,
        f"{told}; all labels known {number(ceiling)}",
        AGREES if is_good and falls else PARTLY if most > 0 else DIFFERS,
        "" if is_good and falls else REASONS.get(name, ""),
    )


def _alike(rows: list[Row], one: str, other: str) -> Verdict:
    """Whether two sets behave alike."""
    sizes = sorted(set(lifts(rows, one, "paper")) & set(lifts(rows, other, "paper")))
    pairs = [(lifts(rows, one, "paper")[n], lifts(rows, other, "paper")[n]) for n in sizes]
    told = ", ".join(f"{a:+.3f} and {b:+.3f} at {n}" for n, (a, b) in zip(sizes, pairs, strict=True))
    apart = max((abs(a - b) for a, b in pairs), default=0.0)
    return Verdict(f"{one} and {other} perform alike", "similar", told, AGREES if apart <= ALIKE else PARTLY)
