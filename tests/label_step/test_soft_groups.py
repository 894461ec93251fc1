"""Soft labels under bounds on nested groups of classes, against a general optimiser."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.grouped_problems import Grouped, feasible, grouped, large, multipliers
from helpers.problems import seeds
from scipy.optimize import minimize
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from transduce import solve_labels
from transduce.class_prior.groups import Groups
from transduce.label_step import LabelProblem
from transduce.label_step.entropic import Entropic, SoftLabelSolution, SoftStatus, mean_entropy, solve_at_entropy

TEMPERATURES = (1e3, 1.0, 1e-2, 1e-4, 1e-6)


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Threads of OpenBLAS slow small systems down when cores are busy."""
    with threadpool_limits(1):
        yield


def soft_dual_value(made: Grouped, u: np.ndarray, temperature: float) -> float:
    open_ = closed_classes(made) == 0
    z = (u @ made.sets - made.costs)[:, open_] / temperature
    low, high = made.bounds
    return float(np.where(u > 0, low, high) @ u - temperature * logsumexp(z, axis=1).sum())


def closed_classes(made: Grouped) -> np.ndarray:
    """Whether a class, or a group that it is in, may have no rows at all."""
    return ((made.bounds[1] == 0).astype(int) @ made.sets > 0).astype(int)


def soft_optimum(made: Grouped, temperature: float) -> np.ndarray:
    """Soft labels by L-BFGS-B on the dual in all multipliers, split into what is above and what is below 0."""
    low, high = made.bounds
    costs = np.where(closed_classes(made) == 1, np.inf, made.costs)
    m = low.size

    def value_and_gradient(parts: np.ndarray) -> tuple[float, np.ndarray]:
        z = ((parts[:m] - parts[m:]) @ made.sets - costs) / temperature
        normalizer = logsumexp(z, axis=1)
        sizes = made.sets @ np.exp(z - normalizer[:, None]).sum(axis=0)
        value = temperature * normalizer.sum() - low @ parts[:m] + high @ parts[m:]
        return float(value), np.concatenate((sizes - low, high - sizes))

    options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 30}
    answer = minimize(
        value_and_gradient, np.zeros(2 * m), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * m, options=options
    )
    z = ((answer.x[:m] - answer.x[m:]) @ made.sets - costs) / temperature
    return np.exp(z - logsumexp(z, axis=1)[:, None])


INF = np.inf


def check_soft(made: Grouped, answer: SoftLabelSolution, tol: float = 1e-6) -> None:
    """Distributions over allowed labels, whose sums meet the counts of classes and groups."""
    q, (low, high) = answer.posterior, made.bounds
    assert np.all(np.isfinite(q))
    assert np.all(np.isfinite(answer.prices))
    assert np.all(np.isfinite(answer.group_prices))
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert not q[np.isinf(made.costs)].any(), made.name
    mass, room = made.sets @ q.sum(axis=0), tol * np.maximum(low, 1) + 1e-12 * len(q)
    assert np.all(mass >= low - room), made.name
    assert np.all(mass <= high + room), made.name
    assert answer.residual <= room.max()
    assert answer.status is not SoftStatus.STALLED, made.name


def typical(made: Grouped) -> float:
    """The size of a cost; 1 if all are 0."""
    return made.scale / made.costs.size if made.scale > 1e-300 else 1.0


@seeds(24, 240)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_soft_labels_meet_the_bounds_at_every_temperature(temperature, seeds):
    for seed in feasible(seeds):
        made = grouped(seed)
        answer = Entropic(temperature).solve(made.problem)
        check_soft(made, answer)
        if answer.status is SoftStatus.AS_EXACT:
            continue
        u = multipliers(made, answer.prices, answer.group_prices)
        u[np.abs(u) <= 1e-13 * np.abs(answer.prices).max(initial=0.0)] = 0.0
        finite = made.scale + len(made.costs) * (temperature + np.abs(u).max(initial=0.0))
        dual = soft_dual_value(made, u, temperature)
        assert answer.gap == pytest.approx(max(answer.value - dual, 0.0), abs=1e-9 * finite), made.name


@seeds(12, 150)
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_soft_labels_equal_those_of_a_general_optimiser(temperature, seeds):
    for seed in feasible(seeds):
        made = grouped(seed)
        made = replace(made, costs=made.costs / typical(made))
        answer = Entropic(temperature, tol=1e-9).solve(made.problem)
        np.testing.assert_allclose(answer.posterior, soft_optimum(made, temperature), atol=2e-4, err_msg=made.name)


@seeds(24, 120)
def test_soft_labels_tend_to_the_exact_ones_as_the_temperature_falls(seeds):
    for seed in feasible(seeds):
        made = grouped(seed)
        best, unit = made.solve().cost, typical(made)
        for share in (1.0, 1e-2, 1e-4):
            answer = Entropic(share * unit).solve(made.problem)
            cost = float((np.where(answer.posterior > 0, made.costs, 0.0) * answer.posterior).sum())
            u = multipliers(made, answer.prices, answer.group_prices)
            slack = 1e-9 * made.scale + 1e-6 * np.abs(u).sum() * max(made.bounds[0].max(), 1)
            room = len(made.costs) * share * unit * np.log(made.low.size)
            assert best - slack <= cost <= best + room + slack, made.name


@seeds(24, 120)
def test_soft_labels_from_their_own_prices_take_at_most_two_steps(seeds):
    for seed in feasible(seeds):
        made = grouped(seed)
        cold = Entropic(0.5).solve(made.problem)
        warm = Entropic(0.5).solve(made.problem, cold.prices)
        assert warm.n_steps <= 2
        np.testing.assert_allclose(warm.posterior, cold.posterior, atol=1e-5)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.01])
def test_soft_labels_at_real_sizes_take_few_passes(seed, temperature):
    made = large(seed)
    answer = Entropic(temperature).solve(made.problem)
    check_soft(made, answer)
    assert answer.status is SoftStatus.CONVERGED
    assert answer.n_steps <= 60
    assert np.any(answer.group_prices != 0)


@pytest.mark.parametrize("share", [0.9, 0.3, 0.01])
def test_the_entropy_is_the_wanted_fraction_of_the_greatest(share):
    made = large(0, n=1000)
    soft, _ = solve_at_entropy(made.problem, share, None, None)
    check_soft(made, soft, tol=1e-3)
    greatest = mean_entropy(made.problem.bounds.center(1000)[None, :])
    assert soft.entropy == pytest.approx(share * greatest, rel=0.1 + 1e-9)


@pytest.mark.parametrize("temperature", [1e3, 1e-3])
def test_soft_labels_that_forbidden_ones_rule_out_raise_the_error_of_the_exact_step(temperature):
    costs = np.array([[0.0, INF, INF], [0.0, INF, INF], [0.0, 1.0, 2.0]])
    problem = LabelProblem.create(costs, ([0] * 3, [3] * 3), Groups([4, 3, 3, 4], [2], [3]))
    with pytest.raises(ValueError, match="group 0 must get 2 rows"):
        Entropic(temperature).solve(problem)


def test_a_group_with_high_count_zero_gets_no_rows():
    costs = np.random.default_rng(0).normal(size=(30, 4))
    problem = LabelProblem.create(costs, ([0] * 4, [30] * 4), Groups([4, 4, 5, 5, 6, 6], [0, 0], [0, 30]))
    for temperature in (1e3, 1.0, 1e-3):
        assert not Entropic(temperature).solve(problem).posterior[:, :2].any()
    assert solve_labels(costs, ([0] * 4, [30] * 4), groups=problem.groups).labels.min() >= 2
