"""Fits whose work is recorded and replayed, as on a GPU, are the same to the last bit."""

import numpy as np
import pytest
from helpers.device_arrays import torch_csr, torch_dense
from helpers.recorded_graph import recorded_graphs
from helpers.solver_problems import N_LABELED, blobs

from transduce import Taxonomy, TransductiveClassifier
from transduce.engines.device import arrays
from transduce.solvers import annealing

REPLAYED = {
    "BatchDualStep.solve",
    "BatchDualStep._report",
    "DeviceSoftLabels._find_costs",
    "DeviceSoftLabels._take_labels",
    "DeviceSoftmaxRows._read",
    "DeviceSoftmaxRows._write",
    "DeviceSoftmaxRows.sums",
}
"""What a fit with soft labels replays: iterations and the weights at their start, measurements, and label steps."""
NAMES = np.array(["a/x", "a/y", "b"])


def problem(n: int = 120):
    """Rows, labels of some, and the counts of all others."""
    X, truth = blobs(0)
    truth = truth[:n] % 3
    y = np.where(np.arange(n) < N_LABELED, NAMES[truth], "").astype(object)
    return X[:n], y, dict(zip(NAMES, np.bincount(truth[N_LABELED:]).tolist(), strict=True))


def fitted(X, y, prior, **parameters):
    return TransductiveClassifier(class_prior=prior, random_state=0, alpha=0.01, **parameters).fit(X, y)


def check_replayed(monkeypatch, X, y, prior, **parameters):
    monkeypatch.setattr(annealing, "COLD", -1.0)  # no stage is left out
    expected = fitted(X, y, prior, **parameters)
    graphs = recorded_graphs(monkeypatch)
    found = fitted(X, y, prior, **parameters)
    assert {graph.name for graph in graphs if graph.n_replayed > 1} == REPLAYED
    assert [row.objective for row in found.history_] == [row.objective for row in expected.history_]
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
@pytest.mark.parametrize("on_device", [torch_csr, torch_dense], ids=["csr", "dense"])
def test_soft_annealing(monkeypatch, on_device, loss):
    X, y, prior = problem()
    check_replayed(monkeypatch, on_device(X), y, prior, loss=loss, annealing="soft")


def test_a_tree_forbidden_labels_ranges_and_a_class_without_rows(monkeypatch):
    X, y, prior = problem()
    y[40:50] = [{NAMES[0], NAMES[2]} for _ in range(10)]
    names = [*NAMES, "c"]
    prior = {name: (0.8 * prior[name] / 100, 1.3 * prior[name] / 100) for name in NAMES} | {"c": 0}
    check_replayed(monkeypatch, torch_csr(X), y, prior, taxonomy=Taxonomy.create(names), annealing="soft")


def test_work_that_asks_the_host_is_found(monkeypatch):
    """The recording of the tests is strict: it must refuse what a GPU would."""
    torch, graphs = pytest.importorskip("torch"), recorded_graphs(monkeypatch)
    x, replay = torch.zeros(3), arrays.Replay()
    replay(lambda: x.add_(1.0), x)
    replay(lambda: x.add_(1.0), x)
    replay(lambda: x.add_(1.0), x)
    assert x.tolist() == [3.0, 3.0, 3.0]
    assert graphs[0].n_replayed == 2
    asking = (lambda: float(x.sum()), lambda: torch.asarray([1.0]) + x, lambda: x[x > 0], lambda: arrays.to_host(x))
    for work in asking:
        replay = arrays.Replay()
        replay(work, x)
        with pytest.raises(AssertionError, match="in recorded work"):
            replay(work, x)
