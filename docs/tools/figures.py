"""Figures of the documentation, drawn from real fits on the built-in corpus. Each function draws one.

Usage: python docs/tools/figures.py docs/figures [NAME ...]
"""

import sys
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot
from sklearn.calibration import calibration_curve
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay, f1_score

from transduce import TransductiveClassifier, solve_labels
from transduce.datasets import load_clinc150
from transduce.losses import LargeMargin
from transduce.placement import place_points
from transduce.plots import BLUE, INK, ORANGE, plot_counts, plot_learning_curve, plot_prices

N_LABELED = 100
METHODS = {"greedy": "greedy", "single_switch": "one switch", "multi_switch": "one pass", "switching": "switching"}


@cache
def requests():
    """Return features, true domains and y of 3 789 requests in ten domains of uneven size, 100 with a label."""
    texts, labels, _ = load_clinc150()
    domains, rng = np.array([label.split("/")[0] for label in labels]), np.random.default_rng(0)
    sizes = np.geomspace(900, 100, 10).astype(int)
    parts = [rng.choice(np.flatnonzero(domains == name), size, replace=False)
             for name, size in zip(np.unique(domains), sizes, strict=True)]  # fmt: skip
    rows = rng.permutation(np.concatenate(parts))
    truth = domains[rows]
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts[rows])
    return X, truth, np.where(np.arange(rows.size) < N_LABELED, truth, "")


@cache
def fitted(prior="estimate"):
    """Return the classifier fitted to the requests: default settings, class sizes estimated or exact."""
    X, truth, y = requests()
    names, counts = np.unique(truth[y == ""], return_counts=True)
    sizes = dict(zip(names.tolist(), counts.tolist(), strict=True)) if prior == "exact" else prior
    return TransductiveClassifier(class_prior=sizes, random_state=0).fit(X, y)


def new_axes(height=3.4, n_panels=1):
    """Return empty axes, or an array of them side by side."""
    return pyplot.subplots(1, n_panels, figsize=(7.2, height), layout="constrained")[1]


def learning_curve():
    """Macro F on the unlabelled rows against the number of labels, with and without the unlabelled rows."""
    X, truth, _ = requests()
    sizes, ax = [40, 80, 160, 320], new_axes()
    scores = np.empty((2, len(sizes), 3))
    for i, size in enumerate(sizes):
        for repeat in range(3):
            known = np.isin(np.arange(truth.size), np.random.default_rng(repeat).permutation(truth.size)[:size])
            clf = TransductiveClassifier(annealing="paper", random_state=0)
            for method, rows in enumerate((known, np.full(truth.size, True))):
                clf.fit(X[rows], np.where(known, truth, "")[rows])
                scores[method, i, repeat] = f1_score(truth[~known], clf.predict(X[~known]), average="macro")
    plot_learning_curve(sizes, scores[1], ax=ax, label="labelled and unlabelled rows")
    return plot_learning_curve(sizes, scores[0], ax=ax, label="labelled rows alone")


def class_sizes():
    """Class sizes: labelled and assigned."""
    return plot_counts(fitted())


def prices():
    """Prices of the class sizes, which are exact here."""
    return plot_prices(fitted("exact"))


def document_map():
    """Map of the documents, as in the report: sure ones far out, similar classes side by side."""
    (X, _, _), clf, ax = requests(), fitted(), new_axes(5.2)
    points, codes = place_points(clf.decision_function(X), X), np.searchsorted(clf.classes_, clf.transduction_)
    for k, name in enumerate(clf.classes_):
        ax.scatter(*points[codes == k].T, s=4, color=pyplot.colormaps["tab10"](k), label=name)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.figure.legend(loc="outside right center", frameon=False, markerscale=3)
    return ax


def confusion():
    """Confusion of the new labels with the truth, each line as fractions of the true class."""
    (_, truth, y), clf, ax = requests(), fitted(), new_axes(5.6)
    new = y == ""
    ConfusionMatrixDisplay.from_predictions(
        truth[new], clf.transduction_[new], normalize="true", values_format=".2f", cmap="Blues", ax=ax,
        xticks_rotation="vertical", colorbar=False, text_kw={"fontsize": 7},
    )  # fmt: skip
    return ax


def calibration():
    """How many new labels are right, against their confidence, in ten groups of the same size."""
    (_, truth, y), clf, ax = requests(), fitted(), new_axes()
    new = y == ""
    right = clf.transduction_[new] == truth[new]
    confidence = clf.label_distributions_[new].max(axis=1)
    fraction, mean = calibration_curve(right, confidence, n_bins=10, strategy="quantile")
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--", label="perfect")
    ax.plot(mean, fraction, marker="o", color=BLUE, label="new labels")
    ax.set(xlabel="confidence", ylabel="fraction right", xlim=(0, 1), ylim=(0, 1))
    ax.legend()
    return ax


def annealing_history():
    """Objective and temperature in each round of each restart."""
    left, right = new_axes(3.2, 2)
    rounds = [row for row in fitted("exact").history_ if row.stage > 0]
    for restart in sorted({row.restart for row in rounds}):
        rows, name = [row for row in rounds if row.restart == restart], "the paper's" if restart == 0 else "soft"
        left.plot([row.objective for row in rows], label=f"restart {restart + 1}, {name}")
        right.plot([row.temperature for row in rows])
    left.set(xlabel="round", ylabel="objective")
    right.set(xlabel="round", ylabel="temperature of the labels")
    left.legend()
    return left


def beliefs():
    """Size of one class in the result against the size that was stated for it, as a belief and exactly."""
    (X, truth, y), ax = requests(), new_axes()
    name, stated = "banking", np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
    for exact, label, color in ((False, "rough: 0.2", BLUE), (True, 'exact: "=20%"', ORANGE)):
        sizes = []
        for size in stated:
            prior = {name: f"={size:.0%}" if exact else float(size)}
            clf = TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)
            sizes.append(np.mean(clf.transduction_[y == ""] == name))
        ax.plot(stated, sizes, marker="o", color=color, label=label)
    ax.axhline(np.mean(truth[y == ""] == name), color=INK, linewidth=0.8, linestyle="--", label="true size")
    ax.set(xlabel=f"stated size of {name}", ylabel="size in the result")
    ax.legend()
    return ax


def size_estimate():
    """True class sizes, those of the hundred labels, and the estimate with its 90 % interval."""
    (_, truth, y), estimate, ax = requests(), fitted().size_estimate_, new_axes(3.8)
    names, rows = np.unique(truth), np.arange(10)
    labeled = [np.mean(truth[y != ""] == name) for name in names]
    ends = np.vstack((estimate.mean - estimate.low, estimate.high - estimate.mean))
    ax.errorbar(estimate.mean, rows, xerr=ends, fmt="o", color=BLUE, capsize=3, label="estimate")
    ax.plot(labeled, rows, "D", color=ORANGE, label="labels")
    ax.plot([np.mean(truth[y == ""] == name) for name in names], rows, "|", color=INK, markersize=14, label="truth")
    ax.set_yticks(rows, names)
    ax.invert_yaxis()
    ax.set_xlabel("fraction of rows")
    ax.legend()
    return ax


def label_costs(names=None):
    """Return the costs of all labels for the unlabelled rows, at weights learnt from the labelled rows alone."""
    X, truth, y = requests()
    rows = np.isin(truth, names if names else np.unique(truth))
    X, y = X[rows], y[rows]
    clf = TransductiveClassifier(random_state=0, annealing="paper").fit(X[y != ""], y[y != ""])
    scores = clf.decision_function(X[y == ""])
    scores = np.column_stack((-scores, scores)) / 2 if scores.ndim == 1 else scores
    return LargeMargin().label_costs(scores), np.unique(truth[rows][y == ""], return_counts=True)[1]


def two_classes():
    """The label step for two classes: sort the rows by the difference of their costs and cut at the count."""
    costs, counts = label_costs(["banking", "work"])
    difference, price = np.sort(costs[:, 0] - costs[:, 1]), np.subtract(*solve_labels(costs, counts).prices)
    ax, first = new_axes(), np.arange(len(costs)) < counts[0]
    ax.plot(difference, color=INK)
    for rows, name, color in ((first, "banking", BLUE), (~first, "work", ORANGE)):
        ax.fill_between(np.arange(rows.size), difference, price, where=rows, color=color, alpha=0.3,
                        label=f"gets {name}")  # fmt: skip
    ax.axvline(counts[0], color=INK, linewidth=0.8, linestyle="--", label="count of banking")
    ax.axhline(price, color=INK, linewidth=0.8, linestyle=":", label="difference of the prices")
    ax.axhline(0, color=INK, linewidth=0.4)
    ax.set(xlabel="rows, sorted", ylabel="cost of banking − cost of work")
    ax.legend()
    return ax


def price_and_count():
    """Price of one class against its count, at the same costs; the other counts change in proportion."""
    (costs, counts), ax = label_costs(), new_axes()
    sizes = np.linspace(0.4, 1.8, 15)
    found = []
    for size in sizes:
        n_first = round(size * counts[1])
        others = np.delete(counts, 1) * (counts.sum() - n_first) / np.delete(counts, 1).sum()
        whole = np.diff(np.round(np.concatenate(([0], np.cumsum(others))))).astype(int)
        found.append(solve_labels(costs, np.insert(whole, 1, n_first)).prices[1])
    ax.plot(sizes * counts[1], found, marker="o", color=BLUE)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.axvline(counts[1], color=INK, linewidth=0.8, linestyle="--", label="true count")
    ax.set(xlabel="stated count of banking", ylabel="price of banking")
    ax.legend()
    return ax


def certificates():
    """Cost of the labels of each method above the lower bound that the exact prices prove."""
    (costs, counts), ax = label_costs(), new_axes(2.6)
    bound = solve_labels(costs, counts).dual_value
    gaps = [solve_labels(costs, counts, method).cost / bound - 1 for method in (*METHODS, "exact")]
    ax.barh(np.arange(5), 100 * np.maximum(gaps, 0), color=[ORANGE] * 4 + [BLUE])
    for row, gap in enumerate(gaps):
        ax.annotate(f" {100 * gap:.3f} %", (100 * max(gap, 0), row), va="center")
    ax.set_yticks(np.arange(5), [*METHODS.values(), "exact"])
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.set_xlabel("cost above the lower bound, %")
    return ax


FIGURES = {
    "learning-curve.svg": learning_curve,
    "class-sizes.svg": class_sizes,
    "prices.svg": prices,
    "map.png": document_map,
    "confusion.svg": confusion,
    "calibration.svg": calibration,
    "annealing-history.svg": annealing_history,
    "beliefs.svg": beliefs,
    "size-estimate.svg": size_estimate,
    "two-classes.svg": two_classes,
    "price-and-count.svg": price_and_count,
    "certificates.svg": certificates,
}


def main(arguments):
    """Draw the named figures, or all of them, to the folder."""
    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "transduce", "axes.spines.top": False, "axes.spines.right": False}
    folder = Path(arguments[0])
    print(f"{requests()[1].size} requests, {N_LABELED} of them labelled")
    for name in arguments[1:] or FIGURES:
        figure = FIGURES[name]().figure
        metadata = {"Date": None} if name.endswith(".svg") else {"Software": None}
        figure.savefig(folder / name, metadata=metadata, dpi=130)
        pyplot.close(figure)
        print(f"{name}: {(folder / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
