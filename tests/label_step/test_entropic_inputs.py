"""Soft labels of costs of any kind and size: edge cases, threads, memory and output arrays."""

import tracemalloc

import numpy as np
import pytest
from helpers.problems import Instance, classifier_instance, instance, range_instance
from helpers.soft_labels import check_counts, solve
from threadpoolctl import threadpool_limits

from transduce import solve_labels
from transduce.label_step import LabelProblem, row_blocks
from transduce.label_step.entropic import Entropic, mean_entropy, solve_at_entropy
from transduce.label_step.softmax_sums import FEW, SoftmaxRows
from transduce.parallel import Threads


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Threads of OpenBLAS slow small systems down when cores are busy."""
    with threadpool_limits(1):
        yield


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
