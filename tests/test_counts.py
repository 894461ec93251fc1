"""Counts from fractions and from class priors: sums, nearness, monotone ties, complaints."""

import numpy as np
import pytest

from transduce.counts import apportion, counts_from_fractions, prior_bounds, prior_counts


def test_counts_sum_to_the_rows_and_stay_within_one_of_the_share():
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


def test_whole_shares_are_not_lost_to_rounding_noise():
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
        ([], "one number a class"),
        ([[1.0]], r"shape \(1, 1\)"),
    ],
)
def test_bad_fractions_get_one_sentence(fractions, sentence):
    with pytest.raises(ValueError, match=sentence):
        counts_from_fractions(fractions, 10)


NAMES = np.array(["tea", "coffee", "milk"])
LABELS = np.array([0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize(
    ("prior", "counts"),
    [
        ("labeled", [6, 4, 2]),
        ([0.25, 0.5, 0.25], [3, 6, 3]),
        (np.array([0.25, 0.5, 0.25], dtype=np.float32), [3, 6, 3]),
        ((3, 9, 0), [3, 9, 0]),
        (np.array([3.0, 9.0, 0.0]), [3, 9, 0]),
        ({"milk": 0.25, "tea": 0.75, "coffee": 0}, [9, 0, 3]),
        ({"milk": 1, "tea": 11, "coffee": 0}, [11, 0, 1]),
        ([1.0, 0.0, 0.0], [12, 0, 0]),
    ],
)
def test_a_prior_may_be_written_in_many_ways(prior, counts):
    found = prior_counts(prior, NAMES, LABELS, 12)
    assert found.tolist() == counts
    assert found.dtype == np.int64


def test_priors_become_counts_that_sum_to_the_rows():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, k = int(rng.integers(0, 5000)), int(rng.integers(1, 20))
        fractions = rng.dirichlet(np.full(k, 0.5))
        names, labels = np.arange(k), rng.integers(k, size=50)
        found = prior_counts(fractions, names, labels, n)
        assert found.tolist() == counts_from_fractions(fractions, n).tolist()
        assert prior_counts("labeled", names, labels, n).sum() == n
        if n:
            assert prior_counts(found, names, labels, n).tolist() == found.tolist()


def test_one_row_is_a_count_and_a_fraction_alike():
    assert prior_counts([0, 1, 0], NAMES, LABELS, 1).tolist() == [0, 1, 0]


def test_a_class_without_labelled_rows_gets_none_by_the_labelled():
    assert prior_counts("labeled", NAMES, np.array([0, 2]), 10).tolist() == [5, 0, 5]


def test_no_unlabelled_rows_need_no_counts():
    for prior in ("labeled", [0.5, 0.25, 0.25]):
        assert prior_counts(prior, NAMES, LABELS, 0).tolist() == [0, 0, 0]


def test_names_may_be_numbers():
    assert prior_counts({7: 0.5, 3: 0.5}, np.array([3, 7]), np.array([0, 1]), 3).tolist() == [2, 1]


def test_a_prior_is_not_modified():
    prior = np.array([0.25, 0.5, 0.25])
    prior_counts(prior, NAMES, LABELS, 7)
    assert prior.tolist() == [0.25, 0.5, 0.25]


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        ("equal", "class_prior must be 'labeled', fractions, counts or a mapping .*to either, but is 'equal'"),
        ([0.5, 0.5], r"one number for each of the 3 classes, but has shape \(2,\)"),
        (0.5, r"shape \(\)"),
        ([0.5, 0.5, 0.5], "must sum to 1, or as counts to the 12 unlabelled rows, but sums to 1.5"),
        ([4, 4, 5], "but sums to 13"),
        ([0.5, -0.5, 1.0], "0 or more, but class .*coffee.* has -0.5"),
        ([0.5, np.nan, 0.5], "class .*coffee.* has nan"),
        ([np.inf, 0, 0], "class .*tea.* has inf"),
        ({"tea": 0.5, "coffee": 0.5}, "every class a share, but has none for 'milk'"),
        ({"tea": 0.5, "coffee": 0.25, "milk": 0.25, "beer": 0}, "names 'beer', which is not a class"),
    ],
)
def test_bad_priors_get_one_sentence(prior, sentence):
    with pytest.raises(ValueError, match=sentence):
        prior_counts(prior, NAMES, LABELS, 12)


def test_words_are_no_prior():
    with pytest.raises(TypeError, match="class_prior must be numbers, one a class, but came as"):
        prior_counts(["many", "few", "few"], NAMES, LABELS, 12)


def test_ranges_and_unknown_sizes_become_bounds_that_can_be_met():
    rng = np.random.default_rng(1)
    for _ in range(300):
        k, n = int(rng.integers(2, 12)), int(rng.integers(1, 500))
        truth = rng.dirichlet(np.ones(k))
        names, labels = np.arange(k), np.arange(k)
        width = rng.uniform(0, 0.2, k)
        choices = [
            (float(max(f - w, 0)), float(min(f + w + 1 / n, 1)))
            if rng.random() < 0.6
            else None
            if rng.random() < 0.5
            else float(f)
            for f, w in zip(truth, width, strict=True)
        ]
        choices[0] = None
        low, high = prior_bounds(dict(enumerate(choices)), names, labels, n)
        assert np.all(low <= high)
        assert low.sum() <= n <= high.sum()
        for choice, a, b in zip(choices, low, high, strict=True):
            first, last = (0.0, 1.0) if choice is None else choice if isinstance(choice, tuple) else (choice, choice)
            slack = 0 if isinstance(choice, tuple) or choice is None else 1
            assert first * n - slack - 1e-6 <= a
            assert b <= last * n + slack + 1e-6


def test_a_mapping_without_ranges_gives_exact_counts():
    low, high = prior_bounds({"tea": 0.5, "coffee": 0.25, "milk": 0.25}, NAMES, LABELS, 12)
    assert low.tolist() == high.tolist() == [6, 3, 3]


def test_counts_may_be_ranges_too():
    assert prior_bounds({"tea": (3, 5), "coffee": (0, 12), "milk": 4}, NAMES, LABELS, 12)[1].tolist() == [5, 12, 4]
    assert prior_bounds({"tea": (0.2, 0.5), "coffee": None, "milk": None}, NAMES, LABELS, 0)[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        ({"tea": (0.5, 0.6), "coffee": (0.5, 0.6), "milk": (0.1, 0.2)}, "low bounds sum to"),
        ({"tea": (0.1, 0.2), "coffee": (0.1, 0.2), "milk": 0.1}, "high bounds sum to"),
        ({"tea": (0.6, 0.5), "coffee": None, "milk": None}, "a high one not below it"),
        ({"tea": (-0.1, 0.5), "coffee": None, "milk": None}, "a low bound of 0 or more"),
        ({"tea": (np.nan, 0.5), "coffee": None, "milk": None}, "a low bound of 0 or more"),
        ({"tea": (0.43, 0.44), "coffee": None, "milk": None}, "room for a whole number"),
        ({"tea": (0.1, 0.5), "coffee": None}, "has none for 'milk'"),
        ({"tea": (0.1, 0.5), "coffee": None, "milk": None, "d": 0.1}, "names 'd', which is not a class"),
    ],
)
def test_ranges_that_cannot_be_met_get_one_sentence(prior, sentence):
    with pytest.raises(ValueError, match=sentence):
        prior_bounds(prior, NAMES, LABELS, 12)


@pytest.mark.parametrize("share", ["much", (0.1, "much"), True, (0.1, None)])
def test_ranges_must_be_numbers(share):
    with pytest.raises(TypeError, match="class_prior must"):
        prior_bounds({"tea": share, "coffee": None, "milk": None}, NAMES, LABELS, 12)
