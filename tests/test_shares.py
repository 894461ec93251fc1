"""Shares from labels, and doubts about stated ones: Bayes by sampling as the oracle, and what warnings say."""

import warnings

import numpy as np
import pytest

from transduce import TransductiveClassifier
from transduce.doubts import HARMFUL, PriorWarning
from transduce.shares import EVENNESS, disagreement, labeled_shares


@pytest.mark.parametrize("counts", [[3, 5, 4, 4, 6, 2], [58, 1, 0, 1], [10, 30], [0, 0, 7], [1, 1, 1, 1, 1]])
def test_mean_and_deviation_are_those_of_the_posterior(counts):
    rng = np.random.default_rng(0)
    a = rng.choice(EVENNESS, 200_000)
    shares = rng.dirichlet(np.ones(len(counts)), 200_000)
    gammas = rng.gamma(np.repeat(a[:, None], len(counts), axis=1))
    gammas = np.maximum(gammas, 1e-300)
    shares = gammas / gammas.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(shares, 1e-300)) @ np.array(counts, float)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ shares
    deviation = np.sqrt(weights @ shares**2 - mean**2)
    found = labeled_shares(counts)
    assert np.allclose(found.mean, mean, atol=0.02)
    assert np.allclose(found.deviation, deviation, atol=0.02)


def test_equal_classes_are_found_equal_and_unequal_ones_stay_unequal():
    rng = np.random.default_rng(1)
    error = {"equal": [], "labels": [], "uneven": [], "uneven labels": []}
    uneven = np.array([0.5, 0.25, 0.1, 0.06, 0.04, 0.03, 0.01, 0.01])
    for _ in range(200):
        counts = rng.multinomial(80, np.full(20, 0.05))
        error["equal"].append(np.abs(labeled_shares(counts).mean - 0.05).sum())
        error["labels"].append(np.abs(counts / 80 - 0.05).sum())
        counts = rng.multinomial(80, uneven)
        error["uneven"].append(np.abs(labeled_shares(counts).mean - uneven).sum())
        error["uneven labels"].append(np.abs(counts / 80 - uneven).sum())
    assert np.mean(error["equal"]) < 0.4 * np.mean(error["labels"])
    assert np.mean(error["uneven"]) < 1.02 * np.mean(error["uneven labels"])


def test_disagreement_is_about_one_by_chance_and_large_for_other_shares():
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(10))
    chance = [disagreement(rng.multinomial(300, shares), shares, shares) for _ in range(200)]
    assert 0.8 < np.mean(chance) < 1.3
    assert np.mean(np.array(chance) > HARMFUL) < 0.01
    other = rng.permutation(shares)
    assert disagreement(rng.multinomial(300, shares), other, other) > HARMFUL
    assert disagreement(rng.multinomial(300, shares), np.zeros(10), np.ones(10)) == pytest.approx(0.0)


def problem():
    rng = np.random.default_rng(0)
    X = np.vstack((rng.normal([3, 0], 1, (200, 2)), rng.normal([0, 3], 1, (200, 2))))
    y = np.full(400, -1)
    y[:30], y[-30:] = 0, 1
    return X, y


def test_stated_sizes_against_the_labels_are_warned_of_with_figures():
    X, y = problem()
    with pytest.warns(PriorWarning, match=r"(0|1) is to get (5|95)\.0% of the rows, but has 50\.0% of the 60 labels"):
        model = TransductiveClassifier(class_prior={0: 0.95, 1: 0.05}, random_state=0).fit(X, y)
    assert model.doubts_.disagreement > HARMFUL
    assert model.doubts_.relaxed()[0][0] <= 0.5 < 0.95 <= model.doubts_.relaxed()[0][1]


@pytest.mark.parametrize("prior", [{0: 0.5, 1: 0.5}, {0: (0.3, 0.7), 1: None}, "labeled", "estimate"])
def test_sizes_that_fit_are_not_warned_of(prior):
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y)
    assert model.doubts_.own.sum() == pytest.approx(1.0)


def test_estimated_sizes_are_nearer_than_those_of_the_labels():
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
        X = 2.5 * np.eye(3)[truth] + rng.normal(0, 1, (600, 3))
        y = np.where(np.arange(600) < 25, truth, -1)
        if np.unique(y[:25]).size < 3:
            continue
        shares = np.bincount(truth[25:], minlength=3) / 575
        model = TransductiveClassifier(class_prior="estimate", annealing="paper", random_state=0).fit(X, y)
        labeled = labeled_shares(np.bincount(truth[:25], minlength=3)).mean
        errors.append([np.abs(each - shares).sum() for each in (model.class_counts_ / 575, labeled)])
    estimated, labeled = np.mean(errors, axis=0)
    assert estimated < 0.9 * labeled
