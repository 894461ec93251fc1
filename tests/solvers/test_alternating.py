"""Algorithm 1: J never increases within a stage, counts are met, stages end, and the status is true."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from helpers.solver_checks import by_stage, check_result
from helpers.solver_problems import (
    FLAT,
    LOSSES,
    N_LABELED,
    TREE,
    N,
    alternation,
    blobs,
    known_labels,
    stop_after,
)

from transduce.design import Design
from transduce.history import FitStatus
from transduce.label_step import METHODS, Exact, LabelProblem
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.solvers.schedule import PAPER
from transduce.weight_step import DualLargeMargin, weight_step_for

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
flat_and_tree = pytest.mark.parametrize("taxonomy", [FLAT, TREE], ids=["flat", "tree"])


@every_loss
@flat_and_tree
@pytest.mark.parametrize("seed", [0, 1])
def test_the_objective_never_increases_and_every_stage_converges(taxonomy, loss, seed):
    run = alternation(loss, taxonomy, seed)
    result = run.run(known_labels(seed))
    check_result(run, result, seed)
    assert result.status is FitStatus.CONVERGED
    assert len(by_stage(result)) == 1 + len(PAPER)
    if not isinstance(loss, SquaredLargeMargin):
        assert all(rows[-1].n_moved == 0 for rows in by_stage(result))


@every_loss
def test_the_last_labels_are_the_best_for_the_last_weights(loss):
    run = alternation(loss)
    result = run.run(known_labels())
    costs = run.problem.loss.label_costs(run.problem.design.scores(result.W)[N_LABELED:])
    best = METHODS["simplex"].solve(LabelProblem(costs, run.low, run.high)).cost
    assert costs[np.arange(len(costs)), result.labels[N_LABELED:]].sum() == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_every_label_step_meets_the_counts(method):
    run = alternation(label_step=METHODS[method], max_rounds=15)
    result = run.run(known_labels())
    problem, last = run.problem, result.history[-1]
    assert np.array_equal(np.bincount(result.labels[N_LABELED:], minlength=4), run.low)
    true_objective = problem.objective(result.W, result.labels, problem.kappa(last.unlabeled_weight))
    assert last.objective == pytest.approx(true_objective, rel=1e-9)
    if method != "greedy":
        check_result(run, result)


def test_the_objective_never_increases_with_greedy_labels():
    """A label step that ignores where it starts may offer labels that cost more."""
    for seed in range(4):
        run = alternation(label_step=METHODS["greedy"], max_rounds=15, seed=seed)
        check_result(run, run.run(known_labels(seed)), seed)


@dataclass
class EveryOtherWorst:
    """The worst labels in every other call."""

    calls: int = 0

    def solve(self, problem, prices=None, start=None):
        self.calls += 1
        costs = problem.costs if self.calls % 2 else -problem.costs
        return Exact().solve(LabelProblem(costs, problem.low, problem.high), None, start)


def test_labels_that_cost_more_are_not_taken():
    run = alternation(label_step=EveryOtherWorst(), annealing=None, max_rounds=6)
    check_result(run, run.run(known_labels()))


def test_counts_may_be_ranges():
    exact = alternation()
    run = replace(exact, low=np.maximum(exact.low - 15, 0), high=exact.high + 15)
    result = run.run(known_labels())
    check_result(run, result)
    assert result.status is FitStatus.CONVERGED


@every_loss
def test_one_stage_without_annealing(loss):
    run = alternation(loss, annealing=None)
    result = run.run(known_labels())
    check_result(run, result)
    assert len(by_stage(result)) == 2
    assert result.history[-1].unlabeled_weight == 1.0


def test_the_first_row_is_the_supervised_classifier():
    run = alternation(early_tol=1e-6)
    first = run.run(known_labels()).history[0]
    assert (first.stage, first.unlabeled_weight, first.n_moved) == (0, 0.0, 0)
    step, problem, labels = DualLargeMargin(10_000), run.problem, known_labels()
    state = step.start(problem, labels)
    step.retarget(problem, state, labels, problem.kappa(0.0))
    best = step.solve(problem, state, 1e-6, np.random.default_rng(0)).objective
    assert first.objective == pytest.approx(best, rel=2e-6)


def test_one_round_a_stage_is_out_of_rounds():
    run = alternation(max_rounds=1, annealing=None)
    result = run.run(known_labels())
    check_result(run, result)
    assert result.status is FitStatus.OUT_OF_ROUNDS
    assert result.history[-1].n_moved > 0
    assert [row.stage for row in result.history] == [0, 1]


@dataclass
class Swapping:
    """The exact step, but every answer exchanges the labels of rows that are the same row twice."""

    twins: list = field(default_factory=list)

    def solve(self, problem, prices=None, start=None):
        answer = Exact().solve(problem, prices, start)
        labels = answer.labels.copy()
        for i, j in self.twins:
            labels[i], labels[j] = start[j], start[i]
            if start[i] == start[j]:
                labels[i], labels[j] = answer.labels[i], answer.labels[j]
        tally = np.bincount(labels, minlength=problem.n_classes)
        kept = labels if np.array_equal(tally, problem.tally(answer.labels)) else answer.labels
        return replace(answer, labels=kept)


@pytest.mark.parametrize(
    "loss",
    [LargeMargin(), MaxEnt()],
    ids=["large-margin", "maxent"],
)
def test_labels_that_would_change_forever_at_equal_cost_end(loss):
    """Twins between two classes may swap labels in every round without any change of J."""
    run = alternation(loss, annealing=None, max_rounds=10**6, on_round=stop_after(60))
    X, _ = blobs()
    X[N_LABELED + 1 :: 2] = X[N_LABELED : N - 1 : 2]
    design = Design.create(X, FLAT)
    twins = [(i, i + 1) for i in range(0, N - N_LABELED, 2)]
    run = replace(
        run,
        problem=TrainingProblem.create(design, loss, 1e-2, N_LABELED),
        label_step=Swapping(twins),
        weight_step=weight_step_for(loss, 300),
    )
    result = run.run(known_labels())
    check_result(run, result)
    assert result.status is not FitStatus.INTERRUPTED


@dataclass
class Shuffling:
    """Shuffles the labels among the rows, all of which have scores of 0 and so equal costs."""

    rng: np.random.Generator

    def solve(self, problem, prices=None, start=None):
        answer = Exact().solve(problem, prices, start)
        return replace(answer, labels=self.rng.permutation(answer.labels))


def test_rows_without_features_and_a_random_label_step_end():
    """Unlabelled rows without features cost the same under every label, and J is the same in every round."""
    X, _ = blobs()
    X[N_LABELED:] = 0.0
    run = alternation(annealing=None, max_rounds=10**6)
    run = replace(
        run,
        problem=TrainingProblem.create(Design.create(X, FLAT), LargeMargin(), 1e-2, N_LABELED),
        label_step=Shuffling(np.random.default_rng(0)),
        on_round=stop_after(60),
    )
    result = run.run(known_labels())
    check_result(run, result)
    assert result.status is not FitStatus.INTERRUPTED


@every_loss
@flat_and_tree
def test_an_inaccurate_weight_step_never_increases_the_objective(taxonomy, loss):
    for seed in range(3):
        run = alternation(loss, taxonomy, seed, tol=0.5, early_tol=0.5)
        check_result(run, run.run(known_labels(seed)), seed)


@pytest.mark.parametrize("loss", [LargeMargin(), MaxEnt()], ids=["large-margin", "maxent"])
def test_too_few_sweeps_never_increase_the_objective(loss):
    for n_sweeps in (1, 2, 5):
        run = alternation(loss, weight_step=weight_step_for(loss, n_sweeps), max_rounds=30)
        check_result(run, run.run(known_labels()))


# ---- reproducibility, weights and types


@every_loss
def test_the_same_seed_gives_the_same_result(loss):
    one, other = (alternation(loss, TREE).run(known_labels()) for _ in range(2))
    np.testing.assert_array_equal(one.W, other.W)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.prices, other.prices)
    strip = [[replace(row, seconds=0.0) for row in result.history] for result in (one, other)]
    assert strip[0] == strip[1]


def test_inputs_stay_and_labels_of_unlabelled_rows_are_ignored():
    labels = known_labels()
    copy = labels.copy()
    one = alternation().run(labels)
    np.testing.assert_array_equal(labels, copy)
    labels[N_LABELED:] = 3
    np.testing.assert_array_equal(alternation().run(labels).W, one.W)


def test_rounds_are_reported_as_they_happen():
    seen = []
    result = alternation(on_round=seen.append).run(known_labels())
    assert seen == result.history


def test_equal_sample_weights_change_nothing():
    one = alternation(tol=1e-6, early_tol=1e-6).run(known_labels())
    other = alternation(tol=1e-6, early_tol=1e-6, sample_weight=np.full(N, 3.7)).run(known_labels())
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.objective == pytest.approx(other.objective, rel=1e-5)


@every_loss
def test_sample_weights_weigh_losses_and_label_costs(loss):
    """Each J of the history is the weighted one, and the labels are the best for the weighted costs."""
    weights = np.random.default_rng(0).choice([0.2, 1.0, 6.0], size=N)
    run = alternation(loss, sample_weight=weights)
    result = run.run(known_labels())
    check_result(run, result)
    scores = run.problem.design.scores(result.W)
    row_weights = weights[N_LABELED:] / weights[N_LABELED:].sum()
    given = weights[:N_LABELED] / weights[:N_LABELED].sum()
    losses = loss.value(scores, result.labels)
    penalty = 0.5 * run.problem.alpha * (result.W**2).sum()
    expected = penalty + given @ losses[:N_LABELED] + row_weights @ losses[N_LABELED:]
    assert result.objective == pytest.approx(expected, rel=1e-9)
    costs = row_weights[:, None] * loss.label_costs(scores[N_LABELED:])
    best = METHODS["simplex"].solve(LabelProblem(costs, run.low, run.high)).cost
    assert costs[np.arange(len(costs)), result.labels[N_LABELED:]].sum() == pytest.approx(best, rel=1e-9)


def test_an_unlabelled_row_of_no_weight_leaves_the_weights_alone():
    weights = np.ones(N)
    weights[-50:] = 0.0
    run = alternation(sample_weight=weights, tol=1e-7, early_tol=1e-7)
    result = run.run(known_labels())
    check_result(run, result)
    kappa = run.problem.kappa(1.0)
    assert not kappa[-50:].any()
    step, state = DualLargeMargin(20_000), run.weight_step.start(run.problem, result.labels)
    step.retarget(run.problem, state, result.labels, kappa)
    best = step.solve(run.problem, state, 1e-7, np.random.default_rng(1)).objective
    assert result.objective == pytest.approx(best, rel=1e-6)


def test_float32_rows_converge_too():
    X, _ = blobs()
    run = alternation()
    problem = TrainingProblem.create(Design.create(X.astype(np.float32), FLAT), LargeMargin(), 1e-2, N_LABELED)
    result = replace(run, problem=problem).run(known_labels())
    assert result.W.dtype == np.float32
    assert result.objective == pytest.approx(alternation().run(known_labels()).objective, rel=0.05)
    assert np.array_equal(np.bincount(result.labels[N_LABELED:], minlength=4), run.low)
