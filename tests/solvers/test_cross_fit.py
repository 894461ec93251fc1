"""Fits with hidden labels: which rows and labels they see, what they return, interruptions and checkpoints."""

import numpy as np
import pytest
from helpers.solver_problems import N_LABELED, N, alternation, blobs, known_labels, stop_after

from transduce import TransductiveClassifier
from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.design import Design
from transduce.engines.base import LabelOptions, ProblemSettings
from transduce.engines.local import LocalData, LocalEngine
from transduce.history import FitResult, FitStatus
from transduce.io.checkpoint import Checkpoint
from transduce.losses import LargeMargin, MaxEnt
from transduce.problem import TrainingProblem
from transduce.solvers import cross_fit as module
from transduce.solvers.cross_fit import (
    N_FOLDS,
    Calibration,
    CrossFit,
    assign_folds,
    cross_fit,
    hide_labels,
)
from transduce.solvers.loop import FitContext
from transduce.taxonomy import Taxonomy

N_UNLABELED = N - N_LABELED


def believed(counts=None):
    """A belief in the true counts, or in these."""
    counts = np.bincount(blobs()[1][N_LABELED:], minlength=4) if counts is None else np.asarray(counts)
    return Bounds(np.zeros_like(counts), np.full_like(counts, counts.sum()), None, Belief.create(counts, 4.0))


def context(on_round=lambda row: None, seed=1):
    return FitContext(np.random.default_rng(0), np.random.default_rng(seed), on_round, Checkpoint())


def problem(loss=None):
    run = alternation(loss or MaxEnt())
    return LocalEngine(run.problem, known_labels()), run.settings


# ---- folds


def test_the_labels_of_each_class_are_divided_evenly():
    labels = np.random.default_rng(0).choice(4, p=[0.5, 0.3, 0.15, 0.05], size=103)
    fold = assign_folds(labels, np.random.default_rng(1))
    sizes = np.array([np.bincount(fold[labels == k], minlength=N_FOLDS) for k in range(4)])
    assert np.all(np.ptp(sizes, axis=1) <= 1)
    assert np.ptp(sizes.sum(axis=0)) <= 1


def test_the_only_label_of_a_class_is_never_hidden():
    labels = np.array([0, 1, 1, 2, 3, 3, 3])
    fold = assign_folds(labels, np.random.default_rng(0))
    assert np.flatnonzero(fold < 0).tolist() == [0, 3]
    assert assign_folds(np.arange(4), np.random.default_rng(0)).tolist() == [-1] * 4
    for number in range(fold.max() + 1):
        assert set(labels[fold != number]) == set(labels)


def test_fewer_labels_than_folds_make_fewer_folds():
    assert sorted(assign_folds(np.array([0, 0, 1]), np.random.default_rng(0)).tolist()) == [-1, 0, 1]


# ---- hidden labels


def engine_of(y, weights=None, partial_as_labeled=False):
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    data = LocalData(X, y, weights)
    data.encode(LabelOptions("labeled", None, "auto"))
    return data.build(ProblemSettings(MaxEnt(), 1e-2, True, partial_as_labeled, 1))


def in_order_of_y(engine, order):
    """X, row weights, allowed labels and labels, -1 for unlabelled rows, of the rows in the order of y."""
    problem, back = engine.problem, np.argsort(order)
    labeled = np.arange(problem.n_rows) < problem.n_labeled
    allowed = np.ones((problem.n_rows, problem.n_classes), bool)
    if problem.forbidden is not None:
        allowed[problem.n_labeled :] = ~problem.forbidden
    parts = problem.design.matrix(), problem.row_weights, allowed, np.where(labeled, engine.labels, -1)
    return [part[back] for part in parts]


Y = ["a", None, "b", {"a", "b"}, "a", None, "c", "b", {"b", "c"}, "c", None, "a", {"a", "c"}]


@pytest.mark.parametrize("partial_as_labeled", [False, True])
@pytest.mark.parametrize("partial", [False, True])
def test_hidden_labels_make_the_problem_of_y_without_them(partial, partial_as_labeled):
    y = [None if isinstance(label, set) and not partial else label for label in Y]
    engine = engine_of(y, partial_as_labeled=partial_as_labeled)
    hidden = np.array([False, True, True, False, False, False, False])  # of the labels a b a c b c a
    found, position = hide_labels(engine, hidden)
    blanked = list(y)
    for row in (2, 4):
        blanked[row] = None
    expected = engine_of(blanked, partial_as_labeled=partial_as_labeled)
    order = np.empty_like(engine.order)
    order[position] = engine.order
    for one, other in zip(in_order_of_y(found, order), in_order_of_y(expected, expected.order), strict=True):
        np.testing.assert_allclose(one, other)
    assert found.problem.n_partial == expected.problem.n_partial
    assert (found.n_unlabeled, found.problem.n_labeled) == (expected.n_unlabeled, 5)


def test_a_hidden_row_weighs_as_much_as_an_unlabelled_one():
    weights = np.linspace(1.0, 3.0, len(Y))
    engine = engine_of([None if isinstance(label, set) else label for label in Y], weights)
    hidden = np.arange(7) == 1
    found, _ = hide_labels(engine, hidden)
    own, others = found.problem.row_weights[6], found.problem.row_weights[7:]
    assert own == pytest.approx(others.mean())
    assert found.problem.row_weights[:6].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        found.problem.row_weights[:6] / found.problem.row_weights[0],
        (engine.problem.row_weights[:7] / engine.problem.row_weights[0])[~hidden],
    )


# ---- fits


@pytest.mark.parametrize("loss", [MaxEnt(), LargeMargin()], ids=["maxent", "hinge"])
def test_every_label_is_scored_by_a_fit_that_it_was_hidden_from(loss):
    rows = []
    engine, settings = problem(loss)
    found = cross_fit(engine, believed(), settings, context(rows.append))
    assert {row.restart for row in rows} == {-1, -2, -3, -4, -5}
    assert found.scores.shape == (N_LABELED, 4)
    assert found.unlabeled.shape == (N_FOLDS, N_UNLABELED, 4)
    np.testing.assert_array_equal(found.labels, known_labels()[:N_LABELED])
    hidden = found.hidden_labels(found.calibration())
    np.testing.assert_allclose(hidden.predicted[hidden.was_hidden].sum(axis=1), 1.0)
    assert hidden.unlabeled.sum() == pytest.approx(1.0)
    assert hidden.n_unlabeled == N_UNLABELED
    right = (hidden.predicted.argmax(axis=1) == hidden.labels)[hidden.was_hidden]
    assert right.mean() > 0.6


def test_labels_do_not_leak_into_their_predictions():
    rng, n_labeled = np.random.default_rng(0), 80
    labels = rng.integers(2, size=n_labeled + 40)  # nothing predicts them, but each row has a feature of its own
    design = Design.create(np.eye(labels.size), Taxonomy.flat(range(2)))
    engine = LocalEngine(TrainingProblem.create(design, MaxEnt(), 1e-2, n_labeled), labels)
    found = cross_fit(engine, believed([20, 20]), problem()[1], context())
    accuracy = np.mean(found.scores.argmax(axis=1) == found.labels)
    assert abs(accuracy - 0.5) < 0.2


def test_the_same_seed_gives_the_same_scores():
    engine, settings = problem()
    one, same, other = (cross_fit(engine, believed(), settings, context(seed=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.scores, same.scores)
    np.testing.assert_array_equal(one.unlabeled, same.unlabeled)
    assert not np.array_equal(one.fold, other.fold)


def test_a_sample_of_many_rows_takes_part(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 50)
    engine, settings = problem()
    found = cross_fit(engine, believed(), settings, context())
    assert found.unlabeled.shape == (N_FOLDS, 50, 4)
    all_rows = np.bincount(blobs()[1][N_LABELED:], minlength=4) / N_UNLABELED
    assert np.abs(found.hidden_labels(Calibration()).unlabeled - all_rows).max() < 0.15


def test_nothing_is_hidden_if_every_class_has_one_label():
    engine, settings = problem()
    few = TrainingProblem.create(engine.problem.design, MaxEnt(), 1e-2, 4)
    assert cross_fit(LocalEngine(few, known_labels()), believed([64] * 4), settings, context()) is None
    X, truth = blobs()
    model = TransductiveClassifier(annealing="paper", random_state=0).fit(X, np.where(np.arange(N) < 4, truth, -1))
    np.testing.assert_allclose(model.size_estimate_.mean, 0.25)
    assert model.calibration_ == (1.0, 0.0)
    assert model.accuracy_estimate_ is None


def test_two_classes():
    X, truth = blobs()
    truth = truth % 2
    model = TransductiveClassifier("maxent", annealing="paper", random_state=0)
    model.fit(X, np.where(np.arange(N) < N_LABELED, truth, -1))
    assert model.size_estimate_.mean.shape == (2,)
    assert abs(model.size_estimate_.mean[0] - np.mean(truth[N_LABELED:] == 0)) < 0.15


# ---- calibration


@pytest.mark.parametrize("true_temperature", [0.5, 1.0, 4.0])
def test_calibrated_probabilities_are_those_that_labels_were_drawn_from(true_temperature):
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=3.0, size=(2000, 3))
    noise = true_temperature * rng.gumbel(size=scores.shape)
    labels = (scores + noise).argmax(axis=1)  # a draw of softmax(scores / T)
    found = CrossFit(labels, np.zeros(2000, int), scores, scores[None], MaxEnt())
    calibration = found.calibration()
    assert calibration.temperature == pytest.approx(true_temperature, rel=0.3)
    probabilities = calibration.probabilities(MaxEnt(), scores)
    assert np.abs(probabilities - MaxEnt().posterior(scores / true_temperature)).mean() < 0.02


@pytest.mark.parametrize("true_smoothing", [0.05, 0.2])
def test_smoothing_is_the_fraction_of_labels_that_scores_say_nothing_about(true_smoothing):
    rng = np.random.default_rng(1)
    scores = rng.normal(scale=3.0, size=(4000, 4))
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    labels = np.where(rng.random(4000) < true_smoothing, rng.integers(4, size=4000), labels)
    found = CrossFit(labels, np.zeros(4000, int), scores, scores[None], MaxEnt())
    assert found.calibration().smoothing == pytest.approx(true_smoothing, abs=0.03)
    assert found.calibration().temperature == pytest.approx(1.0, rel=0.1)


def test_the_temperature_of_few_labels_stays_near_1():
    scores = np.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    right, wrong = (
        CrossFit(labels, np.zeros(3, int), scores, scores[None], MaxEnt()).calibration().temperature
        for labels in (np.array([0, 1, 0]), np.array([1, 0, 1]))
    )
    assert 0.5 < right <= 1.0 < wrong < 10.0


def test_probabilities_of_a_loss_without_a_posterior_are_a_softmax():
    scores = np.random.default_rng(0).normal(size=(5, 3))
    calibration = Calibration(2.0, 0.1)
    probabilities = calibration.probabilities(object(), scores)
    np.testing.assert_allclose(probabilities, calibration.probabilities(MaxEnt(), scores))
    np.testing.assert_allclose(probabilities, 0.9 * MaxEnt().posterior(scores / 2.0) + 0.1 / 3)


# ---- interruptions and checkpoints


@pytest.mark.parametrize("n_rounds", [2, 60])
def test_an_interruption_keeps_the_present_fit(n_rounds):
    engine, settings = problem()
    found = cross_fit(engine, believed(), settings, context(stop_after(n_rounds)))
    assert isinstance(found, FitResult)
    assert found.status is FitStatus.INTERRUPTED
    np.testing.assert_array_equal(found.labels[:N_LABELED], known_labels()[:N_LABELED])
    truth = blobs()[1]
    assert np.mean(found.labels[N_LABELED:] == truth[N_LABELED:]) > 0.5
    scores = engine.problem.design.scores(found.W)
    assert np.mean(scores.argmax(axis=1) == found.labels) > 0.6  # labels are in the order of the rows


def test_an_interruption_with_a_sample_of_the_rows_has_no_result(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 50)
    engine, settings = problem()
    with pytest.raises(KeyboardInterrupt):
        cross_fit(engine, believed(), settings, context(stop_after(2)))


def test_an_interrupted_fit_has_its_attributes():
    X, truth = blobs()
    y = np.where(np.arange(N) < N_LABELED, truth, -1)
    model = TransductiveClassifier(verbose=stop_after(3), random_state=0).fit(X, y)
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    assert model.size_estimate_.mean.sum() == pytest.approx(1.0)
    assert (model.calibration_, model.accuracy_estimate_) == ((1.0, 0.0), None)
    assert np.mean(model.transduction_ == truth) > 0.5


@pytest.mark.parametrize(
    ("restart", "left", "stage"),
    [
        (-1, 6, 4),
        (0, 1, 0),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((-1, 6, 0), (-3, 4, 0), (-3, 4, 4), (0, 1, 4))),
    ],
)
def test_a_stopped_fit_continues_from_its_checkpoint(restart, left, stage, tmp_path):
    X, truth = blobs()
    y = np.where(np.arange(N) < N_LABELED, truth, -1)
    how = {"annealing": "paper", "random_state": 0, "n_jobs": 1}
    undisturbed = TransductiveClassifier(**how).fit(X, y)

    def stop(row):
        if row.restart == restart and row.stage == stage:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        TransductiveClassifier(checkpoint=tmp_path, verbose=stop, **how).fit(X, y)
    rows = []
    resumed = TransductiveClassifier(checkpoint=tmp_path, verbose=rows.append, **how).fit(X, y)
    assert len({row.restart for row in rows}) == left
    np.testing.assert_array_equal(resumed.coef_, undisturbed.coef_)
    np.testing.assert_array_equal(resumed.size_estimate_.mean, undisturbed.size_estimate_.mean)
    assert resumed.accuracy_estimate_ == undisturbed.accuracy_estimate_
