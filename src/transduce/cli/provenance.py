"""What a model file says about the fit that made it: version and time, data and settings, class sizes, history."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import transduce
from transduce.cli.fit_messages import describe_status
from transduce.cli.label_task import LabelTask
from transduce.cli.model_file import MAX_HISTORY_ROWS
from transduce.cli.none_option import fraction_left
from transduce.cli.predictions import Predictions
from transduce.engines.common import opposite_scores
from transduce.estimators import TransductiveClassifier
from transduce.history import FitStatus, HistoryRow


def describe_fit(
    clf: TransductiveClassifier, task: LabelTask, flat: bool, predictions: Predictions, probabilities: NDArray[Any]
) -> dict[str, Any]:
    """Everything but the time that it took; probabilities (u, K) are those of the unlabelled rows without prices."""
    n_unlabeled, sizes = int((task.codes < 0).sum()), _class_sizes(clf, task, predictions, probabilities)
    return {
        "transduce": transduce.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "objective": float(clf.objective_),
        "ending": describe_status(clf._status),
        "interrupted": clf._status is FitStatus.INTERRUPTED,
        "history": [_history_row(row) for row in _thinned(clf.history_)],
        "source": Path(task.table.name).name,
        "seed": clf.random_state,
        "n_labelled": task.codes.size - n_unlabeled,
        "n_unlabelled": n_unlabeled,
        "prior": task.describe_prior(contradicted=clf._contradicted),
        "settings": {
            "loss": clf.loss,
            "alpha": float(clf.alpha_),
            "annealing": clf.annealing,
            "flat": flat,
            "text": list(task.text),
            "label": task.label,
        },
        "sizes": sizes,
        **({"branches": branches} if (branches := _branch_sizes(task, sizes, n_unlabeled)) else {}),
        **({} if task.none is None else {"none": _none(clf, task, predictions)}),
        **({"contradicted": True} if clf._contradicted else {}),
        **({} if clf.accuracy_estimate_ is None else {"accuracy": clf.accuracy_estimate_._asdict()}),
    }


def _none(clf: TransductiveClassifier, task: LabelTask, predictions: Predictions) -> dict[str, Any]:
    """Rows without a class: how many were asked for and found, and the score below which new rows have none either.

    There is no such score if no row was left without a class.
    """
    low, high = task.none or (0, 0)
    found = {"asked_low": low, "asked_high": high, "assigned": int(np.count_nonzero(predictions.label < 0))}
    if clf.outlier_score_ is None or not np.isfinite(clf.outlier_score_):
        return found
    score = np.asarray(clf.outlier_score_)
    best = opposite_scores(score).max() if len(task.parsed.classes) == 2 else score
    return {**found, "score": float(best) / clf.calibration_.temperature}


def _class_sizes(
    clf: TransductiveClassifier, task: LabelTask, predictions: Predictions, probabilities: NDArray[Any]
) -> list[dict[str, Any]]:
    """For every class: labelled rows, rows asked for, rows assigned, and the size that the texts suggest.

    That is the estimate from hidden labels. If all sizes are exact there is none, and it is between the fraction of
    rows predicted without prices and the mean probability. Rows that fit no class are left out.
    """
    classes, has_class = task.parsed.classes, (task.codes < 0) & (predictions.label >= 0)
    predicted = np.bincount(predictions.unpriced[has_class], minlength=len(classes))
    fraction = predicted / max(1, int(has_class.sum()))
    probabilities = probabilities[has_class[task.codes < 0]]
    mean = probabilities.mean(axis=0) if len(probabilities) else np.zeros(len(classes))
    bounds, left = clf.bounds_, fraction_left(task.none, task.n_unlabeled)
    if task.none is not None:
        bounds = bounds.with_outliers(task.n_unlabeled, *task.none)
    texts_low, texts_high = np.minimum(fraction, mean), np.maximum(fraction, mean)
    if clf._data_estimate is not None:
        texts_low, texts_high = clf._data_estimate.low, clf._data_estimate.high
    columns = {
        "class": classes,
        "labelled": np.bincount(task.codes[task.codes >= 0], minlength=len(classes)),
        "stated": [not isinstance(task.prior, str) and task.prior.get(name) is not None for name in classes],
        "asked_low": bounds.low[: len(classes)],
        "asked_high": bounds.high[: len(classes)],
        "assigned": np.bincount(predictions.label[has_class], minlength=len(classes)),
        "own": predicted,
        "texts_low": texts_low,
        "texts_high": texts_high,
        "price": clf.prices_,
    }
    if not task.statement.is_exact:
        estimate = clf.size_estimate_
        columns |= {"estimated": estimate.mean, "estimated_low": estimate.low, "estimated_high": estimate.high}
    found = pl.DataFrame(columns).to_dicts()
    for k in np.flatnonzero(np.isfinite(task.statement.rough)).tolist():
        found[k]["rough"] = left * float(task.statement.rough[k])
    return found


def _branch_sizes(task: LabelTask, sizes: Sequence[Mapping[str, Any]], n_rows: int) -> list[dict[str, Any]]:
    """For every branch with a stated size: rows asked for, and the sums over its classes."""
    groups, found, left = task.statement.groups, [], fraction_left(task.none, n_rows)
    if groups is not None and task.none is not None:
        groups = task.statement.hard_bounds.with_outliers(n_rows, *task.none).groups
    asked: list[tuple[str, NDArray[np.bool_], dict[str, Any]]] = []
    if groups is not None:
        members = groups.members(len(sizes) + (task.none is not None))[:, : len(sizes)]
        bounds = zip(groups.names, members, groups.low, groups.high, strict=True)
        asked = [(name, m, {"asked_low": int(low), "asked_high": int(high)}) for name, m, low, high in bounds]
    for name, members, rows in task.statement.branches:
        asked.append((name, members, {"asked_low": 0, "asked_high": n_rows, "rough": left * float(rows)}))
    for name, members, size in asked:
        if not isinstance(task.prior, str) and task.prior.get(name) is not None:
            inside = [sizes[k] for k in np.flatnonzero(members).tolist()]
            sums = {key: sum(one[key] for one in inside) for key in ("labelled", "assigned", "own")}
            found.append({"branch": name, **sums, **size})
    return found


def _history_row(row: HistoryRow) -> dict[str, Any]:
    return {
        "restart": max(row.restart, -1),
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
