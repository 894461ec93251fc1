"""What class sizes are worth when all, some or none are known, and whether stated uncertainty holds.

Nine sets, 40 to 100 labels drawn at random, default settings. Scenarios: the supervised classifier; exact counts of the
unlabelled rows, of all classes or only of those that have a label; nothing stated; sizes from the labels; the true
fraction of the largest class, of one random class, of half of the classes; all fractions, each off by a random 20 %.
Peers know the exact counts (experiments.sized_peers). A run is hurt if its macro F is more than .01 below that of the
supervised classifier. Intervals are stated at 90 %. With more labels, sizes are known better: four times as many show
how far the lift of exact sizes can be kept.
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
from transduce.class_prior.rounding import counts_from_fractions

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
SCENARIOS = (
    "supervised", "exact", "exact known", "none", "labeled", "largest", "random", "half", "noisy", *SIZED_PEERS,
)  # fmt: skip
MORE_LABELS, N_SEEDS_MORE, SCENARIOS_MORE = 4, 5, ("supervised", "exact", "none")
NOISE, SMALLEST_FACTOR = 0.2, 0.2
HURT_BY = 0.01
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    if smoke:
        return [{"set": "r8", "n_labeled": 40, "seed": 0, "scenario": scenario} for scenario in SCENARIOS]
    return [
        {"set": name, "n_labeled": factor * n_labeled, "seed": seed, "scenario": scenario}
        for factor, n_seeds, scenarios in ((1, N_SEEDS, SCENARIOS), (MORE_LABELS, N_SEEDS_MORE, SCENARIOS_MORE))
        for seed in range(n_seeds)
        for name, n_labeled in N_LABELED.items()
        for scenario in scenarios
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
    if scenario == "exact known":  # rows of classes without a label belong to none of the others
        known = np.unique(split.given)
        fractions = split.counts[known] / split.counts[known].sum()
        counts = counts_from_fractions(fractions, int(split.counts.sum()))
        return dict(zip(known.tolist(), counts.tolist(), strict=True))
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


def lift_kept(rows: Sequence[Row], scenario: str, best: str = "exact") -> float:
    """Fraction of the lift of exact sizes over the supervised classifier, both lifts averaged over runs."""
    lift, whole = differences(rows, scenario, "supervised"), differences(rows, best, "supervised")
    return float(lift.mean() / whole.mean()) if lift.size and whole.size else float("nan")


def lift_kept_of_known(rows: Sequence[Row], scenario: str) -> float:
    """The same if the sizes of classes without a label are not known either: nothing shows that these exist."""
    return lift_kept(rows, scenario, "exact known")


def mean_difference(rows: Sequence[Row], scenario: str) -> float:
    """Macro F less that with nothing stated, averaged over runs."""
    found = differences(rows, scenario, "none")
    return float(found.mean()) if found.size else float("nan")


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
    "The same, sizes of classes without a label unknown": lift_kept_of_known,
    "Mean difference of macro F to nothing stated": mean_difference,
    "Fraction of runs hurt": hurt,
    "Sum of absolute errors of the sizes of the predicted labels": mean_of("predicted_l1"),
    "Sum of absolute errors of the size estimate": mean_of("size_l1"),
    "Fraction of classes whose size interval covers the true size": mean_of("size_coverage"),
    "Expected calibration error of the confidence": mean_of("ece"),
    "Fraction of runs whose accuracy interval covers the true accuracy": mean_of("accuracy_covered"),
}
"""Functions of rows and a scenario; all sets together are one more group of rows."""


def table(rows: list[Row]) -> str:
    """One table for each measure that has results: scenarios by sets; with more labels, the lift that is kept."""
    rows, more = _by_labels(rows)
    sets, parts = unique(rows, "set"), [f"Splits: {len(unique(rows, 'seed'))}."]
    groups = [select(rows, set=name) for name in sets] + [rows]
    for title, measure in MEASURES.items():
        values = {scenario: [measure(group, scenario) for group in groups] for scenario in unique(rows, "scenario")}
        lines = [[name, *map(number, found)] for name, found in values.items() if not np.all(np.isnan(found))]
        if lines:
            parts += [f"{title}.", markdown(["scenario", *sets, "all sets"], lines)]
    if more:
        kept = [lift_kept(select(more, set=name), "none") for name in sets] + [lift_kept(more, "none")]
        title = f"Fraction of the lift that is kept with {MORE_LABELS} times as many labels ({N_SEEDS_MORE} splits)."
        parts += [title, markdown(["scenario", *sets, "all sets"], [["none", *map(number, kept)]])]
    return "\n\n".join(parts)


def _by_labels(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows with the usual number of labels, and those with more."""
    more = [row for row in rows if row["n_labeled"] == MORE_LABELS * N_LABELED[row["set"]]]
    return [row for row in rows if row not in more], more


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own targets; each is met in part where its miss is at most as large as `slack`."""
    rows, _ = _by_labels(rows)
    sets = unique(rows, "set")

    def worst(measure: Callable[[Sequence[Row], str], float], scenarios: Sequence[str]) -> float:
        """The least value on any set, with any of the scenarios."""
        found = [measure(select(rows, set=name), scenario) for name in sets for scenario in scenarios]
        return float(np.nanmin(found)) if np.any(np.isfinite(found)) else float("nan")

    stating, own = (*PARTIAL, "noisy"), ("none", *PARTIAL, "noisy")
    hurts = [hurt(rows, name) for name in own if select(rows, scenario=name)]
    ahead = [worst(lambda part, peer: -_ahead(part, peer), (peer,)) for peer in SIZED_PEERS]
    coverage = [mean_of(result)(rows, "none") for result in ("size_coverage", "accuracy_covered")]
    found = [
        _target("nothing stated keeps 90 % of the lift of exact sizes", lift_kept(rows, "none"), 0.9, 0.2),
        _target("stated sizes cost at most .02 on any set's mean", worst(mean_difference, stating), -0.02, 0.02),
        _target("at most 2 % of all runs are hurt", -float(np.mean(hurts)) if hurts else np.nan, -0.02, 0.03),
        _target("no peer with exact sizes is ahead by more than .01 on a set", float(np.min(ahead)), -0.01, 0.02),
        _target("size intervals of 90 % cover 85 to 95 %", -abs(coverage[0] - 0.9), -0.05, 0.05),
        _target("accuracy intervals of 90 % cover 85 to 95 %", -abs(coverage[1] - 0.9), -0.05, 0.05),
        _target("calibration error at most .05 on average", -mean_of("ece")(rows, "none"), -0.05, 0.03),
        _target("calibration error at most .10 on each set", worst(_minus_error, ("none",)), -0.1, 0.03),
    ]
    return [verdict for verdict in found if verdict is not None]


def _ahead(rows: Sequence[Row], peer: str) -> float:
    found = differences(rows, peer, "exact")
    return float(found.mean()) if found.size else float("nan")


def _minus_error(rows: Sequence[Row], scenario: str) -> float:
    return -mean_of("ece")(rows, scenario)


def _target(claim: str, value: float, least: float, slack: float) -> Verdict | None:
    """Compare a value with the least that a target asks for; None without a value."""
    if np.isnan(value):
        return None
    word = AGREES if value >= least else PARTLY if value >= least - slack else DIFFERS
    return Verdict(claim, OWN, number(abs(value) if least < 0 else value), word)
