"""The share of words in a mix of words and vectors, chosen by hidden labels.

Short texts are better told apart by vectors, long ones by words, and nearly all by a mix. Labels show which mix is
best: those that are hidden from fits to each mix are likeliest with a share that suits the other rows, too.
"""

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

from transduce.arrays import Array
from transduce.features.text_rows import DEFAULT_SHARE, Choice, mix_rows
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix

SHARES = (0.2, 0.5, 0.8, 0.9)
"""Shares to choose from. On no set of docs/features.md were words or vectors alone better than all of these."""
MAX_UNLABELED, MIN_LABELS = 3000, 10
"""Unlabelled rows that take part in the comparison, and labels that it needs."""


def choose_share(words: csr_matrix, vectors: Array, y: Any, estimator: Any) -> Choice:
    """Choose the share of words in the rows of a mix, with the same result each time.

    words (n, d) and vectors (n, e) are the rows of all training texts, of length 1 or empty; y is what `fit` takes, and
    `estimator` the classifier that will be fitted to the mix.
    """
    values, labeled = find_labeled(read_matrix(y)[0], estimator.unlabeled, warn=False)
    if np.count_nonzero(labeled) < MIN_LABELS:
        return Choice(DEFAULT_SHARE, f"There are too few labels to compare mixes: fewer than {MIN_LABELS}.")
    unlabeled = np.random.default_rng(0).permutation(np.flatnonzero(~labeled))[:MAX_UNLABELED]
    rows = np.sort(np.concatenate((np.flatnonzero(labeled), unlabeled)))
    settings = {"class_prior": "estimate", "checkpoint": None, "verbose": 0, "random_state": 0}
    compared = clone(estimator).set_params(**settings)
    found = {
        share: compared.hidden_log_likelihood(mix_rows(words[rows], vectors[rows], share), values[rows])
        for share in SHARES
    }
    if not all(map(math.isfinite, found.values())):
        return Choice(DEFAULT_SHARE, "There are too few labels to compare mixes: no class has two.")
    best = max(found, key=found.__getitem__)
    others = ", ".join(f"{share:.0%} words: {math.exp(found[share]):.0%}" for share in SHARES if share != best)
    return Choice(best, f"Hidden labels get a mean probability of {math.exp(found[best]):.0%} with it ({others}).")
