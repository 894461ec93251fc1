"""The alternation: J never rises within a stage, counts are met, rounds come to an end, endings tell the truth."""

from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

import numpy as np
import pytest

from transduce.class_prior.bounds import Bounds, Groups
from transduce.design import Design
from transduce.engines.base import StepSettings
from transduce.engines.local import LocalRestart
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import METHODS, Exact, LabelProblem
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.solvers.alternating import FLOOR, Alternation, FitStatus, Settings
from transduce.solvers.schedule import PAPER, stages
from transduce.taxonomy import Taxonomy
from transduce.weight_step import DualLargeMargin, weight_step_for

N, N_LABELED, N_FEATURES = 260, 20, 15
FLAT = Taxonomy.flat(range(4))
TREE = Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b"])
LOSSES = {"large-margin": LargeMargin(), "maxent": MaxEnt(), "squared": SquaredLargeMargin()}

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
flat_and_tree = pytest.mark.parametrize("taxonomy", [FLAT, TREE], ids=["flat", "tree"])


def blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four overlapping classes, each labelled at least once, and their true labels."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate((np.arange(4), rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=N - 4)))
    X = 1.3 * rng.normal(size=(4, N_FEATURES))[truth] + rng.normal(size=(N, N_FEATURES))
    return X / np.linalg.norm(X, axis=1, keepdims=True), truth


@dataclass(frozen=True)
class Play:
    """An alternation over rows in memory, with all pieces in one place."""

    problem: TrainingProblem
    low: np.ndarray
    high: np.ndarray
    weight_step: object
    label_step: object
    settings: Settings
    rng: np.random.Generator
    on_round: object = lambda row: None
    groups: Groups | None = None
    slot: CheckpointSlot = field(default_factory=CheckpointSlot)

    def run(self, labels):
        task = StepSettings(Bounds(self.low, self.high, self.groups), self.label_step, 0)
        engine = LocalRestart(self.problem, labels.copy(), task, self.weight_step, self.rng)
        return Alternation(engine, self.settings, self.on_round, self.slot).run()


def alternation(
    loss=None, taxonomy=FLAT, seed=0, annealing="paper", tol=1e-3, early_tol=1e-2, max_rounds=100, **pieces
) -> Play:
    """The pieces as the estimator puts them together, with the true counts."""
    X, truth = blobs(seed)
    loss = loss or LargeMargin()
    problem = TrainingProblem.create(
        Design.create(X, taxonomy), loss, 1e-2, N_LABELED, pieces.pop("sample_weight", None)
    )
    counts = np.bincount(truth[N_LABELED:], minlength=4)
    play = Play(
        problem,
        counts,
        counts,
        weight_step_for(loss, 2000),
        Exact(),
        Settings(stages(annealing, 1.0), tol, early_tol, max_rounds),
        np.random.default_rng(seed),
    )
    return replace(play, **pieces)


def given_labels(seed: int = 0) -> np.ndarray:
    labels = blobs(seed)[1].copy()
    labels[N_LABELED:] = 0
    return labels


def by_stage(outcome) -> list:
    return [list(rows) for _, rows in groupby(outcome.history, key=lambda row: row.stage)]


def check_outcome(play: Play, outcome, seed: int = 0) -> None:
    """What holds however it went."""
    problem, weights = play.problem, play.settings.weights
    for rows in by_stage(outcome):
        for before, after in pairwise(rows):
            assert after.objective <= before.objective * (1 + FLOOR)
    assert [rows[0].stage for rows in by_stage(outcome)] == list(range(len(by_stage(outcome))))
    for row in outcome.history[1:]:
        assert row.unlabeled_weight == weights[row.stage - 1]
    assert all(a.seconds <= b.seconds for a, b in pairwise(outcome.history))
    last = outcome.history[-1]
    assert outcome.objective == last.objective
    honest = problem.objective(outcome.W, outcome.labels, problem.kappa(last.unlabeled_weight))
    assert last.objective == pytest.approx(honest, rel=1e-9)
    tally = np.bincount(outcome.labels[problem.n_labeled :], minlength=problem.n_classes)
    assert np.all(tally >= play.low)
    assert np.all(tally <= play.high)
    np.testing.assert_array_equal(outcome.labels[:N_LABELED], given_labels(seed)[:N_LABELED])


@every_loss
@flat_and_tree
@pytest.mark.parametrize("seed", [0, 1])
def test_the_objective_never_rises_and_every_stage_settles(taxonomy, loss, seed):
    play = alternation(loss, taxonomy, seed)
    outcome = play.run(given_labels(seed))
    check_outcome(play, outcome, seed)
    assert outcome.status is FitStatus.SETTLED
    assert len(by_stage(outcome)) == 1 + len(PAPER)
    if not isinstance(loss, SquaredLargeMargin):
        assert all(rows[-1].n_moved == 0 for rows in by_stage(outcome))


@every_loss
def test_the_last_labels_are_the_best_for_the_last_weights(loss):
    play = alternation(loss)
    outcome = play.run(given_labels())
    costs = play.problem.loss.label_costs(play.problem.design.scores(outcome.W)[N_LABELED:])
    best = METHODS["simplex"].solve(LabelProblem(costs, play.low, play.high)).cost
    assert costs[np.arange(len(costs)), outcome.labels[N_LABELED:]].sum() == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_every_label_step_meets_the_counts(method):
    play = alternation(label_step=METHODS[method], max_rounds=15)
    outcome = play.run(given_labels())
    problem, last = play.problem, outcome.history[-1]
    assert np.array_equal(np.bincount(outcome.labels[N_LABELED:], minlength=4), play.low)
    honest = problem.objective(outcome.W, outcome.labels, problem.kappa(last.unlabeled_weight))
    assert last.objective == pytest.approx(honest, rel=1e-9)
    if method != "greedy":
        check_outcome(play, outcome)


def test_the_objective_never_rises_with_greedy_labels():
    """A label step that ignores where it starts may offer labels that cost more."""
    for seed in range(4):
        play = alternation(label_step=METHODS["greedy"], max_rounds=15, seed=seed)
        check_outcome(play, play.run(given_labels(seed)), seed)


@dataclass
class Perverse:
    """The worst labels in every other call."""

    calls: int = 0

    def solve(self, problem, prices=None, start=None):
        self.calls += 1
        costs = problem.costs if self.calls % 2 else -problem.costs
        return Exact().solve(LabelProblem(costs, problem.low, problem.high), None, start)


def test_labels_that_cost_more_are_not_taken():
    play = alternation(label_step=Perverse(), annealing=None, max_rounds=6)
    check_outcome(play, play.run(given_labels()))


def test_counts_may_be_ranges():
    exact = alternation()
    play = replace(exact, low=np.maximum(exact.low - 15, 0), high=exact.high + 15)
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    assert outcome.status is FitStatus.SETTLED


@every_loss
def test_one_stage_without_annealing(loss):
    play = alternation(loss, annealing=None)
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    assert len(by_stage(outcome)) == 2
    assert outcome.history[-1].unlabeled_weight == 1.0


def test_the_first_row_is_the_supervised_classifier():
    play = alternation(early_tol=1e-6)
    first = play.run(given_labels()).history[0]
    assert (first.stage, first.unlabeled_weight, first.n_moved) == (0, 0.0, 0)
    step, problem, labels = DualLargeMargin(10_000), play.problem, given_labels()
    state = step.start(problem, labels)
    step.retarget(problem, state, labels, problem.kappa(0.0))
    best = step.solve(problem, state, 1e-6, np.random.default_rng(0)).objective
    assert first.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("weights", [(), (0.5, 1.0)])
def test_without_unlabelled_rows_it_is_supervised(weights):
    X, truth = blobs()
    problem = TrainingProblem.create(Design.create(X, FLAT), LargeMargin(), 1e-2, N)
    none = np.zeros(4, np.int64)
    settings = Settings(weights, 1e-4, 1e-2, 10)
    outcome = Play(problem, none, none, DualLargeMargin(10_000), Exact(), settings, np.random.default_rng(0)).run(truth)
    assert outcome.status is FitStatus.SUPERVISED
    assert len(outcome.history) == 1
    assert outcome.history[0].gap <= 1e-4 * outcome.objective
    assert outcome.objective == pytest.approx(problem.objective(outcome.W, truth, problem.kappa(1.0)), rel=1e-9)
    np.testing.assert_array_equal(outcome.labels, truth)


def test_one_round_a_stage_is_out_of_rounds():
    play = alternation(max_rounds=1, annealing=None)
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    assert outcome.status is FitStatus.OUT_OF_ROUNDS
    assert outcome.history[-1].n_moved > 0
    assert [row.stage for row in outcome.history] == [0, 1]


@dataclass
class Restless:
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
def test_labels_that_change_for_ever_at_equal_cost_come_to_an_end(loss):
    """Twins between two classes may swap labels in every round without any change of J."""
    play = alternation(loss, annealing=None, max_rounds=10**6, on_round=stop_after(60))
    X, _ = blobs()
    X[N_LABELED + 1 :: 2] = X[N_LABELED : N - 1 : 2]
    design = Design.create(X, FLAT)
    twins = [(i, i + 1) for i in range(0, N - N_LABELED, 2)]
    play = replace(
        play,
        problem=TrainingProblem.create(design, loss, 1e-2, N_LABELED),
        label_step=Restless(twins),
        weight_step=weight_step_for(loss, 300),
    )
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    assert outcome.status is not FitStatus.INTERRUPTED


@dataclass
class Indifferent:
    """Shuffles the labels among the rows, all of which have scores of 0 and so equal costs."""

    rng: np.random.Generator

    def solve(self, problem, prices=None, start=None):
        answer = Exact().solve(problem, prices, start)
        return replace(answer, labels=self.rng.permutation(answer.labels))


def test_rows_without_features_and_a_restless_label_step_come_to_an_end():
    """Unlabelled rows without features cost the same under every label, and J is the same in every round."""
    X, _ = blobs()
    X[N_LABELED:] = 0.0
    play = alternation(annealing=None, max_rounds=10**6)
    play = replace(
        play,
        problem=TrainingProblem.create(Design.create(X, FLAT), LargeMargin(), 1e-2, N_LABELED),
        label_step=Indifferent(np.random.default_rng(0)),
        on_round=stop_after(60),
    )
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    assert outcome.status is not FitStatus.INTERRUPTED


@every_loss
@flat_and_tree
def test_a_sloppy_weight_step_never_raises_the_objective(taxonomy, loss):
    for seed in range(3):
        play = alternation(loss, taxonomy, seed, tol=0.5, early_tol=0.5)
        check_outcome(play, play.run(given_labels(seed)), seed)


@pytest.mark.parametrize("loss", [LargeMargin(), MaxEnt()], ids=["large-margin", "maxent"])
def test_too_few_sweeps_never_raise_the_objective(loss):
    for n_sweeps in (1, 2, 5):
        play = alternation(loss, weight_step=weight_step_for(loss, n_sweeps), max_rounds=30)
        check_outcome(play, play.run(given_labels()))


# ---- interrupts


def stop_after(n_rounds: int):
    """Press Ctrl-C when so many rounds are over."""
    seen = []

    def press(row):
        seen.append(row)
        if len(seen) == n_rounds:
            raise KeyboardInterrupt

    return press


@dataclass
class Interrupted:
    """A weight step that is interrupted at its call number `at`, half-way through its work."""

    at: int
    calls: int = 0
    step = DualLargeMargin(2000)

    def start(self, problem, targets):
        return self.step.start(problem, targets)

    def retarget(self, problem, state, targets, kappa):
        self.step.retarget(problem, state, targets, kappa)

    def solve(self, problem, state, tol, rng):
        self.calls += 1
        if self.calls == self.at:
            replace(self.step, max_sweeps=1).solve(problem, state, tol, rng)
            raise KeyboardInterrupt
        return self.step.solve(problem, state, tol, rng)


def test_an_interrupt_before_the_first_round_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        alternation(weight_step=Interrupted(1)).run(given_labels())


@pytest.mark.parametrize("at", [2, 3, 5, 8])
def test_an_interrupt_in_a_weight_step_leaves_the_last_complete_round(at):
    play = alternation(weight_step=Interrupted(at))
    outcome = play.run(given_labels())
    assert outcome.status is FitStatus.INTERRUPTED
    assert len(outcome.history) == at - 1
    check_outcome(play, outcome)


@pytest.mark.parametrize("n_rounds", [2, 3, 6])
def test_an_interrupt_after_a_round_keeps_it(n_rounds):
    play = alternation(on_round=stop_after(n_rounds))
    outcome = play.run(given_labels())
    assert outcome.status is FitStatus.INTERRUPTED
    assert len(outcome.history) == n_rounds
    check_outcome(play, outcome)
    uninterrupted = alternation().run(given_labels())
    assert outcome.objective == uninterrupted.history[n_rounds - 1].objective


def test_an_interrupt_after_the_supervised_start_meets_the_counts_or_is_passed_on():
    play = alternation(on_round=stop_after(1))
    try:
        outcome = play.run(given_labels())
    except KeyboardInterrupt:
        return
    check_outcome(play, outcome)


# ---- the rest


@every_loss
def test_the_same_seed_gives_the_same_result(loss):
    one, other = (alternation(loss, TREE).run(given_labels()) for _ in range(2))
    np.testing.assert_array_equal(one.W, other.W)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.prices, other.prices)
    strip = [[replace(row, seconds=0.0) for row in outcome.history] for outcome in (one, other)]
    assert strip[0] == strip[1]


def test_labels_given_and_labels_of_unlabelled_rows_play_no_part():
    labels = given_labels()
    copy = labels.copy()
    one = alternation().run(labels)
    np.testing.assert_array_equal(labels, copy)
    labels[N_LABELED:] = 3
    np.testing.assert_array_equal(alternation().run(labels).W, one.W)


def test_rounds_are_told_as_they_happen():
    seen = []
    outcome = alternation(on_round=seen.append).run(given_labels())
    assert seen == outcome.history


def test_equal_sample_weights_change_nothing():
    one = alternation(tol=1e-6, early_tol=1e-6).run(given_labels())
    other = alternation(tol=1e-6, early_tol=1e-6, sample_weight=np.full(N, 3.7)).run(given_labels())
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.objective == pytest.approx(other.objective, rel=1e-5)


@every_loss
def test_sample_weights_weigh_losses_and_label_costs(loss):
    """Each J of the history is the weighted one, and the labels are the best for the weighted costs."""
    weights = np.random.default_rng(0).choice([0.2, 1.0, 6.0], size=N)
    play = alternation(loss, sample_weight=weights)
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    scores = play.problem.design.scores(outcome.W)
    shares = weights[N_LABELED:] / weights[N_LABELED:].sum()
    given = weights[:N_LABELED] / weights[:N_LABELED].sum()
    losses = loss.value(scores, outcome.labels)
    penalty = 0.5 * play.problem.alpha * (outcome.W**2).sum()
    expected = penalty + given @ losses[:N_LABELED] + shares @ losses[N_LABELED:]
    assert outcome.objective == pytest.approx(expected, rel=1e-9)
    costs = shares[:, None] * loss.label_costs(scores[N_LABELED:])
    best = METHODS["simplex"].solve(LabelProblem(costs, play.low, play.high)).cost
    assert costs[np.arange(len(costs)), outcome.labels[N_LABELED:]].sum() == pytest.approx(best, rel=1e-9)


def test_an_unlabelled_row_of_no_weight_leaves_the_weights_alone():
    weights = np.ones(N)
    weights[-50:] = 0.0
    play = alternation(sample_weight=weights, tol=1e-7, early_tol=1e-7)
    outcome = play.run(given_labels())
    check_outcome(play, outcome)
    kappa = play.problem.kappa(1.0)
    assert not kappa[-50:].any()
    step, state = DualLargeMargin(20_000), play.weight_step.start(play.problem, outcome.labels)
    step.retarget(play.problem, state, outcome.labels, kappa)
    best = step.solve(play.problem, state, 1e-7, np.random.default_rng(1)).objective
    assert outcome.objective == pytest.approx(best, rel=1e-6)


def test_float32_rows_settle_too():
    X, _ = blobs()
    play = alternation()
    problem = TrainingProblem.create(Design.create(X.astype(np.float32), FLAT), LargeMargin(), 1e-2, N_LABELED)
    outcome = replace(play, problem=problem).run(given_labels())
    assert outcome.W.dtype == np.float32
    assert outcome.objective == pytest.approx(alternation().run(given_labels()).objective, rel=0.05)
    assert np.array_equal(np.bincount(outcome.labels[N_LABELED:], minlength=4), play.low)


# ---- the schedule


@pytest.mark.parametrize(
    ("annealing", "final", "weights"),
    [
        (None, 0.3, (0.3,)),
        ("paper", 1.0, PAPER),
        ("paper", 2.0, tuple(2.0 * share for share in PAPER)),
        ([1, 1, 2], 9.0, (1.0, 1.0, 2.0)),
        (np.array([0.5]), 1.0, (0.5,)),
        ((0.1, 1), 1.0, (0.1, 1.0)),
    ],
)
def test_stages_grow_to_the_final_weight(annealing, final, weights):
    assert stages(annealing, final) == weights
    assert all(isinstance(weight, float) for weight in stages(annealing, final))


@pytest.mark.parametrize("annealing", ["slow", [], [1.0, 0.5], [0.0, 1.0], [-1.0], [[1.0]], [0.1, np.nan]])
def test_bad_schedules_get_one_sentence(annealing):
    with pytest.raises(ValueError, match=r"annealing must be .* but is"):
        stages(annealing, 1.0)


@pytest.mark.parametrize("annealing", [3, ["a", "b"], [0.1, np.inf]])
def test_schedules_of_no_numbers_get_one_sentence(annealing):
    with pytest.raises(ValueError, match=r"annealing must be .* but is"):
        stages(annealing, 1.0)
