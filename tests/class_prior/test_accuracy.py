"""Estimated accuracy and macro F: formulas, weights of labels chosen by class, and coverage in simulations."""

import warnings

import numpy as np
import pytest
from helpers.class_sizes import balanced_labels
from scipy.special import softmax
from sklearn.metrics import f1_score

from transduce import TransductiveClassifier
from transduce.class_prior import accuracy
from transduce.class_prior.accuracy import estimate_accuracy, macro_f
from transduce.class_prior.estimation import HiddenLabels
from transduce.errors import PriorWarning

SIZES = np.array([0.6, 0.3, 0.1])


def simulate(rng, labels, sharpness=1.0, n_unlabeled=2000):
    """Hidden labels, the mean confidence in labels of other rows, and their accuracy; sharpness 1 is calibrated."""

    def predict(truth):
        scores = 2.5 * np.eye(3)[truth] + rng.normal(size=(truth.size, 3))
        return softmax(sharpness * (2.5 * scores + np.log(SIZES)), axis=1)

    truth = rng.choice(3, size=n_unlabeled, p=SIZES)
    predicted, others = predict(labels), predict(truth)
    hidden = HiddenLabels(labels, predicted, np.ones(labels.size, bool), others.mean(axis=0), n_unlabeled)
    return hidden, others.max(axis=1).mean(), np.mean(others.argmax(axis=1) == truth)


@pytest.mark.parametrize("seed", range(5))
def test_macro_f_is_that_of_scikit_learn_over_the_classes_that_occur(seed):
    rng = np.random.default_rng(seed)
    labels, guesses, weights = rng.integers(4, size=30), rng.integers(5, size=30), rng.random(30)
    present = np.unique(labels)
    expected = f1_score(labels, guesses, labels=present, average="macro")
    assert macro_f(labels, guesses, np.ones(6)) == pytest.approx(expected)
    expected = f1_score(labels, guesses, labels=present, average="macro", sample_weight=weights)
    assert macro_f(labels, guesses, np.ones(6), weights) == pytest.approx(expected)
    twice = np.append(labels, np.full(30, 7)), np.append(guesses, guesses)  # half of the rows are of another class
    expected = f1_score(*twice, labels=present, average="macro")
    assert macro_f(labels, guesses, np.ones(6), None, 0.5) == pytest.approx(expected)
    classes = rng.random(6)
    each = f1_score(labels, guesses, labels=present, average=None)
    assert macro_f(labels, guesses, classes) == pytest.approx(np.average(each, weights=classes[present]))


def test_labels_that_are_the_only_one_of_their_class_hint_at_classes_without_any():
    labels, sizes = np.array([0, 0, 1, 1, 2]), np.array([0.4, 0.4, 0.2])
    hidden = HiddenLabels(labels, np.full((5, 3), 1 / 3), np.arange(5) < 4, sizes, 100)
    assert estimate_accuracy(hidden, 0.9, sizes, True).n_single == 1
    assert estimate_accuracy(hidden, 0.9, sizes, False).n_single == 1
    assert estimate_accuracy(hidden, 0.9, sizes, True, is_complete=True).n_single == 0


def test_errors_on_hidden_labels_correct_the_confidence():
    labels = np.array([0, 0, 1, 1])
    predicted = np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.2, 0.8]])
    hidden = HiddenLabels(labels, predicted, np.ones(4, bool), np.array([0.5, 0.5]), 100)
    estimate = estimate_accuracy(hidden, 0.9, np.array([0.5, 0.5]), True)
    assert estimate.mean == pytest.approx(0.9 + 3 / 4 - (0.9 + 0.7 + 0.6 + 0.8) / 4)
    assert estimate.low <= estimate.mean <= estimate.high <= 1.0
    assert estimate.n_labels == 4
    never = HiddenLabels(np.append(labels, 0), np.vstack((predicted, [0.5, 0.5])), np.arange(5) < 4, *hidden[3:])
    assert estimate_accuracy(never, 0.9, np.array([0.5, 0.5]), True) == estimate


@pytest.mark.parametrize("sharpness", [pytest.param(0.3, marks=pytest.mark.slow), 1.0, 3.0])
@pytest.mark.parametrize("is_sample", [True, False], ids=["random labels", "labels by class"])
def test_intervals_contain_the_accuracy_at_least_as_often_as_they_say(monkeypatch, is_sample, sharpness):
    monkeypatch.setattr(accuracy, "N_RESAMPLES", 2)  # which are for macro F
    inside, errors = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, size=60, p=SIZES) if is_sample else np.repeat(np.arange(3), 20)
        hidden, confidence, truth = simulate(rng, labels, sharpness)
        estimate = estimate_accuracy(hidden, confidence, SIZES, is_sample)
        inside.append(estimate.low <= truth <= estimate.high)
        errors.append(estimate.mean - truth)
    shrunk = is_sample and sharpness != 1.0  # random labels are expected to have calibrated the confidence before
    assert np.mean(inside) >= (0.8 if shrunk else 0.9)  # room for a classifier that is not quite that of hidden labels
    assert abs(np.mean(errors)) < 0.025


def test_labels_chosen_by_class_are_weighted_by_the_sizes():
    labels = np.repeat([0, 1], 10)
    predicted = np.where(labels[:, None] == 0, [[0.8, 0.2]], [[0.8, 0.2]])  # all class 1 labels are wrong
    hidden = HiddenLabels(labels, predicted, np.ones(20, bool), np.array([0.8, 0.2]), 100)
    assert estimate_accuracy(hidden, 0.8, np.array([0.9, 0.1]), False).mean == pytest.approx(0.9)
    assert 0.5 < estimate_accuracy(hidden, 0.8, np.array([0.9, 0.1]), True).mean < 0.55  # shrunk a little


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_a_fit_estimates_its_accuracy(loss):
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 500, p=SIZES)
    X = 2.0 * np.eye(3)[truth] + rng.normal(0, 1, (500, 3))
    y = np.where(np.arange(500) < 60, truth, -1)
    model = TransductiveClassifier(loss, annealing="paper", random_state=0).fit(X, y)
    estimate, fraction = model.accuracy_estimate_, np.mean((model.transduction_ == truth)[60:])
    assert estimate.low < estimate.mean < estimate.high
    assert abs(estimate.mean - fraction) < 0.1
    assert estimate.macro_f_low <= estimate.macro_f <= estimate.macro_f_high
    assert estimate.n_labels == 60
    again = TransductiveClassifier(loss, annealing="paper", random_state=0).fit(X, y)
    assert again.accuracy_estimate_ == estimate


@pytest.mark.parametrize("prior", ["labeled", [200, 224]], ids=str)
def test_labels_are_hidden_for_the_accuracy_alone_if_asked(prior):
    X, truth, marked = balanced_labels(np.random.default_rng(0))
    models = []
    for hide in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorWarning)
            model = TransductiveClassifier(
                class_prior=prior, annealing="paper", random_state=0, estimate_accuracy=hide
            ).fit(X, marked)
        models.append(model)
    without, with_hidden = models
    assert without.accuracy_estimate_ is None
    assert without.calibration_ == (1.0, 0.0)
    assert np.array_equal(without.transduction_, with_hidden.transduction_)
    assert np.array_equal(without.coef_, with_hidden.coef_)
    assert np.array_equal(without.size_estimate_.mean, with_hidden.size_estimate_.mean)
    assert with_hidden.calibration_.smoothing > 0
    estimate = with_hidden.accuracy_estimate_
    unlabeled = marked == -1
    assert estimate.low <= np.mean((with_hidden.transduction_ == truth)[unlabeled]) <= estimate.high


def test_hidden_labels_are_read_from_a_checkpoint_and_added_to_one(tmp_path):
    X, _, marked = balanced_labels(np.random.default_rng(0))
    rounds: list[int] = []
    found = []
    for hide, fraction in ((False, None), (True, None), (True, 0.1)):
        model = TransductiveClassifier(
            class_prior=[200, 224], annealing="paper", random_state=0, estimate_accuracy=hide,
            outlier_fraction=fraction, checkpoint=tmp_path, verbose=lambda row: rounds.append(row.restart),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorWarning)
            model.fit(X, marked)
        found.append((set(rounds), model.accuracy_estimate_))
        rounds.clear()
    assert [each[0] for each in found] == [{0}, {-1, -2, -3, -4, -5}, set()]
    assert found[0][1] is None
    assert found[1][1] is not None
    assert found[2][1].n_labels == found[1][1].n_labels
    assert model.outlier_score_ > -np.inf


def singles(n_checked=40, n_alone=10):
    """Hidden labels of two classes, all right, and single labels of others; confidence .8 in all."""
    labels = np.concatenate((np.arange(n_checked) % 2, 2 + np.arange(n_alone)))
    predicted = np.full((labels.size, 2 + n_alone), 0.2 / (1 + n_alone))
    predicted[np.arange(labels.size), labels] = 0.8
    was_hidden = np.arange(labels.size) < n_checked
    return HiddenLabels(labels, predicted, was_hidden, predicted.mean(axis=0), 1000, 0.8)


def test_single_labels_of_a_random_sample_count_as_errors():
    """Good-Turing: a fifth of the labels are single, so about a fifth of the rows is of classes without a label."""
    hidden = singles()
    sizes = np.full(12, 1 / 12)
    estimate = estimate_accuracy(hidden, 0.8, sizes, is_sample=True)
    assert estimate.mean == pytest.approx(0.8)
    assert estimate.low < 0.72
    assert estimate_accuracy(hidden, 0.9, sizes, is_sample=True).mean == pytest.approx(0.9)  # the last fit is surer
    complete = estimate_accuracy(hidden, 0.8, sizes, is_sample=True, is_complete=True)
    assert complete.mean == pytest.approx(1.0)
    assert complete.low < estimate_accuracy(singles(n_alone=0), 0.8, np.full(2, 0.5), True, True).low - 0.02


def test_classes_with_one_label_are_represented_by_those_with_few():
    """Class 0 has 20 labels, all right; five classes have two, all wrong; ten have one. All sizes are the same."""
    labels = np.concatenate((np.zeros(20, int), np.repeat(np.arange(1, 6), 2), np.arange(6, 16)))
    guess = np.where(labels == 0, 0, 15 - labels)
    predicted = np.full((labels.size, 16), 0.4 / 15)
    predicted[np.arange(labels.size), guess] = 0.6
    hidden = HiddenLabels(labels, predicted, labels < 6, predicted.mean(axis=0), 1000, 0.6)
    estimate = estimate_accuracy(hidden, 0.6, np.full(16, 1 / 16), is_sample=False)
    assert estimate.mean == pytest.approx(1 / 16)
    assert estimate.macro_f == pytest.approx(1 / 16)
    unknown = np.append(np.full(16, 1 / 32), 0.5)  # half of the rows are of a class without labels
    more = np.column_stack((predicted, np.zeros(labels.size)))
    hidden = HiddenLabels(labels, more, labels < 6, more.mean(axis=0), 1000, 0.6)
    estimate = estimate_accuracy(hidden, 0.6, unknown, is_sample=False)
    assert estimate.mean == pytest.approx(1 / 32)
    assert estimate.macro_f == pytest.approx(2 / 3 / 16)  # half of the rows that class 0 gets are not of it


def test_accuracy_with_classes_that_nobody_labelled(monkeypatch):
    """Eighty classes of falling size, sixty random labels: without the single labels, it would be far too high."""
    monkeypatch.setattr(accuracy, "N_RESAMPLES", 2)
    errors, naive = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sizes = 1.0 / np.arange(1, 81)
        truth = rng.choice(80, size=2060, p=sizes / sizes.sum())
        labels, rest = truth[:60], truth[60:]
        n_left = np.bincount(labels, minlength=80)
        right = lambda k, n, rng=rng: rng.random(k.size) < np.where(n > 0, 1 - 0.5 / np.maximum(n, 1), 0.0)  # noqa: E731
        fraction = right(rest, n_left[rest]).mean()
        was_hidden = n_left[labels] > 1
        hit = right(labels, n_left[labels] - 1)
        predicted = np.full((60, 80), 0.3 / 79)
        predicted[np.arange(60), np.where(hit, labels, (labels + 1) % 80)] = 0.7
        hidden = HiddenLabels(labels, predicted, was_hidden, predicted.mean(axis=0), 2000, 0.7)
        errors.append(estimate_accuracy(hidden, 0.7, sizes / sizes.sum(), True).mean - fraction)
        naive.append(hit[was_hidden].mean() - fraction)
    assert abs(np.mean(errors)) < 0.02
    assert np.mean(naive) > 0.15


def test_hidden_labels_of_empty_classes_count_equally():
    hidden = HiddenLabels(
        np.array([0, 0]), np.array([[0.9, 0.1], [0.4, 0.6]]), np.ones(2, bool), np.array([0.0, 1.0]), 10
    )
    estimate = estimate_accuracy(hidden, 0.8, np.array([0.0, 1.0]), False)
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


def test_labels_without_an_error_leave_room_for_errors():
    predicted = np.tile([1.0, 0.0], (60, 1))
    hidden = HiddenLabels(np.zeros(60, int), predicted, np.ones(60, bool), np.array([1.0, 0.0]), 1000)
    estimate = estimate_accuracy(hidden, 1.0, np.array([1.0, 0.0]), True)
    assert estimate.mean == estimate.high == 1.0
    assert 0.95 < estimate.low < 0.985
