"""What class sizes are worth when all, some or none are known, and whether stated uncertainty holds.

Nine sets, 40 to 100 labels drawn at random, default settings. Scenarios: the supervised classifier; exact counts of the
unlabelled rows; nothing stated; sizes from the labels; the true fraction of the largest class, of one random class, of
half of the classes; all fractions, each off by a random 20 %. Peers know the exact counts (experiments.sized_peers). A
run is hurt if its macro F is more than .01 below that of the supervised classifier. Intervals are stated at 90 %.
"""

import time
import zlib
from collections.abc import Callable, Sequence

import numpy as np

import benchmarks.methods
from experiments.data import Source, Split
from experiments.size_measures import l1, measures
from experiments.sized_peers import SIZED_PEERS
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, unique
from transduce import TransductiveClassifier

KEYS = ("set", "n_labeled", "seed", "scenario")
RESULTS = (
    "macro_f", "accuracy", "predicted_l1", "size_l1", "size_coverage", "accuracy_estimate", "accuracy_covered", "ece",
    "seconds",
)  # fmt: skip
N_LABELED = {
    "r8": 80, "r8_text": 80, "la1": 80, "ohscal": 100, "news20_train": 100, "webkb7": 80, "clinc150": 80, "dmoz4": 40,
    "rcv_mcat": 40,
}  # fmt: skip
N_SEEDS = 10
PARTIAL = ("largest", "random", "half")
SCENARIOS = ("supervised", "exact", "none", "labeled", "largest", "random", "half", "noisy", *SIZED_PEERS)
NOISE, SMALLEST_FACTOR = 0.2, 0.2
HURT_BY = 0.01
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [{"set": "r8", "n_labeled": 40, "seed": 0, "scenario": scenario} for scenario in SCENARIOS]
    return [
        {"set": name, "n_labeled": n_labeled, "seed": seed, "scenario": scenario}
        for seed in range(N_SEEDS)
        for name, n_labeled in N_LABELED.items()
        for scenario in SCENARIOS
    ]


def peer_code(cell: Row) -> tuple[str, ...]:
    """Files behind the cell of a peer, none for ours (experiments.versions)."""
    if cell["scenario"] not in SIZED_PEERS:
        return ()
    return "experiments/sized_peers.py", "benchmarks/methods.py", "src/transduce/label_step/**/*.py"


def run(source: Source, cell: Row) -> list[Row]:
    scenario, seed = cell["scenario"], cell["seed"]
    X, y = source.load(cell["set"])
    split = Split(X, y, seed, cell["n_labeled"])
    begin = time.perf_counter()
    if scenario in SIZED_PEERS:
        predict, model = SIZED_PEERS[scenario](benchmarks.methods.Split(X, y, cell["n_labeled"], seed)), None
    else:
        model = fit(split, scenario, seed)
        predict = model.predict
    seconds = round(time.perf_counter() - begin, 3)
    has_labels = model is not None and scenario != "supervised"
    labels = model.transduction_[split.n_labeled :] if has_labels else predict(split.X[split.n_labeled :])
    counts = np.bincount(labels, minlength=split.counts.size)
    return [
        dict.fromkeys(RESULTS)
        | {
            "macro_f": round(split.macro_f(predict(X[split.test])), 5),
            "accuracy": round(float(np.mean(labels == split.truth[split.n_labeled :])), 5),
            "predicted_l1": l1(counts / counts.sum(), split.counts / split.counts.sum()),
            "seconds": seconds,
        }
        | (measures(model, split) if has_labels else {})
    ]


def fit(split: Split, scenario: str, seed: int) -> TransductiveClassifier:
    model = TransductiveClassifier(random_state=seed, n_jobs=1)
    if scenario == "supervised":  # without an intercept it is better on every set
        return model.set_params(fit_intercept=False).fit(split.X[: split.n_labeled], split.given)
    return model.set_params(class_prior=stated(split, scenario, seed)).fit(split.X, split.marked)


def stated(split: Split, scenario: str, seed: int) -> dict[int, int] | dict[int, float] | str:
    """Value of class_prior: counts are exact, fractions are beliefs, classes that are left out are unknown."""
    if scenario in ("none", "labeled"):
        return {"none": "estimate", "labeled": "labeled"}[scenario]
    if scenario == "exact":
        return split.sizes
    rng = np.random.default_rng((seed, zlib.crc32(scenario.encode())))
    fractions = split.counts / split.counts.sum()
    if scenario == "noisy":
        fractions = fractions * np.maximum(1 + NOISE * rng.standard_normal(fractions.size), SMALLEST_FACTOR)
        fractions = fractions / fractions.sum()
        return dict(enumerate(fractions.tolist()))
    known = np.unique(split.given)  # a user states sizes of classes that have a label
    if scenario == "largest":
        chosen = [int(np.argmax(fractions))]
    else:
        n_stated = 1 if scenario == "random" else max(1, known.size // 2)
        chosen = np.sort(rng.choice(known, n_stated, replace=False)).tolist()
    return {k: float(fractions[k]) for k in chosen}


def differences(rows: Sequence[Row], scenario: str, other: str) -> np.ndarray:
    """Macro F with one scenario less that with the other, for each set and seed that has both."""
    f = {(row["set"], row["seed"], row["scenario"]): row["macro_f"] for row in rows}
    runs = sorted(key[:2] for key in f if key[2] == scenario and (*key[:2], other) in f)
    return np.array([f[*run, scenario] - f[*run, other] for run in runs], dtype=float)


def lift_kept(rows: Sequence[Row], scenario: str) -> float:
    """Fraction of the lift of exact sizes over the supervised classifier, both lifts averaged over runs."""
    lift, whole = differences(rows, scenario, "supervised"), differences(rows, "exact", "supervised")
    return float(lift.mean() / whole.mean()) if lift.size and whole.size else float("nan")


def worst(rows: Sequence[Row], scenario: str) -> float:
    found = differences(rows, scenario, "none")
    return float(found.min()) if found.size else float("nan")


def hurt(rows: Sequence[Row], scenario: str) -> float:
    found = differences(rows, scenario, "supervised")
    return float(np.mean(found < -HURT_BY)) if found.size else float("nan")


def mean_of(result: str) -> Callable[[Sequence[Row], str], float]:
    def mean(rows: Sequence[Row], scenario: str) -> float:
        found = [row[result] for row in select(rows, scenario=scenario) if row[result] not in ("", None)]
        return float(np.mean(found)) if found else float("nan")

    return mean


MEASURES: dict[str, Callable[[Sequence[Row], str], float]] = {
    "Macro F on test rows": mean_of("macro_f"),
    "Accuracy on unlabelled rows": mean_of("accuracy"),
    "Fraction of the lift of exact sizes that is kept": lift_kept,
    "Worst difference of macro F to nothing stated": worst,
    "Fraction of runs hurt": hurt,
    "Sum of absolute errors of the sizes of the predicted labels": mean_of("predicted_l1"),
    "Sum of absolute errors of the size estimate": mean_of("size_l1"),
    "Fraction of classes whose size interval covers the true size": mean_of("size_coverage"),
    "Expected calibration error of the confidence": mean_of("ece"),
    "Fraction of runs whose accuracy interval covers the true accuracy": mean_of("accuracy_covered"),
}
"""Functions of rows and a scenario; all sets together are one more group of rows."""


def table(rows: list[Row]) -> str:
    """One table for each measure that has results: scenarios by sets."""
    sets, parts = unique(rows, "set"), [f"Splits: {len(unique(rows, 'seed'))}."]
    groups = [select(rows, set=name) for name in sets] + [rows]
    for title, measure in MEASURES.items():
        values = {scenario: [measure(group, scenario) for group in groups] for scenario in unique(rows, "scenario")}
        lines = [[name, *map(number, found)] for name, found in values.items() if not np.all(np.isnan(found))]
        if lines:
            parts += [f"{title}.", markdown(["scenario", *sets, "all sets"], lines)]
    return "\n\n".join(parts)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own targets; each is met in part where its miss is at most as large as `slack`."""
    partial = [name for name in PARTIAL if select(rows, scenario=name)]
    found = [
        _target("nothing stated keeps 70 % of the lift of exact sizes", lift_kept(rows, "none"), 0.7, 0.2),
        _target("nothing stated hurts at most 5 % of runs", -hurt(rows, "none"), -0.05, 0.05),
        _target("noisy sizes keep 85 % of the lift of exact sizes", lift_kept(rows, "noisy"), 0.85, 0.2),
    ]
    for name in partial:
        gain = differences(rows, name, "none")
        value = float(gain.mean()) if gain.size else float("nan")
        found.append(_target(f"stating sizes of some classes ({name}) never costs on average", value, 0.0, 0.005))
    for title, result, slack in (
        ("size intervals of 90 % cover at least 85 % with nothing stated", "size_coverage", 0.15),
        ("accuracy intervals of 90 % cover at least 85 % with nothing stated", "accuracy_covered", 0.15),
    ):
        found.append(_target(title, mean_of(result)(rows, "none"), 0.85, slack))
    error = mean_of("ece")(rows, "none")
    found.append(_target("confidence has a calibration error of at most .05 with nothing stated", -error, -0.05, 0.05))
    return [verdict for verdict in found if verdict is not None]


def _target(claim: str, value: float, least: float, slack: float) -> Verdict | None:
    """Compare a value with the least that a target asks for; None without a value."""
    if np.isnan(value):
        return None
    word = AGREES if value >= least else PARTLY if value >= least - slack else DIFFERS
    return Verdict(claim, OWN, number(abs(value) if least < 0 else value), word)
