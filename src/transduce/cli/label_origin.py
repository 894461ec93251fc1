"""Which labels are a random sample of the rows, and so what class sizes are estimated from."""

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.proportions import are_balanced_by_design

LABELS_AND_TEXTS = "the labels and the texts"
CHOSEN = "the texts, because the labels are not a random sample"
BALANCED = "the texts, because the numbers of labels are too equal to show class sizes"
CONTRADICTED = "the texts, because the labels do not look like a random sample"
EVIDENCE = "the texts and what --classes or --guess says"
SOME = "the texts and the {} labels that are a random sample"
"""What class sizes are estimated from."""


def find_sample(
    labels_are: str | None, codes: NDArray[np.int64], answered: NDArray[np.bool_], n_classes: int
) -> tuple[NDArray[np.bool_] | None, str]:
    """Which labels are a random sample, None if the fit is to find out, and what class sizes are estimated from."""
    if not np.any(codes >= 0):
        return np.zeros(codes.size, bool), EVIDENCE
    if labels_are is not None:
        is_random = labels_are == "random"
        return np.full(codes.size, is_random), LABELS_AND_TEXTS if is_random else CHOSEN
    given = (codes >= 0) & ~answered
    if not given.any():
        return given, CHOSEN
    if are_balanced_by_design(np.bincount(codes[given], minlength=n_classes)):
        return np.zeros(codes.size, bool), BALANCED
    n_answered = np.count_nonzero(answered & (codes >= 0))
    return (given, SOME.format(np.count_nonzero(given))) if n_answered else (None, LABELS_AND_TEXTS)
