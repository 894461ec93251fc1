"""alpha="auto": a property of the loss and of the scale of X, so that the scale does not change any label."""

import numpy as np
import pytest
from helpers.dask_blocks import hide_most, make_rows, split
from helpers.inline_pool import fit_inline
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from transduce import (
    EntropyRegularizedClassifier,
    ExpectationConstrainedClassifier,
    ExpectationRegularizedClassifier,
    PosteriorRegularizedClassifier,
    TransductiveClassifier,
)
from transduce.dask import TransductiveClassifier as OverDask
from transduce.design import mean_squared_length, sum_of_squares
from transduce.io.memmap import pack_rows
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin, default_alpha
from transduce.model_selection import HiddenLabelSplit, labeled_scorer
from transduce.testing import blobs, true_counts

BASELINES = [
    EntropyRegularizedClassifier(),
    ExpectationConstrainedClassifier(),
    ExpectationRegularizedClassifier(),
    PosteriorRegularizedClassifier(),
]
ESTIMATORS = [
    TransductiveClassifier(),
    TransductiveClassifier(fit_intercept=True, annealing="paper"),
    TransductiveClassifier("squared_hinge", annealing="paper"),
    TransductiveClassifier("maxent", fit_intercept=True, annealing="paper"),
    *BASELINES,
]


class OwnLoss:
    """Maxent as a user would write it, without the optional members."""

    def label_costs(self, scores):
        return MaxEnt().label_costs(scores)

    def value(self, scores, targets):
        return MaxEnt().value(scores, targets)

    def gradient(self, scores, targets):
        return MaxEnt().gradient(scores, targets)


class TunedLoss(OwnLoss):
    default_alpha = 5e-4


def uneven_rows():
    """The blobs with rows of different lengths, around a centre that is not 0."""
    X, truth, y = blobs()
    lengths = np.exp(np.random.default_rng(1).uniform(-0.5, 0.5, (len(y), 1)))
    return (X + 0.3) * lengths, truth, y


# ---- invariance


@pytest.mark.parametrize("scale", [10.0, 1e-3, 2.0**20])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_scale_of_the_rows_changes_no_label_and_no_prediction(estimator, scale):
    X, truth, y = uneven_rows()
    estimator = clone(estimator).set_params(class_prior=true_counts(truth, y), random_state=0)
    own, scaled = clone(estimator).fit(X, y), clone(estimator).fit(scale * X, y)
    assert np.array_equal(scaled.transduction_, own.transduction_)
    new = np.random.default_rng(2).normal(size=(200, X.shape[1]))
    assert np.array_equal(scaled.predict(scale * new), own.predict(new))
    assert scaled.alpha_ == pytest.approx(scale**2 * own.alpha_, rel=1e-12)
    np.testing.assert_allclose(scaled.intercept_, own.intercept_, atol=1e-2 * np.abs(own.decision_function(X)).max())


def test_an_explicit_alpha_is_used_as_it_is():
    X, _, y = uneven_rows()
    model = TransductiveClassifier(alpha=1e-3, annealing="paper", fit_intercept=True, random_state=0)
    small, large = clone(model).fit(X, y), clone(model).fit(10 * X, y)
    assert small.alpha_ == large.alpha_ == 1e-3
    assert not np.allclose(small.coef_, 10 * large.coef_)


@pytest.mark.parametrize(("loss", "alpha"), [("hinge", 1e-3), ("squared_hinge", 1e-3), ("maxent", 1e-4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_rows_of_length_1_have_the_default_of_the_loss_bit_for_bit(loss, alpha, dtype, kind):
    X, truth, y = blobs()
    X, sizes = kind(X.astype(dtype)), true_counts(truth, y)
    model = TransductiveClassifier(loss, class_prior=sizes, annealing="paper", fit_intercept=True, random_state=0)
    auto, stated = clone(model).fit(X, y), clone(model).set_params(alpha=alpha).fit(X, y)
    assert auto.alpha_ == stated.alpha_ == alpha
    assert np.array_equal(auto.coef_, stated.coef_)
    assert np.array_equal(auto.intercept_, stated.intercept_)


@pytest.mark.parametrize("estimator", BASELINES, ids=str)
def test_baselines_have_the_default_of_maxent(estimator):
    X, _, y = blobs()
    estimator = clone(estimator).set_params(random_state=0)
    auto, stated = clone(estimator).fit(X, y), clone(estimator).set_params(alpha=1e-4).fit(X, y)
    assert auto.alpha_ == 1e-4
    assert np.array_equal(auto.coef_, stated.coef_)


# ---- the rule


def test_losses_state_their_default():
    assert [default_alpha(loss) for loss in (LargeMargin(), SquaredLargeMargin(), MaxEnt())] == [1e-3, 1e-3, 1e-4]
    assert default_alpha(OwnLoss()) == 1e-3
    X, _, y = uneven_rows()
    fits = [TransductiveClassifier(loss, annealing=None).fit(X, y).alpha_ for loss in (OwnLoss(), TunedLoss())]
    assert fits[0] == pytest.approx(1e-3 * np.mean(np.sum(X**2, axis=1)))
    assert fits[1] == pytest.approx(5e-4 * np.mean(np.sum(X**2, axis=1)))
    loss = TunedLoss()
    loss.default_alpha = 0
    with pytest.raises(ValueError, match="default_alpha of a loss must be a number above 0, but is 0"):
        TransductiveClassifier(loss).fit(X, y)


def test_rows_of_0_count_and_sample_weights_do_not():
    X, _, y = blobs()
    unlabeled = np.flatnonzero(y < 0)
    X[unlabeled[: len(unlabeled) // 2]] = 0.0
    weights = np.random.default_rng(0).uniform(0.5, 5.0, len(y))
    model = TransductiveClassifier(annealing=None, random_state=0).fit(X, y, sample_weight=weights)
    assert model.alpha_ == pytest.approx(1e-3 * np.count_nonzero(X.any(axis=1)) / len(y))


def test_rows_that_are_all_0():
    assert TransductiveClassifier(annealing=None).fit(np.zeros((4, 2)), [0, 1, -1, -1]).alpha_ == 1e-3


def test_rows_that_are_too_long_to_square():
    with pytest.raises(ValueError, match=r"X has values up to 1e\+200.*Scale X"):
        TransductiveClassifier().fit(np.full((4, 2), 1e200), [0, 1, -1, -1])


@pytest.mark.parametrize(("mean", "used"), [(1 + 9e-7, 1.0), (1 - 9e-7, 1.0), (1 + 2e-6, 1 + 2e-6), (0.0, 1.0)])
def test_lengths_of_about_1_are_exactly_1(mean, used):
    assert mean_squared_length(mean, 1) == used


# ---- where rows live


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_sparse_and_mapped_rows_have_the_same_sum(dtype, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 7)).astype(dtype) * 1e-3
    X[X < 0] = 0.0
    rows = sparse.csr_matrix(X)
    expected = np.sum(X.astype(np.float64) ** 2)
    mapped = pack_rows([rows[:20], rows[20:]], tmp_path / "rows")
    for form in (X, np.asfortranarray(X), X[::2], rows, sparse.csr_array(X), mapped):
        own = np.sum(X[::2].astype(np.float64) ** 2) if form.shape[0] < 50 else expected
        assert sum_of_squares(form) == pytest.approx(own, rel=1e-14)


def test_float32_is_summed_in_float64():
    X = np.full((1 << 16, 256), 0.1, np.float32)
    assert sum_of_squares(X) == pytest.approx(X.size * float(np.float32(0.1)) ** 2, rel=1e-10)


def test_repeated_columns_are_added_before_they_are_squared():
    rows = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), (1, 1))
    assert sum_of_squares(rows) == 9.0
    assert rows.nnz == 2


def test_blocks_have_the_alpha_of_all_rows():
    X, truth = make_rows()
    X, y, ends = 3.0 * X, hide_most(truth), (13, 90, 90, 200)
    how = {"fit_intercept": True, "annealing": "paper", "class_prior": "labeled", "random_state": 0}
    how |= {"tol": 1e-6, "early_tol": 1e-6, "max_iter": 300}
    local, clf = TransductiveClassifier("maxent", **how).fit(X, y), OverDask("maxent", **how)
    fit_inline(clf, split(X, ends), split(y, ends))
    assert clf.alpha_ == pytest.approx(local.alpha_, rel=1e-12)
    assert np.mean(np.concatenate(clf.transduction_) == local.transduction_) >= 0.995
    np.testing.assert_allclose(clf.coef_, local.coef_, atol=0.02 * np.abs(local.coef_).max())
    np.testing.assert_allclose(clf.intercept_, local.intercept_, atol=0.02 * np.abs(local.coef_).max())


# ---- scikit-learn and checkpoints


def test_auto_survives_clone_and_can_be_one_of_a_grid():
    X, _, y = blobs()
    clf = clone(TransductiveClassifier(annealing=None, random_state=0))
    assert clf.get_params()["alpha"] == "auto"
    folds = HiddenLabelSplit(2, random_state=0)
    search = GridSearchCV(clf, {"alpha": ["auto", 1e5]}, cv=folds, scoring=labeled_scorer("accuracy")).fit(X, y)
    assert search.best_params_ == {"alpha": "auto"}
    assert search.best_estimator_.alpha_ == 1e-3


def test_a_checkpoint_belongs_to_auto_and_not_to_a_number(tmp_path):
    X, _, y = uneven_rows()
    clf = TransductiveClassifier(annealing="paper", random_state=0, checkpoint=tmp_path / "fit").fit(X, y)
    again = clone(clf).fit(X, y)
    assert again.alpha_ == clf.alpha_
    assert np.array_equal(again.coef_, clf.coef_)
    with pytest.raises(ValueError, match="other data or parameters"):
        clone(clf).set_params(alpha=1e-2).fit(X, y)
