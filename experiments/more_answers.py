"""Whether fifty more labels always help: drawn at random, or answers to the questions that `transduce queue` asks.

Six sets. The first labels are five of each class, chosen by design, or 80 drawn at random. Fifty unlabelled rows are
then labelled: random ones, or those that the queue chooses by the fitted classifier. The fit knows their origin as on
the command line: answers to the queue are no random sample, five labels of each class are not either. Macro F is
that of test rows. Five splits with the paper's annealing, and three of the same with the default one.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.data import Source, Split
from experiments.size_measures import l1, spread_over
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, scatter, select, unique
from transduce import TransductiveClassifier
from transduce.cli.label_origin import find_sample
from transduce.cli.queue.selection import choose_rows

KEYS = ("set", "seed", "first", "annealing")
RESULTS = ("more", "n_labeled", "macro_f", "predicted_l1", "size_l1", "contradicted", "seconds")
SETS = ("r8", "r8_text", "la1", "webkb7", "news20_train", "clinc150")
FIRST = {"by class": {"each": 5}, "random": {"n_labeled": 80}}
N_SEEDS = {"paper": 5, "soft": 3}
N_MORE = 50
BEFORE, RANDOM, QUEUE = "none", "random", "queue"
SLACK = 0.005
MORE_CODE = ("src/transduce/cli/label_origin.py", "src/transduce/cli/queue/selection.py")
"""What a cell depends on beside the core (experiments.versions)."""
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    sets, seeds = (SETS[:1], {"paper": 1}) if smoke else (SETS, N_SEEDS)
    return [
        {"set": name, "seed": seed, "first": first, "annealing": annealing}
        for annealing, n_seeds in seeds.items()
        for seed in range(n_seeds)
        for first in FIRST
        for name in sets
    ]


def run(source: Source, cell: Row) -> list[Row]:
    seed = cell["seed"]
    split = Split(*source.load(cell["set"]), seed, **FIRST[cell["first"]])
    answered = np.zeros(len(split.rows), bool)
    before, row = fit(split, cell, answered, seed)
    unlabeled = np.arange(split.n_labeled, len(split.rows))
    n_more = min(N_MORE, unlabeled.size // 4)
    drawn = np.random.default_rng(seed).choice(unlabeled, n_more, replace=False)
    X = split.X[unlabeled]
    asked = unlabeled[choose_rows(before.predict_proba(X), X, n_more, seed=seed)]
    found = [row | {"more": BEFORE}]
    for name, chosen in ((RANDOM, drawn), (QUEUE, asked)):
        is_new = np.isin(np.arange(len(split.rows)), chosen)
        found.append(fit(split, cell, is_new, seed, is_queue=name == QUEUE)[1] | {"more": name})
    return found


def fit(
    split: Split, cell: Row, is_new: np.ndarray, seed: int, *, is_queue: bool = False
) -> tuple[TransductiveClassifier, Row]:
    """Fit with the first labels and those of new rows, and measure the result on test rows."""
    codes = np.where(is_new, split.truth, split.marked)
    answered = is_new & is_queue
    n_classes = len(split.names)
    sampled, _ = find_sample(None, codes, answered, n_classes)
    begin = time.perf_counter()
    model = TransductiveClassifier(annealing=cell["annealing"], random_state=seed, n_jobs=1)
    model.fit(split.X, codes, sampled=sampled)
    seconds = round(time.perf_counter() - begin, 3)
    predicted, truth = (
        np.bincount(y[codes < 0], minlength=n_classes) / np.count_nonzero(codes < 0)
        for y in (model.transduction_, split.truth)
    )
    return model, {
        "n_labeled": int(np.count_nonzero(codes >= 0)),
        "macro_f": round(split.macro_f(split.predictions(model)), 5),
        "predicted_l1": l1(predicted, truth),
        "size_l1": l1(spread_over(model.size_estimate_.mean, model.classes_, n_classes), truth),
        "contradicted": int(model._contradicted),
        "seconds": seconds,
    }


def gains(rows: Sequence[Row], more: str, **values: Any) -> np.ndarray:
    """Macro F with more labels less that before, for each run with these values."""
    mine = select(rows, **values)
    f = {(*(row[key] for key in KEYS), row["more"]): row["macro_f"] for row in mine}
    runs = sorted({key[:-1] for key in f if key[-1] == more})
    return np.array([f[*run, more] - f[*run, BEFORE] for run in runs], dtype=float)


def table(rows: list[Row]) -> str:
    """One table for each annealing: before, and the gain of each kind of labels, by set."""
    parts = []
    for annealing in unique(rows, "annealing"):
        mine = select(rows, annealing=annealing)
        lines = []
        for first in unique(mine, "first"):
            for name in unique(mine, "set"):
                here = select(mine, first=first, set=name)
                before = np.mean([row["macro_f"] for row in select(here, more=BEFORE)])
                each = [scatter(gains(here, more)) for more in (RANDOM, QUEUE)]
                lines.append([first, name, number(float(before)), *each])
        n_seeds = len(unique(mine, "seed"))
        head = ["first labels", "set", "before", f"{N_MORE} more at random", f"{N_MORE} more from the queue"]
        parts += [f'annealing="{annealing}", {n_seeds} split{"" if n_seeds == 1 else "s"}.', markdown(head, lines)]
    return "\n\n".join(parts)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own target: the mean of a set never falls; in part where it falls by no more than `SLACK`."""
    found = []
    for annealing in unique(rows, "annealing"):
        for first in unique(rows, "first"):
            for more in (RANDOM, QUEUE):
                here = select(rows, annealing=annealing, first=first)
                means = {name: float(gains(here, more, set=name).mean()) for name in unique(here, "set")}
                if means:
                    found.append(_verdict(means, annealing, first, more))
    return found


def _verdict(means: dict[str, float], annealing: str, first: str, more: str) -> Verdict:
    """The set with the smallest mean gain decides."""
    worst = min(means, key=lambda name: means[name])
    falls = ", ".join(f"{name} {value:+z.3f}" for name, value in means.items() if value < 0)
    word = AGREES if not falls else PARTLY if means[worst] >= -SLACK else DIFFERS
    labels = {RANDOM: "drawn at random", QUEUE: "from the queue"}[more]
    beginning = {"by class": "five labels of each class", "random": "80 random labels"}[first]
    claim = f'{N_MORE} labels {labels} after {beginning} lower the mean of no set (annealing="{annealing}")'
    return Verdict(claim, OWN, f"least gain {means[worst]:+z.3f} ({worst})", word, f"Lower: {falls}." if falls else "")
