"""Proportions from labelled counts: sampling from the posterior as the oracle, and properties of likelihood ratios."""

import numpy as np
import pytest

from transduce.class_prior.diagnostics import HARMFUL_DISAGREEMENT
from transduce.class_prior.proportions import (
    CONCENTRATIONS,
    are_balanced_by_design,
    contributions,
    disagreement,
    distance,
    labeled_proportions,
)


@pytest.mark.parametrize("counts", [[3, 5, 4, 4, 6, 2], [58, 1, 0, 1], [10, 30], [0, 0, 7], [1, 1, 1, 1, 1]])
def test_mean_and_deviation_are_those_of_the_posterior(counts):
    rng = np.random.default_rng(0)
    a = rng.choice(CONCENTRATIONS, 200_000)
    fractions = rng.dirichlet(np.ones(len(counts)), 200_000)
    gammas = rng.gamma(np.repeat(a[:, None], len(counts), axis=1))
    gammas = np.maximum(gammas, 1e-300)
    fractions = gammas / gammas.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(fractions, 1e-300)) @ np.array(counts, float)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ fractions
    deviation = np.sqrt(weights @ fractions**2 - mean**2)
    found = labeled_proportions(counts)
    assert np.allclose(found.mean, mean, atol=0.02)
    assert np.allclose(found.deviation, deviation, atol=0.02)


def test_proportions_of_equal_classes_shrink_and_unequal_ones_stay():
    rng = np.random.default_rng(1)
    error = {"equal": [], "labels": [], "uneven": [], "uneven labels": []}
    uneven = np.array([0.5, 0.25, 0.1, 0.06, 0.04, 0.03, 0.01, 0.01])
    for _ in range(200):
        counts = rng.multinomial(80, np.full(20, 0.05))
        error["equal"].append(np.abs(labeled_proportions(counts).mean - 0.05).sum())
        error["labels"].append(np.abs(counts / 80 - 0.05).sum())
        counts = rng.multinomial(80, uneven)
        error["uneven"].append(np.abs(labeled_proportions(counts).mean - uneven).sum())
        error["uneven labels"].append(np.abs(counts / 80 - uneven).sum())
    assert np.mean(error["equal"]) < 0.4 * np.mean(error["labels"])
    assert np.mean(error["uneven"]) < 1.02 * np.mean(error["uneven labels"])


def test_disagreement_is_about_one_by_chance_and_large_for_other_proportions():
    rng = np.random.default_rng(2)
    fractions = rng.dirichlet(np.ones(10))
    chance = [disagreement(rng.multinomial(300, fractions), fractions, fractions) for _ in range(200)]
    assert 0.8 < np.mean(chance) < 1.3
    assert np.mean(np.array(chance) > HARMFUL_DISAGREEMENT) < 0.01
    other = rng.permutation(fractions)
    assert disagreement(rng.multinomial(300, fractions), other, other) > HARMFUL_DISAGREEMENT
    assert disagreement(rng.multinomial(300, fractions), np.zeros(10), np.ones(10)) == pytest.approx(0.0)


def test_a_range_counts_only_as_far_as_other_ranges_leave_room():
    half = disagreement([30, 30], [0.9, 0.1], [0.9, 0.1])
    assert disagreement([30, 30], [0.9, 0.0], [0.9, 1.0]) == pytest.approx(half)


def test_distance_is_the_total_variation_from_the_nearest_proportions():
    rng = np.random.default_rng(0)
    for _ in range(50):
        own, stated = rng.dirichlet(np.ones(6), 2)
        assert distance(own, stated, stated) == pytest.approx(0.5 * np.abs(own - stated).sum())
        assert distance(own, np.minimum(own, stated), np.maximum(own, stated)) == pytest.approx(0.0)
    assert distance([0.5, 0.5], [0.9, 0.0], [0.9, 1.0]) == pytest.approx(0.4)


def test_contributions_add_up_to_the_disagreement():
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts, low = rng.multinomial(80, rng.dirichlet(np.ones(5))), rng.dirichlet(np.ones(5))
        high = np.minimum(low + rng.choice([0.0, 0.2], 5), 1.0)
        parts = contributions(counts, low, high)
        assert parts.min() >= 0.0
        assert parts.sum() == pytest.approx(4 * disagreement(counts, low, high))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([10, 10, 10], True), ([5, 5], True), ([5, 5, 4, 5, 5], True), ([4] * 19 + [2], True),
        ([20] * 7 + [11], True), ([10, 10, 3, 10, 10], True),
        ([3, 2, 2, 1], False), ([9, 9, 2], False), ([1, 1, 1], False),
        ([3, 5, 4, 4, 6, 2], False), ([30, 2, 1], False), ([7], False), ([0, 5, 5], True),
        ([10] * 9 + [0], True), ([0, 7], False), ([0, 0], False), ([0, 1, 1], False),
    ],
)  # fmt: skip
def test_counts_that_chance_hardly_makes_are_balanced_by_design(counts, expected):
    assert are_balanced_by_design(counts) is expected


def test_random_labels_are_rarely_mistaken_for_a_design():
    rng = np.random.default_rng(0)
    draws = rng.multinomial(100, [0.1] * 10, size=2000)
    assert np.mean([are_balanced_by_design(draw) for draw in draws]) < 0.03


def test_two_classes_with_equal_counts_are_always_balanced_by_design():
    rng = np.random.default_rng(0)
    for n, fraction in ((4, 0.375), (80, 0.089)):
        draws = rng.binomial(n, 0.5, size=4000)
        assert np.mean([are_balanced_by_design([k, n - k]) for k in draws if 0 < k < n]) == pytest.approx(
            fraction, abs=0.08
        )
        assert are_balanced_by_design([n // 2, n // 2])
