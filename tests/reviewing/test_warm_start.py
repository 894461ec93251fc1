"""A fit that continues an earlier one: evidence counts in it as in a fit from nothing."""

import numpy as np
import pytest

from transduce.reviewing.warm_start import WarmClassifier

N, N_CLASSES, N_LABELED = 300, 3, 24
NAMES = np.array(["a", "b", "c"], object)


def make_rows(seed=0):
    """Rows that say little about their classes, and the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=N)
    X = 0.6 * rng.normal(size=(N_CLASSES, 10))[truth] + rng.normal(size=(N, 10))
    return X / np.linalg.norm(X, axis=1, keepdims=True), truth


def some_guesses(truth):
    rng = np.random.default_rng(1)
    return {"guesses": NAMES[np.where(rng.random(N) < 0.2, rng.integers(N_CLASSES, size=N), truth)]}


def some_scores(truth):
    """Scores that texts do not explain."""
    return {"scores": np.eye(N_CLASSES)[truth] + 0.5 * np.random.default_rng(1).normal(size=(N, N_CLASSES))}


@pytest.mark.parametrize("evidence", [some_guesses, some_scores])
def test_evidence_counts_as_in_a_fit_from_nothing(evidence):
    X, truth = make_rows()
    y, known = np.full(N, "", object), evidence(truth)
    y[:N_LABELED] = NAMES[truth[:N_LABELED]]
    how = {"annealing": "paper", "unlabeled": "", "random_state": 0}
    cold, warm, alone = WarmClassifier(**how).fit(X, y, **known), WarmClassifier(**how), WarmClassifier(**how).fit(X, y)
    warm.start = cold.next_start
    warm.fit(X, y, **known)
    assert np.mean(warm.transduction_ == cold.transduction_) > 0.95
    assert np.mean(alone.transduction_ == cold.transduction_) < 0.85  # so the evidence matters
    found = [clf.label_distributions_[N_LABELED:] for clf in (cold, warm)]
    assert np.abs(found[0] - found[1]).mean() < 0.02
