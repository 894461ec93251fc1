"""Claims in the text of the paper, measured during fits: rounds, distance from the optimum, time, descent.

Every label step of a fit by switching is also solved exactly. A loop of Algorithm 2 is one pass through its steps 2 to
12, the last of which finds nothing to switch. Two classes: gcat, and comp.* against the rest of 20 newsgroups.
"""

import time
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.data import Source, Split
from experiments.methods import fit
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, summary, unique
from transduce.label_step import Exact, LabelProblem, LabelSolution, Switching

ALONE = True
KEYS = ("set", "seed")
RESULTS = (
    "n_classes", "n_steps", "loops", "loops_moved", "loops_first", "fall_of_3", "excess", "excess_max", "rise",
    "f_switching", "f_exact", "f_supervised", "seconds", "seconds_labels", "seconds_supervised",
)  # fmt: skip
N_LABELED = {"ohscal": 100, "la1": 80, "r8": 80, "news20_train": 100, "usps": 80, "gcat": 100, "comp": 100}
TWO_CLASSES = ("gcat", "comp")
N_SEEDS, REPEATS = 3, 3


class Watched:
    """Label switching that is compared, at every call, with the optimum and with three loops of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, float, float]] = []
        self.seconds = 0.0

    def solve(self, problem: LabelProblem, prices: Any = None, start: Any = None) -> LabelSolution:
        begin = time.perf_counter()
        answer = Switching().solve(problem, prices, start)
        self.seconds += time.perf_counter() - begin
        best, three = Exact().solve(problem, None, start), Switching(3).solve(problem, prices, start)
        excess = (answer.cost - best.cost) / best.cost if best.cost > 0 else 0.0
        fall = float(problem.costs[np.arange(problem.n_rows), start].sum()) - answer.cost
        self.calls.append((answer.n_rounds, excess, 1.0 - (three.cost - answer.cost) / fall if fall > 0 else 1.0))
        return answer


def grid(smoke: bool) -> list[Row]:
    sets, seeds = (("ohscal", "gcat"), range(1)) if smoke else (N_LABELED, range(N_SEEDS))
    return [{"set": name, "seed": seed} for name in sets for seed in seeds]


def run(source: Source, cell: Row) -> list[Row]:
    name, seed = cell["set"], cell["seed"]
    data = source.binary(name) if name in TWO_CLASSES else source.load(name)
    split = Split(*data, seed, N_LABELED[name])
    watched = Watched()
    model, _ = fit(split, "paper", seed, label_step=watched)
    rounds, excess, of_three = map(np.array, zip(*watched.calls, strict=True))
    moved = rounds > 0
    times = {m: min(fit(split, m, seed)[1] for _ in range(REPEATS)) for m in ("paper", "all labels")}
    models = {"f_switching": model, "f_exact": fit(split, "paper", seed, label_step="exact")[0]}
    models["f_supervised"] = fit(split, "supervised", seed)[0]
    row = {
        "n_classes": len(split.names),
        "n_steps": rounds.size,
        "loops": round(float(rounds.mean()) + 1.0, 3),
        "loops_moved": round(float(rounds[moved].mean()) + 1.0, 3) if moved.any() else 1.0,
        "loops_first": int(rounds[0]) + 1,
        "fall_of_3": round(float(of_three[moved].mean()), 5) if moved.any() else 1.0,
        "excess": float(excess.mean()),
        "excess_max": float(excess.max()),
        "rise": largest_rise(model.history_),
        "seconds": round(times["paper"], 4),
        "seconds_labels": round(watched.seconds, 4),
        "seconds_supervised": round(times["all labels"], 4),
    }
    return [row | {key: round(split.macro_f(split.predictions(m)), 5) for key, m in models.items()}]


def largest_rise(history: list[Any]) -> float:
    """Largest relative increase of J from one round to the next within a stage; 0 if it never increases."""
    pairs = [(a, b) for a, b in pairwise(history) if a.stage == b.stage]
    return max([0.0, *((b.objective - a.objective) / abs(a.objective) for a, b in pairs)])


def table(rows: list[Row]) -> str:
    lines = []
    for name in unique(rows, "set"):
        mean = {key: summary(rows, key, set=name).mean for key in RESULTS}
        times = f"{mean['seconds']:.2g} s and {mean['seconds_supervised']:.2g} s"
        loops = [f"{mean[key]:.1f}" for key in ("n_steps", "loops", "loops_moved", "loops_first")]
        scores = [number(mean[key]) for key in ("f_switching", "f_exact")]
        lines.append([name, *loops, f"{mean['excess']:.1e}", f"{mean['excess_max']:.1e}", *scores, times])
    head = ["set", "label steps", "loops of switching", "where rows move", "in the first step", "mean excess",
            "largest", "macro F, switching", "exact", "the whole and one supervised fit"]  # fmt: skip
    return markdown(head, lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    two = [row for row in rows if row["n_classes"] == 2]
    many = [row for row in rows if row["n_classes"] > 2]
    of_many = [_loops(many), _close(many), _crucial(many)] if many else []
    return [*of_many, *([_optimal(two)] if two else []), _cost(rows), _descent(rows)]


def _each(rows: list[Row], value: Any) -> dict[str, float]:
    """A number for each set."""
    return {name: value(select(rows, set=name)) for name in unique(rows, "set")}


def _described(each: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in each.items())


def _loops(rows: list[Row]) -> Verdict:
    moved, first = (_each(rows, lambda r, key=key: summary(r, key).mean) for key in ("loops_moved", "loops_first"))
    mean, of_three = summary(rows, "loops_moved").mean, summary(rows, "fall_of_3").mean
    is_about = 2.0 <= mean <= 4.0
    return Verdict(
        "A typical run of switching takes about 3 loops",
        "about 3",
        f"{mean:.1f} on average over label steps in which rows move: {_described(moved, '.1f')}; in the first "
        f"label step {_described(first, '.0f')}; {summary(rows, 'loops').mean:.1f} over all label steps",
        AGREES if is_about else PARTLY if of_three > 0.9 else DIFFERS,
        "" if is_about else f"Three loops achieve {of_three:.1%} of the decrease of the cost; the rest run until no "
        "switch is left.",
    )  # fmt: skip


def _close(rows: list[Row]) -> Verdict:
    mean, worst = _each(rows, lambda r: summary(r, "excess").mean), max(row["excess_max"] for row in rows)
    return Verdict(
        "With three classes or more, switching ends very close to the optimum",
        "very close",
        f"above it by a fraction of {_described(mean, '.1e')} on average, at most {worst:.1e}",
        AGREES if worst < 0.01 else PARTLY if max(mean.values()) < 0.01 else DIFFERS,
    )


def _optimal(rows: list[Row]) -> Verdict:
    worst = max(row["excess_max"] for row in rows)
    ours = f"at most {worst:.1e} above the optimum in {sum(row['n_steps'] for row in rows)} label steps"
    return Verdict("With two classes switching is optimal", "optimal", ours, AGREES if worst < 1e-9 else DIFFERS)


def _cost(rows: list[Row]) -> Verdict:
    ratio = _each(rows, lambda r: summary(r, "seconds").mean / summary(r, "seconds_supervised").mean)
    of_labels = summary(rows, "seconds_labels").mean / summary(rows, "seconds").mean
    low, high = min(ratio.values()), max(ratio.values())
    reasons = []
    if low < 2:
        reasons.append(f"Below 2: {', '.join(_seconds(rows, name) for name, value in ratio.items() if value < 2)}.")
    if high > 6:
        reasons.append(f"Above 6: {', '.join(_seconds(rows, name) for name, value in ratio.items() if value > 6)}.")
    if reasons:
        reasons.append(f"Label steps are {of_labels:.0%} of the time of all sets together.")
    return Verdict(
        "The whole costs about 3 to 5 times a supervised problem on the labelled and unlabelled rows",
        "3 to 5",
        _described(ratio, ".1f"),
        AGREES if low >= 2 and high <= 6 else PARTLY if np.median(list(ratio.values())) <= 6 else DIFFERS,
        " ".join(reasons),
    )


def _seconds(rows: list[Row], name: str) -> str:
    mean = {key: summary(rows, key, set=name).mean for key in ("n_steps", "seconds", "seconds_supervised")}
    return (
        f"{name} {mean['seconds']:.2g} s with {mean['n_steps']:.0f} label steps against "
        f"{mean['seconds_supervised']:.2g} s"
    )


def _descent(rows: list[Row]) -> Verdict:
    worst = max(row["rise"] for row in rows)
    ours = "no rise from one round to the next" if worst == 0 else f"a rise of {worst:.1e} at most"
    claim = "The algorithm converges: the objective falls within each value of C"
    word = AGREES if worst < 1e-12 else PARTLY if worst < 1e-3 else DIFFERS
    reason = "By construction: a label step that does not lower J is refused, a weight step goes as far as lowers it."
    return Verdict(claim, "convergent", ours, word, reason)


def _crucial(rows: list[Row]) -> Verdict:
    gain = _each(rows, lambda r: summary(r, "f_exact").mean - summary(r, "f_switching").mean)
    lift = _each(rows, lambda r: summary(r, "f_switching").mean - summary(r, "f_supervised").mean)
    largest, mean = max(gain.values(), key=abs), float(np.mean(list(gain.values())))
    return Verdict(
        "Reaching true optimality is not crucial",
        "not crucial",
        f"macro F with exact labels less that with switching: {_described(gain, '+.3f')}, on average {mean:+.3f}; over "
        f"supervised learning switching gains {float(np.mean(list(lift.values()))):+.3f}",
        AGREES if abs(mean) < 0.01 and abs(largest) < 0.03 else PARTLY if abs(mean) < 0.03 else DIFFERS,
    )
