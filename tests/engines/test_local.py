"""The local engine: order of rows, weights between two points, saved state, and threads."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.solver_problems import FLAT, LOSSES, N_LABELED, TREE, alternation, known_labels

from transduce.class_prior.bounds import Bounds
from transduce.design import Design
from transduce.engines.base import LabelOptions, ProblemSettings
from transduce.engines.common import STEP_LENGTHS, Calibration, first_targets
from transduce.engines.local import PARALLEL_CELLS, LocalData, LocalEngine
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.losses import LargeMargin, MaxEnt
from transduce.problem import TrainingProblem

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def new_restart(loss=None, taxonomy=FLAT, seed=0):
    run = alternation(loss, taxonomy)
    settings = run.step_settings._replace(max_sweeps=2000)
    return LocalEngine(run.problem, known_labels()).new_restart(settings, np.random.default_rng(seed))


def build(y, **settings):
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    data = LocalData(X, y)
    summary = data.encode(LabelOptions("labeled", None, "auto"))
    defaults = {"loss": MaxEnt(), "alpha": 1e-2, "fit_intercept": False, "partial_as_labeled": False, "n_jobs": 1}
    return summary, data.build(ProblemSettings(**defaults | settings))


# ---- data


def test_labelled_rows_come_first_then_partial_labels_then_the_rest():
    summary, engine = build([None, "b", {"a", "b"}, "a", None, {"b", "c"}, "c"])
    assert engine.order.tolist() == [1, 3, 6, 2, 5, 0, 4]
    assert engine.labels[:3].tolist() == [1, 0, 2]
    assert engine.problem.n_labeled == 3
    assert engine.problem.forbidden.tolist()[:3] == [[False, False, True], [True, False, False], [False] * 3]
    assert summary.labels.tolist() == [1, 0, 2]
    assert summary.n_unlabeled == engine.n_unlabeled == 4


def test_labels_return_in_the_order_of_y():
    summary, engine = build([None, "b", None, "a"])
    result = FitResult(np.zeros(2), engine.problem.design.zeros(), np.array([1, 0, 1, 0]))
    fitted = engine.fitted_labels(result, Bounds.exact(np.array([1, 1])), summary.classes, Calibration())
    assert fitted.transduction.tolist() == ["b", "b", "a", "a"]
    assert fitted.class_counts.tolist() == [1, 1]
    np.testing.assert_allclose(fitted.distributions, [[0.5, 0.5], [0, 1], [0.5, 0.5], [1, 0]], atol=1e-3)


def test_an_intercept_is_one_more_column():
    _, engine = build(["a", "b", None], fit_intercept=True)
    np.testing.assert_array_equal(engine.problem.design.matrix()[:, -1], 1.0)


def test_first_targets_are_the_class_proportions_within_the_allowed_labels():
    _, engine = build([None, "b", {"a", "b"}, "a", None, "c"])
    targets = first_targets(engine.problem, engine.labels, Bounds.exact(np.array([1, 0, 2])), 3)
    np.testing.assert_allclose(targets[3:], [[1, 0, 0], [1 / 3, 0, 2 / 3], [1 / 3, 0, 2 / 3]], atol=1e-12)


# ---- samples of the unlabelled rows


def test_a_sample_of_all_rows_is_the_engine_itself():
    _, engine = build([None, "b", None, "a"])
    assert engine.sample(2, np.random.default_rng(0)) is engine


@pytest.mark.parametrize("as_labeled", [False, True])
def test_a_sample_has_all_labelled_rows_and_some_others(as_labeled):
    y = ["a", "b", "c", *[None] * 30, *[{"a", "b"}, {"b", "c"}] * 6]
    _, engine = build(y, partial_as_labeled=as_labeled)
    found = engine.sample(20, np.random.default_rng(0))
    whole, part = (one.problem.design.matrix() for one in (engine, found))
    rows = np.array([np.flatnonzero((whole == row).all(axis=1))[0] for row in part])
    assert rows[:3].tolist() == [0, 1, 2]
    assert np.all(np.diff(rows) > 0)
    assert (found.n_unlabeled, found.problem.n_labeled) == (20, 3)
    np.testing.assert_array_equal(found.labels, engine.labels[rows])
    np.testing.assert_array_equal(found.problem.forbidden, engine.problem.forbidden[rows[3:] - 3])
    assert found.problem.n_partial == np.sum((rows >= 3) & (rows < 3 + engine.problem.n_partial))
    n_known = 3 + found.problem.n_partial
    assert found.problem.row_weights[:n_known].sum() == pytest.approx(1.0)
    assert found.problem.row_weights[n_known:].sum() == pytest.approx(1.0)


# ---- weight steps and label steps


@every_loss
@pytest.mark.parametrize("taxonomy", [FLAT, TREE], ids=["flat", "tree"])
def test_the_objective_between_two_points_is_that_of_the_accepted_weights(loss, taxonomy):
    restart = new_restart(loss, taxonomy)
    restart.supervise(1e-2)
    restart.greedy()
    restart.weights(1.0, 1e-2)
    objective, step_length = restart.descend(np.inf)
    assert step_length == 1.0
    restart.propose(np.zeros(4))
    restart.accept(take_labels=False)
    restart.state.W *= 3.0  # a weight step that went much too far
    restart.report = restart.report._replace(objective=np.inf)
    restart.state.scores = 3.0 * restart.state.scores
    lower, step_length = restart.descend(objective + 10.0)
    assert step_length in STEP_LENGTHS
    restart.accept(take_labels=False)
    assert lower == pytest.approx(restart.problem.objective(restart.W, restart.labels, restart.state.kappa), rel=1e-9)


def test_a_proposal_states_the_true_change_of_the_objective():
    restart = new_restart()
    restart.supervise(1e-2)
    restart.greedy()
    restart.weights(1.0, 1e-2)
    before, _ = restart.descend(np.inf)
    old = restart.labels.copy()
    proposal = restart.propose(np.zeros(4))
    restart.accept(take_labels=True)
    after = restart.problem.objective(restart.W, restart.labels, restart.state.kappa)
    assert proposal.change == pytest.approx(after - before, abs=1e-9)
    assert proposal.n_moved == np.sum(restart.labels != old)


@every_loss
def test_a_restored_restart_continues_bit_for_bit(loss, tmp_path):
    one, other = new_restart(loss), new_restart(loss, seed=1)
    one.supervise(1e-2)
    one.greedy()
    slot = CheckpointSlot(tmp_path / "restart")
    one.save(slot, {"prices": np.arange(4.0)}, {"stage": 0}, done=False)
    arrays, metadata = other.load(slot)
    assert metadata["stage"] == 0
    np.testing.assert_array_equal(arrays["prices"], np.arange(4.0))
    assert one.weights(1.0, 1e-3) == other.weights(1.0, 1e-3)
    np.testing.assert_array_equal(one.state.W, other.state.W)
    np.testing.assert_array_equal(one.labels, other.labels)


@every_loss
def test_restored_soft_labels_continue_bit_for_bit(loss, tmp_path):
    one, other = new_restart(loss).soft_labels(), new_restart(loss, seed=1).soft_labels()
    slot = CheckpointSlot(tmp_path / "cooling")
    assert other.load(slot) is None
    one.start()
    one.round(0.5, 0.5)
    one.save(slot, {"stage": 1})
    assert other.load(slot)["stage"] == 1
    assert one.round(0.5, 0.4) == other.round(0.5, 0.4)
    np.testing.assert_array_equal(one.state.targets, other.state.targets)


# ---- threads


def test_small_problems_share_their_threads_among_restarts_and_large_ones_do_not():
    problem = alternation().problem
    engine = LocalEngine(replace(problem, design=replace(problem.design, n_threads=3)), known_labels())
    n_threads, small_engine = engine.split_threads(2)
    assert (n_threads, small_engine.problem.design.n_threads) == (2, 1)
    rows = PARALLEL_CELLS // 4 + 1
    design = Design.create(np.zeros((1, 1)), FLAT, n_jobs=3, order=np.zeros(rows, np.int64))
    large = LocalEngine(TrainingProblem.create(design, LargeMargin(), 1e-2, N_LABELED), np.zeros(rows, np.int64))
    assert large.split_threads(2) == (1, large)
