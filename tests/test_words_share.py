"""The share of words in a mix: the one with which hidden labels are likeliest, found from the training data alone."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from transduce import TransductiveClassifier
from transduce.features.text_rows import DEFAULT_SHARE, mix_rows
from transduce.words_share import SHARES, choose_share

N_ROWS, N_CLASSES = 240, 3


def rows_of(truth, noise, rng, dimension=12):
    """Rows of length 1 around a direction for each class."""
    X = np.eye(dimension, dtype=np.float32)[truth] + noise * rng.normal(size=(len(truth), dimension)).astype("f4")
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    truth = np.arange(N_ROWS) % N_CLASSES
    clear, vague = rows_of(truth, 0.15, rng), rows_of(truth, 3.0, rng)
    return clear, vague, np.where(np.arange(N_ROWS) < 45, truth, -1)


@pytest.mark.parametrize("words_are_clear", [True, False])
def test_what_tells_classes_apart_gets_the_larger_share(task, words_are_clear):
    clear, vague, y = task
    words, vectors = (clear, vague) if words_are_clear else (vague, clear)
    choice = choose_share(csr_matrix(words), vectors, y, TransductiveClassifier())
    assert (choice.share > 0.5) == words_are_clear
    assert choice == choose_share(csr_matrix(words), vectors, y, TransductiveClassifier(random_state=7))
    assert all(f"{share:.0%} words: " in choice.reason for share in SHARES if share != choice.share)


def test_the_choice_has_the_highest_likelihood_of_hidden_labels(task):
    clear, vague, y = task
    words, clf = csr_matrix(vague), TransductiveClassifier(random_state=0)
    found = [clf.hidden_log_likelihood(mix_rows(words, clear, share), y) for share in SHARES]
    assert choose_share(words, clear, y, clf).share == SHARES[int(np.argmax(found))]


def test_labels_of_all_forms_are_read(task):
    clear, vague, y = task
    names = np.array(["tea", "coffee", "cocoa"], dtype=object)[y]
    named = np.where(y < 0, None, names).tolist()
    expected = choose_share(csr_matrix(vague), clear, named, TransductiveClassifier())
    matrix = np.where((y < 0)[:, None], True, np.eye(N_CLASSES, dtype=bool)[y])
    assert choose_share(csr_matrix(vague), clear, matrix, TransductiveClassifier()).share == expected.share
    partial = [{"tea", "coffee"} if row == N_ROWS - 1 else label for row, label in enumerate(named)]
    assert choose_share(csr_matrix(vague), clear, partial, TransductiveClassifier()).share < 0.5


@pytest.mark.parametrize(("n_labels", "reason"), [(6, "fewer than 10"), (None, "no class has two")])
def test_too_few_labels_to_compare_leave_the_usual_share(task, n_labels, reason):
    clear, vague, y = task
    y = np.where(np.arange(N_ROWS) < n_labels, y, -1) if n_labels else np.where(y >= 0, np.arange(N_ROWS), -1)
    choice = choose_share(csr_matrix(clear), vague, y, TransductiveClassifier())
    assert choice.share == DEFAULT_SHARE
    assert reason in choice.reason
