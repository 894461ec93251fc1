"""Estimated class sizes: simulated labels and predictions with known sizes, and fits with the default class prior."""

import warnings

import numpy as np
import pytest
from helpers.class_sizes import balanced_labels, simulated_predictions
from scipy.stats import beta
from sklearn.metrics import f1_score

from transduce import TransductiveClassifier
from transduce.class_prior.estimation import (
    MIN_SAMPLED,
    HiddenLabels,
    SizeEstimate,
    contradicts,
    estimate_sizes,
)
from transduce.class_prior.proportions import labeled_proportions
from transduce.errors import PriorWarning

SIZES = np.array([0.6, 0.3, 0.1])


def random_labels(rng, n=60, sizes=SIZES):
    return rng.choice(sizes.size, size=n, p=sizes)


def draws(n_draws=200, right=0.8, sizes=SIZES, n=60, labels=random_labels):
    """Estimates from labels and predictions drawn again and again, with the true sizes of the unlabelled rows."""
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        hidden, truth = simulated_predictions(rng, labels(rng, n, sizes), sizes, right)
        yield hidden, truth, estimate_sizes(hidden, np.ones(n, bool))


# ---- intervals


def test_intervals_are_those_of_beta_distributions():
    mean, deviation = np.array([0.2, 0.8]), np.array([0.05, 0.05])
    estimate, size = SizeEstimate(mean, deviation), 0.2 * 0.8 / 0.05**2 - 1
    for found, probability in ((estimate.low, 0.05), (estimate.high, 0.95)):
        np.testing.assert_allclose(found, beta.ppf(probability, mean * size, (1 - mean) * size))


def test_intervals_of_sizes_that_are_certain_have_no_width():
    estimate = SizeEstimate(np.array([0.3, 0.7, 0.0]), np.zeros(3))
    np.testing.assert_allclose(estimate.low, estimate.mean, atol=1e-6)
    np.testing.assert_allclose(estimate.high, estimate.mean, atol=1e-6)


# ---- labels drawn at random


def test_the_estimate_is_nearly_unbiased():
    errors = [estimate.mean - truth for _, truth, estimate in draws(n=150)]
    assert np.abs(np.mean(errors, axis=0)).max() < 0.012


@pytest.mark.parametrize(("right", "most"), [(0.95, 0.5), (0.8, 0.8), (0.0, 1.3)])
def test_predictions_help_the_more_the_better_they_are_and_never_harm_much(right, most):
    errors = []
    for hidden, truth, estimate in draws(right=right):
        alone = labeled_proportions(np.bincount(hidden.labels, minlength=3))
        errors.append([np.abs(each.mean - truth).sum() for each in (estimate, alone)])
    with_predictions, without = np.mean(errors, axis=0)
    assert with_predictions < most * without


@pytest.mark.parametrize("right", [0.95, 0.8, 0.6])
@pytest.mark.parametrize("sizes", [SIZES, np.array([0.7, 0.3])], ids=["three classes", "two classes"])
def test_intervals_contain_the_true_sizes_in_about_nine_of_ten_draws(right, sizes):
    inside = [(estimate.low <= truth) & (truth <= estimate.high) for _, truth, estimate in draws(200, right, sizes)]
    assert 0.87 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("right", [0.0, 0.3, 0.8])
def test_random_labels_are_hardly_ever_contradicted_however_poor_the_predictions(right):
    assert np.mean([contradicts(hidden, np.ones(60, bool)) for hidden, *_ in draws(right=right)]) <= 0.07


def test_only_labels_drawn_at_random_count():
    errors, n_contradicted = [], 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        labels = np.concatenate((random_labels(rng, 80), np.full(80, 2)))  # another 80 were chosen from one class
        hidden, truth = simulated_predictions(rng, labels, SIZES, 0.8)
        estimate = estimate_sizes(hidden, np.arange(160) < 80)
        n_contradicted += contradicts(hidden, np.arange(160) < 80)
        errors.append(estimate.mean - truth)
    assert n_contradicted <= 2
    assert np.abs(np.mean(errors, axis=0)).max() < 0.02


def test_labels_that_were_never_hidden_count_as_labels():
    rng = np.random.default_rng(0)
    hidden, _ = simulated_predictions(rng, random_labels(rng), SIZES, 0.8)
    unseen = hidden._replace(was_hidden=np.zeros(60, bool), predicted=np.full((60, 3), np.nan))
    estimate = estimate_sizes(unseen, np.ones(60, bool))
    labeled = np.bincount(hidden.labels, minlength=3) / 60
    np.testing.assert_allclose(estimate.mean, labeled, atol=0.05)
    assert np.all(estimate.deviation >= labeled_proportions(60 * labeled).deviation)


# ---- labels that were chosen in another way


def by_class(rng, n, sizes):
    """As many labels of each class."""
    return np.repeat(np.arange(sizes.size), n // sizes.size)


@pytest.mark.parametrize("sizes", [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.85, 0.15]], ids=repr)
@pytest.mark.parametrize("right", [0.7, 0.9])
def test_labels_chosen_by_class_give_the_sizes_that_explain_the_predictions(sizes, right):
    sizes, errors = np.array(sizes), []
    for hidden, truth, _ in draws(30, right, sizes, labels=by_class):
        assert contradicts(hidden, np.ones(60, bool))  # they are not as many of each class as there are rows
        estimate = estimate_sizes(hidden, np.zeros(60, bool))
        errors.append([np.abs(each - truth).sum() for each in (estimate.mean, hidden.unlabeled)])
    adjusted, counted = np.mean(errors, axis=0)
    assert adjusted < 0.8 * counted
    assert adjusted < 0.5 * np.abs(sizes - 1 / sizes.size).sum()


def doubtful_labels(rng, sizes=SIZES, n=2000):
    """Labels of 60 rows among the quarter that is least clear, and of five rows of each class; also the true sizes."""
    truth = rng.choice(sizes.size, size=n, p=sizes)
    predicted = np.sqrt(sizes) * np.exp(2.5 * (2.5 * np.eye(sizes.size)[truth] + rng.normal(size=(n, sizes.size))))
    predicted = 0.95 * predicted / predicted.sum(axis=1, keepdims=True) + 0.05 / sizes.size
    asked = rng.permutation(np.argsort(predicted.max(axis=1))[: n // 4])[:60]
    labeled = np.concatenate((asked, *(np.flatnonzero(truth == k)[-5:] for k in range(sizes.size))))
    rest = np.setdiff1d(np.arange(n), labeled)
    means = predicted[rest].mean(axis=0), rest.size, float(predicted[rest].max(axis=1).mean())
    hidden = HiddenLabels(truth[labeled], predicted[labeled], np.ones(labeled.size, bool), *means)
    return hidden, np.bincount(truth[rest], minlength=sizes.size) / rest.size


@pytest.mark.parametrize(
    "sizes", [SIZES, np.array([0.6, 0.2, 0.08, 0.06, 0.06])], ids=["three classes", "five classes"]
)
def test_labels_of_doubtful_rows_are_weighted_to_be_as_clear_as_others(sizes):
    errors = []
    for seed in range(30):
        hidden, truth = doubtful_labels(np.random.default_rng(seed), sizes)
        each = hidden, hidden._replace(confidence=np.nan)  # without a mean confidence rows count equally
        errors.append([np.abs(estimate_sizes(one, np.zeros(one.labels.size, bool)).mean - truth).sum() for one in each])
    weighted, plain = np.mean(errors, axis=0)
    assert weighted < 0.8 * plain


def test_too_few_random_labels_are_not_relied_on():
    rng = np.random.default_rng(0)
    hidden, _ = simulated_predictions(rng, random_labels(rng), SIZES, 0.8)
    none = estimate_sizes(hidden, np.zeros(60, bool))
    few = estimate_sizes(hidden, np.arange(60) < MIN_SAMPLED - 1)
    np.testing.assert_array_equal(few.mean, none.mean)


def test_estimates_are_finite_for_extreme_predictions():
    for predicted, unlabeled in (
        (np.eye(2)[np.zeros(12, int)], np.array([1.0, 0.0])),
        (np.eye(2)[np.arange(12) % 2], np.array([0.0, 1.0])),
        (np.full((12, 2), 0.5), np.array([0.5, 0.5])),
    ):
        for sampled in (True, False):
            hidden = HiddenLabels(np.arange(12) % 2, predicted, np.ones(12, bool), unlabeled, 1)
            estimate = estimate_sizes(hidden, np.full(12, sampled))
            assert estimate.mean.sum() == pytest.approx(1.0)
            assert np.all(estimate.mean >= 0)
            assert np.all((estimate.low <= estimate.mean + 1e-9) & (estimate.mean <= estimate.high + 1e-9))


# ---- fits


def fit(X, y, sampled=None, **parameters):
    return TransductiveClassifier(annealing="paper", random_state=0, **parameters).fit(X, y, sampled=sampled)


def test_estimated_sizes_of_a_fit_are_closer_than_labelled_proportions():
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        truth = rng.choice(3, 400, p=SIZES)
        X = 2.5 * np.eye(3)[truth] + rng.normal(0, 1, (400, 3))
        y = np.where(np.arange(400) < 25, truth, -1)
        if np.unique(y[:25]).size < 3:
            continue
        fractions = np.bincount(truth[25:], minlength=3) / 375
        model = fit(X, y)
        assert model.size_estimate_.mean.sum() == pytest.approx(1.0)
        labeled = labeled_proportions(np.bincount(truth[:25], minlength=3)).mean
        found = model.size_estimate_.mean, model.class_counts_ / 375, labeled
        errors.append([np.abs(each - fractions).sum() for each in found])
    estimated, counted, labeled = np.mean(errors, axis=0)
    assert max(estimated, counted) < 0.8 * labeled


def test_equal_numbers_of_labels_do_not_decide_class_sizes():
    X, y, marked = balanced_labels(np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(X, marked)
    assert model.prior_diagnostics_.balanced_labels
    with pytest.warns(PriorWarning, match=r"class_prior='labeled' treats the labels.*Use class_prior='estimate'"):
        labeled = fit(X, marked, class_prior="labeled").class_counts_
    truth = np.bincount(y[marked < 0])
    assert abs(model.class_counts_[0] - truth[0]) < 0.7 * abs(labeled[0] - truth[0])


def test_users_say_which_labels_are_a_random_sample():
    X, y, marked = balanced_labels(np.random.default_rng(1))
    chosen = fit(X, marked, sampled=False)
    np.testing.assert_array_equal(chosen.size_estimate_.mean, fit(X, marked).size_estimate_.mean)
    extra = marked.copy()
    extra[np.flatnonzero((y == 0) & (marked < 0))[:8]] = 0  # twice as many labels of the small class
    truth = np.bincount(y[extra < 0])[0] / (extra < 0).sum()
    chosen, drawn = (fit(X, extra, sampled).size_estimate_.mean[0] for sampled in (False, True))
    assert truth < chosen < drawn


def test_a_mask_marks_the_random_labels_among_others():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 500, p=SIZES)
    X = 2.5 * np.eye(3)[truth] + rng.normal(0, 1, (500, 3))
    y, sampled = np.full(500, -1), np.zeros(500, bool)
    sampled[:40], y[:40] = True, truth[:40]
    queue = np.flatnonzero((truth == 2) & (y < 0))[:20]
    y[queue] = 2
    fractions = np.bincount(truth[y < 0]) / (y < 0).sum()
    found, misled = (np.abs(fit(X, y, flags).size_estimate_.mean - fractions).sum() for flags in (sampled, True))
    assert found < 0.2
    assert found < misled
    unlabeled_too = sampled.copy()
    unlabeled_too[y < 0] = True  # says nothing
    np.testing.assert_array_equal(fit(X, y, unlabeled_too).size_estimate_.mean, fit(X, y, sampled).size_estimate_.mean)


@pytest.mark.parametrize("sampled", ["yes", 1, [True, False], np.ones(456), np.ones((456, 1), bool)], ids=repr)
def test_a_mask_that_does_not_fit_the_rows_is_refused(sampled):
    X, _, marked = balanced_labels(np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"sampled must be True, False, or one of these for each of the 440 rows, but"):
        fit(X, marked, sampled)


def test_estimates_from_balanced_labels_respect_partial_labels():
    X, y, marked = balanced_labels(np.random.default_rng(2))
    partial = [{0, 1} if k < 0 and row % 3 == 0 else k for row, k in enumerate(marked.tolist())]
    partial = [{1} if y[row] == 1 and row % 5 == 0 and k == -1 else k for row, k in enumerate(partial)]
    model = fit(X, partial)
    assert model.class_counts_.sum() == sum(k == -1 or k == {0, 1} for k in partial)


def test_sample_weights_do_not_hide_balanced_labels():
    X, _, marked = balanced_labels(np.random.default_rng(1))
    model = TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked, np.where(marked == 0, 3.0, 1.0))
    assert model.prior_diagnostics_.balanced_labels
    assert model.size_estimate_.mean[0] < 0.35


# ---- sizes of a few classes


def news(seed, n=500, n_labeled=60):
    """Documents of eight classes, two of them with four fifths of the rows; all classes share most of their words."""
    rng = np.random.default_rng(seed)
    sizes = np.array([0.5, 0.3, 0.06, 0.04, 0.03, 0.03, 0.02, 0.02])
    truth = np.concatenate((np.repeat(np.arange(8), 2), rng.choice(8, size=n - 16, p=sizes)))
    words = rng.dirichlet(np.full(300, 0.1)) + 0.35 * rng.dirichlet(np.full(300, 0.03), size=8)
    X = np.array([rng.multinomial(40, words[k] / words[k].sum()) for k in truth], dtype=float)
    X = np.log1p(X) / np.maximum(np.linalg.norm(np.log1p(X), axis=1, keepdims=True), 1e-9)
    return X, truth, np.where(np.arange(n) < n_labeled, truth, -1), sizes


def test_the_size_of_the_largest_class_alone_does_no_harm():
    scores = []
    for seed in range(3):
        X, truth, y, sizes = news(seed)
        models = [fit(X, y, class_prior=prior) for prior in ({0: float(sizes[0])}, "estimate")]
        scores.append([f1_score(truth[y < 0], each.transduction_[y < 0], average="macro") for each in models])
    one_size, nothing = np.mean(scores, axis=0)
    assert one_size > nothing - 0.02
    assert nothing > 0.4
