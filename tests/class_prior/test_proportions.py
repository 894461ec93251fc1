"""Shares from labels, and doubts about stated ones: Bayes by sampling as the oracle, and what warnings say."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from transduce import TransductiveClassifier
from transduce import base
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.diagnostics import (
    HARMFUL_DISAGREEMENT,
    HARMFUL_DISTANCE,
    PriorWarning,
    diagnose_prior,
    warn_harmful_prior,
)
from transduce.class_prior.proportions import (
    CONCENTRATIONS,
    are_balanced_by_design,
    contributions,
    disagreement,
    distance,
    labeled_proportions,
)
from transduce.history import FitStatus


@pytest.mark.parametrize("counts", [[3, 5, 4, 4, 6, 2], [58, 1, 0, 1], [10, 30], [0, 0, 7], [1, 1, 1, 1, 1]])
def test_mean_and_deviation_are_those_of_the_posterior(counts):
    rng = np.random.default_rng(0)
    a = rng.choice(CONCENTRATIONS, 200_000)
    shares = rng.dirichlet(np.ones(len(counts)), 200_000)
    gammas = rng.gamma(np.repeat(a[:, None], len(counts), axis=1))
    gammas = np.maximum(gammas, 1e-300)
    shares = gammas / gammas.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(shares, 1e-300)) @ np.array(counts, float)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ shares
    deviation = np.sqrt(weights @ shares**2 - mean**2)
    found = labeled_proportions(counts)
    assert np.allclose(found.mean, mean, atol=0.02)
    assert np.allclose(found.deviation, deviation, atol=0.02)


def test_equal_classes_are_found_equal_and_unequal_ones_stay_unequal():
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


def test_disagreement_is_about_one_by_chance_and_large_for_other_shares():
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(10))
    chance = [disagreement(rng.multinomial(300, shares), shares, shares) for _ in range(200)]
    assert 0.8 < np.mean(chance) < 1.3
    assert np.mean(np.array(chance) > HARMFUL_DISAGREEMENT) < 0.01
    other = rng.permutation(shares)
    assert disagreement(rng.multinomial(300, shares), other, other) > HARMFUL_DISAGREEMENT
    assert disagreement(rng.multinomial(300, shares), np.zeros(10), np.ones(10)) == pytest.approx(0.0)


def problem():
    rng = np.random.default_rng(0)
    X = np.vstack((rng.normal([3, 0], 1, (200, 2)), rng.normal([0, 3], 1, (200, 2))))
    y = np.full(400, -1)
    y[:28], y[-32:] = 0, 1
    return X, y


def test_stated_sizes_against_the_labels_are_warned_of_with_figures():
    X, y = problem()
    with pytest.warns(
        PriorWarning, match=r"(0|1) should get (5|95)\.0% of the rows, but it has (53\.3|46\.7)% of the 60 labels"
    ):
        model = TransductiveClassifier(class_prior={0: 0.95, 1: 0.05}, random_state=0).fit(X, y)
    assert model.prior_diagnostics_.disagreement > HARMFUL_DISAGREEMENT
    assert (
        model.prior_diagnostics_.suggested_ranges()[0][0]
        <= 0.5
        < 0.95
        <= model.prior_diagnostics_.suggested_ranges()[0][1]
    )


@pytest.mark.parametrize("prior", [[300, 40], {0: 300, 1: None}])
def test_the_range_advised_is_in_rows_where_rows_were_stated(prior):
    X, y = problem()
    with pytest.warns(PriorWarning, match=r"; a range of \(\d+, \d+\) would fit"):
        model = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y)
    low, high = model.prior_diagnostics_.suggested_ranges()[0]
    assert isinstance(low, int)
    assert (low <= 170, high) == (True, 300)
    assert TransductiveClassifier(class_prior={0: (low, high), 1: None}).fit(X, y).class_counts_[0] >= low


def test_advised_ranges_are_rounded_outwards():
    bounds = Bounds(np.array([2000, 1000]), np.array([2000, 1000]))
    doubts = diagnose_prior(bounds, np.array([1, 2]), np.array([1, 2999]), np.zeros(2))
    assert doubts.suggested_ranges() == [(0.0, 0.667), (0.333, 1.0)]
    assert replace(doubts, in_rows=True).suggested_ranges() == [(1, 2000), (1000, 2999)]
    assert replace(doubts, n_rows=1000, in_rows=True).suggested_ranges()[0] == (0, 667)


def drinks(n=100):
    names = np.array(["hot/tea", "hot/coffee", "cold/milk", "cold/juice"])
    truth = np.repeat(np.arange(4), n)
    X = 3 * np.eye(4)[truth] + np.random.default_rng(0).normal(size=(4 * n, 4))
    y = np.where(np.arange(4 * n) % n < np.array([13, 17, 18, 12])[truth], names[truth], "").astype(object)
    return X, y, names


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        (
            {"hot": 0.95, "cold": 0.05},
            r"'(hot|cold)' should get (95|5)\.0% of the rows, but it has 50\.0% of",
        ),
        (
            {"hot": 323, "cold/milk": None, "cold/juice": None},
            r"'hot' should get 95\.0%.*; a range of \(1\d\d, 323\) would fit",
        ),
        ({("hot",): (0.9, 0.95), "cold": None}, r"'hot' should get 90\.0% to 95\.0%"),
        ({"hot": None, "hot/tea": 0.7, "cold": None}, r"'hot/tea' should get 70\.0%"),
    ],
)
def test_branches_against_the_labels_are_warned_of(prior, sentence):
    X, y, names = drinks()
    with pytest.warns(PriorWarning, match=sentence):
        model = TransductiveClassifier(class_prior=prior, taxonomy=names, annealing="paper", random_state=0).fit(X, y)
    assert model.prior_diagnostics_.disagreement > HARMFUL_DISAGREEMENT
    assert len(model.prior_diagnostics_.suggested_ranges()) == 4 + sum(name not in names for name in prior)


def test_branches_that_fit_are_not_warned_of():
    X, y, names = drinks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for prior in ({"hot": 0.5, "cold": 0.5}, {"hot": (0.4, 0.6), "cold": None, "hot/tea": 0.25}):
            TransductiveClassifier(class_prior=prior, taxonomy=names, annealing="paper", random_state=0).fit(X, y)


def test_what_is_open_is_what_the_others_leave():
    half = disagreement([30, 30], [0.9, 0.1], [0.9, 0.1])
    assert disagreement([30, 30], [0.9, 0.0], [0.9, 1.0]) == pytest.approx(half)


@pytest.mark.parametrize("prior", [{0: 0.5, 1: 0.5}, {0: (0.3, 0.7), 1: None}, "labeled", "estimate"])
def test_sizes_that_fit_are_not_warned_of(prior):
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y)
    assert model.prior_diagnostics_.predicted.sum() == pytest.approx(1.0)


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
        labeled = labeled_proportions(np.bincount(truth[:25], minlength=3)).mean
        errors.append([np.abs(each - shares).sum() for each in (model.class_counts_ / 575, labeled)])
    estimated, labeled = np.mean(errors, axis=0)
    assert estimated < 0.9 * labeled


def uneven(rng, each=8):
    """Two classes of 40 and 400 rows that overlap a little, with the same number of labels."""
    y = np.repeat([0, 1], [40, 400])
    X = np.column_stack((2.0 * y - 1.0, np.ones(y.size))) + rng.normal(scale=0.7, size=(y.size, 2))
    marked = np.full(y.size, -1)
    for k in (0, 1):
        marked[rng.choice(np.flatnonzero(y == k), each, replace=False)] = k
    return X, y, marked


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
def test_labels_that_chance_would_not_make_so_even_are_by_design(counts, expected):
    assert are_balanced_by_design(counts) is expected


def test_labels_drawn_at_random_are_seldom_taken_for_a_design():
    rng = np.random.default_rng(0)
    draws = rng.multinomial(100, [0.1] * 10, size=2000)
    assert np.mean([are_balanced_by_design(draw) for draw in draws]) < 0.03


def test_equal_numbers_of_labels_are_not_taken_for_class_sizes():
    X, y, marked = uneven(np.random.default_rng(1))
    counts = TransductiveClassifier(random_state=0).fit(X, marked).class_counts_
    with pytest.warns(PriorWarning, match=r"class_prior='labeled' treats the labels.*Use class_prior='estimate'"):
        told = TransductiveClassifier(class_prior="labeled", random_state=0).fit(X, marked).class_counts_
    truth = np.bincount(y[marked < 0])
    assert abs(counts[0] - truth[0]) < 40 < abs(told[0] - truth[0])


def test_a_class_prior_that_is_left_out_says_nothing_of_equal_numbers_of_labels():
    X, _, marked = uneven(np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked).prior_diagnostics_.balanced_labels
        )


def test_equal_numbers_of_labels_do_not_silence_sizes_that_the_rows_speak_against():
    X, _, marked = uneven(np.random.default_rng(1))
    with pytest.warns(
        PriorWarning,
        match=r"and the data disagree: [01] should get (95|5)\.0% of the rows, but the supervised classifier gives it",
    ) as caught:
        model = TransductiveClassifier(class_prior={0: 0.95, 1: 0.05}, random_state=0).fit(X, marked)
    assert "say nothing about class sizes" in str(caught[0].message)
    assert model.prior_diagnostics_.distance == pytest.approx(0.95 - model.prior_diagnostics_.predicted[0], abs=1e-3)
    assert model.prior_diagnostics_.distance > HARMFUL_DISTANCE


def test_the_share_told_is_that_of_the_supervised_classifier():
    X, y = problem()
    with pytest.warns(PriorWarning, match="disagree") as caught:
        model = TransductiveClassifier(class_prior={0: 0.95, 1: 0.05}, annealing="paper", random_state=0).fit(X, y)
    alone = TransductiveClassifier(random_state=0, price_shift=False).fit(X[y >= 0], y[y >= 0])
    shares = np.bincount(alone.predict(X[y < 0])) / (y < 0).sum()
    assert model.prior_diagnostics_.predicted == pytest.approx(shares, abs=0.01)
    assert f"the supervised classifier gives it {model.prior_diagnostics_.predicted[1]:.1%}" in str(caught[0].message)


def test_the_supervised_classifier_is_fitted_only_where_sizes_are_doubted(monkeypatch):
    X, y = problem()
    monkeypatch.setattr(base, "supervised_counts", lambda *rest: pytest.fail("nothing was doubted"))
    for prior in ({0: 0.5, 1: 0.5}, "labeled", "estimate"):
        TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)


def test_ctrl_c_while_sizes_are_doubted_keeps_the_fit_and_says_so(monkeypatch):
    def pressed(*rest):
        raise KeyboardInterrupt

    X, y = problem()
    monkeypatch.setattr(base, "supervised_counts", pressed)
    with pytest.warns(PriorWarning):
        model = TransductiveClassifier(class_prior={0: 0.95, 1: 0.05}, annealing="paper", random_state=0).fit(X, y)
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    assert model.prior_diagnostics_.distance == 0.0


def test_up_to_three_classes_are_named_the_worst_first_with_a_range_each():
    counts, stated = np.array([100, 30, 10, 30, 30]), np.array([10, 30, 60, 50, 50])
    doubts = diagnose_prior(Bounds(stated, stated), counts, stated, np.zeros(5))
    assert doubts.farthest == (0, 2)  # the others add next to nothing
    doubts = diagnose_prior(Bounds(stated[::-1], stated[::-1]), counts, stated, np.zeros(5))
    assert len(doubts.farthest) <= 3
    with pytest.warns(PriorWarning, match=r"'b0' should get 5\.0%.* would fit\. 'b2' should .* would fit\. If"):
        warn_harmful_prior(
            diagnose_prior(Bounds(stated, stated), counts, stated, np.zeros(5)),
            np.array([f"b{k}" for k in range(5)]),
            200,
            stacklevel=1,
        )


def test_a_narrow_range_is_one_figure():
    bounds = Bounds(np.array([1000, 98_999]), np.array([1001, 99_000]))
    doubts = diagnose_prior(bounds, np.array([34, 26]), np.array([50_000, 50_000]), np.zeros(2))
    with pytest.warns(PriorWarning, match=r"'a' should get 1\.0% of the rows") as caught:
        warn_harmful_prior(doubts, np.array(["a", "b"]), 60, stacklevel=1)
    assert "1.0% to 1.0%" not in str(caught[0].message)


def test_what_is_not_known_is_not_named():
    bounds = Bounds(np.array([95, 0]), np.array([95, 100]))
    assert diagnose_prior(bounds, np.array([30, 30]), np.array([50, 50]), np.zeros(2)).farthest == (0,)


def test_distance_is_the_total_variation_from_the_nearest_shares():
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


def test_equal_numbers_of_labels_are_no_reason_to_doubt_stated_sizes():
    X, y, marked = uneven(np.random.default_rng(1))
    sizes = np.bincount(y[marked < 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorWarning)
        model = TransductiveClassifier(class_prior=sizes, random_state=0).fit(X, marked)
    assert model.prior_diagnostics_.balanced_labels
    assert model.prior_diagnostics_.disagreement > HARMFUL_DISAGREEMENT


def test_estimates_heed_forbidden_labels_where_labels_are_by_design():
    X, y, marked = uneven(np.random.default_rng(2))
    partial = [{0, 1} if k < 0 and row % 3 == 0 else k for row, k in enumerate(marked.tolist())]
    partial = [{1} if y[row] == 1 and row % 5 == 0 and k == -1 else k for row, k in enumerate(partial)]
    model = TransductiveClassifier(random_state=0).fit(X, partial)
    assert model.class_counts_.sum() == sum(k == -1 or k == {0, 1} for k in partial)


def test_two_classes_of_as_many_labels_are_taken_for_a_design_though_chance_may_make_them():
    rng = np.random.default_rng(0)
    for n, share in ((4, 0.375), (80, 0.089)):
        draws = rng.binomial(n, 0.5, size=4000)
        assert np.mean([are_balanced_by_design([k, n - k]) for k in draws if 0 < k < n]) == pytest.approx(
            share, abs=0.08
        )
        assert are_balanced_by_design([n // 2, n // 2])


def test_weights_of_rows_do_not_hide_a_design(monkeypatch):
    X, _, marked = uneven(np.random.default_rng(1))
    weights = np.where(marked == 0, 3.0, 1.0)
    model = TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked, weights)
    assert model.prior_diagnostics_.balanced_labels
    first = []
    first_fit = base.first_fit

    def look(engine, bounds, *rest):
        first.append(bounds.low)
        return first_fit(engine, bounds, *rest)

    monkeypatch.setattr(base, "first_fit", look)
    TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked, weights)
    supervised = TransductiveClassifier(random_state=0, price_shift=False)
    supervised.fit(X[marked >= 0], marked[marked >= 0], weights[marked >= 0])
    counts = np.bincount(supervised.predict(X[marked < 0]))
    assert np.abs(first[0] - counts).max() <= 0.02 * counts.sum()
