"""Counts from fractions: sums, distance to the fractions, monotone ties, errors."""

import numpy as np
import pytest

from transduce.class_prior.rounding import apportion, counts_from_fractions


def test_counts_sum_to_the_rows_and_are_within_one_row_of_the_fractions():
    rng = np.random.default_rng(0)
    for _ in range(300):
        fractions = rng.dirichlet(np.full(rng.integers(1, 30), rng.choice([0.1, 1.0, 10.0])))
        n = int(rng.integers(0, 10_000))
        counts = counts_from_fractions(fractions, n)
        assert counts.sum() == n
        assert np.all(np.abs(counts - fractions * n) < 1.0 + 1e-6)
        assert np.all(counts >= 0)


def test_the_largest_remainders_are_rounded_up():
    assert counts_from_fractions([0.47, 0.16, 0.158, 0.12, 0.061, 0.031], 100).tolist() == [47, 16, 16, 12, 6, 3]


def test_ties_go_to_the_class_named_first_whatever_the_rounding_noise():
    thirds = [1 / 3, 1 / 3, 1 - 2 / 3]
    assert counts_from_fractions(thirds, 4).tolist() == [2, 1, 1]
    assert counts_from_fractions([0.1] * 10, 25).tolist() == [3] * 5 + [2] * 5


def test_whole_counts_are_not_lost_to_rounding_noise():
    assert counts_from_fractions([0.1 + 0.2, 0.7], 10).tolist() == [3, 7]
    assert apportion([0.07, 0.93], 100).tolist() == [7, 93]


def test_huge_numbers_of_rows_are_shared_out_exactly():
    for n in (2_000_000_009, 10**15 + 3):
        assert counts_from_fractions([0.1] * 10, n).sum() == n


@pytest.mark.parametrize("n_rows", [-1, 4.0, "4"])
def test_rows_must_be_a_whole_number(n_rows):
    with pytest.raises(ValueError, match="n_rows must be a whole number"):
        counts_from_fractions([0.5, 0.5], n_rows)


def test_nothing_can_be_shared_out_by_nothing():
    with pytest.raises(ValueError, match="weights must not all be 0"):
        apportion([0, 0], 3)


def test_fractions_are_not_modified():
    fractions = np.array([0.25, 0.75])
    counts_from_fractions(fractions, 7)
    assert fractions.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("fractions", "sentence"),
    [
        ([0.6, 0.6], "fractions must sum to 1, but sum to 1.2"),
        ([1.5, -0.5], "class 1 has -0.5"),
        ([np.nan, 1.0], "class 0 has nan"),
        ([], "one number for each class"),
        ([[1.0]], r"shape \(1, 1\)"),
    ],
)
def test_bad_fractions_get_one_sentence(fractions, sentence):
    with pytest.raises(ValueError, match=sentence):
        counts_from_fractions(fractions, 10)
