"""What a review has reached: accuracy by random documents, the gain that more decisions promise, and when to stop.

Accuracy is that of the labels of undecided documents, by prediction-powered inference:

    accuracy = mean confidence of the undecided documents + mean over random documents of (1 if right − confidence)

where the last two are by fits that did not see the label of the document. Such fits have fewer labels, and are less
sure; the difference corrects for that. The gain follows a learning curve

    error(n) = a n^(−b)

through the errors that earlier fits expected of themselves with n labels; b is shrunk towards a common value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.suggest import name_list, number_of

Z, MIN_RANDOM = 1.645, 10
"""Half the length of a 90 % interval in standard deviations, and random documents that an estimate needs."""
PRIOR_DOCUMENTS, PRIOR_VARIANCE = 2, 0.25
"""Documents of this variance are added to those that were seen, so that no errors among a few do not mean none."""
SLOPE, SLOPES, SLOPE_WEIGHT = 0.5, (0.1, 1.0), 0.5
"""Common exponent of the learning curve, its limits, and how strongly it counts."""
NEXT, WORTH = 50, 0.01
"""Decisions that the expected gain is about, and the gain below which going on does not pay."""
MIN_DECISIONS = 50
"""Decisions about single documents before the advice may be to stop."""
WIDE, MIN_OF_CLASS = 0.2, 5
"""Length of the interval of the accuracy, and labels of a class, at which too little is known to advise to stop."""
MAX_NAMED = 3
"""Classes that the advice names."""


@dataclass(frozen=True)
class Accuracy:
    """Estimated accuracy of the labels of undecided documents, with a 90 % interval, and how many documents show it."""

    mean: float
    low: float
    high: float
    n: int


def estimate_accuracy(surprise: Array | None, confidence: float) -> Accuracy | None:
    """Estimate accuracy from random documents; None if there are too few.

    surprise (n,) has for each random document whether its hidden label was predicted, less the confidence, and NaN for
    others; `confidence` is the mean one of the undecided documents.

    >>> found = estimate_accuracy(np.array([0.2] * 16 + [-0.8] * 4), 0.8)
    >>> round(found.low, 2), round(found.mean, 2), round(found.high, 2), found.n
    (0.65, 0.8, 0.95, 20)
    """
    shown = np.zeros(0) if surprise is None else surprise[np.isfinite(surprise)]
    if shown.size < MIN_RANDOM:
        return None
    mean = float(np.clip(confidence + shown.mean(), 0.0, 1.0))
    spread = np.sum((shown - shown.mean()) ** 2) + PRIOR_DOCUMENTS * PRIOR_VARIANCE
    half = Z * float(np.sqrt(spread / (shown.size + PRIOR_DOCUMENTS) / shown.size))
    return Accuracy(mean, max(mean - half, 0.0), min(mean + half, 1.0), int(shown.size))


def expected_gain(curve: Sequence[tuple[int, float]], n_next: int = NEXT) -> float | None:
    """Return how much accuracy the next decisions are expected to add; None before the first fit.

    `curve` has for each fit the number of texts that were labelled one by one, and the expected error.

    >>> round(expected_gain([(50, 0.4), (100, 0.3), (200, 0.225)]), 3)
    0.021
    """
    points = {n: error for n, error in curve if n > 0}
    if not points:
        return None
    n, logs = np.array(list(points)), np.log(np.maximum(list(points.values()), 1e-4))
    x = np.log(n) - np.log(n).mean()
    slope = (SLOPE_WEIGHT * SLOPE - x @ (logs - logs.mean())) / (SLOPE_WEIGHT + x @ x)
    last = int(n.max())
    error = points[last]
    return float(error - error * ((last + n_next) / last) ** -np.clip(slope, *SLOPES))


def open_questions(accuracy: Accuracy, classes: Sequence[Mapping[str, Any]]) -> str:
    """Return why it is too early to stop although the gain is small, in a few words; "" if nothing speaks against it.

    `classes` has the name of each class, its number of labels (`decided`) and of documents that a fit gives it
    (`proposed`).

    >>> sure, rough = Accuracy(0.9, 0.85, 0.94, 40), Accuracy(0.9, 0.76, 1.0, 10)
    >>> ship = {"name": "ship", "decided": 4, "proposed": 30}
    >>> open_questions(sure, [ship]), open_questions(rough, [ship]), open_questions(sure, [{**ship, "decided": 5}])
    ('ship has 4 labels', 'the accuracy is known to within 24 points only, and ship has 4 labels', '')
    """
    few = {one["name"]: int(one["decided"]) for one in classes if one["decided"] < min(MIN_OF_CLASS, one["proposed"])}
    width, found = accuracy.high - accuracy.low, []
    if width > WIDE:
        found.append(f"the accuracy is known to within {round(100 * width)} points only")
    if len(few) == 1:
        found += [f"{name} has {number_of(n, 'label')}" for name, n in few.items()]
    elif few:
        found.append(f"{name_list(few, MAX_NAMED, quote=False)} have fewer than {MIN_OF_CLASS} labels each")
    return ", and ".join(found)


def pays(n_decisions: int, accuracy: Accuracy | None, gain: float | None, questions: str = "") -> bool:
    """Whether going on pays: the gain is worth it, or too little is known to say.

    >>> sure = Accuracy(0.9, 0.85, 0.94, 40)
    >>> pays(200, sure, 0.004), pays(200, sure, 0.04), pays(20, sure, 0.004), pays(200, None, 0.004)
    (False, True, True, True)
    >>> pays(200, sure, 0.004, "ship has 4 labels")
    True
    """
    return accuracy is None or gain is None or n_decisions < MIN_DECISIONS or gain >= WORTH or bool(questions)


def advice(n_undecided: int, gain: float | None, *, stop: bool, questions: str = "") -> str:
    """Return a sentence on whether to go on; `questions` are those of `open_questions`.

    >>> advice(5000, 0.004, stop=True)
    'The next 50 decisions would correct about 20 of 5000 labels: you can stop here.'
    >>> advice(5000, 0.004, stop=False, questions="ship has 4 labels")
    'The next 50 decisions would correct about 20 of 5000 labels. Go on, because ship has 4 labels.'
    """
    if n_undecided == 0:
        return "Every document has a decision."
    if gain is None:
        return ""
    sentence = f"The next {NEXT} decisions would correct about {round(gain * n_undecided)} of {n_undecided} labels"
    if stop:
        return f"{sentence}: you can stop here."
    return f"{sentence}. Go on, because {questions}." if questions and gain < WORTH else f"{sentence}."
