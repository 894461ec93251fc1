"""What a model file says about the fit that made it: class sizes, history, how it ended, version and time."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

import transduce
from transduce.class_prior.bounds import Bounds, Groups
from transduce.cli.fit_messages import describe_status
from transduce.cli.model_file import MAX_HISTORY_ROWS
from transduce.cli.results import Predictions
from transduce.estimators import TransductiveClassifier
from transduce.history import FitStatus, HistoryRow

Array = NDArray[Any]


def describe_fit(clf: TransductiveClassifier) -> dict[str, Any]:
    """Version, time, objective, how the fit ended, and its history."""
    status = clf._status
    return {
        "transduce": transduce.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "objective": float(clf.objective_),
        "ending": describe_status(status),
        "interrupted": status is FitStatus.INTERRUPTED,
        "history": [_history_row(row) for row in _thinned(clf.history_)],
    }


def class_sizes(
    classes: Sequence[str],
    codes: Array,
    bounds: Bounds,
    predictions: Predictions,
    probabilities: Array,
    prices: Array,
    unstated: Collection[str] = (),
) -> list[dict[str, Any]]:
    """For every class: labelled rows, rows asked for, rows assigned, and the size that the texts suggest.

    codes (n,) are the given labels, -1 where there is none; probabilities (u, K) are those of the unlabelled rows
    without prices. The texts suggest a size between the fraction of rows predicted without prices and the mean
    probability. `unstated` are the classes without a stated size.
    """
    n_classes, unlabeled = len(classes), codes < 0
    labeled = np.bincount(codes[~unlabeled], minlength=n_classes)
    assigned = np.bincount(predictions.label[unlabeled], minlength=n_classes)
    predicted = np.bincount(predictions.unpriced[unlabeled], minlength=n_classes)
    fraction = predicted / max(1, int(unlabeled.sum()))
    mean = probabilities.mean(axis=0) if len(probabilities) else np.zeros(n_classes)
    low, high = np.minimum(fraction, mean), np.maximum(fraction, mean)
    return [
        {
            "class": name,
            "labelled": int(labeled[k]),
            "stated": name not in unstated,
            "asked_low": int(bounds.low[k]),
            "asked_high": int(bounds.high[k]),
            "assigned": int(assigned[k]),
            "own": int(predicted[k]),
            "texts_low": float(low[k]),
            "texts_high": float(high[k]),
            "price": float(prices[k]),
        }
        for k, name in enumerate(classes)
    ]


def branch_sizes(
    groups: Groups, sizes: Sequence[Mapping[str, Any]], prior: Mapping[str, object]
) -> list[dict[str, Any]]:
    """For every branch with a stated size: rows asked for, and the sums over its classes.

    >>> groups = Groups(above=[2, 3, 3], low=[4], high=[6], names=("hot",))
    >>> tea, milk = ({"labelled": 1, "assigned": n, "own": n} for n in (5, 7))
    >>> branch_sizes(groups, [tea, milk], {"hot": (4, 6)})
    [{'branch': 'hot', 'labelled': 1, 'assigned': 5, 'own': 5, 'asked_low': 4, 'asked_high': 6}]
    """
    found = []
    for name, members, low, high in zip(groups.names, groups.members(len(sizes)), groups.low, groups.high, strict=True):
        if prior.get(name) is not None:
            inside = [size for size, is_member in zip(sizes, members, strict=True) if is_member]
            sums = {key: sum(int(size[key]) for size in inside) for key in ("labelled", "assigned", "own")}
            found.append({"branch": name, **sums, "asked_low": int(low), "asked_high": int(high)})
    return found


def _history_row(row: HistoryRow) -> dict[str, Any]:
    return {
        "restart": row.restart,
        "stage": row.stage,
        "objective": float(row.objective),
        "moved": int(row.n_moved),
        "seconds": round(row.seconds, 3),
        "temperature": float(row.temperature),
        "weight": float(row.unlabeled_weight),
    }


def _thinned(history: Sequence[HistoryRow]) -> list[HistoryRow]:
    """At most as many rows as a model file holds, evenly spread, with the last row of each restart."""
    if len(history) <= MAX_HISTORY_ROWS:
        return list(history)
    last = {row.restart: place for place, row in enumerate(history)}.values()
    spread = np.linspace(0, len(history) - 1, MAX_HISTORY_ROWS - len(last)).round().astype(int)
    return [history[place] for place in sorted({*spread.tolist(), *last})]
