"""The share of words in a mix: by the length of the texts, and words alone where vectors do not help."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from transduce import TransductiveClassifier
from transduce.features.text_rows import SHARES, share_for
from transduce.words_share import MARGIN, MAX_UNLABELED, choose_share

N_ROWS, N_CLASSES, N_WORDS = 240, 3, 12
TRUTH = np.arange(N_ROWS) % N_CLASSES
Y = np.where(np.arange(N_ROWS) < 45, TRUTH, -1)


def rows_of(n_words, n_rows=N_ROWS):
    """Rows of length 1 that have all words."""
    X = 1.0 + np.random.default_rng(0).random((n_rows, n_words), dtype=np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


class Judge(TransductiveClassifier):
    """A classifier by which words alone have a higher likelihood than the mix by `lead`, and that counts its rows."""

    lead, seen = 0.0, []

    def hidden_log_likelihood(self, X, y, sample_weight=None, sampled=None):
        Judge.seen.append((X.shape, len(y), self.class_prior, self.random_state))
        return -1.0 + (Judge.lead if X.shape[1] == N_WORDS else 0.0)


def choice_with(lead, y=Y, **parameters):
    Judge.lead, Judge.seen = lead, []
    return choose_share(csr_matrix(rows_of(N_WORDS)), rows_of(5), y, Judge(**parameters))


def test_words_get_a_larger_share_of_longer_texts():
    found = [share_for(length) for length in range(300)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == SHARES


@pytest.mark.parametrize("length", [N_WORDS, 48, 150])
def test_the_share_follows_the_length_of_the_texts(length):
    words = rows_of(length)
    words[::2] = 0  # texts without a word do not count
    choice = choose_share(csr_matrix(words), rows_of(5), np.full(N_ROWS, -1), TransductiveClassifier())
    assert choice.share == share_for(length)
    assert f"have {length} or more distinct words" in choice.reason


def test_words_alone_are_used_where_vectors_do_not_help():
    assert choice_with(MARGIN - 0.01).share == share_for(N_WORDS)
    choice = choice_with(MARGIN + 0.01)
    assert choice.share == 1.0
    alone, mixed = math.exp(-1 + MARGIN + 0.01), math.exp(-1)
    assert choice.reason.endswith(f"{alone:.0%} by words, {mixed:.0%} by a mix.")


def test_the_comparison_is_the_same_each_time_and_does_not_depend_on_stated_sizes():
    choice_with(0.0)
    first = Judge.seen
    choice_with(0.0, random_state=7, class_prior={0: 10, 1: 20, 2: 165})
    assert Judge.seen == first
    assert first[0][2:] == ("estimate", 0)


def test_all_labels_and_some_unlabelled_rows_take_part():
    n_rows = MAX_UNLABELED + 200
    y = np.where(np.arange(n_rows) % 20 == 0, np.arange(n_rows) % 3, -1)
    Judge.lead, Judge.seen = 0.0, []
    choose_share(csr_matrix(rows_of(N_WORDS, n_rows)), rows_of(5, n_rows), y, Judge())
    expected = MAX_UNLABELED + np.count_nonzero(y >= 0)
    assert [shape for shape, *_ in Judge.seen] == [(expected, N_WORDS), (expected, N_WORDS + 5)]


def test_labels_of_all_forms_are_read():
    names = np.array(["tea", "coffee", "cocoa"], dtype=object)[Y]
    named = np.where(Y < 0, None, names).tolist()
    matrix = np.where((Y < 0)[:, None], True, np.eye(N_CLASSES, dtype=bool)[Y])
    partial = [{"tea", "coffee"} if row == N_ROWS - 1 else label for row, label in enumerate(named)]
    for labels in (named, matrix, partial):
        assert choice_with(1.0, labels).share == 1.0


@pytest.mark.parametrize("labels", ["six", "one of each class"])
def test_too_few_labels_to_compare_leave_the_share_of_the_length(labels):
    rows = np.arange(N_ROWS)
    y = np.where(rows < 6, Y, -1) if labels == "six" else np.where(Y >= 0, rows, -1)
    choice = choose_share(csr_matrix(rows_of(N_WORDS)), rows_of(5), y, TransductiveClassifier())
    assert choice.share == share_for(N_WORDS)


def test_texts_without_any_word_are_mixed_as_short_ones():
    words = csr_matrix((N_ROWS, 5), dtype=np.float32)
    assert choose_share(words, rows_of(5), np.full(N_ROWS, -1), TransductiveClassifier()).share == SHARES[0]
