"""What a model file tells of the fit that made it: sizes asked for and assigned, settings, history, where and when."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

import transduce
from transduce.class_prior.bounds import Bounds, Groups
from transduce.cli.model_file import MOST_HISTORY_ROWS
from transduce.cli.results import Verdict
from transduce.estimators import TransductiveClassifier
from transduce.history import FitStatus, HistoryRow

Array = NDArray[Any]


def told_by(clf: TransductiveClassifier) -> dict[str, Any]:
    """When, by what version, how it ended, and its rounds."""
    return {
        "transduce": transduce.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "objective": float(clf.objective_),
        "ending": clf.termination_condition_,
        "interrupted": clf.termination_condition_ == FitStatus.INTERRUPTED.value,
        "history": [_history_row(row) for row in _thinned(clf.history_)],
    }


def sizes_of(
    classes: Sequence[str],
    codes: Array,
    bounds: Bounds,
    verdict: Verdict,
    own_probabilities: Array,
    prices: Array,
    unstated: Collection[str] = (),
) -> list[dict[str, Any]]:
    """For every class: rows labelled, asked for, assigned, and what the texts alone would give it.

    codes (n,) are given labels, -1 where there is none; own_probabilities (u, K) those of the classifier without the
    prices, for the unlabelled rows. The share that the texts suggest lies between the share of rows that the classifier
    chose and the mean of its probabilities. `unstated` are the classes that nobody gave a size.
    """
    n_classes, unlabelled = len(classes), codes < 0
    labelled = np.bincount(codes[~unlabelled], minlength=n_classes)
    assigned = np.bincount(verdict.label[unlabelled], minlength=n_classes)
    own = np.bincount(verdict.own[unlabelled], minlength=n_classes)
    n_rows = max(1, int(unlabelled.sum()))
    mean = own_probabilities.mean(axis=0) if len(own_probabilities) else np.zeros(n_classes)
    low, high = np.minimum(own / n_rows, mean), np.maximum(own / n_rows, mean)
    return [
        {
            "class": name,
            "labelled": int(labelled[k]),
            "stated": name not in unstated,
            "asked_low": int(bounds.low[k]),
            "asked_high": int(bounds.high[k]),
            "assigned": int(assigned[k]),
            "own": int(own[k]),
            "texts_low": float(low[k]),
            "texts_high": float(high[k]),
            "price": float(prices[k]),
        }
        for k, name in enumerate(classes)
    ]


def branches_of(
    groups: Groups, sizes: Sequence[Mapping[str, Any]], prior: Mapping[str, object]
) -> list[dict[str, Any]]:
    """For every branch of the tree that the prior gives a size: what was asked for, and the sums of its classes.

    >>> groups = Groups(above=[2, 3, 3], low=[4], high=[6], names=("hot",))
    >>> tea, milk = ({"labelled": 1, "assigned": n, "own": n} for n in (5, 7))
    >>> branches_of(groups, [tea, milk], {"hot": (4, 6)})
    [{'branch': 'hot', 'labelled': 1, 'assigned': 5, 'own': 5, 'asked_low': 4, 'asked_high': 6}]
    """
    found = []
    for name, members, low, high in zip(groups.names, groups.members(len(sizes)), groups.low, groups.high, strict=True):
        if prior.get(name) is not None:
            inside = [size for size, is_inside in zip(sizes, members, strict=True) if is_inside]
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
    """At most so many rows as a model file holds, evenly spread, the last one of each way kept."""
    if len(history) <= MOST_HISTORY_ROWS:
        return list(history)
    ends = {row.restart: place for place, row in enumerate(history)}.values()
    spread = np.linspace(0, len(history) - 1, MOST_HISTORY_ROWS - len(ends)).round().astype(int)
    return [history[place] for place in sorted({*spread.tolist(), *ends})]
