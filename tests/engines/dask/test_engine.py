"""Fits over shards in this process: the same labels and objective as with all rows in one place."""

import warnings

import numpy as np
import pytest
from helpers.dask_blocks import hide_most, make_rows, split
from helpers.inline_pool import InlinePool, fit_inline

from transduce import RuledOut, TransductiveClassifier
from transduce.dask import TransductiveClassifier as OverDask
from transduce.design import columns
from transduce.engines.dask.engine import DaskData
from transduce.engines.local import LocalData
from transduce.io.memmap import pack_rows
from transduce.solvers import annealing

ACCURATE = {"tol": 1e-6, "early_tol": 1e-6, "max_iter": 300, "random_state": 0}
"""Weights so accurate that the order of rows does not matter."""


def check_same(clf, local):
    """Labels, class counts, J and weights as with all rows in one place."""
    labels = np.concatenate(clf.transduction_)
    assert np.mean(labels == local.transduction_) >= 0.995
    assert np.abs(clf.class_counts_ - local.class_counts_).max() <= 1  # a row near a tie, where sizes are ranges
    assert clf.objective_ == pytest.approx(local.objective_, rel=1e-3)
    assert clf.classes_.tolist() == local.classes_.tolist()
    assert clf.coef_.dtype == local.coef_.dtype
    np.testing.assert_allclose(clf.coef_, local.coef_, atol=0.02 * np.abs(local.coef_).max())


@pytest.mark.parametrize(
    ("loss", "ends"),
    [
        ("hinge", (100,)),
        ("squared_hinge", (100,)),
        ("maxent", (13, 90, 90, 200)),
        pytest.param("hinge", (13, 90, 90, 200), marks=pytest.mark.slow),
        pytest.param("squared_hinge", (13, 90, 90, 200), marks=pytest.mark.slow),
        pytest.param("maxent", (100,), marks=pytest.mark.slow),
    ],
    ids=lambda one: one if isinstance(one, str) else f"{len(one) + 1} blocks",
)
def test_blocks_give_the_same_fit_as_one_matrix(loss, ends):
    X, truth = make_rows()
    y = hide_most(truth)
    how = {"alpha": 1e-2, "annealing": "paper", "class_prior": np.bincount(truth[y < 0]), **ACCURATE}
    local = TransductiveClassifier(loss, **how).fit(X, y)
    clf = OverDask(loss, **how)
    fit_inline(clf, split(X, ends), split(y, ends), n_workers=3)
    check_same(clf, local)
    np.testing.assert_allclose(np.vstack(clf.label_distributions_), local.label_distributions_, atol=0.05)
    assert np.array_equal(np.concatenate(clf.predict(split(X, ends))), clf.predict(X))


@pytest.mark.parametrize(
    ("loss", "annealing", "kind"),
    [
        ("hinge", "paper", "mixed"),
        ("hinge", "soft", "dense"),
        pytest.param("hinge", "paper", "dense", marks=pytest.mark.slow),
        pytest.param("hinge", "soft", "mixed", marks=pytest.mark.slow),
        pytest.param("maxent", "paper", "dense", marks=pytest.mark.slow),
        pytest.param("maxent", "paper", "mixed", marks=pytest.mark.slow),
    ],
)
def test_dense_blocks_give_the_same_fit_as_one_matrix(loss, annealing, kind):
    X, truth = make_rows()
    y, ends, dense = hide_most(truth), (13, 90, 90, 200), X.toarray()
    sizes = np.bincount(truth[y < 0])
    how = {"alpha": 1e-2, "annealing": annealing, "class_prior": sizes, **ACCURATE}
    local = TransductiveClassifier(loss, **how).fit(dense, y)
    clf, blocks = OverDask(loss, **how), split(dense, ends)
    fit_inline(clf, blocks if kind == "dense" else [X[:13], *blocks[1:]], split(y, ends), n_workers=2)
    check_same(clf, local)


def record(monkeypatch, owner, name):
    """A list of what a method returns from now on."""
    results, method = [], getattr(owner, name)

    def recording(*args, **kwargs):
        results.append(method(*args, **kwargs))
        return results[-1]

    monkeypatch.setattr(owner, name, recording)
    return results


@pytest.fixture
def _small_cache(monkeypatch):
    """Reordering columns pays for the smallest of problems."""
    monkeypatch.setattr(columns, "MIN_PRODUCTS_TO_REORDER", 1)
    monkeypatch.setattr(columns, "CACHE_BYTES", 128)


@pytest.mark.usefixtures("_small_cache")
@pytest.mark.parametrize(("loss", "fit_intercept"), [("hinge", False), ("maxent", True)])
def test_columns_reordered_on_all_shards_give_the_same_fit(loss, fit_intercept, monkeypatch, tmp_path):
    X, truth = make_rows()
    y, ends = hide_most(truth), (13, 100, 100)
    orders = record(monkeypatch, DaskData, "_reorder")
    sizes = np.bincount(truth[y < 0]).tolist()
    how = {"alpha": 1e-2, "annealing": "paper", "class_prior": sizes, "fit_intercept": fit_intercept, **ACCURATE}
    clf = OverDask(loss, checkpoint=tmp_path, **how)
    fit_inline(clf, split(X, ends), split(y, ends), n_workers=2)
    assert sorted(orders[0]) == list(range(12))
    resumed = OverDask(loss, checkpoint=tmp_path, **how)
    fit_inline(resumed, split(X, ends), split(y, ends), n_workers=2)
    assert np.array_equal(resumed.coef_, clf.coef_)
    monkeypatch.setattr(columns, "CACHE_BYTES", 1 << 20)
    local = TransductiveClassifier(loss, **how).fit(X, y)
    check_same(clf, local)
    same = np.concatenate(clf.predict(split(X, ends))) == local.predict(X)
    assert np.mean(same) > 0.98  # prices of exact counts may differ a little where rows are far apart


@pytest.mark.usefixtures("_small_cache")
def test_memory_mapped_rows_are_not_reordered(monkeypatch, tmp_path):
    X, truth = make_rows()
    y, orders = hide_most(truth), record(monkeypatch, DaskData, "_reorder")
    blocks = [X[:100], pack_rows([X[100:]], tmp_path / "rows")]
    fit_inline(OverDask("hinge", annealing=None, fit_intercept=False, random_state=0), blocks, split(y, (100,)))
    assert orders == []


@pytest.mark.parametrize("n_shards", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_any_number_of_shards_gives_the_same_fit(n_shards):
    X, truth = make_rows()
    y, ends = hide_most(truth), tuple(range(48, 48 * n_shards, 48))
    how = {"alpha": 1e-2, "annealing": "paper", **ACCURATE, "tol": 1e-5, "early_tol": 1e-5, "class_prior": "labeled"}
    clf = OverDask("squared_hinge", **how)
    fit_inline(clf, split(X, ends), split(y, ends), n_workers=n_shards)
    check_same(clf, TransductiveClassifier("squared_hinge", **how).fit(X, y))


class Squares:
    """A user's loss: the squared distance of the scores from 1 for the label and 0 for others."""

    def label_costs(self, scores):
        return (np.asarray(scores) ** 2).sum(axis=1, keepdims=True) - 2.0 * np.asarray(scores) + 1.0

    def value(self, scores, labels):
        return self.label_costs(scores)[np.arange(len(labels)), labels]

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1], dtype=scores.dtype)[labels])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_a_users_loss_is_minimised_over_exact_sums(annealing):
    X, truth = make_rows()
    y = hide_most(truth)
    how = {"alpha": 1e-2, "annealing": annealing, "class_prior": "labeled", "random_state": 0, "tol": 1e-5}
    local = TransductiveClassifier(Squares(), early_tol=1e-5, **how).fit(X, y)
    clf = OverDask(Squares(), early_tol=1e-5, **how)
    fit_inline(clf, split(X, (70,)), split(y, (70,)))
    check_same(clf, local)
    assert not hasattr(clf, "label_distributions_")


@pytest.fixture
def _small_sample(monkeypatch):
    """Only some of the unlabelled rows are annealed."""
    monkeypatch.setattr(annealing, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(annealing, "SAMPLE_ROWS_PER_CLASS", 1)


@pytest.mark.usefixtures("_small_sample")
@pytest.mark.parametrize(
    ("loss", "how"),
    [
        pytest.param("hinge", {}, id="hinge"),
        pytest.param("maxent", {"class_prior": "estimate"}, id="maxent"),
        pytest.param("hinge", {"annealing": "soft"}, id="soft", marks=pytest.mark.slow),
        pytest.param(Squares(), {}, id="user's loss"),
    ],
)
def test_a_sample_of_the_rows_is_refined_on_all_as_in_one_place(loss, how):
    X, truth = make_rows()
    y = hide_most(truth, 40)
    how = {"alpha": 1e-2, "annealing": "paper", "class_prior": np.bincount(truth[y < 0]), **ACCURATE} | how
    local, clf = TransductiveClassifier(loss, **how).fit(X, y), OverDask(loss, **how)
    fit_inline(clf, split(X, (60, 99)), split(y, (60, 99)), n_workers=3)
    for model in (local, clf):
        assert [row.restart for row in model.history_] == sorted(row.restart for row in model.history_)
        assert model.history_[-1].unlabeled_weight == 1.0
    assert clf.objective_ == pytest.approx(local.objective_, rel=0.03)  # they draw other samples
    assert np.mean(np.concatenate(clf.transduction_) == local.transduction_) >= 0.93


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["tree", "branches", "partial", "partial as labelled", "ruled out", "weights", "intercept"]
)
def test_all_kinds_of_labels_class_sizes_and_weights(kind):
    X, truth = make_rows()
    names = np.array(["a/x", "a/y", "b/x", "b/y"], dtype=object)
    y = np.array([None if k < 0 else names[k] for k in hide_most(truth)], dtype=object)
    fractions = np.bincount(truth, minlength=4) / truth.size
    how = {"alpha": 0.1, "annealing": "paper", **ACCURATE}
    how["class_prior"] = {name: f"={x!r}" for name, x in zip(names.tolist(), fractions.tolist(), strict=True)}
    weights = None
    open_rows = [row for row in range(0, 60, 3) if y[row] is None]
    if kind in ("tree", "branches", "partial", "partial as labelled"):
        how["taxonomy"] = names.tolist()
    if kind == "branches":
        how["class_prior"] = {"a": (0.4, 0.5), "b": None}
    if "partial" in kind:
        y[open_rows] = [names[truth[row]].split("/")[0] for row in open_rows]
        how["class_prior"] = "labeled"
        how["partial_weight"] = "labeled" if kind == "partial as labelled" else "unlabeled"
    if kind == "ruled out":
        for row in open_rows:
            y[row] = RuledOut(names[(truth[row] + 1) % 4])
        how["class_prior"] = "labeled"
    if kind == "weights":
        weights = np.random.default_rng(1).uniform(0.5, 2.0, truth.size)
    if kind == "intercept":
        how["fit_intercept"] = True
    local = TransductiveClassifier(**how).fit(X, y, sample_weight=weights)
    clf, ends = OverDask(**how), (50, 130)
    own = None if weights is None else split(weights, ends)
    fit_inline(clf, split(X, ends), split(y, ends), sample_weight=own)
    check_same(clf, local)
    assert clf.bounds_.low.tolist() == local.bounds_.low.tolist()
    assert clf.bounds_.high.tolist() == local.bounds_.high.tolist()


def sampled(monkeypatch, kind, max_rows):
    """Engines of a fit in one place and over blocks, and what they sample."""
    X, truth = make_rows()
    y, weights = hide_most(truth).astype(object), np.random.default_rng(1).uniform(0.5, 2.0, truth.size)
    for row in np.flatnonzero(y < 0)[::3] if "partial" in kind else ():
        y[row] = frozenset({truth[row], (truth[row] + 1) % 4})
    how = {"annealing": None, "class_prior": "labeled", "max_iter": 2, "random_state": 0}
    how["partial_weight"] = "labeled" if kind == "partial as labelled" else "unlabeled"
    found, ends = [], (50, 130)
    for owner in (LocalData, DaskData):
        built = record(monkeypatch, owner, "build")
        if owner is LocalData:
            TransductiveClassifier(**how).fit(X, y, weights if kind == "weights" else None)
            found.append(built[0].sample(max_rows, np.random.default_rng(0)))
        else:
            monkeypatch.setattr(InlinePool, "release", lambda pool: None)  # shards stay after the fit
            own = split(weights, ends) if kind == "weights" else None
            fit_inline(OverDask(**how), split(X, ends), split(y, ends), sample_weight=own)
            found.append(built[0].sample(max_rows, np.random.default_rng(0)))
    return found


def described(engine):
    """Rows of a problem in an order of their own: X, weight, label, allowed labels."""
    problem, n = engine.problem, engine.problem.n_labeled
    forbidden = np.zeros((problem.n_rows, 4)) if problem.forbidden is None else np.zeros((n, 4))
    if problem.forbidden is not None:
        forbidden = np.vstack((forbidden, problem.forbidden))
    labels = np.where(np.arange(problem.n_rows) < n, engine.labels, -1)
    X = np.sort(problem.design.matrix().toarray(), axis=1)  # columns may be reordered
    table = np.column_stack((X, problem.row_weights, labels, forbidden))
    return table[np.lexsort(X.T.round(9))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["plain", "weights", "partial", "partial as labelled"])
def test_a_sample_of_all_blocks_has_the_rows_of_the_local_engine(kind, monkeypatch):
    local, over_dask = sampled(monkeypatch, kind, 1000)
    assert (over_dask.n_unlabeled, over_dask.n_classes) == (local.n_unlabeled, local.n_classes)
    np.testing.assert_allclose(described(over_dask), described(local))


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_some_rows_has_as_many_over_blocks(monkeypatch):
    local, over_dask = sampled(monkeypatch, "partial", 40)
    assert over_dask.n_unlabeled == local.n_unlabeled == 40
    assert over_dask.problem.n_labeled == local.problem.n_labeled
    np.testing.assert_allclose(over_dask.problem.row_weights, local.problem.row_weights)


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_sizes_estimated_over_blocks_are_those_of_one_matrix(loss):
    X, truth = make_rows()
    y, ends, how = hide_most(truth, 40), (50, 130), {"alpha": 0.1, "annealing": "paper", **ACCURATE}
    local, clf = TransductiveClassifier(loss, **how).fit(X, y), OverDask(loss, **how)
    fit_inline(clf, split(X, ends), split(y, ends))
    np.testing.assert_allclose(clf.size_estimate_.mean, local.size_estimate_.mean, atol=0.03)
    assert clf.calibration_.temperature == pytest.approx(local.calibration_.temperature, rel=0.3)
    assert np.mean(np.concatenate(clf.transduction_) == local.transduction_) >= 0.97
    assert clf.accuracy_estimate_.mean == pytest.approx(local.accuracy_estimate_.mean, abs=0.05)
    proba = clf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(proba, clf.calibration_.probabilities(clf.loss_, clf.decision_function(X)))
    distributions = np.concatenate(clf.label_distributions_)[y < 0]
    np.testing.assert_allclose(distributions, proba[y < 0], atol=1e-6)  # the intercept holds the prices


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_both_engines_predict_allowed_classes_only_for_partial_labels(loss):
    X, truth = make_rows()
    y = hide_most(truth).astype(object)
    allowed = np.ones((truth.size, 4), bool)
    for row in np.flatnonzero(y < 0)[::2]:
        y[row] = frozenset({truth[row] % 2, 2 + truth[row] % 2})
        allowed[row] = [k in y[row] for k in range(4)]
    how = {"alpha": 1e-2, "annealing": "paper", "class_prior": "labeled", "price_shift": False, **ACCURATE}
    local, clf, ends = TransductiveClassifier(loss, **how).fit(X, y), OverDask(loss, **how), (50, 130)
    fit_inline(clf, split(X, ends), split(y, ends))
    unlabeled = hide_most(truth) < 0
    for model in (local, clf):
        best = np.where(allowed, model.decision_function(X), -np.inf)[unlabeled].argmax(axis=1)
        assert model.prior_diagnostics_.predicted.tolist() == (np.bincount(best, minlength=4) / len(best)).tolist()


@pytest.mark.parametrize(
    ("dtype", "prior"), [(np.float32, "estimate"), pytest.param(np.float64, "labeled", marks=pytest.mark.slow)]
)
def test_default_settings_are_as_accurate_as_in_one_place(dtype, prior):
    X, truth = make_rows(n=300, dtype=dtype)
    y = hide_most(truth, 40)
    local = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y)
    clf = OverDask(class_prior=prior, random_state=0)
    fit_inline(clf, split(X, (100, 166)), split(y, (100, 166)), n_workers=2)
    assert np.mean(np.concatenate(clf.transduction_) == truth) >= np.mean(local.transduction_ == truth) - 0.03
    assert clf.coef_.dtype == dtype
    assert clf.objective_ <= 1.05 * local.objective_


def test_two_classes_have_one_row_of_weights():
    X, truth = make_rows(n_classes=2)
    y = hide_most(truth)
    clf = OverDask(annealing="paper", random_state=0)
    fit_inline(clf, split(X, (99,)), split(y, (99,)))
    local = TransductiveClassifier(annealing="paper", random_state=0).fit(X, y)
    assert clf.coef_.shape == local.coef_.shape == (1, 12)
    assert clf.score(split(X, (99,)), split(truth, (99,))) == pytest.approx(local.score(X, truth), abs=0.02)


def test_all_rows_labelled_is_a_supervised_fit():
    X, truth = make_rows()
    clf = OverDask(random_state=0)
    fit_inline(clf, split(X, (99,)), split(truth, (99,)))
    local = TransductiveClassifier(random_state=0).fit(X, truth)
    assert clf.termination_condition_ == local.termination_condition_
    np.testing.assert_allclose(clf.coef_, local.coef_, atol=0.05 * np.abs(local.coef_).max())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"label_step": "switching"}, "label_step must be 'exact' over Dask"),
        ({"loss": type("Local", (Squares,), {"__reduce__": lambda self: 1 / 0})()}, "loss must be an object that can"),
        ({"class_prior": {0: 0.9, 1: 0.9}}, "class_prior sums to 1.8"),
    ],
)
def test_parameters_are_checked(params, message):
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        fit_inline(OverDask(**params), [np.eye(3)], [[0, 1, -1]])
