"""The share of words in a mix: by the length of the texts, and words alone where vectors do not help."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from transduce import TransductiveClassifier
from transduce.words_share import SHARES, choose_share, share_for

N_ROWS, N_CLASSES, N_WORDS = 240, 3, 12


def rows_of(truth, noise, rng):
    """Rows of length 1 around a direction for each class, which have all words."""
    X = np.eye(N_WORDS, dtype=np.float32)[truth] + noise * rng.normal(size=(len(truth), N_WORDS)).astype("f4")
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    truth = np.arange(N_ROWS) % N_CLASSES
    clear, wrong = rows_of(truth, 0.1, rng), rows_of(rng.permutation(truth), 0.1, rng)
    return clear, wrong, np.where(np.arange(N_ROWS) < 45, truth, -1)


def test_words_get_a_larger_share_of_longer_texts():
    found = [share_for(length) for length in range(300)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == SHARES


def test_the_share_follows_the_length_of_the_texts(task):
    clear, _, y = task
    long = np.hstack([clear] * 4) / 2
    half_empty = np.where(np.arange(N_ROWS)[:, None] % 2, clear, 0)  # texts without a word do not count
    for words, length in ((csr_matrix(clear), N_WORDS), (csr_matrix(long), 48), (csr_matrix(half_empty), N_WORDS)):
        choice = choose_share(words, clear, y, TransductiveClassifier())
        assert choice.share == share_for(length)
        assert f"have {length} or more distinct words" in choice.reason


def test_words_alone_are_used_where_vectors_do_not_help(task):
    clear, wrong, y = task
    choice = choose_share(csr_matrix(clear), wrong, y, TransductiveClassifier())
    assert choice.share == 1.0
    assert "Vectors of this encoder do not help" in choice.reason
    assert choice == choose_share(
        csr_matrix(clear), wrong, y, TransductiveClassifier(random_state=7, class_prior="equal")
    )


def test_labels_of_all_forms_are_read(task):
    clear, wrong, y = task
    names = np.array(["tea", "coffee", "cocoa"], dtype=object)[y]
    named = np.where(y < 0, None, names).tolist()
    matrix = np.where((y < 0)[:, None], True, np.eye(N_CLASSES, dtype=bool)[y])
    partial = [{"tea", "coffee"} if row == N_ROWS - 1 else label for row, label in enumerate(named)]
    for labels in (named, matrix, partial):
        assert choose_share(csr_matrix(clear), wrong, labels, TransductiveClassifier()).share == 1.0


@pytest.mark.parametrize("labels", ["six", "one of each class"])
def test_too_few_labels_to_compare_leave_the_share_of_the_length(task, labels):
    clear, wrong, y = task
    rows = np.arange(N_ROWS)
    y = np.where(rows < 6, y, -1) if labels == "six" else np.where(y >= 0, rows, -1)
    assert choose_share(csr_matrix(clear), wrong, y, TransductiveClassifier()).share == share_for(N_WORDS)


def test_texts_without_any_word_are_mixed_as_short_ones(task):
    clear, _, y = task
    assert (
        choose_share(csr_matrix((N_ROWS, 5), dtype=np.float32), clear, y, TransductiveClassifier()).share == SHARES[0]
    )
