"""The model of guesses of which some are wrong."""

from dataclasses import replace

import numpy as np
import pytest

from transduce import TransductiveClassifier
from transduce.solvers.guesses import GuessModel, estimate_confusion, with_least_sizes


def test_errors_that_follow_the_texts_are_found(monkeypatch):
    """Where a guess is wrong, it is the class of the other half of the features: a linear model can learn that."""
    rng = np.random.default_rng(0)
    y, other = rng.integers(0, 4, (2, 1200))
    X = np.hstack((np.eye(4)[y], 0.6 * np.eye(4)[other])) + 0.3 * rng.standard_normal((1200, 8))
    guesses = np.where(rng.random(1200) < 0.2, other, y)

    def accuracy():
        model = TransductiveClassifier(random_state=0)
        model._evidence = None, guesses
        engine, _, _ = model._prepare(model._local_data(X, np.full(1200, -1), None, None))
        return np.mean(engine.problem.evidence.costs.argmin(axis=1) == y)

    found = accuracy()
    monkeypatch.setattr("transduce.solvers.guesses._error_scores", lambda *_: None)
    assert found > max(accuracy(), np.mean(guesses == y)) + 0.02


def test_probabilities_of_wrong_guesses_sum_to_the_errors_of_the_class():
    """Σ_g p(g | k, x) = 1, with and without a classifier of errors: what the joint probabilities show for equal s."""
    rng = np.random.default_rng(0)
    confusion, accuracy = rng.dirichlet(np.ones(4), 4), np.array([0.9, 0.7, 0.6, 0.5])
    for errors in (None, rng.standard_normal((1, 4))):
        model = GuessModel(np.zeros((1, 4)), errors, confusion, accuracy, np.zeros(1, int))
        each = [np.exp(replace(model, guesses=np.array([g])).joint_logs(np.array([0.5, 0.3, -1.0]))) for g in range(4)]
        assert np.sum(each, axis=0) == pytest.approx(np.full((1, 4), 0.25))


def test_no_class_has_fewer_expected_rows_than_the_least_size():
    rng = np.random.default_rng(0)
    logs, sizes = rng.standard_normal((200, 4)) - [0.0, 2.0, 4.0, 0.0], np.array([0.0, 30.0, 20.0, 10.0])
    assert np.all(np.exp(with_least_sizes(logs, sizes)).sum(axis=0) >= sizes - 0.5)
    met = np.exp(with_least_sizes(logs, np.array([1.0, 1.0, 0.0, 0.0])))
    assert met == pytest.approx(np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True))


def test_labelled_rows_with_a_guess_count_in_the_confusion_matrix():
    scores, guesses = np.eye(2)[np.arange(40) % 2], np.arange(40) % 2
    pairs = np.zeros(200, np.int64), np.ones(200, np.int64)
    assert estimate_confusion(scores, guesses)[0, 1] < 0.1
    assert estimate_confusion(scores, guesses, pairs)[0, 1] > 0.8


def test_guesses_about_labelled_rows_alone_leave_the_others_to_the_texts():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    X = np.eye(3)[truth] + 0.3 * rng.standard_normal((200, 3))
    y = np.where(np.arange(200) < 15, truth, -1)
    model = TransductiveClassifier(random_state=0).fit(X, y, guesses=np.where(y < 0, -1, (truth + (y == 0)) % 3))
    assert np.mean(model.transduction_ == truth) > 0.9
    assert not model.suspicion_.any()
