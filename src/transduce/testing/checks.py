"""The checks of a semi-supervised classifier, each of them a trial of one property."""

import pickle
import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from transduce.testing.problems import N_ROWS, Trial, assert_same_labels, assert_value_error, labels_as, true_counts

# ---- class sizes: stated as counts, fractions or a mapping, estimated, and refused


def check_counts_are_met(trial: Trial) -> None:
    """The unlabelled rows get the stated counts."""
    model = trial.fit_with_counts()
    assert np.array_equal(true_counts(model.transduction_, trial.y), trial.counts)


def check_counts_are_met_in_a_tree(trial: Trial) -> None:
    """The leaves of a taxonomy get the stated counts."""
    names = np.array(["a/x", "a/y", "b"], dtype=object)
    counts = dict(zip(names.tolist(), trial.counts.tolist(), strict=True))
    model = trial.fit(y=np.where(trial.y < 0, "", names[trial.y]), taxonomy=list(counts), class_prior=counts)
    assert {name: np.sum(model.transduction_[trial.y < 0] == name) for name in counts} == counts


def check_exact_fractions_equal_counts(trial: Trial) -> None:
    """Counts and the same sizes as exact fractions give the same labels."""
    fractions = [f"={x!r}" for x in (trial.counts / trial.counts.sum()).tolist()]
    assert_same_labels(trial.fit_with_counts(), trial.fit(class_prior=fractions))


def check_rough_fractions_are_met_roughly(trial: Trial) -> None:
    """Class counts are near sizes that are stated as fractions."""
    model = trial.fit(class_prior=trial.counts / trial.counts.sum())
    assert np.all(np.abs(true_counts(model.transduction_, trial.y) - trial.counts) <= 9)


def check_mapping_is_read_by_name(trial: Trial) -> None:
    """The order of a mapping does not matter."""
    mapping = {k: trial.counts[k] for k in (2, 0, 1)}
    assert_same_labels(trial.fit_with_counts(), trial.fit(class_prior=mapping))


def check_sizes_are_estimated(trial: Trial) -> None:
    """Without class_prior the counts are near the true ones, though every class has the same number of labels."""
    assert np.all(np.abs(true_counts(trial.fit().transduction_, trial.y) - trial.counts) <= 9)


def check_class_without_labels(trial: Trial) -> None:
    """A class that only class_prior names gets its rows."""
    y = np.where(trial.y == 2, -1, trial.y)
    model = trial.fit(y=y, class_prior={0: "=50%", 1: "=30%", 2: "=20%"})
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.sum(model.transduction_[y < 0] == 2) == round(0.2 * (y < 0).sum())


def check_class_of_size_zero(trial: Trial) -> None:
    """A labelled class of size 0 gets no unlabelled row."""
    model = trial.fit(class_prior={0: 0.5, 1: 0.5, 2: 0.0})
    assert not np.any(model.transduction_[trial.y < 0] == 2)


def check_prior_is_ignored_if_all_rows_are_labeled(trial: Trial) -> None:
    """Without unlabelled rows the fit is supervised, and class_prior changes nothing."""
    one, other = trial.fit(y=trial.truth), trial.fit(y=trial.truth, class_prior=[0.2, 0.3, 0.5])
    assert np.array_equal(one.decision_function(trial.X), other.decision_function(trial.X))
    assert np.array_equal(one.transduction_, trial.truth)


def check_invalid_priors_are_refused(trial: Trial) -> None:
    """A class prior that cannot be used raises ValueError, with a message about class_prior."""
    for prior in ([0.5, 0.7, 0.0], [0.5, 0.5], {0: 0.5, 1: 0.2, 2: 0.2}, [-0.5, 1.0, 0.5], "same"):
        assert_value_error(trial, "class_prior", class_prior=prior)


# ---- labels: how y marks unlabelled rows, and what is learned from it


def check_given_labels_are_kept(trial: Trial) -> None:
    """Labelled rows keep their labels, even a wrong one."""
    y = trial.y
    y[np.flatnonzero(y == 0)[0]] = 2
    model = trial.fit_with_counts()
    assert np.array_equal(model.transduction_[y >= 0], y[y >= 0])


def check_unlabeled_rows_help(trial: Trial) -> None:
    """Nine in ten rows of the easy problem get the right label."""
    assert np.mean(trial.fit_with_counts().transduction_ == trial.truth) > 0.9


def _missing_label_check(name: str, missing: object) -> Callable[[Trial], None]:
    def check(trial: Trial) -> None:
        model, expected = trial.fit(y=labels_as(trial.y, missing), class_prior=trial.counts), trial.fit_with_counts()
        assert model.classes_.tolist() == ["class 0", "class 1", "class 2"]
        assert model.transduction_.tolist() == labels_as(expected.transduction_, missing).tolist()

    check.__name__ = f"check_{name}_means_unlabeled"
    check.__doc__ = f"{missing!r} among names marks unlabelled rows."
    return check


check_none_means_unlabeled = _missing_label_check("none", None)
check_nan_means_unlabeled = _missing_label_check("nan", float("nan"))
check_minus_one_means_unlabeled = _missing_label_check("minus_one", -1)
check_numpy_minus_one_means_unlabeled = _missing_label_check("numpy_minus_one", np.int64(-1))
check_empty_text_means_unlabeled = _missing_label_check("empty_text", "")
check_blank_text_means_unlabeled = _missing_label_check("blank_text", "  ")


def check_nan_among_numbers_means_unlabeled(trial: Trial) -> None:
    """Floats with NaN are integers with missing labels."""
    y = np.where(trial.y < 0, np.nan, trial.y.astype(float))
    assert_same_labels(trial.fit(y=y, class_prior=trial.counts), trial.fit_with_counts())


def check_y_may_be_a_list(trial: Trial) -> None:
    """A list gives the same labels as an array."""
    assert_same_labels(trial.fit(y=trial.y.tolist(), class_prior=trial.counts), trial.fit_with_counts())


def check_signs_raise_a_warning(trial: Trial) -> None:
    """Labels that are all -1 or 1 are probably two classes, so that a warning is due."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trial.fit(y=np.where(trial.y == 0, 1, -1))
    assert any(issubclass(warning.category, UserWarning) for warning in caught)


def check_signs_can_be_classes(trial: Trial) -> None:
    """With unlabeled=None, -1 is a class."""
    model = trial.fit(y=np.where(trial.truth == 0, 1, -1), unlabeled=None)
    assert model.classes_.tolist() == [-1, 1]


def check_no_label_is_refused(trial: Trial) -> None:
    """If every row is unlabelled, fit raises ValueError."""
    assert_value_error(trial, "label", y=np.full(N_ROWS, -1))


def check_one_labeled_class(trial: Trial) -> None:
    """If one class is labelled, all rows get its label."""
    model = trial.fit(y=np.where(trial.y == 1, 5, -1))
    assert set(model.transduction_.tolist()) == set(model.predict(trial.X).tolist()) == {5}


def check_class_names_do_not_matter(trial: Trial) -> None:
    """Classes in the opposite order get the same rows, except for a few ties."""
    one = trial.fit(class_prior=trial.counts, tol=1e-4)
    other = trial.fit(y=np.where(trial.y < 0, -1, 2 - trial.y), class_prior=trial.counts[::-1], tol=1e-4)
    assert np.mean(2 - other.transduction_ == one.transduction_) > 0.97


def check_row_order_does_not_matter(trial: Trial) -> None:
    """Permuted rows get permuted labels, except for a few ties."""
    order = np.random.default_rng(1).permutation(N_ROWS)
    one = trial.fit(class_prior=trial.counts, tol=1e-4)
    other = trial.fit(trial.X[order], trial.y[order], class_prior=trial.counts, tol=1e-4)
    assert np.mean(other.transduction_ == one.transduction_[order]) > 0.97


def check_flat_taxonomy_changes_nothing(trial: Trial) -> None:
    """A taxonomy without inner nodes gives the same weights as none."""
    names = labels_as(trial.y, None)
    model = trial.fit(y=names, taxonomy=["class 0", "class 1", "class 2"], class_prior=trial.counts)
    assert np.array_equal(model.coef_, trial.fit_with_counts().coef_)


# ---- scikit-learn's conventions: forms of X, sample weights, clone, pickle, pipelines, and the history


def check_repeated_row_equals_weight_two(trial: Trial) -> None:
    """Repeated labelled rows and rows of weight 2 give the same supervised classifier."""
    rows = np.append(np.arange(N_ROWS), np.arange(30))
    one, other = (trial.clone(tol=1e-8, max_iter=1000) for _ in range(2))
    one.fit(trial.X, trial.truth, sample_weight=np.bincount(rows))
    other.fit(trial.X[rows], trial.truth[rows])
    np.testing.assert_allclose(one.decision_function(trial.X), other.decision_function(trial.X), atol=5e-3)


def check_equal_weights_equal_none(trial: Trial) -> None:
    """Sample weights that are all equal give the same labels as none."""
    model = trial.clone().fit(trial.X, trial.y, sample_weight=np.full(N_ROWS, 7.0))
    assert_same_labels(model, trial.fit())


def check_empty_rows_are_labeled(trial: Trial) -> None:
    """A row of zeros gets a label, and finite scores."""
    X = np.vstack((trial.X, np.zeros((5, trial.X.shape[1]))))
    model = trial.fit(X, np.append(trial.y, np.full(5, -1)))
    assert set(model.transduction_[-5:].tolist()) <= {0, 1, 2}
    assert np.all(np.isfinite(model.decision_function(X)))


def check_empty_columns_change_nothing(trial: Trial) -> None:
    """Columns of zeros do not change the labels."""
    model = trial.fit(np.hstack((trial.X, np.zeros((N_ROWS, 2)))), class_prior=trial.counts)
    assert_same_labels(model, trial.fit_with_counts())


def check_sparse_equals_dense(trial: Trial) -> None:
    """Sparse matrices and arrays of every common layout and index type give the result of dense rows."""
    is_auto = getattr(trial.estimator, "annealing", None) == "auto"  # which is another one for dense rows
    how = {"class_prior": trial.counts} | ({"annealing": "paper"} if is_auto else {})
    X, dense, long = trial.X, trial.fit(**how), sparse.csr_matrix(trial.X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for rows in (sparse.csr_matrix(X), sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), long):
        model = trial.fit(rows, **how)
        assert_same_labels(model, dense)
        np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(X), atol=1e-9)


def check_float32_is_kept(trial: Trial) -> None:
    """Weights and scores of float32 rows are float32, and labels are nearly those of float64 rows."""
    X = trial.X.astype(np.float32)
    single, double = trial.fit(X, class_prior=trial.counts), trial.fit_with_counts()
    assert single.coef_.dtype == single.decision_function(X).dtype == np.float32
    assert np.mean(single.transduction_ == double.transduction_) > 0.97


def check_inputs_are_not_modified(trial: Trial) -> None:
    """X, y and class_prior are the same after fit."""
    rows, y, prior = sparse.csr_matrix(trial.X), trial.y.copy(), trial.counts / trial.counts.sum()
    expected = prior.copy()
    trial.fit(rows, y, class_prior=prior)
    assert np.array_equal(rows.toarray(), trial.X)
    assert np.array_equal(y, trial.y)
    assert np.array_equal(prior, expected)


def check_same_seed_gives_same_model(trial: Trial) -> None:
    """Two fits with the same seed have identical weights."""
    assert np.array_equal(trial.fit().coef_, trial.fit().coef_)


def check_refit_starts_afresh(trial: Trial) -> None:
    """A second fit of the same object gives the weights of a first one."""
    model = trial.fit(trial.X[:, :4], trial.truth)
    assert np.array_equal(model.fit(trial.X, trial.y).coef_, trial.fit().coef_)


def check_clone_is_not_fitted(trial: Trial) -> None:
    """A clone has the parameters of the original, and no fitted attributes."""
    copy = Trial(trial.fit()).clone()
    assert not hasattr(copy, "coef_")
    assert repr(copy) == repr(trial.clone())


def check_pickle(trial: Trial) -> None:
    """A pickled model gives the same scores."""
    model = trial.fit()
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.decision_function(trial.X), model.decision_function(trial.X))


def check_pipeline(trial: Trial) -> None:
    """The estimator works as the last step of a pipeline."""
    pipeline = make_pipeline(Normalizer(), trial.clone()).fit(trial.X, trial.y)
    assert pipeline.predict(trial.X).shape == (N_ROWS,)


def check_history(trial: Trial) -> None:
    """In each restart stages are in order, and the objective of hard labels that meet the counts never rises."""
    for one, following in pairwise(trial.fit_with_counts().history_):
        assert following.restart >= one.restart
        if following.restart > one.restart:
            continue
        assert following.stage >= one.stage
        assert following.seconds >= one.seconds
        if following.stage == one.stage and following.temperature == 0 and one.residual == following.residual == 0:
            assert following.objective <= one.objective * (1 + 1e-9)
