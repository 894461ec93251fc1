"""Maxent methods on two binary problems: F of the first class against the number of labels.

gcat against the rest; and comp.* against the rest of 20 newsgroups, because aut-avn was not available. Half of the rows
are unlabelled, labels come from a pool of 512, the rest is test; true class sizes. alpha is 1e-4, which suits rows of
unit length, and 1e-6, about the paper's λ = 1e-3 for a sum of losses. Slow methods have fewer cells.
"""

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import f1_score

import transduce
from experiments.data import Source, Split
from experiments.methods import fit
from experiments.study import (
    AGREES,
    DIFFERS,
    NOT_EVERYWHERE,
    PARTLY,
    Row,
    Verdict,
    add_legend,
    markdown,
    panels_of,
    select,
    spread,
    summary,
    unique,
)

KEYS, RESULTS = ("set", "alpha", "n_labeled", "seed", "method"), ("f", "seconds")
SIZES, FEWER, POOL = (16, 32, 64, 128, 256, 512), (32, 128, 512), 512
N_SEEDS, N_FEWER = 10, 5
ALPHAS = (1e-4, 1e-6)
CLOSE = 0.05
PAPER_SHOWS = (
    "F of the first class on gcat and aut-avn against the number of labels, up to 512, for the supervised classifier "
    "and four methods with maxent loss; the colours are those of our picture. The text refers to it as Figure 4."
)
COMPARED = {
    "entropy": "EntropyRegularizedClassifier",
    "expectation": "ExpectationConstrainedClassifier",
    "posterior": "PosteriorRegularizedClassifier",
}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "supervised": ("supervised", {"color": "black", "linestyle": "--"}),
    "paper": ("the paper's method", {"color": "black"}),
    "entropy": ("entropy regularisation", {"color": "tab:green", "marker": "."}),
    "expectation": ("expectation constraint", {"color": "tab:red"}),
    "posterior": ("posterior regularisation", {"color": "tab:blue"}),
    "default": ("soft annealing", {"color": "tab:purple", "marker": "."}),
    "all labels": ("all labels known", {"color": "tab:red", "linestyle": "--"}),
}
"""What each is called, and its line: colours of the paper, and ours beside them."""


def grid(smoke: bool) -> list[Row]:
    sets, sizes, n_seeds = (("gcat",), (32,), 1) if smoke else (("gcat", "comp"), SIZES, N_SEEDS)
    cells = [
        {"set": name, "alpha": alpha, "n_labeled": size, "seed": seed, "method": method}
        for name in sets
        for alpha in ALPHAS
        for seed in range(n_seeds)
        for size in sizes
        for method in METHODS
    ]
    return [cell for cell in cells if _is_wanted(cell, max(sizes))]


def _is_wanted(cell: Row, largest: int) -> bool:
    """All labels are known once a split; slow methods go without some sizes and splits, ours without one alpha."""
    is_fewer = cell["n_labeled"] in FEWER and cell["seed"] < N_FEWER
    match cell["method"]:
        case "all labels":
            return cell["n_labeled"] == largest
        case "default":
            return is_fewer and cell["alpha"] == ALPHAS[0]
        case "entropy":
            return is_fewer or cell["alpha"] == ALPHAS[0]
    return True


def run(source: Source, cell: Row) -> list[Row]:
    X, y = source.binary(cell["set"])
    pool = min(POOL, len(y) // 5)
    method, seed, n_labeled = cell["method"], cell["seed"], min(cell["n_labeled"], pool)
    split = Split(X, y, seed, None if method == "all labels" else n_labeled, pool=pool)
    if method in COMPARED:
        kind = getattr(transduce, COMPARED[method])
        model = kind(alpha=cell["alpha"], class_prior=split.sizes, random_state=seed, n_jobs=1)
        begin = time.perf_counter()
        model.fit(split.X, split.marked)
        seconds = time.perf_counter() - begin
    else:
        model, seconds = fit(split, method, seed, loss="maxent", alpha=cell["alpha"])
    f = f1_score(y[split.test], split.predictions(model), pos_label=0, zero_division=0)
    return [{"f": round(float(f), 5), "seconds": round(seconds, 4)}]


def sizes_of(rows: list[Row], method: str) -> list[int]:
    return sorted(set(unique(select(rows, method=method), "n_labeled")))


def cases(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Rows of each set and alpha, and what they are called."""
    keys = dict.fromkeys((row["set"], row["alpha"]) for row in rows)
    return [
        (f"{name}, alpha {np.format_float_positional(alpha)}", select(rows, set=name, alpha=alpha))
        for name, alpha in keys
    ]


def plot(rows: list[Row]) -> Figure:
    found = cases(rows)
    figure, panels = panels_of(len(found))
    for panel, (title, mine) in zip(panels, found, strict=True):
        for method, (text, style) in METHODS.items():
            sizes = sizes_of(mine, method)
            means = [summary(mine, "f", method=method, n_labeled=n).mean for n in sizes]
            if method == "all labels" and sizes:
                panel.axhline(means[0], label=text, **style)
            elif sizes:
                panel.plot(sizes, means, label=text, **style)
        every = sorted(set(unique(mine, "n_labeled")))
        panel.set_xscale("log")
        panel.set_xticks(every, [str(size) for size in every])
        panel.minorticks_off()
        panel.set_xlabel("labels", fontsize=8)
        panel.set_ylabel("F of the first class", fontsize=8)
        panel.set_title(title, fontsize=9)
    add_legend(figure)
    return figure


def table(rows: list[Row]) -> str:
    lines = []
    for title, mine in cases(rows):
        for method, (text, _) in METHODS.items():
            sizes = sizes_of(mine, method)
            each = ", ".join(f"{n}: {spread(summary(mine, 'f', method=method, n_labeled=n))}" for n in sizes)
            if sizes:
                lines.append([title, text, each, f"{summary(mine, 'seconds', method=method).mean:.2g}"])
    return markdown(["set", "method", "F of the first class against labels", "seconds"], lines)


def margins(rows: list[Row], one: str, other: str) -> np.ndarray:
    """By how much one method is above the other for each number of labels, on splits that both have."""
    both = [{(r["n_labeled"], r["seed"]): r["f"] for r in select(rows, method=method)} for method in (one, other)]
    shared = sorted(both[0].keys() & both[1].keys())
    sizes = sorted({size for size, _ in shared})
    return np.array([np.mean([both[0][key] - both[1][key] for key in shared if key[0] == size]) for size in sizes])


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for title, mine in cases(rows):
        each = [
            {(r["n_labeled"], r["seed"]) for r in select(mine, method=m)} for m in ("supervised", "paper", *COMPARED)
        ]
        if set.intersection(*each):
            found += [_close(title, mine), *_better(title, mine), _lift(title, mine)]
    return found


def _close(title: str, rows: list[Row]) -> Verdict:
    ahead = margins(rows, "expectation", "posterior")
    is_close, is_ahead = abs(ahead.mean()) < CLOSE, ahead.mean() >= 0
    return Verdict(
        f"{title}: expectation constraint and posterior regularisation are close, the latter slightly inferior",
        "close",
        f"the latter behind by {ahead.min():+z.3f} to {ahead.max():+z.3f}, on average {ahead.mean():+z.3f}",
        AGREES if is_close and is_ahead else PARTLY if is_close or is_ahead else DIFFERS,
        "" if is_close and is_ahead else f"It is behind at {np.sum(ahead > 0)} of {ahead.size} numbers of labels.",
        NOT_EVERYWHERE if 0 < np.sum(ahead > 0) < ahead.size else "",
    )


def _better(title: str, rows: list[Row]) -> list[Verdict]:
    pairs = {(a, b): margins(rows, a, b) for a in ("entropy", "paper") for b in ("expectation", "posterior")}
    best, ahead = np.concatenate(list(pairs.values())), margins(rows, "entropy", "paper")
    is_best, is_slight = best.min() > 0 and best.mean() > 0.03, 0 < ahead.mean() < 0.06
    each = "; ".join(f"{METHODS[a][0]} less {METHODS[b][0]} {m.mean():+z.3f}" for (a, b), m in pairs.items())
    return [
        Verdict(
            f"{title}: both are quite inferior to entropy regularisation and the paper's method",
            "quite inferior",
            f"by {best.min():z.3f} to {best.max():z.3f}, on average {best.mean():z.3f}",
            AGREES if is_best else PARTLY if best.mean() > 0 else DIFFERS,
            "" if is_best else f"On average: {each}.",
        ),
        Verdict(
            f"{title}: the paper's method is slightly inferior to entropy regularisation",
            "slightly inferior",
            f"by {ahead.min():z.3f} to {ahead.max():z.3f}, on average {ahead.mean():z.3f}",
            AGREES if is_slight else PARTLY if ahead.max() > 0 else DIFFERS,
            "" if is_slight else f"{ahead[0]:+z.3f} at the fewest labels, {ahead[-1]:+z.3f} at the most.",
        ),
    ]


def _lift(title: str, rows: list[Row]) -> Verdict:
    """In part where a method is below at some size; not at all where half of them are below on average."""
    lifts = {method: margins(rows, method, "supervised") for method in ("paper", *COMPARED)}
    below = [METHODS[method][0] for method, lift in lifts.items() if lift.min() < 0]
    on_average = [METHODS[method][0] for method, lift in lifts.items() if lift.mean() < 0]
    reason = (
        f"Below supervised learning at some size: {', '.join(below)}; on average: {', '.join(on_average) or 'none'}."
    )
    return Verdict(
        f"{title}: all four lift supervised learning quite well",
        "all four",
        "; ".join(f"{METHODS[m][0]} {lift.min():+z.3f} to {lift.max():+z.3f}" for m, lift in lifts.items()),
        AGREES if not below else DIFFERS if 2 * len(on_average) >= len(lifts) else PARTLY,
        reason if below else "",
        NOT_EVERYWHERE if below else "",
    )
