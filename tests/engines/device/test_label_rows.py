"""Label steps over costs on a device find what they find in memory."""

import numpy as np
import pytest
from helpers.device_arrays import strict, torch_dense

from transduce.class_prior.bounds import Bounds
from transduce.engines.device import label_rows
from transduce.engines.device.arrays import Arrays, to_host
from transduce.engines.device.label_rows import device_partitions
from transduce.label_step import Exact, InfeasibleError, LabelProblem
from transduce.label_step.entropic import Entropic, solve_at_entropy, solve_partitions_at_entropy
from transduce.label_step.partitions import Partition
from transduce.label_step.softmax_sums import SoftmaxRows
from transduce.parallel import Threads

K = 5
dense = pytest.mark.parametrize("on_device", [torch_dense, strict], ids=["torch", "strict"])
kinds = pytest.mark.parametrize("kind", ["plain", "tied", "forbidden"])


def some_costs(kind: str, n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    costs = rng.exponential(size=(n, K))
    if kind == "tied":
        costs = np.round(costs)
    if kind == "forbidden":
        costs[rng.random((n, K)) < 0.2] = np.inf
        costs[:, 0] = np.where(np.isinf(costs).all(axis=1), 1.0, costs[:, 0])
    return costs


def partitions_of(costs, on_device, labels=None):
    values = on_device(costs)
    return device_partitions(values, labels, Arrays.of(values))


@dense
@kinds
def test_cheapest_labels_and_margins(monkeypatch, on_device, kind):
    monkeypatch.setattr(label_rows, "BLOCK_CELLS", 64 * K)
    costs, present = some_costs(kind), np.arange(300) % K
    prices, tie_prices = np.linspace(-0.5, 0.5, K) * (kind != "tied"), np.linspace(0.0, 0.3, K)
    found = partitions_of(costs, on_device, present).partitions[0].cheapest(prices, tie_prices, 7)
    expected = Partition(costs, present).cheapest(prices, tie_prices, 7)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


@dense
def test_sums_of_labelings(on_device):
    costs, labelings = some_costs("plain"), np.random.default_rng(1).integers(K, size=(2, 300))
    here = partitions_of(costs, on_device).partitions[0]
    expected = Partition(costs, labelings[0]).label_sums(np.arange(K) / K, labelings)
    np.testing.assert_allclose(here.label_sums(np.arange(K) / K, labelings), expected)


@dense
@kinds
def test_the_exact_label_step_is_optimal(on_device, kind):
    costs, counts = some_costs(kind), np.array([100, 80, 60, 40, 20])
    partitions = partitions_of(costs, on_device)
    found = Exact().solve_partitions(partitions, Bounds.exact(counts))
    expected = Exact().solve(LabelProblem(costs, counts, counts))
    assert found.cost == pytest.approx(expected.cost)
    assert found.gap <= 1e-9
    labels = partitions.partitions[0].state["labels"]
    np.testing.assert_array_equal(np.bincount(labels), counts)
    assert costs[np.arange(300), labels].sum() == pytest.approx(expected.cost)


@dense
def test_counts_that_cannot_be_met(on_device):
    costs = some_costs("plain")
    costs[:, 1] = np.inf
    with pytest.raises(InfeasibleError):
        Exact().solve_partitions(partitions_of(costs, on_device), Bounds.exact(np.array([60] * K)))


@dense
@kinds
@pytest.mark.parametrize("columns", [None, np.arange(K), np.array([0, 3])], ids=["none", "all", "some"])
@pytest.mark.parametrize("T", [0.01, 0.5])
def test_sums_of_distributions(on_device, kind, columns, T):
    costs, v = some_costs(kind), np.linspace(-2.0, 1.0, K)
    closed = np.arange(K) == (2 if kind == "plain" else K)
    here = partitions_of(costs, on_device).partitions[0].softmax_rows(closed, 1)
    rows = SoftmaxRows.create(costs, closed, Threads(1))
    found, expected = here.sums(v, T, columns), rows.sums(v, T)
    np.testing.assert_allclose(found.mass, expected.mass, atol=1e-9)
    assert found.normalizer == pytest.approx(expected.normalizer)
    assert found.entropy == pytest.approx(expected.entropy, abs=1e-9)
    for name in ("n_rows", "n_finite", "n_tied", "least", "above", "largest"):
        assert getattr(here.statistics, name) == pytest.approx(getattr(rows.statistics, name)), name
    if columns is not None:
        q = np.empty_like(costs)
        rows.write(v, T, q)
        others = np.setdiff1d(np.arange(K), columns)
        q = np.column_stack((q[:, columns], q[:, others].sum(axis=1))) if others.size else q
        np.testing.assert_allclose(found.products, q.T @ q, atol=1e-9)


@dense
@kinds
def test_soft_labels_meet_the_counts(on_device, kind):
    costs, counts = some_costs(kind), np.array([100, 80, 60, 40, 20])
    partitions = partitions_of(costs, on_device)
    Entropic(0.3).solve_partitions(partitions, Bounds.exact(counts))
    expected = Entropic(0.3).solve(LabelProblem(costs, counts, counts)).posterior
    np.testing.assert_allclose(to_host(partitions.partitions[0].state["posterior"]), expected, atol=1e-5)


@dense
def test_soft_labels_of_an_entropy(on_device):
    costs, counts = some_costs("plain"), np.array([100, 80, 60, 40, 20])
    found = solve_partitions_at_entropy(partitions_of(costs, on_device), Bounds.exact(counts), 0.3, None, None)
    expected, T = solve_at_entropy(LabelProblem(costs, counts, counts), 0.3, None, None)
    assert found.temperature == pytest.approx(T)
    assert found.entropy == pytest.approx(expected.entropy)
