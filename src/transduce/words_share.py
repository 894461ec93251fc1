"""The share of words in a mix of words and vectors, by the length of the texts; hidden labels say if vectors help.

`features.text_rows.share_by_length` has the rule. Comparing shares on hidden labels is no better: with all rows it
finds about the same, for twenty fits; with a sample of the rows it prefers vectors. But an encoder that does not suit
the texts shows: labels hidden from fits to words alone are likelier.
"""

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

from transduce.arrays import Array
from transduce.features.text_rows import Choice, mix_rows, share_by_length
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix

MAX_UNLABELED, MIN_LABELS = 500, 30
"""Unlabelled rows that take part in the comparison with words alone, and labels that it needs: fewer say little."""
MARGIN = 0.2
"""Words alone are used if the mean logarithm of the probabilities of hidden labels is higher by more than this."""


def choose_share(words: csr_matrix, vectors: Array, y: Any, estimator: Any) -> Choice:
    """Choose the share of words in the rows of a mix, with the same result each time.

    words (n, d) and vectors (n, e) are the rows of all training texts, of length 1 or empty; y is what `fit` takes, and
    `estimator` the classifier that will be fitted to the mix.
    """
    by_length = share_by_length(words)
    values, labeled = find_labeled(read_matrix(y)[0], estimator.unlabeled, warn=False)
    if np.count_nonzero(labeled) >= MIN_LABELS:
        unlabeled = np.random.default_rng(0).permutation(np.flatnonzero(~labeled))[:MAX_UNLABELED]
        rows = np.sort(np.concatenate((np.flatnonzero(labeled), unlabeled)))
        settings = {"class_prior": "estimate", "checkpoint": None, "verbose": 0, "random_state": 0}
        compared = clone(estimator).set_params(**settings)
        alone, mixed = (
            compared.hidden_log_likelihood(X, values[rows])
            for X in (words[rows], mix_rows(words[rows], vectors[rows], by_length.share))
        )
        if alone > mixed + MARGIN:
            found = f"labels hidden from the fit have a typical probability of {math.exp(alone):.0%}"
            return Choice(
                1.0, f"Vectors of this encoder do not help: {found} by words, {math.exp(mixed):.0%} by a mix."
            )
    return by_length
