"""Digests of labelled training rows: they recognise rows with their labels, and reveal neither."""

import base64

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from transduce.features import training_rows
from transduce.features.training_rows import digest_training_rows, find_training_rows, read_digests, row_contents

N_ROWS = 5000
CONTENTS = [f"text {i}".encode() for i in range(N_ROWS)]
LABELS = ["tea" if i % 2 else "coffee" for i in range(N_ROWS)]


def test_every_labelled_row_is_found_and_no_other():
    stored = digest_training_rows(CONTENTS, [label if i < 2000 else None for i, label in enumerate(LABELS)])
    found = find_training_rows(stored, CONTENTS, LABELS)
    assert found[:2000].all()
    assert found[2000:].sum() <= 1  # 3000 rows and 2000 digests of 32 bits: a mistake in one of 700 runs
    assert not find_training_rows(stored, CONTENTS, [None] * N_ROWS).any()
    assert find_training_rows(stored, CONTENTS, LABELS[1:] + LABELS[:1]).sum() <= 1
    assert not find_training_rows(stored, [], []).size


def test_the_salt_makes_the_digests_of_other_training_sets_different():
    first, second = (digest_training_rows(CONTENTS[:n], LABELS[:n]) for n in (100, 101))
    assert first == digest_training_rows(CONTENTS[:100], LABELS[:100])
    assert first["salt"] != second["salt"]
    assert np.intersect1d(read_digests(first)[1], read_digests(second)[1]).size <= 1


def test_a_digest_has_four_bytes_and_no_order():
    digests = base64.b64decode(digest_training_rows(CONTENTS, LABELS)["digests"])
    assert 4 * (N_ROWS - 5) <= len(digests) <= 4 * N_ROWS
    numbers = np.frombuffer(digests, "<u4")
    assert np.all(np.diff(numbers.astype(np.int64)) > 0)


def test_of_too_many_rows_a_random_sample_is_stored(monkeypatch):
    monkeypatch.setattr(training_rows, "MAX_DIGESTS", 1000)
    found = find_training_rows(digest_training_rows(CONTENTS, LABELS), CONTENTS, LABELS)
    assert 1000 <= found.sum() <= 1005
    assert 100 < found[: N_ROWS // 5].sum() < 300


def test_words_identify_a_text():
    texts = ["'=Grüne  TEES\n", "grüne tees", "schwarze Tees", ""]
    first, same, other, empty = row_contents(texts, None, "tfidf")
    assert first == same
    assert len({first, other, empty}) == 3


def test_vectors_identify_a_row():
    X = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    X[X < -0.5] = 0.0
    rows = csr_matrix(X)
    with_zeros = csr_matrix((X.ravel(), np.tile(np.arange(5), 6), np.arange(0, 31, 5)), X.shape)
    contents = row_contents((), rows, "vectors")
    assert len(set(contents)) == 6
    assert contents == row_contents((), with_zeros, "vectors")
    assert contents == row_contents((), X, "vectors")


@pytest.mark.parametrize(
    "stored",
    [
        {"salt": "00" * 16},
        {"salt": "00" * 16, "digests": "AAA"},
        {"salt": "00" * 16, "digests": "AAAAAA=="[:-1]},
        {"salt": "00" * 16, "digests": "AAA="},
        {"salt": "00" * 16, "digests": "é"},
        {"salt": "zz" * 16, "digests": "AAAAAA=="},
        {"salt": "00", "digests": "AAAAAA=="},
        {"salt": 3, "digests": "AAAAAA=="},
        {"salt": "00" * 16, "digests": [1, 2]},
    ],
)
def test_damaged_digests_are_refused(stored):
    with pytest.raises(ValueError, match="its labelled_rows "):
        read_digests(stored)
