"""Plots of a fit: learning curves, class sizes and prices; they need matplotlib, which is in the extra `app`.

Each function draws on the Axes that you pass, or on new ones, and returns them; call `ax.figure.savefig` to save them.

Examples
--------
>>> import matplotlib
>>> matplotlib.use("agg")
>>> from transduce import TransductiveClassifier
>>> from transduce.testing import blobs
>>> X, truth, y = blobs()
>>> clf = TransductiveClassifier(class_prior={0: (0.4, 0.6), 1: None, 2: 0.2}, random_state=0).fit(X, y)
>>> plot_counts(clf).get_xlabel(), plot_prices(clf).get_xlabel()
('fraction of rows', 'price')
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from transduce.arrays import Array
from transduce.label_step.count_tree import CountTree
from transduce.suggest import install_advice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORE_NAMES = {"f1_macro": "macro F", "f1_micro": "micro F", "accuracy": "accuracy"}
BLUE, ORANGE, INK = "#3b6ea8", "#d98a2b", "#222222"


def plot_learning_curve(
    curve: Any, scores: ArrayLike | None = None, *, ax: "Axes | None" = None, label: str | None = None
) -> "Axes":
    """Plot the mean score against the number of labels, with a band of one standard deviation over the repeats.

    Parameters
    ----------
    curve : LearningCurve or array-like of shape (n_sizes,)
        Result of `model_selection.learning_curve`, or numbers of labels.
    scores : array-like of shape (n_sizes,) or (n_sizes, n_repeats), default=None
        Scores, if `curve` holds numbers of labels.
    ax : Axes, default=None
        Axes to draw on; draw on the same Axes again, with another label, to compare.
    label : str, default=None
        Name of the curve in the legend.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_learning_curve([20, 40, 80], [[0.5, 0.6], [0.6, 0.7], [0.7, 0.7]], label="supervised")
    >>> ax.lines[0].get_ydata().round(2)
    array([0.55, 0.65, 0.7 ])
    """
    sizes, table = _curve(curve, scores)
    ax = _new_axes() if ax is None else ax
    mean, std = table.mean(axis=1), table.std(axis=1)
    (line,) = ax.plot(sizes, mean, marker="o", label=label)
    if table.shape[1] > 1:
        ax.fill_between(sizes, mean - std, mean + std, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set_xlabel("labels")
    ax.set_ylabel(SCORE_NAMES.get(getattr(curve, "scoring", "f1_macro"), "score"))
    if label is not None:
        ax.legend()
    return ax


def plot_counts(clf: Any, ax: "Axes | None" = None) -> "Axes":
    """Plot the stated, labelled and assigned fraction of rows of each class.

    A stated size is a tick, a range a span; a class without a stated size has neither. Branches of the taxonomy with a
    stated size follow below the classes.

    Parameters
    ----------
    clf : estimator
        Fitted classifier, a pipeline that ends in one, or a search.
    ax : Axes, default=None
        Axes to draw on.

    Returns
    -------
    Axes
    """
    model = _fitted(clf)
    low, high, groups = model.bounds_.low, model.bounds_.high, model.bounds_.groups
    assigned, labeled = model.class_counts_, _labeled_counts(model)
    n_rows, n_labeled = max(int(assigned.sum()), 1), max(int(labeled.sum()), 1)
    if groups is not None:
        low, high = np.append(low, groups.low), np.append(high, groups.high)
        members = np.vstack((np.eye(assigned.size, dtype=int), groups.members(assigned.size)))
        assigned, labeled = members @ assigned, members @ labeled
    ax, rows = _class_axes(model, ax), np.arange(assigned.size)
    ax.barh(rows - 0.2, assigned / n_rows, 0.4, color=BLUE, label="assigned")
    ax.barh(rows + 0.2, labeled / n_labeled, 0.4, color=ORANGE, label="labelled")
    low, high = low / n_rows, np.minimum(high / n_rows, 1.0)
    stated = (low > 0) | (high < 1)
    if stated.any():
        low, high = low[stated], high[stated]
        ends = np.vstack((np.zeros_like(low), high - low))
        ax.errorbar(low, rows[stated] - 0.2, xerr=ends, fmt="|", color=INK, markersize=9, capsize=4, label="stated")
    ax.set_xlabel("fraction of rows")
    ax.legend()
    return ax


def plot_prices(clf: Any, ax: "Axes | None" = None) -> "Axes":
    """Plot the price of each class; a price far from 0 shows that the stated size and the data disagree.

    Branches with a stated size have a price of their own, below the classes; the price of a class, `prices_`, is the
    sum of its bar and those of the branches above it.

    Parameters
    ----------
    clf, ax
        As in `plot_counts`.

    Returns
    -------
    Axes
    """
    model = _fitted(clf)
    prices, ax = _own_prices(model), _class_axes(model, ax)
    ax.barh(np.arange(prices.size), prices, 0.7, color=np.where(prices < 0, ORANGE, BLUE).tolist())
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_xlabel("price")
    return ax


def _own_prices(model: Any) -> Array:
    """Return the prices of classes, then of branches, each without those of the branches above."""
    prices, bounds = np.asarray(model.prices_, dtype=np.float64), model.bounds_
    if bounds.groups is None:
        return prices
    tree = CountTree.create(bounds, int(model.class_counts_.sum()), implied_groups=True)
    return tree.differences(tree.potentials(prices))


def _labeled_counts(model: Any) -> Array:
    """Return the labelled rows of each class: all rows of the class without the assigned ones."""
    index = {name: k for k, name in enumerate(model.classes_.tolist())}
    labels = [index[name] for name in model.transduction_.tolist()]
    return np.asarray(np.bincount(labels, minlength=len(index)) - model.class_counts_)


def _curve(curve: Any, scores: ArrayLike | None) -> tuple[Array, Array]:
    sizes = np.asarray(getattr(curve, "sizes", curve))
    table = np.asarray(getattr(curve, "scores", scores), dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if sizes.ndim != 1 or table.ndim != 2 or len(table) != sizes.size:
        raise ValueError(
            f"scores must have one row for each size, but have shape {table.shape} and sizes {sizes.shape}. "
            "Pass the result of learning_curve, or both arrays."
        )
    order = np.argsort(sizes, kind="stable")
    return sizes[order], table[order]


def _fitted(clf: Any) -> Any:
    """Return the fitted classifier itself: the last step of a pipeline, the best model of a search."""
    clf = getattr(clf, "best_estimator_", clf)
    clf = clf.steps[-1][1] if hasattr(clf, "steps") else clf
    clf = getattr(clf, "best_estimator_", clf)
    check_is_fitted(clf)
    return clf


def _class_axes(model: Any, ax: "Axes | None") -> "Axes":
    """Name one row for each class, the first at the top, then one for each branch; "$" is no mathematics."""
    names = ["/".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in model.classes_.tolist()]
    if model.bounds_.groups is not None:
        names += [f"{name}/…" for name in model.bounds_.groups.names]
    ax = _new_axes(height=1.2 + 0.3 * len(names)) if ax is None else ax
    ax.set_yticks(np.arange(len(names)), [name.replace("$", r"\$") for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    return ax


def _new_axes(height: float = 4.0) -> "Axes":
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"plots need matplotlib, which is not installed. {install_advice('app')}.") from error
    return pyplot.subplots(figsize=(6.4, height), layout="constrained")[1]
