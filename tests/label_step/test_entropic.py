"""The entropic label step: counts are met at every temperature and scale, and other solvers agree."""

import tracemalloc

import numpy as np
import pytest
from helpers.oracles import entropic_dual_posterior, sinkhorn_posterior
from helpers.problems import FAMILIES, Instance, classifier_instance, instance, range_instance, seeds
from threadpoolctl import threadpool_limits

from transduce import solve_labels
from transduce.label_step import LabelProblem, row_blocks
from transduce.label_step.entropic import Entropic, SoftLabelSolution, SoftStatus, mean_entropy, solve_at_entropy
from transduce.label_step.softmax_sums import FEW, SoftmaxRows
from transduce.parallel import Threads

N_SEEDS = 20  # some later ones stall, with a count off by up to a row
few_seeds, every_seed = seeds(2, 6), seeds(2, N_SEEDS)
TEMPERATURES = (1e3, 1.0, 1e-2, 1e-4, 1e-6)
SCALES = (1e-6, 1.0, 1e6)
TOL = 1e-6


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Threads of OpenBLAS slow small systems down when cores are busy."""
    with threadpool_limits(1):
        yield


every_family = pytest.mark.parametrize("family", FAMILIES)
exact_and_ranges = pytest.mark.parametrize("make", [instance, range_instance], ids=["exact", "ranges"])


def solve(
    problem: Instance, temperature: float, scale: float = 1.0, tol: float = TOL, prices=None
) -> SoftLabelSolution:
    return Entropic(temperature, tol).solve(LabelProblem.create(scale * problem.costs, problem.counts), prices)


def check_counts(problem: Instance, answer: SoftLabelSolution, tol: float = TOL) -> None:
    """Distributions over allowed labels, whose sums meet the counts."""
    q = answer.posterior
    assert np.all(np.isfinite(q))
    assert np.all(np.isfinite(answer.prices))
    assert np.all(q >= 0)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert not q[np.isinf(problem.costs)].any(), problem.name
    mass, slack = q.sum(axis=0), tol * np.maximum(problem.low, 1) + 1e-12 * len(q)
    assert np.all(mass >= problem.low - slack), problem.name
    assert np.all(mass <= problem.high + slack), problem.name
    assert answer.status is not SoftStatus.STALLED, problem.name


def total_cost(costs: np.ndarray, q: np.ndarray) -> float:
    return float((np.where(q > 0, costs, 0.0) * q).sum())


def soft_dual(problem: Instance, prices: np.ndarray, temperature: float) -> float:
    """Σ_k (low_k v_k if v_k > 0 else high_k v_k) − T Σ_i log Σ_k exp((v_k − c_ik) / T), where high_k > 0."""
    bounds = np.where(prices > 0, problem.low, problem.high)
    open_ = problem.high > 0
    z = (prices - problem.costs)[:, open_] / temperature
    return float(bounds @ prices - temperature * np.logaddexp.reduce(z, axis=1).sum())


# ---- counts, at every temperature and scale


@every_seed
@every_family
@exact_and_ranges
def test_counts_are_met_at_every_temperature_and_scale(family, make, seeds):
    for seed in seeds:
        problem = make(family, seed)
        for temperature in TEMPERATURES:
            for scale in SCALES:
                answer = solve(problem, temperature, scale)
                check_counts(problem, answer)
                assert answer.residual <= TOL * max(problem.low.max(initial=1), 1) * (1 + 1e-9)
                assert 1 <= answer.n_steps <= 500
                assert np.isfinite(answer.value)
                assert answer.gap >= 0
                assert answer.entropy >= 0


@pytest.mark.parametrize("n_classes", [2, 10, 60])
@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.01])
def test_counts_are_met_at_real_sizes_in_few_passes(n_classes, temperature):
    problem = classifier_instance(3000, n_classes)
    answer = solve(problem, temperature)
    check_counts(problem, answer)
    assert answer.status is SoftStatus.CONVERGED
    assert answer.n_steps <= 60
    ranged = Instance("ranged", problem.costs, (0.9 * problem.low).astype(int), np.ceil(1.1 * problem.low).astype(int))
    check_counts(ranged, solve(ranged, temperature))


def test_a_temperature_too_small_for_floats_gives_the_labels_of_the_exact_step():
    problem = instance("heavy_ties", 0)
    answer = solve(problem, 1e-6, 1e6)
    best = solve_labels(1e6 * problem.costs, problem.counts)
    assert answer.status is SoftStatus.AS_EXACT
    np.testing.assert_array_equal(answer.posterior, np.eye(problem.low.size)[best.labels])
    assert (answer.value, answer.entropy, answer.residual) == (best.cost, 0.0, 0.0)


# ---- other solvers


@every_family
@pytest.mark.parametrize("temperature", [1.0, 0.3])
@few_seeds
def test_posteriors_equal_those_of_sinkhorn(family, temperature, seeds):
    for seed in seeds:
        problem = instance(family, seed)
        scale = 1.0 / max(problem.scale / max(problem.costs.size, 1), 1e-300)  # costs of about 1
        if family in ("uneven_scales", "forbidden"):  # Sinkhorn's iteration is hopeless there
            continue
        answer = solve(problem, temperature, scale, tol=1e-9)
        theirs = sinkhorn_posterior(scale * problem.costs, problem.low, temperature)
        np.testing.assert_allclose(answer.posterior, theirs, atol=1e-7)


@every_family
@exact_and_ranges
@pytest.mark.parametrize("temperature", [1.0, 0.3])
@few_seeds
def test_posteriors_equal_those_of_a_general_optimiser(family, make, temperature, seeds):
    for seed in seeds:
        problem = make(family, seed)
        scale = 1.0 / max(problem.scale / max(problem.costs.size, 1), 1e-300)
        answer = solve(problem, temperature, scale, tol=1e-9)
        theirs = entropic_dual_posterior(scale * problem.costs, problem.low, problem.high, temperature)
        np.testing.assert_allclose(answer.posterior, theirs, atol=1e-4, err_msg=problem.name)


# ---- the certificate


@every_family
@exact_and_ranges
@pytest.mark.parametrize("temperature", [1.0, 1e-2])
@every_seed
def test_value_gap_and_entropy_equal_their_definitions(family, make, temperature, seeds):
    for seed in seeds:
        problem = make(family, seed)
        answer = solve(problem, temperature)
        if answer.status is SoftStatus.AS_EXACT:
            continue
        q = answer.posterior
        entropies = -np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0).sum(axis=1)
        slack = 1e-9 * (problem.scale + len(q) * (temperature + np.ptp(answer.prices)))
        assert answer.entropy == pytest.approx(entropies.mean(), abs=slack / temperature / len(q))
        assert answer.value == pytest.approx(total_cost(problem.costs, q) - temperature * entropies.sum(), abs=slack)
        dual = soft_dual(problem, answer.prices, temperature)
        assert answer.gap == pytest.approx(max(answer.value - dual, 0.0), abs=slack)  # below 0: counts not quite met
        best = solve_labels(problem.costs, problem.counts).cost  # hard labels meet the counts too, without entropy
        unmet = answer.residual * np.abs(answer.prices).sum()
        assert dual - unmet - slack <= answer.value <= best + answer.gap + slack


def test_a_loose_tolerance_shows_in_the_gap():
    problem = classifier_instance(400, 5)
    loose, tight = solve(problem, 0.3, tol=0.2), solve(problem, 0.3, tol=1e-10)
    assert loose.residual > 1e-3
    assert soft_dual(problem, loose.prices, 0.3) < tight.value
    assert loose.value - loose.gap <= tight.value
    assert loose.n_steps < tight.n_steps


# ---- the limits of the temperature


@every_family
@exact_and_ranges
@few_seeds
def test_costs_tend_to_the_optimum_as_the_temperature_falls(family, make, seeds):
    for seed in seeds:
        problem = make(family, seed)
        n, k = problem.costs.shape
        unit = max(problem.scale / max(problem.costs.size, 1), 1e-300)
        best = solve_labels(problem.costs, problem.counts).cost
        for fraction in (1.0, 1e-1, 1e-2):
            answer = solve(problem, fraction * unit)
            cost = total_cost(problem.costs, answer.posterior)
            slack = 1e-9 * problem.scale + TOL * np.abs(answer.prices).sum() * max(problem.low.max(initial=1), 1)
            assert best - slack <= cost <= best + n * fraction * unit * np.log(k) + slack, problem.name


def test_every_row_has_the_class_proportions_at_a_large_temperature():
    for seed in range(N_SEEDS):
        problem = instance("gaussian", seed)
        answer = solve(problem, 1e6)
        proportions = problem.low / len(problem.costs)
        np.testing.assert_allclose(answer.posterior, np.broadcast_to(proportions, problem.costs.shape), atol=1e-4)


# ---- symmetries


@exact_and_ranges
def test_a_constant_added_to_each_row_changes_nothing(make):
    for seed in range(6):
        problem = make("gaussian", seed)
        shift = np.linspace(-5.0, 9.0, len(problem.costs))
        plain = solve(problem, 0.3)
        shifted = solve(Instance("", problem.costs + shift[:, None], problem.low, problem.high), 0.3)
        np.testing.assert_allclose(shifted.posterior, plain.posterior, atol=1e-9)
        np.testing.assert_allclose(shifted.prices, plain.prices, atol=1e-6)
        assert shifted.value == pytest.approx(plain.value + shift.sum())
        assert shifted.entropy == pytest.approx(plain.entropy)


@exact_and_ranges
def test_the_order_of_rows_and_classes_does_not_matter(make):
    rng = np.random.default_rng(0)
    for seed in range(6):
        problem = make("forbidden", seed)
        rows, classes = rng.permutation(len(problem.costs)), rng.permutation(problem.low.size)
        shuffled = Instance("", problem.costs[rows][:, classes], problem.low[classes], problem.high[classes])
        plain, other = solve(problem, 0.3, tol=1e-9), solve(shuffled, 0.3, tol=1e-9)
        np.testing.assert_allclose(other.posterior, plain.posterior[rows][:, classes], atol=1e-7)
        assert other.value == pytest.approx(plain.value, rel=1e-7)


def test_costs_and_temperature_have_the_same_unit():
    problem = range_instance("gaussian", 17)
    plain, scaled = solve(problem, 0.3), solve(problem, 0.3 * 2.0**20, 2.0**20)
    np.testing.assert_array_equal(scaled.posterior, plain.posterior)
    np.testing.assert_array_equal(scaled.prices, 2.0**20 * plain.prices)


def test_equal_rows_have_equal_distributions():
    problem = instance("duplicated_rows", 16)
    answer = solve(problem, 0.5)
    _, first, which = np.unique(problem.costs, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(answer.posterior, answer.posterior[first][which.ravel()])


# ---- warm starts and inputs


@every_family
@exact_and_ranges
@every_seed
def test_a_start_from_the_solution_takes_at_most_two_steps(family, make, seeds):
    for seed in seeds:
        problem = make(family, seed)
        cold = solve(problem, 0.5)
        warm = solve(problem, 0.5, prices=cold.prices)
        assert warm.n_steps <= 2
        np.testing.assert_allclose(warm.posterior, cold.posterior, atol=1e-5)


def test_a_start_from_far_off_prices_ends_in_the_same_place():
    problem = classifier_instance(300, 6)
    cold = solve(problem, 0.2, tol=1e-9)
    for size in (1.0, 1e2, 1e5):
        far = solve(problem, 0.2, tol=1e-9, prices=size * np.random.default_rng(0).normal(size=6))
        check_counts(problem, far)
        np.testing.assert_allclose(far.posterior, cold.posterior, atol=1e-6)


def test_inputs_stay_as_they_are():
    problem = range_instance("forbidden", 20)
    prices = np.linspace(-1.0, 1.0, problem.low.size)
    inputs = [problem.costs, problem.low, problem.high, prices]
    copies = [array.copy() for array in inputs]
    label_problem = LabelProblem(*inputs[:3])
    answers = [Entropic(0.1).solve(label_problem, prices), solve_at_entropy(label_problem, 0.5, None, prices)[0]]
    assert all(np.array_equal(now, then) for now, then in zip(inputs, copies, strict=True))
    for answer in answers:
        assert not any(np.shares_memory(answer.posterior, array) for array in inputs)
        assert not any(np.shares_memory(answer.prices, array) for array in inputs)


def test_float32_costs_are_costs_too():
    problem = classifier_instance(200, 4)
    single = Instance("", problem.costs.astype(np.float32), problem.low, problem.high)
    np.testing.assert_allclose(solve(single, 0.3).posterior, solve(problem, 0.3).posterior, atol=1e-5)


# ---- sums in blocks, threads and memory


@pytest.fixture
def _short_chunks(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_CELLS", 1 << 7)
    monkeypatch.setattr(row_blocks, "CHUNK_CELLS", 1 << 9)
    monkeypatch.setattr(row_blocks, "LONGEST_CHUNK", 1)


@pytest.mark.usefixtures("_short_chunks")
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_classes", [1, 5, FEW + 6])
@pytest.mark.parametrize("price", [0.0, 3.0, 300.0], ids=["no", "flat", "steep"])
@pytest.mark.parametrize("T", [1.0, 1e-3])
def test_sums_are_those_of_the_distributions(n_threads, n_classes, price, T):
    rng = np.random.default_rng(0)
    costs, v = rng.normal(size=(333, n_classes)), price * rng.normal(size=n_classes)
    costs[:, 1:][rng.random((333, n_classes - 1)) < 0.1] = np.inf
    closed = np.arange(n_classes) % 4 == 3
    z = np.where(closed, -np.inf, v - (costs - costs[:, ~closed].min(axis=1, keepdims=True)) / T)
    logs = np.logaddexp.reduce(z, axis=1)
    Q = np.exp(z - logs[:, None])
    columns = np.arange(n_classes) if n_classes <= FEW else np.flatnonzero(~closed)[::2]
    with Threads(n_threads) as threads:
        rows = SoftmaxRows.create(costs, closed, threads)
        sums, written = rows.sums(v, T, columns), np.empty_like(costs)
        rows.write(v, T, written)
    np.testing.assert_allclose(written, Q, atol=1e-10)
    np.testing.assert_allclose(sums.mass, Q.sum(axis=0), atol=1e-8)
    assert sums.normalizer == pytest.approx(logs.sum(), rel=1e-11)
    assert sums.entropy == pytest.approx(len(costs) * mean_entropy(Q), abs=1e-8)
    seen = Q if n_classes <= FEW else np.column_stack((Q[:, columns], np.delete(Q, columns, axis=1).sum(axis=1)))
    np.testing.assert_allclose(sums.products, seen.T @ seen, atol=1e-8 if n_classes <= FEW else 1e-4)


@pytest.mark.usefixtures("_short_chunks")
@pytest.mark.parametrize("n_classes", [4, FEW + 6])
def test_threads_change_no_digit(n_classes):
    problem = classifier_instance(600, n_classes)
    labels = LabelProblem.create(problem.costs, problem.low)
    one, many = Entropic(0.3).solve(labels), Entropic(0.3, n_threads=3).solve(labels)
    (hot, T), (other, same) = (solve_at_entropy(labels, 0.3, None, None, n_threads=n) for n in (1, 3))
    assert (one.value, one.entropy, T) == (many.value, many.entropy, same)
    for mine, theirs in ((one, many), (hot, other)):
        np.testing.assert_array_equal(mine.posterior, theirs.posterior)
        np.testing.assert_array_equal(mine.prices, theirs.prices)


@pytest.mark.parametrize("temperature", [0.3, 1e-9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_posterior_can_be_written_to_an_array(temperature, dtype):
    problem = instance("heavy_ties", 0)
    labels, whole = LabelProblem.create(problem.costs, problem.low), np.full((60, problem.low.size), 7.0, dtype)
    out = whole[5 : 5 + len(problem.costs)]
    plain, written = Entropic(temperature).solve(labels), Entropic(temperature).solve(labels, out=out)
    assert written.posterior is out
    np.testing.assert_allclose(out, plain.posterior, atol=1e-7)
    assert np.all(whole[:5] == 7)
    assert np.all(whole[5 + len(out) :] == 7)
    soft, _ = solve_at_entropy(labels, 0.3, None, None, out=out)
    assert soft.posterior is out
    np.testing.assert_allclose(out, solve_at_entropy(labels, 0.3, None, None)[0].posterior, atol=1e-7)


@pytest.mark.parametrize("out", [np.empty((2, 2)), np.empty((3, 2), int)])
def test_an_output_array_of_the_wrong_shape_or_type_is_rejected(out):
    with pytest.raises(ValueError, match=r"out must be floats of shape \(3, 2\), but are"):
        Entropic(1.0).solve(LabelProblem.create(np.zeros((3, 2)), [1, 2]), out=out)


@pytest.mark.parametrize("n_classes", [6, FEW + 36])
def test_memory_is_a_fraction_of_the_costs(n_classes):
    problem = classifier_instance(3_200_000 // n_classes, n_classes)
    costs = problem.costs.astype(np.float32)
    out, labels = np.empty_like(costs), LabelProblem(costs, problem.low, problem.high)
    tracemalloc.start()
    try:
        solve_at_entropy(labels, 0.3, None, None, out=out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(costs) + (1 << 23) < costs.nbytes  # the least cost of each row, and some blocks


def test_costs_of_any_kind_and_order():
    problem = classifier_instance(300, 4, integral=True)
    plain = solve(problem, 3e3).posterior
    for costs in (np.asfortranarray(problem.costs), problem.costs.astype(np.int32), problem.costs[::-1][::-1]):
        np.testing.assert_allclose(solve(Instance("", costs, problem.low, problem.high), 3e3).posterior, plain)


# ---- edges


@pytest.mark.parametrize("temperature", [1e3, 1.0, 1e-3])
def test_counts_that_forbidden_labels_rule_out_raise_the_error_of_the_exact_step(temperature):
    costs = np.array([[0.0, np.inf, 1.0], [0.0, np.inf, np.inf], [0.0, 1.0, 2.0], [3.0, np.inf, 0.0]])
    for counts in ([1, 2, 1], ([0, 2, 0], [4, 4, 4]), ([0, 0, 0], [1, 4, 1])):
        with pytest.raises(ValueError, match="the counts cannot be met") as exact:
            solve_labels(costs, counts)
        with pytest.raises(ValueError, match="the counts cannot be met") as soft:
            Entropic(temperature).solve(LabelProblem.create(costs, counts))
        assert str(soft.value) == str(exact.value)


@pytest.mark.parametrize("temperature", [1e3, 1.0, 1e-3])
def test_a_class_with_count_zero_gets_no_rows(temperature):
    problem = Instance("", np.random.default_rng(0).normal(size=(30, 4)), np.array([0, 10, 0, 20]), [0, 10, 0, 20])
    answer = solve(problem, temperature)
    check_counts(problem, answer)
    assert not answer.posterior[:, [0, 2]].any()


@pytest.mark.parametrize("temperature", [1e3, 1.0, 1e-6])
def test_one_class_takes_every_row(temperature):
    answer = Entropic(temperature).solve(LabelProblem.create([[3.0], [4.0]], [2]))
    assert answer.posterior.tolist() == [[1.0], [1.0]]
    assert answer.value == pytest.approx(7.0)
    assert (answer.gap, answer.residual) == (0.0, 0.0)
    assert answer.entropy == pytest.approx(0.0, abs=1e-12)


def test_one_row_has_the_label_that_its_counts_ask_for():
    answer = Entropic(0.1).solve(LabelProblem.create([[0.0, 9.0, 1.0]], [0, 1, 0]))
    assert answer.posterior.tolist() == [[0.0, 1.0, 0.0]]
    assert answer.value == pytest.approx(9.0)


def test_one_row_under_wide_ranges_is_a_softmax():
    answer = Entropic(0.5).solve(LabelProblem.create([[0.0, 0.2, 1.0]], ([0, 0, 0], [1, 1, 1])))
    weights = np.exp(-np.array([0.0, 0.2, 1.0]) / 0.5)
    np.testing.assert_allclose(answer.posterior[0], weights / weights.sum(), rtol=1e-12)
    assert not answer.prices.any()


def test_no_rows():
    answer = Entropic(0.5).solve(LabelProblem.create(np.empty((0, 3)), [0, 0, 0]))
    assert answer.posterior.shape == (0, 3)
    assert (answer.value, answer.gap, answer.entropy, answer.residual) == (0.0, 0.0, 0.0, 0.0)


def test_equal_costs_give_every_row_the_class_proportions():
    counts = np.array([20, 0, 25, 5])
    answer = Entropic(0.01).solve(LabelProblem.create(np.ones((50, 4)), counts))
    np.testing.assert_allclose(answer.posterior, np.tile(counts / 50, (50, 1)), atol=1e-6)


# ---- a wanted entropy


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


@pytest.mark.parametrize(
    ("make", "family", "seed", "temperature"),
    [
        (instance, "two_classes", 6, 1e-4),
        (range_instance, "gaussian", 10, 1e-4),
        (range_instance, "duplicated_rows", 3, 1e3),
        (range_instance, "two_classes", 66, 1e3),
        (range_instance, "two_classes", 48, 1e3),
    ],
)
def test_counts_are_met_where_the_dual_is_flat(make, family, seed, temperature):
    check_counts(make(family, seed), solve(make(family, seed), temperature))


def test_rows_allowed_in_classes_of_count_zero_only_raise_an_error():
    with pytest.raises(ValueError, match="the counts cannot be met"):
        Entropic(1.0).solve(LabelProblem.create([[0.0, np.inf], [0.0, 1.0]], [0, 2]))


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
