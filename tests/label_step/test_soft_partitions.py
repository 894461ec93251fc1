"""Soft labels over partitions equal those of rows in memory, and messages stay small."""

import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from helpers.problems import Instance, classifier_instance, instance, range_instance
from threadpoolctl import threadpool_limits

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.label_step import LabelProblem, row_blocks, soft_partitions
from transduce.label_step.entropic import Entropic, SoftLabelSolution, SoftStatus
from transduce.label_step.infeasible import InfeasibleError
from transduce.label_step.partitions import LocalPartitions, Partition

CUTS = {
    "one": [],
    "two": [0.3],
    "an empty one": [0.5, 0.5],
    "four": [0.05, 0.1, 0.8],
    "five, with empty ends": [0.0, 0.2, 0.7, 1.0],
}
every_cut = pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
OVERHEAD = 2000
"""Bytes of names and numbers beside arrays."""


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    with threadpool_limits(1):
        yield


@dataclass(frozen=True, eq=False)
class Remote(LocalPartitions):
    """Partitions that are reached through pickles only; records calls and checks the size of messages."""

    calls: list[str] = field(default_factory=list)

    def each(self, function, *args, **kwargs):
        self.calls.append(function.__name__)
        function, args, kwargs = self._through((function, args, kwargs), function)
        return [self._through(function(part, *args, **kwargs), function) for part in self.partitions]

    def _through(self, thing, function):
        n_classes, sent = self.partitions[0].n_classes, pickle.dumps(thing)
        if function.__module__ == soft_partitions.__name__:
            assert len(sent) <= 8 * (n_classes + 1) ** 2 + 40 * n_classes + OVERHEAD
        return pickle.loads(sent)


def partitioned(costs: np.ndarray, cuts: list[float]) -> Remote:
    rows = np.split(costs, (np.array(cuts) * len(costs)).astype(int))
    return Remote([Partition(mine, np.full(len(mine), -1)) for mine in rows])


def check_same(parts: Remote, soft: SoftLabelSolution, alone: SoftLabelSolution, atol: float = 1e-9) -> None:
    assert all(list(part.state) == ["posterior"] for part in parts.partitions)
    posterior = np.concatenate([part.state["posterior"] for part in parts.partitions])
    np.testing.assert_allclose(posterior, alone.posterior, atol=atol)
    scale = 1.0 + np.abs(alone.prices).max()
    np.testing.assert_allclose(soft.prices, alone.prices, atol=atol * scale)
    np.testing.assert_allclose(soft.group_prices, alone.group_prices, atol=atol * scale)
    assert soft.entropy == pytest.approx(alone.entropy, abs=atol)
    assert soft.value == pytest.approx(alone.value, rel=1e-9, abs=1e-9)
    assert soft.residual == pytest.approx(alone.residual, abs=1e-6)
    assert (soft.n_steps, soft.status) == (alone.n_steps, alone.status)


def check_both(costs: np.ndarray, bounds: Bounds, cuts: list[float], T: float = 0.3, atol: float = 1e-9) -> None:
    """At a temperature, and at lower ones, each from the prices of the one before."""
    problem, parts = LabelProblem(costs, *bounds), partitioned(costs, cuts)
    prices = None
    for fraction in (1.0, 0.7, 0.4):
        soft = Entropic(fraction * T).solve_partitions(parts, bounds, prices)
        alone = Entropic(fraction * T).solve(problem, prices)
        check_same(parts, soft, alone, atol)
        prices = alone.prices


def ranges(problem: Instance) -> Bounds:
    return Bounds(np.floor(0.9 * problem.low).astype(int), np.ceil(1.1 * problem.low).astype(int))


# ---- the same as in memory


@every_cut
def test_exact_counts(cuts):
    problem = classifier_instance(500, 6)
    check_both(problem.costs, Bounds(problem.low, problem.high), cuts)


@every_cut
def test_ranges(cuts):
    problem = classifier_instance(500, 6, seed=1)
    check_both(problem.costs, ranges(problem), cuts)


@every_cut
def test_groups(cuts):
    problem = classifier_instance(400, 5, seed=2)
    half = problem.low[:2].sum()
    groups = Groups([5, 5, 6, 6, 7, 7, 7], [half + 20, 0], [half + 40, 400])
    check_both(problem.costs, Bounds(np.zeros(5, int), np.full(5, 400), groups), cuts)


@every_cut
@pytest.mark.parametrize("make", [instance, range_instance])
def test_forbidden_labels(cuts, make):
    for seed in (3, 8):
        problem = make("forbidden", seed)
        check_both(problem.costs, Bounds(problem.low, problem.high), cuts)
        parts = partitioned(problem.costs, cuts)
        Entropic(0.3).solve_partitions(parts, Bounds(problem.low, problem.high))
        posterior = np.concatenate([part.state["posterior"] for part in parts.partitions])
        assert not posterior[np.isinf(problem.costs)].any()


@every_cut
def test_classes_with_count_zero(cuts):
    costs, counts = np.random.default_rng(0).normal(size=(60, 4)), np.array([0, 20, 0, 40])
    check_both(costs, Bounds(counts, counts), cuts)


@pytest.mark.parametrize("family", ["gaussian", "hinge", "heavy_ties", "two_classes", "more_classes_than_rows"])
def test_small_problems(family):
    for seed in range(4):
        for make in (instance, range_instance):
            problem = make(family, seed)
            check_both(problem.costs, Bounds(problem.low, problem.high), CUTS["four"], T=1.0, atol=1e-7)


def test_many_classes_have_products_in_single_precision():
    problem = classifier_instance(2000, 80)
    check_both(problem.costs, Bounds(problem.low, problem.high), CUTS["four"], atol=1e-6)
    check_both(problem.costs, ranges(problem), CUTS["two"], atol=1e-6)


@every_cut
def test_single_precision_stays_single(cuts):
    problem = classifier_instance(500, 6)
    costs = problem.costs.astype(np.float32)
    parts = partitioned(costs, cuts)
    soft = Entropic(0.3).solve_partitions(parts, Bounds(problem.low, problem.high))
    alone = Entropic(0.3).solve(LabelProblem(costs, problem.low, problem.high))
    check_same(parts, soft, alone, atol=1e-7)
    assert all(part.state["posterior"].dtype == np.float32 for part in parts.partitions)


def test_no_rows_at_all():
    parts = partitioned(np.empty((0, 3)), [0.5])
    soft = Entropic(0.5).solve_partitions(parts, Bounds(np.zeros(3, int), np.zeros(3, int)))
    assert (soft.value, soft.entropy, soft.residual) == (0.0, 0.0, 0.0)
    assert [part.state["posterior"].shape for part in parts.partitions] == [(0, 3), (0, 3)]


def test_threads_change_no_digit(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_CELLS", 1 << 7)
    monkeypatch.setattr(row_blocks, "CHUNK_CELLS", 1 << 9)
    problem, answers = classifier_instance(800, 5), []
    for n_threads in (1, 3):
        parts = partitioned(problem.costs, CUTS["two"])
        soft = Entropic(0.3, n_threads=n_threads).solve_partitions(parts, ranges(problem))
        answers.append((soft.prices, *(part.state["posterior"] for part in parts.partitions)))
    assert all(np.array_equal(one, other) for one, other in zip(*answers, strict=True))


# ---- the exact step


@every_cut
def test_a_temperature_too_small_for_floats_gives_the_labels_of_the_exact_step(cuts):
    problem = instance("heavy_ties", 0)
    parts = partitioned(1e6 * problem.costs, cuts)
    soft = Entropic(1e-6).solve_partitions(parts, Bounds(problem.low, problem.high))
    alone = Entropic(1e-6).solve(LabelProblem.create(1e6 * problem.costs, problem.low))
    posterior = np.concatenate([part.state["posterior"] for part in parts.partitions])
    assert soft.status is alone.status is SoftStatus.AS_EXACT
    assert np.all((posterior == 0) | (posterior == 1))
    np.testing.assert_array_equal(posterior.sum(axis=0), problem.low)
    assert (posterior * problem.costs).sum() == pytest.approx((alone.posterior * problem.costs).sum())
    assert soft.value == pytest.approx(alone.value)
    assert (soft.entropy, soft.residual) == (0.0, 0.0)


@pytest.mark.parametrize("counts", [[1, 2, 1], ([0, 2, 0], [4, 4, 4]), ([0, 0, 0], [1, 4, 1])])
def test_counts_that_forbidden_labels_rule_out(counts):
    costs = np.array([[0.0, np.inf, 1.0], [0.0, np.inf, np.inf], [0.0, 1.0, 2.0], [3.0, np.inf, 0.0]])
    low, high = np.array(counts if isinstance(counts, tuple) else (counts, counts))
    with pytest.raises(InfeasibleError, match="the counts cannot be met"):
        Entropic(1.0).solve_partitions(partitioned(costs, [0.5]), Bounds(low, high))


# ---- calls


def test_a_warm_start_takes_three_calls():
    problem = classifier_instance(500, 6)
    bounds = Bounds(problem.low, problem.high)
    parts = partitioned(problem.costs, CUTS["four"])
    soft = Entropic(0.3).solve_partitions(parts, bounds)
    parts.calls.clear()
    Entropic(0.3).solve_partitions(parts, bounds, soft.prices)
    assert parts.calls == ["_read", "_sums", "_write"]


def test_costs_that_have_changed_a_little_take_few_calls():
    rng, problem = np.random.default_rng(0), classifier_instance(2000, 10)
    bounds = Bounds(problem.low, problem.high)
    parts = partitioned(problem.costs, CUTS["four"])
    soft = Entropic(0.3).solve_partitions(parts, bounds)
    for _ in range(3):
        parts = partitioned(problem.costs + 0.1 * rng.normal(size=problem.costs.shape), CUTS["four"])
        soft = Entropic(0.3).solve_partitions(parts, bounds, soft.prices)
        assert len(parts.calls) <= 5


@pytest.mark.parametrize("T", [1.0, 0.1, 0.01])
def test_a_cold_start_takes_about_one_call_per_step(T):
    problem = classifier_instance(2000, 10)
    parts = partitioned(problem.costs, CUTS["four"])
    soft = Entropic(T).solve_partitions(parts, Bounds(problem.low, problem.high))
    assert soft.status is SoftStatus.CONVERGED
    assert len(parts.calls) <= 2 + 1.5 * soft.n_steps
