"""Rows in blocks: the same labels and objective as in one piece, whatever the loss, tree, labels or blocks."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers.inline_pool import InlinePool, fit_inline
from scipy import sparse

from transduce import RuledOut, TransductiveClassifier, design
from transduce.dask import TransductiveClassifier as OverDask
from transduce.engines.dask import engine as dask_rows
from transduce.engines.dask import fit as attempt
from transduce.engines.dask import weight_step
from transduce.engines.dask.worker_pool import ClusterError
from transduce.io.memmap import pack_rows

CLOSE = {"tol": 1e-6, "early_tol": 1e-6, "max_iter": 300, "random_state": 0}
"""Weights so accurate that the order of rows does not matter."""


def rows(seed=0, n=240, n_classes=4, dtype=np.float64):
    """Rows of overlapping classes, and their true labels; the first of each class come first."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate((np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)))
    X = 1.3 * rng.normal(size=(n_classes, 12))[truth] + rng.normal(size=(n, 12))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[rng.random(X.shape) < 0.3] = 0.0
    order = rng.permutation(n)
    return sparse.csr_matrix(X[order].astype(dtype)), truth[order]


def few(truth, n_labeled=24, seed=0):
    """Labels of a few rows, some of each class."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([np.flatnonzero(truth == k)[:2] for k in np.unique(truth)])
    known = np.union1d(known, rng.choice(truth.size, n_labeled, replace=False))
    y = np.full(truth.size, -1)
    y[known] = truth[known]
    return y


def cut(things, ends):
    bounds = [0, *ends, things.shape[0]]
    return [things[a:b] for a, b in pairwise(bounds)]


def check_same(clf, one, truth=None):
    """Labels, class sizes and J as in one piece."""
    labels = np.concatenate(clf.transduction_)
    assert np.mean(labels == one.transduction_) >= 0.995
    assert np.array_equal(clf.class_counts_, one.class_counts_)
    assert clf.objective_ == pytest.approx(one.objective_, rel=1e-3)
    assert clf.classes_.tolist() == one.classes_.tolist()
    assert clf.coef_.dtype == one.coef_.dtype
    np.testing.assert_allclose(clf.coef_, one.coef_, atol=0.02 * np.abs(one.coef_).max())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
@pytest.mark.parametrize("ends", [(), (100,), (13, 90, 90, 200)], ids=["one", "two", "five, one empty"])
def test_blocks_are_as_good_as_one_piece(loss, ends):
    X, truth = rows()
    y = few(truth)
    prior = np.bincount(truth[y < 0]) / (y < 0).sum()
    one = TransductiveClassifier(loss, alpha=1e-2, annealing="paper", class_prior=prior, **CLOSE).fit(X, y)
    clf = OverDask(loss, alpha=1e-2, annealing="paper", class_prior=prior, **CLOSE)
    fit_inline(clf, cut(X, ends), cut(y, ends), n_workers=3)
    check_same(clf, one)
    np.testing.assert_allclose(np.vstack(clf.label_distributions_), one.label_distributions_, atol=0.05)
    assert np.array_equal(np.concatenate(clf.predict(cut(X, ends))), clf.predict(X))


@pytest.mark.parametrize(("loss", "fit_intercept"), [("hinge", False), ("maxent", True)])
def test_ranked_blocks_are_as_good_as_one_piece(loss, fit_intercept, monkeypatch, tmp_path):
    """Features lie in the order of their counts in all blocks, one of them empty; weights that come back do not."""
    monkeypatch.setattr(design, "MIN_PRODUCTS_TO_REORDER", 1)
    monkeypatch.setattr(design, "CACHE_BYTES", 128)
    X, truth = rows()
    y, ends, ranked, rank = few(truth), (13, 100, 100), [], dask_rows.rank
    monkeypatch.setattr(attempt, "rank", lambda *args: ranked.append(rank(*args)) or ranked[-1])
    how = {"alpha": 1e-2, "annealing": "paper", "fit_intercept": fit_intercept, **CLOSE}
    clf = OverDask(loss, checkpoint=tmp_path, **how)
    fit_inline(clf, cut(X, ends), cut(y, ends), n_workers=2)
    assert sorted(ranked[0]) == list(range(12 + fit_intercept))
    again = OverDask(loss, checkpoint=tmp_path, **how)
    fit_inline(again, cut(X, ends), cut(y, ends), n_workers=2)
    assert np.array_equal(again.coef_, clf.coef_)
    monkeypatch.setattr(design, "CACHE_BYTES", 1 << 20)
    one = TransductiveClassifier(loss, **how).fit(X, y)
    check_same(clf, one)
    assert np.mean(np.concatenate(clf.predict(cut(X, ends))) == one.predict(X)) > 0.99


def test_rows_in_a_file_are_not_copied_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(design, "MIN_PRODUCTS_TO_REORDER", 1)
    monkeypatch.setattr(design, "CACHE_BYTES", 128)
    X, truth = rows()
    y, ranked, rank = few(truth), [], dask_rows.rank
    monkeypatch.setattr(attempt, "rank", lambda *args: ranked.append(rank(*args)) or ranked[-1])
    blocks = [X[:100], pack_rows([X[100:]], tmp_path / "rows")]
    fit_inline(OverDask("hinge", annealing=None, max_iter=2), blocks, cut(y, (100,)))
    assert ranked == [None]


@pytest.mark.parametrize("n_shards", [2, 3])
def test_few_shards_take_turns_and_more_sweep_at_once(n_shards, monkeypatch):
    X, truth = rows()
    y = few(truth)
    turns, ends = [], tuple(range(80, 80 * n_shards, 80))
    own = InlinePool.each_in_turn
    monkeypatch.setattr(InlinePool, "each_in_turn", lambda self, *args: turns.append(0) or own(self, *args))
    how = {"alpha": 1e-2, "annealing": "paper", **CLOSE, "tol": 1e-5, "early_tol": 1e-5}
    clf = OverDask("squared_hinge", **how)
    fit_inline(clf, cut(X, ends), cut(y, ends), n_workers=n_shards)
    check_same(clf, TransductiveClassifier("squared_hinge", **how).fit(X, y))
    assert (len(turns) > 0) == (n_shards <= weight_step.IN_TURN)


class Squares:
    """A user's loss: the squared distance of the scores from 1 for the label and 0 for others."""

    def label_costs(self, scores):
        return (np.asarray(scores) ** 2).sum(axis=1, keepdims=True) - 2.0 * np.asarray(scores) + 1.0

    def value(self, scores, labels):
        return self.label_costs(scores)[np.arange(len(labels)), labels]

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1], dtype=scores.dtype)[labels])


@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_a_loss_of_ones_own_is_summed_exactly(annealing):
    X, truth = rows()
    y = few(truth)
    same = {"alpha": 1e-2, "annealing": annealing, "class_prior": "labeled", "random_state": 0, "tol": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = TransductiveClassifier(Squares(), early_tol=1e-5, **same).fit(X, y)
        clf = OverDask(Squares(), early_tol=1e-5, **same)
        fit_inline(clf, cut(X, (70,)), cut(y, (70,)))
    check_same(clf, one)
    assert not hasattr(clf, "label_distributions_")


@pytest.mark.parametrize("annealing", ["paper", "soft"])
@pytest.mark.parametrize("loss", ["hinge", "maxent", Squares()], ids=["hinge", "maxent", "own"])
def test_labelled_rows_too_many_to_be_gathered_end_as_if_they_were(loss, annealing, monkeypatch):
    X, truth = rows()
    y = few(truth)
    gathered, gather = [], dask_rows.gather_labeled

    def noting(*args):
        gathered.append(gather(*args))
        return gathered[-1]

    monkeypatch.setattr(attempt, "gather_labeled", noting)
    models, tight = [], {"tol": 1e-5, "early_tol": 1e-5, "random_state": 0}
    for small in (dask_rows.SMALL, 0):
        monkeypatch.setattr(dask_rows, "SMALL", small)
        models.append(OverDask(loss, alpha=0.1, annealing=annealing, class_prior="labeled", **tight))
        fit_inline(models[-1], cut(X, (60, 99)), cut(y, (60, 99)), n_workers=3)
    assert [labeled is None for labeled in gathered] == [False, True]
    assert models[1].history_[0].objective == pytest.approx(models[0].history_[0].objective, rel=1e-4)
    assert models[1].objective_ == pytest.approx(models[0].objective_, rel=1e-3)
    assert np.mean(np.concatenate(models[0].transduction_) == np.concatenate(models[1].transduction_)) >= 0.98


@pytest.mark.parametrize("kind", ["tree", "branches", "partial", "heavy partial", "ruled out", "weights", "intercept"])
def test_all_kinds_of_labels_sizes_and_weights(kind):
    X, truth = rows()
    names = np.array(["a/x", "a/y", "b/x", "b/y"], dtype=object)
    y = np.array([None if k < 0 else names[k] for k in few(truth)], dtype=object)
    shares = np.bincount(truth, minlength=4) / truth.size
    params = {"alpha": 1e-2, "annealing": "paper", **CLOSE}
    params["class_prior"] = dict(zip(names.tolist(), shares.tolist(), strict=True))
    weights = None
    open_rows = [row for row in range(0, 60, 3) if y[row] is None]
    if kind in ("tree", "branches", "partial", "heavy partial"):
        params["taxonomy"] = names.tolist()
    if kind == "branches":
        params["class_prior"] = {"a": (0.4, 0.5), "b": None}
    if "partial" in kind:
        y[open_rows] = [names[truth[row]].split("/")[0] for row in open_rows]
        params["class_prior"] = "labeled"
        params["partial_weight"] = "labeled" if kind == "heavy partial" else "unlabeled"
    if kind == "ruled out":
        for row in open_rows:
            y[row] = RuledOut(names[(truth[row] + 1) % 4])
        params["class_prior"] = "labeled"
    if kind == "weights":
        weights = np.random.default_rng(1).uniform(0.5, 2.0, truth.size)
    if kind == "intercept":
        params["fit_intercept"] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = TransductiveClassifier(**params).fit(X, y, sample_weight=weights)
        clf = OverDask(**params)
        own = None if weights is None else cut(weights, (50, 130))
        fit_inline(clf, cut(X, (50, 130)), cut(y, (50, 130)), sample_weight=own)
    check_same(clf, one)
    assert clf.bounds_.low.tolist() == one.bounds_.low.tolist()
    assert clf.bounds_.high.tolist() == one.bounds_.high.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("prior", ["estimate", "labeled"])
def test_the_default_labels_as_well_as_in_one_piece(dtype, prior):
    X, truth = rows(n=600, dtype=dtype)
    y = few(truth, 60)
    one = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y)
    clf = OverDask(class_prior=prior, random_state=0)
    fit_inline(clf, cut(X, (200, 333)), cut(y, (200, 333)), n_workers=2)
    right = np.mean(np.concatenate(clf.transduction_) == truth)
    assert right >= np.mean(one.transduction_ == truth) - 0.03
    assert clf.coef_.dtype == dtype
    assert clf.objective_ <= 1.05 * one.objective_


def test_two_classes_have_one_row_of_weights():
    X, truth = rows(n_classes=2)
    y = few(truth)
    clf = OverDask(annealing="paper", random_state=0)
    fit_inline(clf, cut(X, (99,)), cut(y, (99,)))
    one = TransductiveClassifier(annealing="paper", random_state=0).fit(X, y)
    assert clf.coef_.shape == one.coef_.shape == (1, 12)
    assert clf.score(cut(X, (99,)), cut(truth, (99,))) == pytest.approx(one.score(X, truth), abs=0.02)


def test_all_rows_labelled_is_supervised():
    X, truth = rows()
    clf = OverDask(random_state=0)
    fit_inline(clf, cut(X, (99,)), cut(truth, (99,)))
    one = TransductiveClassifier(random_state=0).fit(X, truth)
    assert clf.termination_condition_ == one.termination_condition_
    np.testing.assert_allclose(clf.coef_, one.coef_, atol=0.05 * np.abs(one.coef_).max())


def test_the_same_seed_gives_the_same_result_bit_for_bit():
    X, truth = rows()
    y = few(truth)
    models = [OverDask(random_state=3) for _ in range(2)]
    for clf in models:
        fit_inline(clf, cut(X, (99,)), cut(y, (99,)))
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].label_distributions_[1], models[1].label_distributions_[1])


def told(clf):
    """What happened, but for the time that it took."""
    return [replace(row, seconds=0.0) for row in clf.history_]


@pytest.mark.parametrize("kept", [False, True], ids=["from the start", "from the last stage"])
def test_a_fit_that_loses_its_workers_ends_as_if_nothing_had_happened(kept, tmp_path):
    X, truth = rows()
    y = few(truth)
    blocks = cut(X, (60, 99)), cut(y, (60, 99))
    whole = OverDask(random_state=3)
    pool = fit_inline(whole, *blocks)
    for number, lost_at in enumerate(([700], [40, 1900], [pool.n_visits - 9])):
        clf = OverDask(random_state=3, checkpoint=tmp_path / str(number) if kept else None)
        again = fit_inline(clf, *blocks, lost_at=tuple(lost_at))
        assert again.n_visits > lost_at[-1]
        assert np.array_equal(clf.coef_, whole.coef_)
        assert np.array_equal(clf.prices_, whole.prices_)
        assert clf.objective_ == whole.objective_
        assert told(clf) == told(whole)
        assert all(map(np.array_equal, clf.transduction_, whole.transduction_))
        assert all(map(np.array_equal, clf.label_distributions_, whole.label_distributions_))


def test_workers_that_die_at_the_same_place_end_in_one_sentence():
    X, truth = rows()
    clf = OverDask(random_state=3)
    with pytest.raises(ClusterError, match=r"were lost 6 times at the same place"):
        fit_inline(clf, [X], [few(truth)], n_workers=1, lost_at=tuple(range(3, 100)))


def test_a_checkpoint_goes_on_with_another_number_of_workers(tmp_path):
    X, truth = rows()
    y = few(truth)
    blocks = cut(X, (60, 99, 170)), cut(y, (60, 99, 170))
    whole = OverDask(random_state=3)
    fit_inline(whole, *blocks, n_workers=2)
    clf = OverDask(random_state=3, checkpoint=tmp_path / "kept")

    def stop(row):
        if row.stage == 4:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fit_inline(clf.set_params(verbose=stop), *blocks, n_workers=2)
    fit_inline(clf.set_params(verbose=0), *blocks, n_workers=3)
    assert np.array_equal(clf.coef_, whole.coef_)
    assert all(map(np.array_equal, clf.transduction_, whole.transduction_))


def test_a_damaged_file_of_a_shard_begins_its_part_anew(tmp_path):
    X, truth = rows()
    y = few(truth)
    blocks = cut(X, (99,)), cut(y, (99,))
    clf = OverDask(random_state=3, annealing="paper", checkpoint=tmp_path)
    fit_inline(clf, *blocks)
    before = clf.coef_.copy()
    files = sorted(tmp_path.glob("restart 0 * shard 1.stage"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="damaged"):
        fit_inline(clf, *blocks)
    assert np.array_equal(clf.coef_, before)


def test_ctrl_c_keeps_the_last_complete_round():
    X, truth = rows()
    y = few(truth)

    def stop(row):
        if row.stage == 3:
            raise KeyboardInterrupt

    clf = OverDask(random_state=3, annealing="paper", class_prior="labeled", verbose=stop)
    fit_inline(clf, cut(X, (99,)), cut(y, (99,)))
    assert "interrupted" in clf.termination_condition_
    assert np.all(clf.class_counts_ <= clf.bounds_.high)
    assert clf.history_[-1].stage == 3


@pytest.mark.parametrize(
    ("X", "y", "complaint"),
    [
        (
            [np.eye(3), np.eye(4)],
            [[0, 1, -1], [0, 1, -1, -1]],
            "blocks must have 3 columns as the first has, but block 1",
        ),
        ([np.eye(3)], [[0, 1, -1], [0, 1, 1]], "X has 1 blocks and y 2"),
        ([np.eye(3), np.eye(3)], [[0, 1, -1], [0, 1]], r"block 1: X has 3 rows and y has 2"),
        ([np.eye(3), np.eye(3)], [[-1] * 3, [-1] * 3], "every row is unlabelled"),
        ([np.eye(3), np.full((3, 3), np.nan)], [[0, 1, -1]] * 2, "block 1: Input contains NaN"),
        ([], [], "at least one block"),
        ("rows", [0], "X must be a list of blocks"),
    ],
)
def test_complaints_are_one_sentence_and_name_the_block(X, y, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        fit_inline(OverDask(), X, y)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"label_step": "switching"}, "label_step must be 'exact' where rows are in many places"),
        ({"loss": type("Own", (), {m: (lambda *a: None) for m in ("label_costs", "value", "gradient")})()}, None),
        ({"class_prior": {0: 0.9, 1: 0.9}}, "class_prior sums to 1.8"),
    ],
)
def test_parameters_are_checked(params, complaint):
    clf = OverDask(**params)
    if complaint is None:
        clf._check_parameters()
        return
    with pytest.raises(ValueError, match=complaint):
        fit_inline(clf, [np.eye(3)], [[0, 1, -1]])
