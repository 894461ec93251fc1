"""Pictures of a fit: what labels are worth, which sizes the classes got, and where sizes and documents disagree.

Each function draws on the Axes it is given, or on new ones, and returns them; showing and saving is left to the caller.
They need matplotlib, which is in the extra `app`.

>>> import matplotlib
>>> matplotlib.use("agg")
>>> from transduce import TransductiveClassifier
>>> from transduce.testing import blobs
>>> X, truth, y = blobs()
>>> clf = TransductiveClassifier(class_prior={0: (0.4, 0.6), 1: None, 2: 0.2}, random_state=0).fit(X, y)
>>> plot_counts(clf).get_xlabel(), plot_prices(clf).get_xlabel()
('share of rows', 'price: what the class pays rows to come')
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from transduce.label_step.count_tree import CountTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]

BLUE, ORANGE, INK = "#3b6ea8", "#d98a2b", "#222222"


def plot_learning_curve(
    curve: Any, scores: ArrayLike | None = None, *, ax: "Axes | None" = None, label: str | None = None
) -> "Axes":
    """Draw the mean score against the number of labels, and a band of one standard deviation of the repeats.

    curve is what `model_selection.learning_curve` returns; or numbers of labels (n_sizes,), with scores (n_sizes,) or
    (n_sizes, n_repeats). Call it again with the same Axes and another label to compare.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = plot_learning_curve([20, 40, 80], [[0.5, 0.6], [0.6, 0.7], [0.7, 0.7]], label="supervised")
    >>> ax.lines[0].get_ydata().round(2)
    array([0.55, 0.65, 0.7 ])
    """
    sizes, table = _curve(curve, scores)
    ax = _axes() if ax is None else ax
    mean, std = table.mean(axis=1), table.std(axis=1)
    (line,) = ax.plot(sizes, mean, marker="o", label=label)
    if table.shape[1] > 1:
        ax.fill_between(sizes, mean - std, mean + std, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set_xlabel("labels")
    ax.set_ylabel(SCORES.get(getattr(curve, "scoring", "f1_macro"), "score"))
    if label is not None:
        ax.legend()
    return ax


def plot_counts(clf: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw, for each class, the shares asked for (a tick or a span), of the labelled rows, and of those assigned.

    A size that was left open has no mark. Branches with a size have bars of their own, below the classes.
    """
    model = _fitted(clf)
    assigned, labeled = (_with_branches(model, counts) for counts in (model.class_counts_, labeled_counts(model)))
    n_rows, n_labeled = max(int(model.class_counts_.sum()), 1), max(int(labeled_counts(model).sum()), 1)
    rows = np.arange(assigned.size)
    ax = _class_axes(model) if ax is None else ax
    ax.barh(rows - 0.2, assigned / n_rows, 0.4, color=BLUE, label="assigned")
    ax.barh(rows + 0.2, labeled / n_labeled, 0.4, color=ORANGE, label="labelled")
    groups = model.bounds_.groups
    low, high = (
        np.append(bound, [] if groups is None else of_groups) / n_rows
        for bound, of_groups in (
            (model.bounds_.low, groups and groups.low),
            (model.bounds_.high, groups and groups.high),
        )
    )
    asked = np.flatnonzero((low > 0) | (high < 1))
    if asked.size:
        low, high = low[asked], np.minimum(high[asked], 1.0)
        ends = np.vstack((np.zeros_like(low), high - low))
        ax.errorbar(low, rows[asked] - 0.2, xerr=ends, fmt="|", color=INK, markersize=9, capsize=4, label="asked")
    ax.set_xlabel("share of rows")
    ax.legend()
    return _name_classes(ax, model)


def plot_prices(clf: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the price of each class: far from 0 is where the sizes asked for and the documents disagree.

    Where branches have sizes, the price of a branch is drawn once, below the classes, and those of its classes without
    it; the sum of both is what a row pays.
    """
    model = _fitted(clf)
    prices = _own_prices(model)
    ax = _class_axes(model) if ax is None else ax
    ax.barh(np.arange(prices.size), prices, 0.7, color=np.where(prices < 0, ORANGE, BLUE).tolist())
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_xlabel("price: what the class pays rows to come")
    return _name_classes(ax, model)


def _own_prices(model: Any) -> Array:
    """Prices of classes, then of branches, each without those of the branches above."""
    prices, bounds = np.asarray(model.prices_, dtype=np.float64), model.bounds_
    if bounds.groups is None:
        return prices
    tree = CountTree.create(bounds, int(model.class_counts_.sum()), implied_groups=True)
    return tree.differences(tree.potentials(prices))


def _with_branches(model: Any, counts: Array) -> Array:
    """Counts of classes, then of branches that have a size."""
    groups = model.bounds_.groups
    return counts if groups is None else np.append(counts, groups.members(counts.size) @ counts)


SCORES = {"f1_macro": "macro F", "f1_micro": "micro F", "accuracy": "accuracy"}


def labeled_counts(model: Any) -> Array:
    """Labelled rows of each class: all rows of its label, less those that were assigned it."""
    index = {name: k for k, name in enumerate(model.classes_.tolist())}
    labels = [index[name] for name in model.transduction_.tolist()]
    return np.asarray(np.bincount(labels, minlength=len(index)) - model.class_counts_)


def _curve(curve: Any, scores: ArrayLike | None) -> tuple[Array, Array]:
    sizes = np.asarray(getattr(curve, "sizes", curve))
    table = np.asarray(getattr(curve, "scores", scores), dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if sizes.ndim != 1 or table.ndim != 2 or len(table) != sizes.size:
        raise ValueError(
            f"scores must have one row for each of the sizes, but have shape {table.shape} and sizes {sizes.shape}. "
            "Pass what learning_curve returns, or both arrays."
        )
    order = np.argsort(sizes, kind="stable")
    return sizes[order], table[order]


def _fitted(clf: Any) -> Any:
    """The classifier itself: the last step of a pipeline, the best model of a search."""
    clf = getattr(clf, "best_estimator_", clf)
    clf = clf.steps[-1][1] if hasattr(clf, "steps") else clf
    clf = getattr(clf, "best_estimator_", clf)
    check_is_fitted(clf)
    return clf


def _class_axes(model: Any) -> "Axes":
    return _axes(height=1.2 + 0.3 * _with_branches(model, model.class_counts_).size)


def _axes(height: float = 4.0) -> "Axes":
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib, which is in the extra app; run: pip install 'transduce[app]'"
        ) from error
    ax: Axes = pyplot.subplots(figsize=(6.4, height), layout="constrained")[1]
    return ax


def _name_classes(ax: "Axes", model: Any) -> "Axes":
    """One row a class, the first at the top, then branches; names stand as they are, whatever signs they hold."""
    names = ["/".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in model.classes_.tolist()]
    if model.bounds_.groups is not None:
        names += [f"{name}/…" for name in model.bounds_.groups.names]
    ax.set_yticks(np.arange(len(names)), [name.replace("$", r"\$") for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    return ax
