"""Soft annealing: the true J, no worse than the paper's schedule; counts, threads and interrupts."""

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from helpers.solver_checks import check_labels, true_objective
from helpers.solver_problems import (
    FLAT,
    LOSSES,
    N_LABELED,
    TREE,
    AnnealingRun,
    N,
    alternation,
    annealing,
    blobs,
    known_labels,
)
from scipy import sparse
from sklearn.base import clone

from transduce import TransductiveClassifier
from transduce.design import Design
from transduce.history import FitStatus
from transduce.label_step import METHODS, LabelProblem
from transduce.losses import LargeMargin
from transduce.problem import TrainingProblem
from transduce.solvers.alternating import Settings
from transduce.solvers.annealing import COLD, MIN_IMPROVEMENT
from transduce.solvers.schedule import COOLINGS, N_STAGES, ROUNDS, cooling_schedules
from transduce.taxonomy import Taxonomy
from transduce.weight_step import weight_step_for

N_RESTARTS = 1 + len(COOLINGS)
LARGE_MARGIN = LargeMargin()


class Own:
    """A user's loss of labels, the squared distance of the scores from 1 for the label and 0 for others."""

    def label_costs(self, scores):
        scores = np.asarray(scores)
        return (scores**2).sum(axis=1, keepdims=True) - 2.0 * scores + 1.0

    def value(self, scores, labels):
        return self.label_costs(scores)[np.arange(len(labels)), labels]

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1], dtype=scores.dtype)[labels])


every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
WITH_OWN = LOSSES | {"own": Own()}
every_loss_and_own = pytest.mark.parametrize("loss", WITH_OWN.values(), ids=WITH_OWN)
flat_and_tree = pytest.mark.parametrize("taxonomy", [FLAT, TREE], ids=["flat", "tree"])
one_and_two_threads = pytest.mark.parametrize("n_threads", [1, 2])


def check_result(soft: AnnealingRun, result, seed: int = 0) -> None:
    """What holds for every complete run."""
    check_labels(soft, result, seed)
    assert result.objective == pytest.approx(true_objective(soft, result), rel=1e-9)
    assert result.status is FitStatus.CONVERGED
    assert {row.restart for row in result.history} == set(range(N_RESTARTS))


def paper_alone(seed: int = 0, **parts):
    """The paper's schedule with the random numbers that it has within soft annealing."""
    run = annealing(seed=seed, **parts).alternation
    return replace(run, rng=np.random.default_rng(seed)).run(known_labels(seed))


def without_seconds(result) -> list:
    return [replace(row, seconds=0.0) for row in result.history]


# ---- results


@every_loss_and_own
@flat_and_tree
def test_the_objective_is_true_and_at_most_a_little_above_that_of_the_papers_schedule(loss, taxonomy):
    soft = annealing(loss, taxonomy)
    result = soft.run(known_labels())
    check_result(soft, result)
    paper = paper_alone(loss=loss, taxonomy=taxonomy).objective
    assert result.objective <= (1.0 + MIN_IMPROVEMENT) * paper  # a restart that can hardly win does not go on


def hard_problem(seed: int, n_labeled: int = 4, loss=LARGE_MARGIN) -> tuple[AnnealingRun, np.ndarray]:
    """Classes that overlap so much, with one label each, that the restarts differ; and the true labels."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate((np.arange(4), rng.choice(4, size=N - 4)))
    X = 0.9 * rng.normal(size=(4, 15))[truth] + rng.normal(size=(N, 15))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    problem = TrainingProblem.create(Design.create(X, FLAT, n_jobs=1), loss, 1e-2, n_labeled)
    counts = np.bincount(truth[n_labeled:], minlength=4)
    soft = annealing(loss, seed=seed)
    return replace(soft, alternation=replace(soft.alternation, problem=problem, low=counts, high=counts)), truth


def test_the_restart_of_lowest_objective_wins_and_it_is_not_always_the_same():
    winners = set()
    for seed in range(12):
        soft, truth = hard_problem(seed)
        result = soft.run(truth)
        ends = {row.restart: row.objective for row in result.history}
        best = min(ends, key=lambda restart: ends[restart] * (1 - MIN_IMPROVEMENT if restart == 0 else 1))
        assert result.objective == ends[best] == pytest.approx(true_objective(soft, result), rel=1e-9)
        winners.add(best)
    assert len(winners) > 1


@every_loss
def test_the_last_labels_are_the_best_for_the_last_weights(loss):
    soft = annealing(loss)
    result = soft.run(known_labels())
    costs = loss.label_costs(soft.alternation.problem.design.scores(result.W)[N_LABELED:])
    best = METHODS["simplex"].solve(LabelProblem(costs, soft.alternation.low, soft.alternation.high)).cost
    assert costs[np.arange(len(costs)), result.labels[N_LABELED:]].sum() == pytest.approx(best, rel=1e-4)


@every_loss
@pytest.mark.parametrize("width", [5, 300])
def test_counts_may_be_ranges(loss, width):
    exact = annealing(loss)
    low, high = np.maximum(exact.alternation.low - width, 0), np.minimum(exact.alternation.high + width, N - N_LABELED)
    soft = replace(exact, alternation=replace(exact.alternation, low=low, high=high))
    check_result(soft, soft.run(known_labels()))


def test_a_class_may_have_no_unlabelled_rows():
    soft = annealing()
    counts = np.array([100, 0, 100, N - N_LABELED - 200])
    soft = replace(soft, alternation=replace(soft.alternation, low=counts, high=counts))
    check_result(soft, soft.run(known_labels()))


@every_loss
def test_sample_weights_are_those_of_the_objective(loss):
    weights = np.random.default_rng(0).choice([0.2, 1.0, 6.0], size=N)
    soft = annealing(loss, sample_weight=weights)
    result = soft.run(known_labels())
    check_result(soft, result)
    losses = loss.value(soft.alternation.problem.design.scores(result.W), result.labels)
    given, rest = weights[:N_LABELED], weights[N_LABELED:]
    expected = given @ losses[:N_LABELED] / given.sum() + rest @ losses[N_LABELED:] / rest.sum()
    penalty = 0.5 * soft.alternation.problem.alpha * (result.W**2).sum()
    assert result.objective == pytest.approx(penalty + expected, rel=1e-9)


def test_rows_of_no_weight_meet_the_counts_too():
    weights = np.ones(N)
    weights[-50:] = 0.0
    soft = annealing(sample_weight=weights)
    check_result(soft, soft.run(known_labels()))


@every_loss
def test_float32_stays(loss):
    soft = annealing(loss)
    design = Design.create(blobs()[0].astype(np.float32), FLAT, n_jobs=1)
    small = replace(soft.alternation, problem=replace(soft.alternation.problem, design=design))
    result = replace(soft, alternation=small).run(known_labels())
    assert result.W.dtype == np.float32
    check_labels(soft, result)
    assert result.objective == pytest.approx(true_objective(soft, result), rel=1e-5)
    assert result.objective == pytest.approx(soft.run(known_labels()).objective, rel=0.05)


# ---- reproducibility


@every_loss
@flat_and_tree
def test_threads_and_repetition_change_nothing(loss, taxonomy):
    one, again, other = (annealing(loss, taxonomy, n_threads=n).run(known_labels()) for n in (1, 1, 2))
    for result in (again, other):
        np.testing.assert_array_equal(result.W, one.W)
        np.testing.assert_array_equal(result.labels, one.labels)
        np.testing.assert_array_equal(result.prices, one.prices)
        assert result.objective == one.objective
        assert without_seconds(result) == without_seconds(one)


@one_and_two_threads
def test_inputs_stay_and_labels_of_unlabelled_rows_are_ignored(n_threads):
    labels = known_labels()
    copy = labels.copy()
    one = annealing(n_threads=n_threads).run(labels)
    np.testing.assert_array_equal(labels, copy)
    labels[N_LABELED:] = 3
    other = annealing(n_threads=n_threads).run(labels)
    np.testing.assert_array_equal(other.W, one.W)
    np.testing.assert_array_equal(other.labels, one.labels)


# ---- the history


@every_loss
@one_and_two_threads
def test_the_history_lists_the_restarts_one_after_another(loss, n_threads):
    reported = []
    result = annealing(loss, n_threads=n_threads, on_round=reported.append).run(known_labels())
    assert [row.restart for row in result.history] == sorted(row.restart for row in result.history)
    assert Counter(reported) == Counter(result.history)
    for restart, schedule in enumerate(cooling_schedules(1.0), start=1):
        rows = [row for row in result.history if row.restart == restart]
        soft_labels = [row for row in rows if row.stage <= N_STAGES]
        stages = np.repeat(np.arange(1, N_STAGES + 1), ROUNDS)[: len(soft_labels)]
        assert [row.stage for row in soft_labels] == stages.tolist()
        assert all(row.unlabeled_weight == schedule[row.stage - 1].weight for row in soft_labels)
        final = rows[len(soft_labels) :]
        assert final
        assert {(row.stage, row.unlabeled_weight, row.temperature) for row in final} == {(N_STAGES + 1, 1.0, 0.0)}
        assert np.all(np.diff([row.seconds for row in rows]) >= 0)
        assert soft_labels[0].n_moved == N - N_LABELED
    assert not any(row.temperature for row in result.history if row.restart == 0)


def soft_stages(result, restart: int, column: str) -> np.ndarray:
    """A column of the history while labels were soft, one row per stage."""
    rows = [row for row in result.history if row.restart == restart and row.stage <= N_STAGES]
    return np.array([getattr(row, column) for row in rows]).reshape(-1, ROUNDS)


@every_loss
def test_labels_cool_within_each_restart_until_they_are_cold(loss, monkeypatch):
    """The last stage is far cooler than the hottest; it comes before the schedule ends only if hardly a label moves."""
    few = COLD * (N - N_LABELED)
    early = annealing(loss).run(known_labels())
    monkeypatch.setattr("transduce.solvers.annealing.COLD", -1.0)
    whole = annealing(loss).run(known_labels())
    for restart in range(1, N_RESTARTS):
        temperatures = soft_stages(whole, restart, "temperature").mean(axis=1)
        assert temperatures.size == N_STAGES
        assert np.all(temperatures > 0)
        assert temperatures[-1] < 0.5 * temperatures.max()
        assert temperatures.argmax() < N_STAGES // 2
        moved = soft_stages(early, restart, "n_moved")
        assert np.all(moved[:-1].max(axis=1) > few)
        assert len(moved) == N_STAGES or moved[-1].max() <= few
        np.testing.assert_array_equal(moved, soft_stages(whole, restart, "n_moved")[: len(moved)])


def test_only_restarts_that_can_win_go_on_after_the_first_round_of_their_last_stage():
    n_stopped = 0
    for seed in range(12):
        soft, truth = hard_problem(seed)
        history = soft.run(truth).history
        last = {0: len(soft.alternation.settings.weights), 1: N_STAGES + 1, 2: N_STAGES + 1}
        rows = {k: [row for row in history if (row.restart, row.stage) == (k, last[k])] for k in last}
        bounds = {k: rows[k][0].objective - rows[k][0].gap for k in last}
        best = min((1, 2), key=lambda k: bounds[k])
        assert len(rows[3 - best]) == 1
        assert rows[best][-1].n_moved == 0
        limit = rows[best][0].objective / (1.0 - MIN_IMPROVEMENT)
        paper = [row.objective - row.gap <= limit for row in rows[0]]
        assert all(paper[:-1])
        assert rows[0][-1].n_moved == 0 or not paper[-1]
        n_stopped += not paper[-1]
    assert n_stopped


def test_restarts_with_a_loss_of_the_users_own_are_compared_by_their_objective():
    """The gap of L-BFGS is the largest entry of a gradient, which says nothing of how far J may fall."""
    for seed in range(4):
        soft, truth = hard_problem(seed, loss=Own())
        history = soft.run(truth).history
        first = {k: next(row for row in history if (row.restart, row.stage) == (k, N_STAGES + 1)) for k in (1, 2)}
        best = min((1, 2), key=lambda k: first[k].objective)
        ends = {k: [row for row in history if row.restart == k][-1] for k in (0, 1, 2)}
        assert ends[3 - best] is first[3 - best]
        assert ends[0].n_moved == ends[best].n_moved == 0


def test_restarts_of_a_large_problem_run_to_their_end(monkeypatch):
    """So that there is one at a time in memory."""
    monkeypatch.setattr("transduce.engines.local.PARALLEL_CELLS", 1)
    history = annealing(n_threads=2).run(known_labels()).history
    assert all([row for row in history if row.restart == k][-1].n_moved == 0 for k in range(N_RESTARTS))
    order = [row.restart for row in sorted(history, key=lambda row: row.seconds)]
    assert order == sorted(order)


# ---- precision


def test_csr_rows_are_in_single_precision_unless_the_tolerance_is_small():
    """Weights come out in the precision of X, and J is about the same."""
    X, y = sparse.csr_matrix(blobs()[0]), np.where(np.arange(N) < N_LABELED, known_labels(), -1)
    counts = np.bincount(blobs()[1][N_LABELED:], minlength=4)
    how = {"class_prior": counts, "annealing": "soft", "random_state": 0}
    single, double = (TransductiveClassifier(tol=tol, **how).fit(X, y) for tol in (1e-3, 9e-4))
    assert single.coef_.dtype == double.coef_.dtype == np.float64
    assert np.all(single.coef_ == single.coef_.astype(np.float32))
    assert not np.all(double.coef_ == double.coef_.astype(np.float32))
    assert single.objective_ == pytest.approx(double.objective_, rel=5e-3)


def test_weights_that_single_precision_could_not_hold_are_in_double_precision():
    X, y = sparse.csr_matrix(blobs()[0]), np.where(np.arange(N) < N_LABELED, known_labels(), -1)
    clf = TransductiveClassifier(annealing="soft", alpha=1e-6 * float(X.multiply(X).sum()) / N, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so little regularisation takes more sweeps than allowed
        coef = clf.set_params(max_iter=5).fit(X, y).coef_
    assert not np.all(coef == coef.astype(np.float32))


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_rows_beyond_single_precision_are_not_rounded(scale):
    X, y = sparse.csr_matrix(blobs()[0]), np.where(np.arange(N) < N_LABELED, known_labels(), -1)
    clf = TransductiveClassifier(annealing="soft", fit_intercept=False, random_state=0)
    one, scaled = (clone(clf).fit(factor * X, y) for factor in (1.0, scale))
    assert np.mean(one.transduction_ == scaled.transduction_) > 0.99


# ---- nothing to anneal


@pytest.mark.parametrize("weights", [(), (0.5, 1.0)])
@one_and_two_threads
def test_without_unlabelled_rows_it_is_supervised(weights, n_threads):
    X, truth = blobs()
    problem = TrainingProblem.create(Design.create(X, FLAT, n_jobs=n_threads), LargeMargin(), 1e-2, N)
    none = np.zeros(4, np.int64)
    run = replace(alternation(), problem=problem, low=none, high=none, settings=Settings(weights, 1e-4, 1e-2, 10))
    result = AnnealingRun(run, cooling_schedules(1.0)).run(truth)
    assert result.status is FitStatus.SUPERVISED
    assert len(result.history) == 1
    np.testing.assert_array_equal(result.labels, truth)


@every_loss
def test_one_class(loss):
    design = Design.create(blobs()[0], Taxonomy.flat(["only"]))
    problem = TrainingProblem.create(design, loss, 1e-2, N_LABELED)
    counts = np.array([N - N_LABELED])
    run = replace(alternation(), problem=problem, low=counts, high=counts, weight_step=weight_step_for(loss, 1000))
    result = AnnealingRun(run, cooling_schedules(1.0)).run(np.zeros(N, np.int64))
    assert not result.labels.any()
    assert np.all(np.isfinite(result.W))


@every_loss
def test_two_classes_and_one_unlabelled_row(loss):
    X, truth = blobs()
    truth = truth % 2
    problem = TrainingProblem.create(Design.create(X, Taxonomy.flat("ab")), loss, 1e-2, N - 1)
    counts = np.array([0, 1])
    run = replace(alternation(), problem=problem, low=counts, high=counts, weight_step=weight_step_for(loss, 10_000))
    result = AnnealingRun(run, cooling_schedules(1.0)).run(truth)
    assert result.labels[-1] == 1
    np.testing.assert_array_equal(result.labels[:-1], truth[:-1])


def test_rows_without_features_end():
    X, _ = blobs()
    X[N_LABELED:] = 0.0
    soft = annealing()
    problem = TrainingProblem.create(Design.create(X, FLAT, n_jobs=1), LargeMargin(), 1e-2, N_LABELED)
    soft = replace(soft, alternation=replace(soft.alternation, problem=problem))
    check_labels(soft, soft.run(known_labels()))
