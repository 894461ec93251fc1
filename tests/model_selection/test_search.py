"""TransductiveClassifierCV: no label leaks, the chosen candidate, fitted attributes and scikit-learn's conventions."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from helpers.classifiers import PAPER as ESTIMATING
from helpers.classifiers import InterruptedLabelStep, RecordingClassifier
from helpers.test_ids import without_address
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from transduce import EntropyRegularizedClassifier, TransductiveClassifier
from transduce.errors import PriorWarning
from transduce.losses import LargeMargin
from transduce.model_selection import HiddenLabelSplit, TransductiveClassifierCV
from transduce.testing import SEMI_SUPERVISED_CHECKS, blobs, labels_as, true_counts

SIZES = ["=1/2", "=1/3", "=1/6"]
"""Those of the blobs: a fit that need not estimate them is one fit and not six."""
PAPER = clone(ESTIMATING).set_params(class_prior=SIZES)
QUICK = TransductiveClassifierCV(
    (0.1, 1.0), estimator=TransductiveClassifier(annealing=None, fit_intercept=False, max_iter=5), cv=2
)
SMALL = TransductiveClassifierCV((1e-3, 1e-2), estimator=PAPER, cv=2)


@pytest.mark.parametrize("plain", [False, True])
def test_every_fit_has_all_unlabelled_rows_and_no_label_of_its_test_rows(plain):
    X, _, y = blobs()
    scored = []

    def scorer(model, rows, truth):
        scored.append(rows)
        return 0.5

    RecordingClassifier.fits.clear()
    spy, folds = (
        RecordingClassifier(annealing="paper", class_prior=SIZES, random_state=0),
        HiddenLabelSplit(3, random_state=0),
    )
    if plain:
        GridSearchCV(spy, {"alpha": [1e-3, 1e-2]}, cv=folds, scoring=scorer).fit(X, y)
        seen = RecordingClassifier.fits[:-1]
    else:
        TransductiveClassifierCV((1e-3, 1e-2), estimator=spy, cv=folds, scoring=scorer, random_state=0).fit(X, y)
        seen = RecordingClassifier.fits[1:]
    assert len(seen) == len(scored) == 6
    for (rows, labels), tested in zip(seen, scored, strict=True):
        assert np.sum(labels >= 0) == np.sum(y >= 0) - len(tested)
        known = {tuple(row) for row in rows[labels >= 0]}
        assert not known & {tuple(row) for row in tested}
        assert {tuple(row) for row in X[y < 0]} <= {tuple(row) for row in rows}
        assert len(rows) == len(X) - (len(tested) if plain else 0)


def test_a_data_frame_gives_the_scores_of_an_array():
    X, _, y = blobs()
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    search = clone(SMALL).set_params(random_state=0).fit(frame, y)
    assert search.feature_names_in_.tolist() == names
    assert search.cv_results_["mean_test_score"].tolist() == (
        clone(SMALL).set_params(random_state=0).fit(X, y).cv_results_["mean_test_score"].tolist()
    )


class Forwarding(TransductiveClassifierCV):
    """Passes parameters that it does not have to the estimator, as the checks need."""

    def set_params(self, **parameters):
        own = self.get_params(deep=False)
        return super().set_params(**{key if key in own else f"estimator__{key}": v for key, v in parameters.items()})


REPEATED = "of a repeated row one copy may be hidden and the other not"
FAST_CHECKS = {
    f"check_{name}" for name in ("counts_are_met", "given_labels_are_kept", "pickle", "clone_is_not_fitted", "pipeline")
}
CHECKS = [
    pytest.param(check, id=check.__name__, marks=[] if check.__name__ in FAST_CHECKS else [pytest.mark.slow])
    for check in SEMI_SUPERVISED_CHECKS
    if check.__name__ != "check_repeated_row_equals_weight_two"  # see REPEATED
]


@pytest.mark.filterwarnings("ignore::transduce.errors.PriorWarning")
@pytest.mark.parametrize("check", CHECKS)
def test_semi_supervised_checks(check):
    check(Forwarding((1e-3,), estimator=clone(ESTIMATING), cv=2))


EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
}


@pytest.mark.slow  # the classifier that is searched for passes the same checks in test_estimator_checks
@pytest.mark.filterwarnings("ignore:y holds only -1 and 1")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the checks need few iterations
@parametrize_with_checks([QUICK], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_classifiers_classes":  # its labels are -1 and 1, and -1 means unlabelled here
        estimator = clone(estimator).set_params(estimator__unlabeled=None)
    check(estimator)


def test_fitted_attributes():
    X, truth, y = blobs()
    search = TransductiveClassifierCV(
        (1e-4, 1e-3), losses=("hinge", "maxent"), estimator=PAPER, cv=3, random_state=0
    ).fit(X, y)
    table = search.cv_results_
    scores = np.stack([table[f"split{s}_test_score"] for s in range(3)], axis=1)
    assert scores.shape == (4, 3)
    np.testing.assert_allclose(table["mean_test_score"], scores.mean(axis=1))
    np.testing.assert_allclose(table["std_test_score"], scores.std(axis=1))
    assert table["rank_test_score"][np.argmax(table["mean_test_score"])] == 1
    assert np.all(table["mean_fit_time"] > 0)
    assert table["param_loss"].tolist() == ["hinge", "hinge", "maxent", "maxent"]
    assert table["params"][search.best_index_] == search.best_params_
    assert search.best_score_ == table["mean_test_score"][search.best_index_]
    assert (search.loss_name_, search.alpha_) == (search.best_estimator_.loss, search.best_estimator_.alpha)
    assert np.array_equal(search.transduction_[y >= 0], y[y >= 0])
    assert np.array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert search.predict_proba(X).shape == search.decision_function(X).shape == (len(y), 3)
    assert search.score(X, truth) == f1_score(truth, search.predict(X), average="macro")
    frame = pd.DataFrame(table)
    assert len(frame) == 4


def test_the_model_is_the_one_fitted_with_all_labels():
    X, _, y = blobs()
    search = clone(SMALL).set_params(estimator__random_state=3, random_state=0).fit(X, y)
    alone = clone(PAPER).set_params(alpha=search.alpha_, random_state=3).fit(X, y)
    assert np.array_equal(search.coef_, alone.coef_)


@pytest.mark.parametrize(
    ("scores", "losses", "chosen"),
    [
        ({1e-4: (0.9, 0.9), 1e-3: (0.8, 0.8), 1e-2: (0.7, 0.7)}, None, 1e-4),
        ({1e-4: (0.5, 0.9), 1e-3: (0.6, 0.7), 1e-2: (0.6, 0.7)}, None, 1e-3),
        ({1e-4: (0.5, 0.9), 1e-3: (0.1, 0.1), 1e-2: (0.6, 0.7)}, None, 1e-2),
        ({1e-4: (0.5, 0.5), 1e-3: (0.5, 0.5), 1e-2: (0.5, 0.5)}, ("maxent", "hinge"), 1e-4),
        ({1e-4: (0.5, 0.5), 1e-3: (0.5, 0.5), 1e-2: (0.5, 0.5)}, ("hinge", "maxent"), 1e-3),
    ],
)
def test_ties_go_to_the_first_loss_then_the_default_alpha_then_the_larger(scores, losses, chosen):
    X, _, y = blobs()
    calls = {}

    def scorer(model, X, y):
        key = model.loss, model.alpha
        calls[key] = calls.get(key, -1) + 1
        return scores[model.alpha][calls[key]]

    search = TransductiveClassifierCV(scores, losses=losses, estimator=PAPER, cv=2, scoring=scorer).fit(X, y)
    assert search.alpha_ == chosen
    assert search.loss_name_ == ("hinge" if losses is None else losses[0])


def test_there_may_be_fewer_folds_and_any_splitter():
    X, truth, y = blobs()
    few = np.where((y == 0) | (np.arange(len(y)) == np.flatnonzero(y == 1)[0]), y, -1)
    assert clone(SMALL).set_params(cv=9, estimator=ESTIMATING).fit(X, few).n_splits_ == 4
    assert clone(SMALL).set_params(cv=HiddenLabelSplit(2, n_repeats=2)).fit(X, y).n_splits_ == 4
    assert clone(SMALL).set_params(cv=KFold(3, shuffle=True, random_state=1)).fit(X, truth).n_splits_ == 3
    first = np.flatnonzero(y >= 0)[0]
    assert clone(SMALL).set_params(cv=[([], [first])]).fit(X, y).n_splits_ == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": ()}, "alphas must be one or more numbers above 0"),
        ({"alphas": (0.0, 1.0)}, "alphas must be one or more numbers above 0"),
        ({"alphas": 1e-3}, "alphas must be one or more numbers above 0"),
        ({"losses": ()}, "losses must be a list of one or more losses"),
        ({"losses": "hinge"}, "losses must be a list of one or more losses"),
        ({"losses": ("log",)}, "loss must be one of hinge"),
        ({"cv": 1}, "cv must be a number of folds from 2"),
        ({"cv": "many"}, "cv must be a number of folds from 2"),
        ({"cv": [([], np.arange(120))]}, "split 0 of cv hides all labels of a class"),
        ({"cv": [([], [])]}, "split 0 of cv has no labelled row"),
        ({"scoring": "f2"}, "metric must be one of"),
        ({"scoring": lambda model, X, y: np.nan}, "scoring must return a finite number"),
        ({"estimator__class_prior": [50, 40, 17]}, "class_prior counts 107 rows"),
    ],
    ids=without_address,
)
def test_invalid_parameters_are_errors(parameters, message):
    X, _, y = blobs()
    with pytest.raises(ValueError, match=message) as error:
        clone(SMALL).set_params(**parameters).fit(X, y)
    assert "\n" not in str(error.value)


def test_a_pipeline_is_an_error_that_names_grid_search():
    with pytest.raises(TypeError, match="use GridSearchCV with HiddenLabelSplit"):
        TransductiveClassifierCV(estimator=make_pipeline(Normalizer(), PAPER)).fit(np.eye(2), [0, 1])


def test_one_label_for_each_class_is_too_few():
    X, _, y = blobs()
    first = np.unique(np.where(y < 0, 9, y), return_index=True)[1][:3]
    with pytest.raises(ValueError, match="at least one class needs two labels"):
        clone(SMALL).fit(X, np.where(np.isin(np.arange(len(y)), first), y, -1))


def test_clone_pickle_set_params_and_pipelines():
    X, _, y = blobs()
    with pytest.raises(NotFittedError):
        clone(SMALL).predict(X)
    search = clone(SMALL).set_params(alphas=(1e-3, 3e-3), estimator__price_shift=False, random_state=0)
    assert clone(search).get_params()["estimator__price_shift"] is False
    pipeline = make_pipeline(Normalizer(), search).fit(X, labels_as(y, None))
    copy = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(copy.predict(X), pipeline.predict(X))
    assert pipeline.score(X, labels_as(y, "")) > 0.9


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_parallel_fits_give_the_same_result(backend):
    X, _, y = blobs()
    one = clone(SMALL).set_params(random_state=0).fit(X, y)
    with joblib.parallel_config(backend):
        two = clone(SMALL).set_params(random_state=0, n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_a_second_fit_starts_afresh():
    X, truth, y = blobs()
    search = clone(SMALL).set_params(losses=("hinge",), random_state=0).fit(X[:, :4], truth)
    again = search.set_params(losses=(LargeMargin(),)).fit(X, y)
    assert again.loss_name_ == "LargeMargin"
    assert again.n_features_in_ == 8


def test_verbose_reports_every_fit(capsys):
    X, _, y = blobs()
    trials = []
    search = clone(SMALL).set_params(verbose=trials.append).fit(X, y)
    assert [(trial.params["alpha"], trial.split) for trial in trials] == [(a, s) for a in (1e-3, 1e-2) for s in (0, 1)]
    search.set_params(verbose=1).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_only_the_chosen_model_warns():
    X, truth, _ = blobs()
    rough = TransductiveClassifier(max_iter=1, tol=1e-12, annealing="paper", random_state=0)
    easy = lambda model, X, y: float(model.alpha > 1e-3)  # noqa: E731
    TransductiveClassifierCV((1e-9, 10.0), estimator=rough.set_params(tol=1e-3), cv=2, scoring=easy).fit(X, truth)
    with pytest.warns(ConvergenceWarning, match="weight step"):
        TransductiveClassifierCV((1e-9,), estimator=rough.set_params(tol=1e-12), cv=2).fit(X, truth)


def test_a_prior_warning_is_raised_once():
    X, _, y = blobs()
    y[np.flatnonzero(y == 0)[:2]] = -1
    conflicting = clone(PAPER).set_params(class_prior=[0.02, 0.02, 0.96])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(SMALL).set_params(estimator=conflicting).fit(X, y)
    assert [warning.category for warning in caught] == [PriorWarning]
    assert caught[0].filename == __file__


def test_partial_labels_stay_partial_and_are_never_scored():
    X, truth, y = blobs()
    names = np.array(["a/x", "a/y", "b"], dtype=object)
    labels = labels_as(y, None)
    labels[y >= 0] = names[y[y >= 0]]
    top = np.flatnonzero((y < 0) & (truth < 2))[:20]
    either = np.flatnonzero((y < 0) & (truth > 0))[-10:]
    labels[top], labels[either] = "a", [frozenset({"a/y", "b"})] * either.size
    scored = []

    def scorer(model, rows, truth):
        scored.extend(truth)
        assert np.all(model.transduction_[top] != "b")
        return 0.5

    tree = TransductiveClassifier(taxonomy=names.tolist(), annealing="paper", class_prior={"a": 90, "b": 18})
    TransductiveClassifierCV((1e-3,), estimator=tree, cv=2, scoring=scorer).fit(X, labels)
    assert sorted(scored) == sorted(labels[y >= 0])
    tested = [test for _, test in HiddenLabelSplit(2, taxonomy=names.tolist()).split(X, labels)]
    assert sorted(np.concatenate(tested)) == np.flatnonzero(y >= 0).tolist()


def test_ctrl_c_ends_the_search():
    X, _, y = blobs()
    with pytest.raises(KeyboardInterrupt):
        clone(SMALL).set_params(estimator__label_step=InterruptedLabelStep()).fit(X, y)


def test_a_search_has_the_status_of_its_final_fit():
    X, _, y = blobs()
    inner = clone(SMALL).fit(X, y)
    assert inner._status is inner.best_estimator_._status is not None


def test_the_comparison_methods_can_be_searched():
    X, truth, y = blobs()
    base = EntropyRegularizedClassifier(class_prior=true_counts(truth, y))
    search = TransductiveClassifierCV((1e-4, 1e-3), estimator=base, cv=2, random_state=0)
    assert np.mean(search.fit(X, y).transduction_ == truth) > 0.9
    assert search.loss_name_ == "maxent"
