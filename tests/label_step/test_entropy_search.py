"""The search for the temperature of a wanted entropy: it is met, and the search ends where it cannot be."""

import numpy as np
import pytest
from helpers.problems import FAMILIES, Instance, classifier_instance, instance, range_instance, seeds
from helpers.soft_labels import check_counts, solve
from threadpoolctl import threadpool_limits

from transduce.label_step import LabelProblem, entropic
from transduce.label_step.entropic import mean_entropy, solve_at_entropy

N_SEEDS = 20  # some later ones stall, with a count off by up to a row
few_seeds, every_seed = seeds(2, 6), seeds(2, N_SEEDS)
TEMPERATURES = (1e3, 1.0, 1e-2, 1e-4, 1e-6)
SCALES = (1e-6, 1.0, 1e6)


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Threads of OpenBLAS slow small systems down when cores are busy."""
    with threadpool_limits(1):
        yield


every_family = pytest.mark.parametrize("family", FAMILIES)
exact_and_ranges = pytest.mark.parametrize("make", [instance, range_instance], ids=["exact", "ranges"])


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("fraction", [0.9, 0.4, 0.01])
def test_the_entropy_is_the_wanted_fraction_to_a_tenth(fraction, scale):
    for n_classes in (2, 5, 20):
        problem = classifier_instance(1000, n_classes)
        soft, temperature = solve_at_entropy(
            LabelProblem.create(scale * problem.costs, problem.low), fraction, None, None
        )
        greatest = mean_entropy(problem.low[None, :] / problem.low.sum())
        assert soft.entropy == pytest.approx(fraction * greatest, rel=0.1 + 1e-9)
        check_counts(problem, soft, tol=1e-3)
        same = solve(problem, temperature, scale, tol=1e-3)
        assert same.entropy == pytest.approx(soft.entropy, rel=0.02)


def test_the_greatest_entropy_is_that_of_the_class_sizes():
    problem = classifier_instance(500, 4)
    assert solve(problem, 1e6).entropy == pytest.approx(mean_entropy(problem.low[None, :] / 500), rel=1e-6)
    for temperature in (10.0, 1.0, 0.1):
        assert solve(problem, temperature).entropy < mean_entropy(problem.low[None, :] / 500)


def test_entropy_rises_with_the_temperature():
    problem = classifier_instance(500, 4)
    entropies = [solve(problem, temperature).entropy for temperature in np.geomspace(1e-3, 1e3, 13)]
    assert np.all(np.diff(entropies) > 0)


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
def test_the_temperature_has_the_unit_of_the_costs(factor):
    problem = classifier_instance(400, 5)
    soft, temperature = solve_at_entropy(LabelProblem.create(problem.costs, problem.low), 0.3, None, None)
    scaled = LabelProblem.create(factor * problem.costs, problem.low)
    other, hotter = solve_at_entropy(scaled, 0.3, None, None)
    assert hotter == pytest.approx(factor * temperature, rel=1e-6)
    np.testing.assert_allclose(other.posterior, soft.posterior, atol=1e-6)


@pytest.mark.parametrize("temperature", [1e-4, 1.0, 1e4])
def test_the_search_may_start_at_any_temperature(temperature):
    problem = LabelProblem.create(classifier_instance(400, 5).costs, classifier_instance(400, 5).low)
    soft, _ = solve_at_entropy(problem, 0.3, temperature, None)
    assert soft.entropy == pytest.approx(0.3 * mean_entropy(problem.low[None, :] / 400), rel=0.1 + 1e-9)


def test_a_search_that_starts_at_its_end_is_one_solve():
    problem = LabelProblem.create(classifier_instance(400, 5).costs, classifier_instance(400, 5).low)
    soft, temperature = solve_at_entropy(problem, 0.3, None, None)
    again, same = solve_at_entropy(problem, 0.3, temperature, soft.prices)
    assert same == temperature
    assert again.n_steps <= 2


@pytest.mark.parametrize("fraction", [1.0, 2.0, 50.0])
def test_more_entropy_than_there_is_ends_near_the_greatest(fraction):
    problem = classifier_instance(400, 5)
    soft, _ = solve_at_entropy(LabelProblem.create(problem.costs, problem.low), fraction, None, None)
    assert soft.entropy >= 0.89 * mean_entropy(problem.low[None, :] / 400)
    check_counts(problem, soft, tol=1e-3)


FORCED = np.where(np.eye(3)[np.arange(30) % 3] > 0, np.linspace(0.1, 1.0, 30)[:, None], np.inf)


@pytest.mark.parametrize("fraction", [0.9, 0.01])
@pytest.mark.parametrize(
    ("costs", "counts"),
    [
        (np.linspace(0.0, 1.0, 30)[:, None], [30]),
        (np.random.default_rng(0).normal(size=(30, 3)), [0, 30, 0]),
        (FORCED, [10, 10, 10]),
        (np.zeros((30, 3)), [10, 15, 5]),
        (np.random.default_rng(0).normal(size=(1, 3)), [0, 0, 1]),
        (np.empty((0, 3)), [0, 0, 0]),
    ],
    ids=["one-class", "all-in-one-class", "forced", "equal-costs", "one-row", "no-rows"],
)
def test_the_search_ends_where_the_entropy_is_fixed(costs, counts, fraction):
    soft, temperature = solve_at_entropy(LabelProblem.create(costs, counts), fraction, None, None)
    counts = np.asarray(counts)
    check_counts(Instance("", costs, counts, counts), soft, tol=1e-3)
    assert 0 < temperature < np.inf


@every_family
@exact_and_ranges
@few_seeds
def test_a_search_for_an_entropy_meets_the_counts_on_every_problem(family, make, seeds):
    for seed in seeds:
        problem = make(family, seed)
        prices, temperature = None, None
        for fraction in (0.9, 0.3, 0.01):
            soft, temperature = solve_at_entropy(
                LabelProblem.create(problem.costs, problem.counts), fraction, temperature, prices
            )
            prices = soft.prices
            check_counts(problem, soft, tol=1e-3)


def test_equal_costs_do_not_drive_the_temperature_to_nothing():
    problem, T, v = LabelProblem.create(np.zeros((30, 3)), [10, 15, 5]), None, None
    for _ in range(40):
        soft, T = solve_at_entropy(problem, 0.01, T, v)
        v = soft.prices
    assert T > 1e-6


def test_the_entropy_is_never_above_the_greatest():
    for make, seed in ((instance, 24), (range_instance, 27)):
        problem = make("extreme_scales", seed)
        for temperature in TEMPERATURES:
            for scale in SCALES:
                assert solve(problem, temperature, scale).entropy <= np.log(problem.low.size) + 1e-9


def test_an_entropy_that_forbidden_labels_rule_out_is_not_sought_at_any_temperature():
    costs = np.random.default_rng(0).random((40, 4))
    costs[np.arange(40), np.arange(40) % 4] = costs[np.arange(40), (np.arange(40) + 1) % 4] = np.inf
    problem = LabelProblem.create(costs, [10, 10, 10, 10])
    T = None
    for _ in range(30):
        soft, T = solve_at_entropy(problem, 0.9, T, None)
    assert T < 1e4
    assert soft.entropy == pytest.approx(np.log(2), abs=1e-3)  # the most that two labels allow


def test_equal_rows_are_not_cooled_in_vain(monkeypatch):
    tried = []
    solve = entropic._solve_at
    monkeypatch.setattr(entropic, "_solve_at", lambda rows, T, *more: (tried.append(T), solve(rows, T, *more))[1])
    problem = LabelProblem.create(np.tile([0.0, 0.3, 1.0], (60, 1)), counts=[30, 20, 10])
    soft, T = solve_at_entropy(problem, 0.2, None, None)
    assert len(tried) <= 4
    assert tried[0] == T
    np.testing.assert_allclose(soft.posterior, np.tile([1 / 2, 1 / 3, 1 / 6], (60, 1)), atol=0.01)
