"""What any semi-supervised classifier should do: a list of checks that takes an estimator and raises AssertionError.

The estimator reads -1, None, NaN and blanks in y as unlabelled, takes `class_prior`, and keeps `transduction_` and
`classes_` after fit. `SEMI_SUPERVISED_CHECKS` is the list; run one as `check(estimator)` with an estimator that has
not been fitted.

>>> from transduce.estimators import TransductiveClassifier
>>> len(SEMI_SUPERVISED_CHECKS) >= 30
True
>>> SEMI_SUPERVISED_CHECKS[0](TransductiveClassifier())
"""

import pickle
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from transduce.errors import PriorWarning

Array = NDArray[Any]
Check = Callable[[Any], None]

SEMI_SUPERVISED_CHECKS: list[Check] = []
N_ROWS, N_CLASSES = 120, 3


def check(function: Check) -> Check:
    """Put a function on the list of checks."""
    SEMI_SUPERVISED_CHECKS.append(function)
    return function


def blobs(seed: int = 0) -> tuple[Array, Array, Array]:
    """Rows of unit length in three classes of known sizes, the truth, and labels with -1 for all but four a class."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(N_CLASSES), [60, 40, 20]))
    X = 1.2 * np.eye(N_CLASSES, 8)[truth] + rng.normal(scale=0.35, size=(N_ROWS, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.full(N_ROWS, -1)
    for k in range(N_CLASSES):
        rows = np.flatnonzero(truth == k)[:4]
        y[rows] = k
    return X, truth, y


def true_counts(truth: Array, y: Array) -> Array:
    """Sizes of the classes among the unlabelled rows."""
    return np.bincount(truth[y < 0], minlength=N_CLASSES)


def fitted(estimator: Any, X: Any, y: Any, **parameters: Any) -> Any:
    """A fitted copy with fixed randomness; class sizes of checks need not be those of the labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return clone(estimator).set_params(random_state=0, **parameters).fit(X, y)


def labels_as(y: Array, marker: object) -> Array:
    """y as objects, with the marker for unlabelled rows and names for the others."""
    values = np.empty(y.size, dtype=object)
    values[:] = [marker if label < 0 else f"class {label}" for label in y]
    return values


@check
def labels_meet_the_counts(estimator: Any) -> None:
    """The unlabelled rows get the asked sizes."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    model = fitted(estimator, X, y, class_prior=counts)
    assert np.array_equal(np.bincount(model.transduction_[y < 0], minlength=N_CLASSES), counts)


@check
def given_labels_are_kept(estimator: Any) -> None:
    """Labelled rows keep their labels, even odd ones."""
    X, truth, y = blobs()
    y[np.flatnonzero(y == 0)[0]] = 2
    model = fitted(estimator, X, y, class_prior=true_counts(truth, y) / (y < 0).sum())
    assert np.array_equal(model.transduction_[y >= 0], y[y >= 0])


@check
def unlabeled_rows_help(estimator: Any) -> None:
    """Most of the rows of easy blobs are labelled right."""
    X, truth, y = blobs()
    model = fitted(estimator, X, y, class_prior=true_counts(truth, y))
    assert np.mean(model.transduction_ == truth) > 0.9


@check
def fractions_and_counts_agree(estimator: Any) -> None:
    """Counts and the fractions they stand for give the same labels."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    one = fitted(estimator, X, y, class_prior=counts)
    other = fitted(estimator, X, y, class_prior=counts / counts.sum())
    assert np.array_equal(one.transduction_, other.transduction_)


@check
def a_mapping_is_read_by_name(estimator: Any) -> None:
    """The order of a mapping does not matter."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    one = fitted(estimator, X, y, class_prior=counts)
    other = fitted(estimator, X, y, class_prior={2: counts[2], 0: counts[0], 1: counts[1]})
    assert np.array_equal(one.transduction_, other.transduction_)


@check
def class_sizes_are_found_without_a_prior(estimator: Any) -> None:
    """Without a prior the sizes come near the true ones, though every class has the same number of labels."""
    X, truth, y = blobs()
    model = fitted(estimator, X, y)
    assert np.all(np.abs(np.bincount(model.transduction_[y < 0], minlength=3) - true_counts(truth, y)) <= 9)


def _marker_check(name: str, marker: object) -> None:
    def marker_check(estimator: Any) -> None:
        X, _, y = blobs()
        plain = fitted(estimator, X, y)
        model = fitted(estimator, X, labels_as(y, marker))
        assert model.classes_.tolist() == ["class 0", "class 1", "class 2"]
        assert model.transduction_.tolist() == [f"class {label}" for label in plain.transduction_]

    marker_check.__name__ = f"{name}_means_unlabeled"
    marker_check.__doc__ = f"{name} marks unlabelled rows among names."
    check(marker_check)


for _name, _marker in (
    ("none", None),
    ("nan", float("nan")),
    ("minus_one", -1),
    ("numpy_minus_one", np.int64(-1)),
    ("empty_text", ""),
    ("blank_text", "  "),
):
    _marker_check(_name, _marker)


@check
def nan_among_numbers_means_unlabeled(estimator: Any) -> None:
    """A float y with NaN is whole numbers with gaps."""
    X, _, y = blobs()
    plain = fitted(estimator, X, y)
    model = fitted(estimator, X, np.where(y < 0, np.nan, y.astype(float)))
    assert np.array_equal(model.transduction_, plain.transduction_)


@check
def a_list_will_do(estimator: Any) -> None:
    """y may be a plain list."""
    X, _, y = blobs()
    assert np.array_equal(fitted(estimator, X, y.tolist()).transduction_, fitted(estimator, X, y).transduction_)


@check
def signs_get_a_warning(estimator: Any) -> None:
    """-1 and 1 alone are more likely two classes than one: say so."""
    X, _, y = blobs()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(estimator, X, np.where(y == 0, 1, -1))
    assert any("read as unlabelled" in str(warning.message) for warning in caught)


@check
def signs_can_be_classes(estimator: Any) -> None:
    """The way out of that warning."""
    X, truth, _ = blobs()
    model = fitted(estimator, X, np.where(truth == 0, 1, -1), unlabeled=None)
    assert model.classes_.tolist() == [-1, 1]


@check
def all_labeled_is_supervised(estimator: Any) -> None:
    """Without unlabelled rows the prior has nothing to say."""
    X, truth, _ = blobs()
    one = fitted(estimator, X, truth)
    other = fitted(estimator, X, truth, class_prior=[0.2, 0.3, 0.5])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.transduction_, truth)


@check
def none_labeled_is_refused(estimator: Any) -> None:
    """With no label at all there are no classes to learn."""
    X, _, y = blobs()
    _refuses(estimator, X, np.full_like(y, -1), "label at least one row")


@check
def one_class_labeled(estimator: Any) -> None:
    """One class alone takes every row."""
    X, _, y = blobs()
    model = fitted(estimator, X, np.where(y == 1, 1, -1) + np.where(y == 1, 4, 0))
    assert set(model.transduction_.tolist()) == {5}
    assert set(model.predict(X).tolist()) == {5}


@check
def a_class_without_labels(estimator: Any) -> None:
    """A class that only the prior names gets its share of the rows."""
    X, _, y = blobs()
    y = np.where(y == 2, -1, y)
    model = fitted(estimator, X, y, class_prior={0: 0.5, 1: 0.3, 2: 0.2})
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.bincount(model.transduction_[y < 0], minlength=3)[2] == round(0.2 * (y < 0).sum())


@check
def a_class_of_size_zero(estimator: Any) -> None:
    """A class may be labelled and yet get no unlabelled row."""
    X, _, y = blobs()
    model = fitted(estimator, X, y, class_prior={0: 0.5, 1: 0.5, 2: 0.0})
    assert not np.any(model.transduction_[y < 0] == 2)


@check
def rows_may_come_in_any_order(estimator: Any) -> None:
    """Permuting the rows permutes the labels, but for a few that tie."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    order = np.random.default_rng(1).permutation(N_ROWS)
    plain = fitted(estimator, X, y, class_prior=counts, tol=1e-4)
    model = fitted(estimator, X[order], y[order], class_prior=counts, tol=1e-4)
    assert np.mean(model.transduction_ == plain.transduction_[order]) > 0.97


@check
def classes_may_have_any_names(estimator: Any) -> None:
    """Renaming the classes so that their order changes renames the labels, but for a few that tie."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    plain = fitted(estimator, X, y, class_prior=counts, tol=1e-4)
    model = fitted(estimator, X, np.where(y < 0, -1, 2 - y), class_prior=counts[::-1], tol=1e-4)
    assert np.mean(2 - model.transduction_ == plain.transduction_) > 0.97


@check
def a_labeled_row_twice_is_weight_two(estimator: Any) -> None:
    """Repeating labelled rows, or giving them twice the weight, is the same for the supervised classifier."""
    X, truth, _ = blobs()
    tight = {"tol": 1e-8, "max_iter": 1000}
    weights = np.where(np.arange(N_ROWS) < 30, 2.0, 1.0)
    one = clone(estimator).set_params(random_state=0, **tight).fit(X, truth, sample_weight=weights)
    twice = np.concatenate((np.arange(N_ROWS), np.arange(30)))
    other = fitted(estimator, X[twice], truth[twice], **tight)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=5e-3)


@check
def equal_weights_are_no_weights(estimator: Any) -> None:
    """The scale of sample weights does not matter."""
    X, _, y = blobs()
    model = clone(estimator).set_params(random_state=0).fit(X, y, sample_weight=np.full(N_ROWS, 7.0))
    assert np.array_equal(model.transduction_, fitted(estimator, X, y).transduction_)


@check
def empty_rows_are_labeled_too(estimator: Any) -> None:
    """A document without a known word still gets a label, and does no harm."""
    X, _, y = blobs()
    X = np.vstack((X, np.zeros((5, X.shape[1]))))
    y = np.concatenate((y, np.full(5, -1)))
    model = fitted(estimator, X, y)
    assert set(model.transduction_[-5:].tolist()) <= {0, 1, 2}
    assert np.all(np.isfinite(model.decision_function(X)))


@check
def constant_columns_do_no_harm(estimator: Any) -> None:
    """A column of zeros changes nothing."""
    X, _, y = blobs()
    wide = np.hstack((X, np.zeros((N_ROWS, 2))))
    assert np.array_equal(fitted(estimator, wide, y).transduction_, fitted(estimator, X, y).transduction_)


@check
def sparse_forms_agree(estimator: Any) -> None:
    """Sparse matrices and arrays of every common layout and index type give the dense answer."""
    X, _, y = blobs()
    dense = fitted(estimator, X, y)
    long_indices = sparse.csr_matrix(X)
    long_indices.indices, long_indices.indptr = (
        long_indices.indices.astype(np.int64),
        long_indices.indptr.astype(np.int64),
    )
    for form in (sparse.csr_matrix(X), sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), long_indices):
        model = fitted(estimator, form, y)
        assert np.array_equal(model.transduction_, dense.transduction_)
        np.testing.assert_allclose(model.decision_function(form), dense.decision_function(X), atol=1e-9)


@check
def float32_is_kept(estimator: Any) -> None:
    """Weights and scores of float32 rows are float32, and near those of float64."""
    X, truth, y = blobs()
    model = fitted(estimator, X.astype(np.float32), y, class_prior=true_counts(truth, y))
    assert model.coef_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    plain = fitted(estimator, X, y, class_prior=true_counts(truth, y))
    assert np.mean(model.transduction_ == plain.transduction_) > 0.97


@check
def inputs_stay_as_they_are(estimator: Any) -> None:
    """Neither X nor y nor the prior is modified."""
    X, truth, y = blobs()
    prior = true_counts(truth, y) / (y < 0).sum()
    rows = sparse.csr_matrix(X)
    copies = rows.copy(), y.copy(), prior.copy()
    fitted(estimator, rows, y, class_prior=prior)
    assert (rows != copies[0]).nnz == 0
    assert np.array_equal(y, copies[1])
    assert np.array_equal(prior, copies[2])


@check
def same_seed_same_model(estimator: Any) -> None:
    """Two fits with one seed are equal to the last bit."""
    X, _, y = blobs()
    one, other = fitted(estimator, X, y), fitted(estimator, X, y)
    assert np.array_equal(one.coef_, other.coef_)


@check
def refit_forgets(estimator: Any) -> None:
    """A second fit is a first fit."""
    X, truth, y = blobs()
    model = clone(estimator).set_params(random_state=0).fit(X[:, :4], truth)
    assert np.array_equal(model.fit(X, y).coef_, fitted(estimator, X, y).coef_)


@check
def clone_has_the_parameters_only(estimator: Any) -> None:
    """A clone is not fitted and has the same parameters."""
    X, _, y = blobs()
    model = fitted(estimator, X, y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert repr(copy) == repr(clone(estimator).set_params(random_state=0))


@check
def pickle_predicts_the_same(estimator: Any) -> None:
    """A model survives being stored."""
    X, _, y = blobs()
    model = fitted(estimator, X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))


@check
def pipelines_work(estimator: Any) -> None:
    """It can stand at the end of a pipeline."""
    X, _, y = blobs()
    pipeline = make_pipeline(Normalizer(), clone(estimator).set_params(random_state=0)).fit(X, y)
    assert pipeline.predict(X).shape == (N_ROWS,)


@check
def flat_tree_is_flat(estimator: Any) -> None:
    """A taxonomy without inner nodes changes nothing."""
    X, _, y = blobs()
    names = labels_as(y, None)
    plain = fitted(estimator, X, names)
    model = fitted(estimator, X, names, taxonomy=["class 0", "class 1", "class 2"])
    assert np.array_equal(model.coef_, plain.coef_)


@check
def a_tree_meets_the_counts(estimator: Any) -> None:
    """With classes in a tree, leaves get the asked sizes."""
    X, truth, y = blobs()
    names = np.array(["a/x", "a/y", "b"], dtype=object)
    values = np.where(y < 0, "", names[y])
    counts = true_counts(truth, y)
    prior = dict(zip(names.tolist(), counts.tolist(), strict=True))
    model = fitted(estimator, X, values, taxonomy=names.tolist(), class_prior=prior)
    assert [int(np.sum(model.transduction_[y < 0] == name)) for name in names] == counts.tolist()


@check
def bad_priors_are_refused(estimator: Any) -> None:
    """Each in one sentence."""
    X, _, y = blobs()
    for prior, sentence in (
        ([0.5, 0.7, 0.0], "sums to 1.2"),
        ([0.5, 0.5], "one number for each of the 3 classes"),
        ({0: 0.5, 1: 0.5}, "has none for 2"),
        ([-0.5, 1.0, 0.5], "0 or more"),
        ("equal", "must be 'labeled'"),
    ):
        _refuses(estimator, X, y, sentence, class_prior=prior)


@check
def history_tells_what_happened(estimator: Any) -> None:
    """Stages come in order in each way; the objective never rises within one, while labels are hard and sizes met."""
    X, truth, y = blobs()
    rows = fitted(estimator, X, y, class_prior=true_counts(truth, y)).history_
    for earlier, later in pairwise(rows):
        if later.restart > earlier.restart:
            continue
        assert later.restart == earlier.restart
        assert later.stage >= earlier.stage
        assert later.seconds >= earlier.seconds
        if later.stage == earlier.stage and later.temperature == 0 and earlier.residual == later.residual == 0:
            assert later.objective <= earlier.objective * (1 + 1e-9)


def _refuses(estimator: Any, X: Any, y: Any, sentence: str, **parameters: Any) -> None:
    try:
        fitted(estimator, X, y, **parameters)
    except ValueError as error:
        complaint = str(error)
    else:
        raise AssertionError(f"expected an error with {sentence!r}")
    assert sentence in complaint, f"expected {sentence!r} in {complaint!r}"
    assert "\n" not in complaint
