"""Fits on a device: the labels and the objective of a fit in memory, with fitted attributes where X is."""

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from helpers.device_arrays import libraries, strict, torch_csr, torch_dense
from helpers.solver_problems import N_LABELED, blobs, stop_after
from scipy import sparse
from sklearn.base import clone

from transduce import TransductiveClassifier
from transduce.baselines import EntropyRegularizedClassifier
from transduce.engines.device import arrays, restart, weights
from transduce.engines.device.arrays import is_on_device, to_host
from transduce.engines.device.engine import _memory_message, memory_explained
from transduce.solvers import annealing

NAMES = np.array(["a/x/1", "a/x/2", "a/y", "b"])


def problem(seed: int = 0, n: int = 160):
    """Rows, labels of some, and the counts of all others."""
    X, truth = blobs(seed)
    X, truth = X[:n], truth[:n]
    y = np.where(np.arange(n) < N_LABELED, NAMES[truth], "").astype(object)
    return X, y, dict(zip(NAMES, np.bincount(truth[N_LABELED:], minlength=4).tolist(), strict=True))


def fitted(X, y, prior, **parameters):
    return TransductiveClassifier(class_prior=prior, random_state=0, alpha=0.01, **parameters).fit(X, y)


def check_same(found, expected, X, on_device, share=0.97):
    assert (found.transduction_ == expected.transduction_).mean() >= share
    assert found.objective_ == pytest.approx(expected.objective_, rel=0.01)
    assert (found.predict(on_device(X)) == expected.predict(X)).mean() >= share


@libraries
@pytest.mark.parametrize(
    ("loss", "seed"),
    [("hinge", 0), pytest.param("hinge", 1, marks=pytest.mark.slow), ("squared_hinge", 0), ("maxent", 1)],
)
def test_labels_and_objective_of_a_fit_in_memory(on_device, loss, seed):
    X, y, prior = problem(seed, 160 if on_device is not strict else 80)
    given = {"loss": loss, "annealing": "paper"}
    check_same(fitted(on_device(X), y, prior, **given), fitted(X, y, prior, **given), X, on_device)


@pytest.mark.parametrize(
    ("on_device", "loss"),
    [(torch_csr, "hinge"), (torch_dense, "maxent"), (strict, "maxent")],
    ids=["hinge", "maxent", "strict"],
)
def test_soft_annealing(on_device, loss):
    X, y, prior = problem(n=100 if on_device is not strict else 50)
    rows = sparse.csr_matrix(X) if on_device is torch_csr else X
    found, expected = fitted(on_device(X), y, prior, loss=loss), fitted(rows, y, prior, loss=loss)
    check_same(found, expected, X, on_device)
    assert {row.restart for row in found.history_} == {row.restart for row in expected.history_}


@libraries
def test_fitted_attributes_and_predictions_follow_x(on_device):
    X, y, prior = problem()
    rows = on_device(X.astype(np.float32))
    clf = fitted(rows, y, prior, loss="maxent", annealing=None)
    here = clf.coef_, clf.intercept_, clf.label_distributions_, clf.decision_function(rows), clf.predict_proba(rows)
    for values in here:
        assert is_on_device(values)
        assert to_host(values).dtype == np.float32
    for values in (clf.transduction_, clf.classes_, clf.prices_, clf.class_counts_, clf.predict(rows)):
        assert type(values) is np.ndarray
    scores = X @ to_host(clf.coef_).T + to_host(clf.intercept_)
    np.testing.assert_allclose(to_host(here[3]), scores, atol=1e-4)
    np.testing.assert_allclose(to_host(here[4]).sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(clf.predict(rows), clf.classes_[scores.argmax(axis=1)])
    counts = to_host(clf.label_distributions_)[N_LABELED:].sum(axis=0)
    np.testing.assert_allclose(counts, clf.class_counts_, rtol=0.02)


@pytest.mark.parametrize("on_device", [torch_csr, torch_dense], ids=["torch-csr", "torch"])
def test_rows_of_another_precision_can_be_predicted(on_device):
    X, y, prior = problem()
    clf = fitted(on_device(X.astype(np.float32)), y, prior, annealing=None)
    found = clf.decision_function(on_device(X))
    assert to_host(found).dtype == np.float32
    np.testing.assert_allclose(to_host(found), to_host(clf.decision_function(on_device(X.astype(np.float32)))))


def test_estimated_sizes_and_probabilities():
    X, y, _ = problem()
    given = {"annealing": "paper", "loss": "maxent"}
    found, expected = fitted(torch_dense(X), y, "estimate", **given), fitted(X, y, "estimate", **given)
    assert (found.transduction_ == expected.transduction_).mean() >= 0.97
    assert found.calibration_ == expected.calibration_
    np.testing.assert_allclose(found.size_estimate_.mean, expected.size_estimate_.mean)
    assert found.accuracy_estimate_ is not None
    score = TransductiveClassifier(random_state=0).hidden_log_likelihood
    assert score(torch_dense(X), y) == pytest.approx(score(X, y))


@pytest.mark.parametrize("partial_weight", ["unlabeled", "labeled"])
@pytest.mark.parametrize("on_device", [torch_csr, torch_dense], ids=["torch-csr", "torch"])
def test_tree_partial_labels_and_sample_weights(on_device, partial_weight):
    X, y, prior = problem()
    y[30:40] = [{NAMES[0], NAMES[2]} for _ in range(10)]
    weights = np.random.default_rng(0).random(len(y)) + 0.5
    given = {"class_prior": prior, "taxonomy": list(NAMES), "annealing": "paper", "alpha": 0.01, "early_tol": 1e-3}
    clf = TransductiveClassifier(**given, partial_weight=partial_weight, random_state=1)
    found, expected = clone(clf).fit(on_device(X), y, sample_weight=weights), clf.fit(X, y, sample_weight=weights)
    check_same(found, expected, X, on_device)
    assert set(found.transduction_[30:40]) <= {NAMES[0], NAMES[2]}
    assert np.all(to_host(found.label_distributions_)[30:40][:, [1, 3]] == 0.0)


@pytest.mark.parametrize("step", ["switching", "greedy"])
def test_other_label_steps_work_in_memory(step):
    X, y, prior = problem()
    given = {"label_step": step, "annealing": None}
    check_same(fitted(torch_dense(X), y, prior, **given), fitted(X, y, prior, **given), X, torch_dense)


def test_many_rows_are_labelled_on_the_device(monkeypatch):
    """In blocks, and by label steps that leave the costs where they are."""
    monkeypatch.setattr(restart, "MEMORY_CELLS", 0)
    for module in (arrays, weights):
        monkeypatch.setattr(module, "BLOCK_CELLS", 200)
    X, y, prior = problem()
    given = {"annealing": "paper"}
    check_same(fitted(torch_csr(X), y, prior, **given), fitted(X, y, prior, **given), X, torch_csr)


def test_two_classes_and_rows_that_are_all_labelled():
    X, y, _ = problem()
    y = np.where(y == "", "b", y)
    y = np.where(y == "b", "b", "a")
    found = TransductiveClassifier(alpha=0.01).fit(torch_dense(X), y)
    expected = TransductiveClassifier(alpha=0.01).fit(X, y)
    assert found.coef_.shape == (1, X.shape[1])
    assert found.decision_function(torch_dense(X)).shape == (len(y),)
    np.testing.assert_array_equal(found.predict(torch_dense(X)), expected.predict(X))
    assert found.predict_proba(torch_dense(X)).shape == (len(y), 2)


def test_labels_and_weights_may_be_on_the_device():
    X, y, _ = problem()
    codes = np.array([NAMES.tolist().index(name) if name else -1 for name in y])
    found = TransductiveClassifier(annealing=None, class_prior="equal", random_state=0).fit(
        torch_dense(X), torch_dense(codes), sample_weight=torch_dense(np.ones(len(y)))
    )
    expected = TransductiveClassifier(annealing=None, class_prior="equal", random_state=0).fit(torch_dense(X), codes)
    np.testing.assert_array_equal(to_host(found.transduction_), expected.transduction_)
    for values in (found.transduction_, found.class_counts_, found.prices_, found.predict(torch_dense(X))):
        assert is_on_device(values)
    assert found.score(torch_dense(X), torch_dense(codes)) == expected.score(torch_dense(X), codes)


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_checks_of_scikit_learn(monkeypatch, name, loss):
    pytest.importorskip(name)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    clf = TransductiveClassifier(loss, annealing="paper")
    checks.check_array_api_input("TransductiveClassifier", clf, name, check_sample_weight=True)


def test_a_fit_resumes_from_its_checkpoint(tmp_path):
    X, y, prior = problem(n=100)
    given = {"loss": "maxent", "checkpoint": tmp_path / "fit"}
    whole = fitted(torch_dense(X), y, prior, loss="maxent")
    for n_rounds in (9, 30):
        with suppress(KeyboardInterrupt):
            fitted(torch_dense(X), y, prior, **given, verbose=stop_after(n_rounds))
    resumed = fitted(torch_dense(X), y, prior, **given)
    np.testing.assert_array_equal(resumed.transduction_, whole.transduction_)
    assert resumed.objective_ == pytest.approx(whole.objective_, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, torch: X[0], "matrix"),
        (lambda X, torch: X.to_sparse(), "CSR"),
        (lambda X, torch: torch.where(X > 0.5, torch.nan, X), "finite"),
    ],
)
def test_rows_that_cannot_be_used(change, message):
    X, y, prior = problem()
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=message):
        fitted(change(torch_dense(X), torch), y, prior)


def test_what_does_not_work_on_a_device_says_so():
    X, y, prior = problem()
    with pytest.raises(ValueError, match="outlier_fraction is for rows in memory"):
        fitted(torch_dense(X), y, prior, outlier_fraction=0.1, annealing=None)
    clf = fitted(torch_dense(X), y, prior, annealing=None)
    with pytest.raises(TypeError, match="X must be on a device as in fit, but is ndarray"):
        clf.predict(X)
    with pytest.raises(ValueError, match="expecting 15 features"):
        clf.predict(torch_dense(X[:, :3]))
    assert type(EntropyRegularizedClassifier().fit(torch_dense(X), y).coef_) is np.ndarray


class OutOfMemoryError(RuntimeError):
    """As torch and CuPy call it."""


def test_too_little_memory_is_one_sentence():
    X = torch_dense(np.zeros((10, 3)))
    with pytest.raises(MemoryError, match="too little memory for X with 10 rows"), memory_explained(X):
        raise OutOfMemoryError
    with pytest.raises(RuntimeError, match="other"), memory_explained(X):
        raise RuntimeError("other")
    assert "pass NumPy rows" in _memory_message(torch_csr(np.eye(3)))


@pytest.mark.parametrize("name", ["torch", "array_api_compat", "cupy"])
def test_nothing_is_imported_before_it_is_needed(name):
    code = f"import sys, transduce; transduce.TransductiveClassifier; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_of_very_many_rows_a_sample_is_annealed(monkeypatch):
    monkeypatch.setattr(annealing, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(annealing, "SAMPLE_ROWS_PER_CLASS", 1)
    X, y, prior = problem()
    check_same(fitted(torch_dense(X), y, prior, loss="maxent"), fitted(X, y, prior, loss="maxent"), X, torch_dense)
