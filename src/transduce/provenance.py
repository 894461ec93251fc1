"""What a model file says about the fit that made it: version and time, settings, class sizes, history.

Classifiers have K rows of weights here, also for two classes, and scores are calibrated: divided by the temperature.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.engines.common import Calibration, opposite_scores
from transduce.history import FitStatus, HistoryRow

MAX_HISTORY_ROWS = 1000
"""Rounds that a model file holds."""


def class_weights(clf: Any) -> tuple[Array, Array, Array]:
    """Weights (K, d), intercepts (K,) and their part that comes from the prices (K,) of a fitted classifier."""
    coef, intercept = clf.coef_, clf.intercept_
    shift = np.asarray(clf.price_shift_, dtype=intercept.dtype)
    if len(clf.classes_) == 2:
        coef, intercept = opposite_scores(coef[0]), opposite_scores(intercept[0])
        shift = shift - shift.mean()
    temperature = clf.calibration_.temperature
    return coef / temperature, intercept / temperature, shift / temperature


def describe_fit(
    clf: Any, classes: Sequence[str], codes: Array, labels: Array, scores: Array, none: tuple[int, int] | None
) -> dict[str, Any]:
    """Everything that the classifier and its labels tell.

    codes   (n,) the classes of the rows with a full label, -1 for the others
    labels  (n,) the classes that rows have after the fit, -1 for those that fit none
    scores  (n, K) without prices
    none    least and greatest number of rows that may fit no class; None if all have one
    """
    unlabeled, is_named = codes < 0, clf.annealing_ is None or isinstance(clf.annealing_, str)
    annealing = clf.annealing_ if is_named else list(map(float, clf.annealing_))
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "objective": float(clf.objective_),
        "ending": clf.termination_condition_,
        "interrupted": clf._status is FitStatus.INTERRUPTED,
        "history": [_history_row(row) for row in _thinned(clf.history_)],
        "smoothing": clf.calibration_.smoothing,
        "seed": int(clf.random_state) if isinstance(clf.random_state, (int, np.integer)) else None,
        "n_labelled": int(codes.size - unlabeled.sum()),
        "n_unlabelled": int(unlabeled.sum()),
        "settings": {"loss": clf.loss, "alpha": float(clf.alpha_), "annealing": annealing},
        "sizes": _class_sizes(clf, classes, codes, labels, scores, none),
        **({} if none is None else {"none": _none(clf, labels, none)}),
        **({"contradicted": True} if clf._contradicted else {}),
        **({} if clf.accuracy_estimate_ is None else {"accuracy": clf.accuracy_estimate_._asdict()}),
    }


def _none(clf: Any, labels: Array, asked: tuple[int, int]) -> dict[str, Any]:
    """Rows without a class: how many were asked for and found, and the score below which new rows have none either.

    There is no such score if no row was left without a class.
    """
    found = {"asked_low": asked[0], "asked_high": asked[1], "assigned": int(np.count_nonzero(labels < 0))}
    if clf.outlier_score_ is None or not np.isfinite(clf.outlier_score_):
        return found
    score = np.asarray(clf.outlier_score_)
    best = opposite_scores(score).max() if len(clf.classes_) == 2 else score
    return {**found, "score": float(best) / clf.calibration_.temperature}


def _class_sizes(
    clf: Any, classes: Sequence[str], codes: Array, labels: Array, scores: Array, none: tuple[int, int] | None
) -> list[dict[str, Any]]:
    """For every class: labelled rows, rows asked for, rows assigned, and the size that the texts suggest.

    That is the estimate from hidden labels. If all sizes are exact there is none, and it is between the fraction of
    rows predicted without prices and the mean probability. Rows that fit no class are left out.
    """
    K, has_class = len(classes), (codes < 0) & (labels >= 0)
    predicted = np.bincount(scores[has_class].argmax(axis=1), minlength=K)
    probabilities = Calibration(smoothing=clf.calibration_.smoothing).probabilities(clf.loss_, scores[has_class])
    fraction = predicted / max(1, int(has_class.sum()))
    mean = probabilities.mean(axis=0) if len(probabilities) else np.zeros(K)
    bounds = clf.bounds_ if none is None else clf.bounds_.with_outliers(int(np.count_nonzero(codes < 0)), *none)
    texts_low, texts_high = np.minimum(fraction, mean), np.maximum(fraction, mean)
    if clf._data_estimate is not None:
        texts_low, texts_high = clf._data_estimate.low, clf._data_estimate.high
    columns = {
        "labelled": np.bincount(codes[codes >= 0], minlength=K),
        "asked_low": bounds.low[:K],
        "asked_high": bounds.high[:K],
        "assigned": np.bincount(labels[has_class], minlength=K),
        "own": predicted,
        "texts_low": texts_low,
        "texts_high": texts_high,
        "price": clf.prices_,
    }
    if not np.array_equal(clf.bounds_.low, clf.bounds_.high):
        estimate = clf.size_estimate_
        columns |= {"estimated": estimate.mean, "estimated_low": estimate.low, "estimated_high": estimate.high}
    rows = zip(classes, *(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return [dict(zip(("class", *columns), row, strict=True)) for row in rows]


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
