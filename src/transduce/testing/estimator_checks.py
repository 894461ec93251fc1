"""Checks of scikit-learn's conventions: forms of X, sample weights, clone, pickle, pipelines, and the history."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from transduce.testing.problems import N_ROWS, blobs, fitted, true_counts


def check_repeated_row_equals_weight_two(estimator: Any) -> None:
    """Repeated labelled rows and rows of weight 2 give the same supervised classifier."""
    X, truth, _ = blobs()
    tight = {"tol": 1e-8, "max_iter": 1000}
    weights = np.where(np.arange(N_ROWS) < 30, 2.0, 1.0)
    one = clone(estimator).set_params(random_state=0, **tight).fit(X, truth, sample_weight=weights)
    rows = np.concatenate((np.arange(N_ROWS), np.arange(30)))
    other = fitted(estimator, X[rows], truth[rows], **tight)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=5e-3)


def check_equal_weights_equal_none(estimator: Any) -> None:
    """Sample weights that are all equal give the same labels as none."""
    X, _, y = blobs()
    model = clone(estimator).set_params(random_state=0).fit(X, y, sample_weight=np.full(N_ROWS, 7.0))
    assert np.array_equal(model.transduction_, fitted(estimator, X, y).transduction_)


def check_empty_rows_are_labeled(estimator: Any) -> None:
    """A row of zeros gets a label, and finite scores."""
    X, _, y = blobs()
    X, y = np.vstack((X, np.zeros((5, X.shape[1])))), np.concatenate((y, np.full(5, -1)))
    model = fitted(estimator, X, y)
    assert set(model.transduction_[-5:].tolist()) <= {0, 1, 2}
    assert np.all(np.isfinite(model.decision_function(X)))


def check_empty_columns_change_nothing(estimator: Any) -> None:
    """Columns of zeros do not change the labels."""
    X, _, y = blobs()
    wide = np.hstack((X, np.zeros((N_ROWS, 2))))
    assert np.array_equal(fitted(estimator, wide, y).transduction_, fitted(estimator, X, y).transduction_)


def check_sparse_equals_dense(estimator: Any) -> None:
    """Sparse matrices and arrays of every common layout and index type give the result of dense rows."""
    X, _, y = blobs()
    dense = fitted(estimator, X, y)
    long = sparse.csr_matrix(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for rows in (sparse.csr_matrix(X), sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), long):
        model = fitted(estimator, rows, y)
        assert np.array_equal(model.transduction_, dense.transduction_)
        np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(X), atol=1e-9)


def check_float32_is_kept(estimator: Any) -> None:
    """Weights and scores of float32 rows are float32, and labels are nearly those of float64 rows."""
    X, truth, y = blobs()
    model = fitted(estimator, X.astype(np.float32), y, class_prior=true_counts(truth, y))
    assert model.coef_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    double = fitted(estimator, X, y, class_prior=true_counts(truth, y))
    assert np.mean(model.transduction_ == double.transduction_) > 0.97


def check_inputs_are_not_modified(estimator: Any) -> None:
    """X, y and class_prior are the same after fit."""
    X, truth, y = blobs()
    rows, prior = sparse.csr_matrix(X), true_counts(truth, y) / (y < 0).sum()
    copies = rows.copy(), y.copy(), prior.copy()
    fitted(estimator, rows, y, class_prior=prior)
    assert (rows != copies[0]).nnz == 0
    assert np.array_equal(y, copies[1])
    assert np.array_equal(prior, copies[2])


def check_same_seed_gives_same_model(estimator: Any) -> None:
    """Two fits with the same seed have identical weights."""
    X, _, y = blobs()
    assert np.array_equal(fitted(estimator, X, y).coef_, fitted(estimator, X, y).coef_)


def check_refit_starts_afresh(estimator: Any) -> None:
    """A second fit of the same object gives the weights of a first one."""
    X, truth, y = blobs()
    model = clone(estimator).set_params(random_state=0).fit(X[:, :4], truth)
    assert np.array_equal(model.fit(X, y).coef_, fitted(estimator, X, y).coef_)


def check_clone_is_not_fitted(estimator: Any) -> None:
    """A clone has the parameters of the original, and no fitted attributes."""
    X, _, y = blobs()
    copy = clone(fitted(estimator, X, y))
    assert not hasattr(copy, "coef_")
    assert repr(copy) == repr(clone(estimator).set_params(random_state=0))


def check_pickle(estimator: Any) -> None:
    """A pickled model gives the same scores."""
    X, _, y = blobs()
    model = fitted(estimator, X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))


def check_pipeline(estimator: Any) -> None:
    """The estimator works as the last step of a pipeline."""
    X, _, y = blobs()
    pipeline = make_pipeline(Normalizer(), clone(estimator).set_params(random_state=0)).fit(X, y)
    assert pipeline.predict(X).shape == (N_ROWS,)


def check_history(estimator: Any) -> None:
    """In each restart stages are in order, and the objective of hard labels that meet the counts never rises."""
    X, truth, y = blobs()
    rows = fitted(estimator, X, y, class_prior=true_counts(truth, y)).history_
    for one, following in pairwise(rows):
        assert following.restart >= one.restart
        if following.restart > one.restart:
            continue
        assert following.stage >= one.stage
        assert following.seconds >= one.seconds
        if following.stage == one.stage and following.temperature == 0 and one.residual == following.residual == 0:
            assert following.objective <= one.objective * (1 + 1e-9)
