"""Class sizes that are wrong, rough or unknown: macro F on test rows against the supervised classifier, and harm.

Six sets, 80 labels drawn at random, the default method. Priors: exact; each share multiplied by a factor of up to 1.1,
1.2 and 1.5 either way; uniform; shares of the labelled rows as they are; "labeled" and "estimate"; ranges of ±20 %;
ranges of ±20 % around shares that are up to 20 % off. For each fit the disagreement of class sizes and labels is kept,
from which the rule of `transduce.doubts` foretells harm; two more priors that nobody should state, sizes up to 4 times
off and those of other classes, are there for the rule alone.
"""

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score

from benchmarks.data import load, paper_split
from experiments.cells import study
from transduce import TransductiveClassifier
from transduce.doubts import HARMFUL

SETS = ("r8", "la1", "ohscal", "news20_train", "webkb7", "clinc150")
N_LABELED = 80
SHOWN = (
    "supervised", "exact", "off by 10 %", "off by 20 %", "off by 50 %", "uniform", "labelled shares", "labeled",
    "estimate", "ranges of 20 %", "ranges of 20 % around off by 20 %",
)  # fmt: skip
FOR_THE_RULE = ("off by 300 %", "of other classes")
HURT = 0.01


def off_by(shares: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    factor = np.exp(rng.uniform(-np.log1p(most), np.log1p(most), shares.size))
    return shares * factor / np.dot(shares, factor)


def ranges(shares: np.ndarray, names: list) -> dict:
    return {k: (float(0.8 * share), float(min(1.2 * share, 1.0))) for k, share in zip(names, shares, strict=True)}


def priors(shares: np.ndarray, labeled: np.ndarray, names: list, rng: np.random.Generator) -> dict[str, object]:
    stated = {
        "exact": shares,
        "off by 10 %": off_by(shares, 0.1, rng),
        "off by 20 %": off_by(shares, 0.2, rng),
        "off by 50 %": off_by(shares, 0.5, rng),
        "uniform": np.full(shares.size, 1 / shares.size),
        "labelled shares": labeled / labeled.sum(),
        "off by 300 %": off_by(shares, 3.0, rng),
        "of other classes": rng.permutation(shares),
    }
    found: dict[str, object] = {
        name: dict(zip(names, map(float, value / value.sum()), strict=True)) for name, value in stated.items()
    }
    found |= {"labeled": "labeled", "estimate": "estimate", "ranges of 20 %": ranges(shares, names)}
    found["ranges of 20 % around off by 20 %"] = ranges(off_by(shares, 0.2, rng), names)
    return found


def cell(task: tuple) -> list[tuple]:
    name, seed, folder = task
    warnings.simplefilter("ignore")
    X, y = load(Path(folder), name)
    labeled, unlabeled, test = paper_split(y, N_LABELED, seed)
    rng = np.random.default_rng(seed)
    rows = X[np.concatenate((labeled, unlabeled))].tocsr()
    marked = np.concatenate((y[labeled], np.full(unlabeled.size, -1)))
    names = np.unique(y[labeled]).tolist()
    shares = np.array([np.mean(y[unlabeled] == k) for k in names])
    counts = np.array([np.sum(y[labeled] == k) for k in names], dtype=float)

    def score(model: TransductiveClassifier) -> float:
        return f1_score(y[test], model.predict(X[test]), average="macro", labels=np.unique(y), zero_division=0)

    supervised = TransductiveClassifier(random_state=seed, n_jobs=1).fit(X[labeled], y[labeled])
    found = [(name, seed, "supervised", round(score(supervised), 5), 0.0, 0.0)]
    for prior, value in priors(shares / shares.sum(), counts, names, rng).items():
        begin = time.perf_counter()
        model = TransductiveClassifier(class_prior=value, random_state=seed, n_jobs=1).fit(rows, marked)
        seconds = time.perf_counter() - begin
        found.append(
            (name, seed, prior, round(score(model), 5), round(model.doubts_.disagreement, 4), round(seconds, 3))
        )
    return found


def main() -> None:
    rows = study(__doc__, "priors", SETS, ["prior", "macro_f", "disagreement", "seconds"], cell)
    f = {(row["set"], row["seed"], row["prior"]): float(row["macro_f"]) for row in rows}
    show_priors(f)
    show_rule(rows, f)


def show_priors(f: dict) -> None:
    runs = sorted({key[:2] for key in f})
    print(f"\n{len(runs)} runs, {N_LABELED} labels, macro F on test rows")
    print(f"{'':36}" + "".join(f"{name[:8]:>9}" for name in SETS) + f"{'mean':>9}{'of the lift':>13}{'hurt':>8}")
    lift = np.mean([f[*run, "exact"] - f[*run, "supervised"] for run in runs])
    for prior in SHOWN:
        means = [np.mean([f[*run, prior] for run in runs if run[0] == name]) for name in SETS]
        mine = [f[*run, prior] - f[*run, "supervised"] for run in runs]
        print(f"{prior:36}" + "".join(f"{mean:9.3f}" for mean in means) + f"{np.mean(means):9.3f}"
              f"{np.mean(mine) / lift:13.0%}{np.mean(np.array(mine) < -HURT):8.0%}")  # fmt: skip


def show_rule(rows: list[dict], f: dict) -> None:
    """How well the disagreement of stated sizes and labels foretells that a fit is worse than supervised."""
    stated = [r for r in rows if r["prior"] not in ("supervised", "labeled", "estimate")]
    worse = np.array([float(r["macro_f"]) < f[r["set"], r["seed"], "supervised"] - HURT for r in stated])
    warned = np.array([float(r["disagreement"]) > HARMFUL for r in stated])
    print(f"\nThe rule (disagreement above {HARMFUL:g}) over {len(stated)} fits with stated sizes, {worse.sum()} "
          f"of them worse than supervised: {warned.sum()} warnings, {np.mean(worse[warned]):.0%} of them right; "
          f"{np.mean(warned[worse]):.0%} of the harm foretold; {np.mean(warned[~worse]):.1%} of the rest.")  # fmt: skip


if __name__ == "__main__":
    main()
