"""Model selection: nothing leaks, unlabelled rows stay, every class keeps a label, and scores are near the truth."""

import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.test_ids import without_address
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from transduce import EntropyRegularizedClassifier, TransductiveClassifier
from transduce.class_prior.spec import is_in_rows
from transduce.datasets import load_clinc150
from transduce.errors import PriorWarning
from transduce.labels.missing import find_labeled
from transduce.labels.partial import RuledOut
from transduce.losses import LargeMargin
from transduce.model_selection import (
    HiddenLabelSplit,
    TransductiveClassifierCV,
    hide,
    labeled_scorer,
    learning_curve,
)
from transduce.model_selection.hidden_labels import find_full_labels, fit_hidden, scale_prior
from transduce.testing import SEMI_SUPERVISED_CHECKS, blobs, labels_as, true_counts

PAPER = TransductiveClassifier(annealing="paper")
QUICK = TransductiveClassifierCV((0.1, 1.0), estimator=TransductiveClassifier(annealing=None, max_iter=5), cv=2)
SMALL = TransductiveClassifierCV((1e-3, 1e-2), estimator=PAPER, cv=2)


# Splits


@st.composite
def some_labels(draw):
    """Whole numbers with -1 for unlabelled, at least one class twice."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    sizes[0] += 1
    y = np.concatenate((np.repeat(np.arange(len(sizes)), sizes), np.full(draw(st.integers(0, 12)), -1)))
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y)


@settings(max_examples=150, deadline=None)
@given(some_labels(), st.integers(2, 5), st.integers(1, 3), st.booleans(), st.integers(0, 3))
def test_splits_keep_every_unlabelled_row_and_a_label_of_every_class(y, n_splits, n_repeats, stratified, seed):
    sizes = np.bincount(y[y >= 0])
    n_hideable = sizes[sizes > 1].sum()
    split = HiddenLabelSplit(n_splits, n_repeats=n_repeats, stratified=stratified, random_state=seed)
    if n_hideable < n_splits:
        with pytest.raises(ValueError, match=f"n_splits must be at most {n_hideable}"):
            list(split.split(y, y))
        return
    pairs = list(split.split(y, y))
    assert len(pairs) == split.get_n_splits() == n_splits * n_repeats
    for train, test in pairs:
        assert test.size
        assert np.all(y[test] >= 0)
        assert np.all(np.isin(np.flatnonzero(y < 0), train))
        assert np.array_equal(np.sort(np.concatenate((train, test))), np.arange(y.size))
        assert set(y[train][y[train] >= 0]) == set(y[y >= 0])
        hidden = split.hidden(y, test)
        assert np.all(hidden[test] == -1)
        assert np.array_equal(hidden[train], y[train])
    for repeat in range(n_repeats):
        tested = np.concatenate([test for _, test in pairs[repeat * n_splits : (repeat + 1) * n_splits]])
        assert np.unique(tested).size == tested.size
        if stratified:
            assert tested.size == n_hideable


def test_stratified_folds_have_even_shares_and_sizes():
    y = np.repeat([0, 1, 2, -1], [20, 10, 5, 100])
    for _, test in HiddenLabelSplit(5, random_state=0).split(y, y):
        assert np.bincount(y[test]).tolist() == [4, 2, 1]


def test_repeats_differ_and_seeds_repeat():
    y = np.repeat([0, 1, -1], [10, 10, 5])
    folds = [tuple(test) for _, test in HiddenLabelSplit(2, n_repeats=2, random_state=3).split(y, y)]
    again = [tuple(test) for _, test in HiddenLabelSplit(2, n_repeats=2, random_state=3).split(y, y)]
    assert folds == again
    assert folds[0] not in folds[2:]


@pytest.mark.parametrize(
    ("y", "parameters", "sentence"),
    [
        ([0, -1, -1], {}, "label two rows of at least one class"),
        ([0, 1, 2, -1], {}, "labels 3 in all and no class twice"),
        ([-1, -1], {}, "labels 0 in all"),
        ([0, 0, 1, -1], {}, "n_splits must be at most 2"),
        (None, {}, "needs y"),
        ([0, 0], {"n_splits": 1}, "n_splits must be a whole number, 2 or more, but is 1"),
        ([0, 0], {"n_splits": 2.5}, "n_splits must be a whole number"),
        ([0, 0], {"n_repeats": 0}, "n_repeats must be a whole number, 1 or more"),
    ],
)
def test_splits_that_cannot_be_get_one_sentence(y, parameters, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        list(HiddenLabelSplit(**parameters).split(np.zeros((len(y or [0]), 1)), y))
    assert "\n" not in str(error.value)


def test_rows_with_several_candidates_are_never_tested():
    y = np.empty(6, dtype=object)
    y[:] = ["a", "a", "b", "b", frozenset("ab"), RuledOut("a")]
    tested = np.concatenate([test for _, test in HiddenLabelSplit(2, random_state=0).split(y, y)])
    assert sorted(tested) == [0, 1, 2, 3]


# Hiding


@pytest.mark.parametrize("taxonomy", [None, ["hot/a", "cold/b"]])
def test_one_candidate_is_a_full_label_here_as_in_a_fit(taxonomy):
    entries = ["a", {"a"}, frozenset("b"), "b", {"a", "b"}, RuledOut("a"), None]
    if taxonomy is not None:
        entries[4:4] = ["hot", {"cold"}]
    y = np.empty(len(entries), dtype=object)
    y[:] = entries
    values, certain = find_full_labels(y, taxonomy=taxonomy)
    model = TransductiveClassifier(taxonomy=taxonomy, class_prior={"a": 2, "b": 1}).fit(np.eye(len(y), 3), y)
    assert certain.sum() == len(y) - model.class_counts_.sum()
    assert values[certain].tolist() == ["a", "a", "b", "b", *([] if taxonomy is None else ["a", "b"])]
    assert model.score(np.eye(len(y), 3), y) == np.mean(model.predict(np.eye(len(y), 3))[certain] == values[certain])
    fit_hidden(model, np.eye(len(y), 3), y, [1])  # whose counts are scaled to one row more


@pytest.mark.parametrize(
    ("before", "after"),
    [({"a": 1, "b": None}, {"a": 1.5, "b": None}), ({"a": (1, np.inf), "b": 0}, {"a": (1, np.inf), "b": 0})],
)
def test_integers_beside_open_sizes_are_scaled_as_rows(before, after):
    scaled = scale_prior(before, 10, 15)
    assert scaled == after
    assert is_in_rows(before)
    assert is_in_rows(scaled)
    assert scale_prior({"a": 1.0, "b": None}, 10, 15) == {"a": 1.0, "b": None}


@pytest.mark.parametrize(
    "y",
    [
        np.array([2, 0, 2, -1]),
        np.array([2, 0, 2, -1], dtype=np.int8),
        np.array([1, 0, 1, 1], dtype=np.uint8),
        np.array([True, False, True, True]),
        np.array([1.0, 0.0, 1.0, np.nan]),
        np.array(["a", "b", "a", ""]),
        np.array(["a", "b", "nan", "-1"]),
        np.array(["a", "b", "a", None], dtype=object),
        ["a", "b", "a", None],
        [("a", "x"), ("b",), ("a", "x"), None],
        pd.Series(["a", "b", "a", "c"], dtype="string"),
        pd.Series(["a", "b", "a", None], dtype="category"),
        np.array(["2020-01-01", "2020-01-02", "2020-01-01", "NaT"], dtype="datetime64[D]"),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
@pytest.mark.parametrize("unlabeled", ["auto", None, 2, "a"])
def test_hidden_rows_are_unlabelled_and_others_stay(y, unlabeled):
    values, labeled = find_labeled(y, unlabeled)
    before = values.tolist()
    hidden = hide(y, [0, 1], unlabeled)
    again, still = find_labeled(hidden, unlabeled)
    assert still.tolist() == [False, False, *labeled[2:]]
    assert [again.tolist()[i] == values.tolist()[i] for i in range(2, 4) if labeled[i]] == [True] * labeled[2:].sum()
    assert find_labeled(hide(y, np.array([True, True, False, False]), unlabeled))[1].tolist()[:2] == [False, False]
    assert values.tolist()[:2] == before[:2]


def test_rows_that_are_not_there_cannot_be_hidden():
    for rows in ([5], [0.5], ["a"]):
        with pytest.raises(ValueError, match="rows must be indices below 3"):
            hide([1, 2, 3], rows)


@pytest.mark.parametrize(
    ("prior", "scaled"),
    [
        ("labeled", "labeled"),
        ([0.3, 0.7], [0.3, 0.7]),
        ([30, 70], [0.3, 0.7]),
        (np.array([100, 0]), [1.0, 0.0]),
        ({"b": 70, "a": 30}, {"b": 0.7, "a": 0.3}),
        (pd.Series({"b": 70, "a": 30}), {"b": 0.7, "a": 0.3}),
        ({"a": (20, 30), "b": None}, {"a": (24, 36), "b": None}),
        ({"a": (21, 33), "b": 60}, {"a": (25, 40), "b": 72.0}),
        ({"a": (21, np.inf), "b": None}, {"a": (25, np.inf), "b": None}),
        ({"a": (0.2, 0.3), "b": None}, {"a": (0.2, 0.3), "b": None}),
        ([(20, 30), None], [(24, 36), None]),
        ([(0.2, 0.3), None], [(0.2, 0.3), None]),
        ({"a": 50, "b": 30, "b/x": 20, "b/y": 10}, {"a": 60.0, "b": 36.0, "b/x": 24.0, "b/y": 12.0}),
        ([30, 60], [30, 60]),  # wrong, for the estimator to refuse
        ({"a": "x", "b": (1, 2)}, {"a": "x", "b": (1, 2)}),
        (None, None),
    ],
    ids=without_address,
)
def test_counts_are_scaled_and_fractions_stay(prior, scaled):
    assert scale_prior(prior, 100, 120) == scaled
    assert scale_prior(prior, 0, 20) == "labeled"
    assert scale_prior(prior, 100, 100) is prior


def test_counts_of_unlabelled_rows_serve_every_fold():
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    rows = np.flatnonzero(y >= 0)[::2]
    for prior in (counts, dict(enumerate(counts)), {0: (50, 60), 1: (30, 40), 2: None}):
        model = fit_hidden(clone(PAPER).set_params(class_prior=prior, random_state=0), X, y, rows)
        assert model.class_counts_.sum() == (y < 0).sum() + rows.size
        assert np.mean(model.transduction_ == truth) > 0.9


# Nothing leaks


@pytest.mark.parametrize(
    "prior", ["labeled", [0.5, 1 / 3, 1 / 6], [56, 36, 16], {0: (50, 60), 1: None, 2: None}], ids=str
)
def test_hidden_labels_never_change_the_model_of_their_fold(prior):
    X, _, y = blobs()
    clf = clone(PAPER).set_params(class_prior=prior, random_state=0)
    rng = np.random.default_rng(0)
    for train, test in HiddenLabelSplit(3, random_state=0).split(X, y):
        other = y.copy()
        other[test] = rng.permutation(y[test])[::-1]
        assert np.array_equal(fit_hidden(clf, X, y, test).coef_, fit_hidden(clf, X, other, test).coef_)
        assert np.array_equal(clone(clf).fit(X[train], y[train]).coef_, clone(clf).fit(X[train], other[train]).coef_)


class Spy(TransductiveClassifier):
    """Remembers what it was fitted with."""

    seen: list = []  # noqa: RUF012 -- shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        Spy.seen.append((X, np.array(y)))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("plain", [False, True])
def test_every_fit_of_a_search_sees_all_unlabelled_rows_and_no_label_that_it_is_scored_on(plain):
    X, _, y = blobs()
    scored = []

    def scorer(model, rows, truth):
        scored.append(rows)
        return 0.5

    Spy.seen.clear()
    spy, folds = Spy(annealing="paper", random_state=0), HiddenLabelSplit(3, random_state=0)
    if plain:
        GridSearchCV(spy, {"alpha": [1e-3, 1e-2]}, cv=folds, scoring=scorer).fit(X, y)
        seen = Spy.seen[:-1]
    else:
        TransductiveClassifierCV((1e-3, 1e-2), estimator=spy, cv=folds, scoring=scorer, random_state=0).fit(X, y)
        seen = Spy.seen[1:]
    assert len(seen) == len(scored) == 6
    for (rows, labels), tested in zip(seen, scored, strict=True):
        assert np.sum(labels >= 0) == np.sum(y >= 0) - len(tested)
        known = {tuple(row) for row in rows[labels >= 0]}
        assert not known & {tuple(row) for row in tested}
        assert {tuple(row) for row in X[y < 0]} <= {tuple(row) for row in rows}
        assert len(rows) == len(X) - (len(tested) if plain else 0)


# Scores


def test_scores_ignore_unlabelled_rows():
    X, truth, y = blobs()
    model = clone(PAPER).set_params(random_state=0).fit(X, y)
    model.intercept_ += np.array([2.0, 0.0, -2.0])  # some mistakes
    predicted, known = model.predict(X), np.arange(len(y)) % 3 > 0
    labels = np.where(known, truth, -1)
    for metric, expected in (
        ("accuracy", np.mean(predicted[known] == truth[known])),
        ("f1_macro", f1_score(truth[known], predicted[known], average="macro")),
        ("f1_micro", f1_score(truth[known], predicted[known], average="micro")),
        (lambda a, b: np.sum(a == b), np.sum(predicted[known] == truth[known])),
    ):
        assert labeled_scorer(metric)(model, X, labels) == pytest.approx(expected)
    assert labeled_scorer("accuracy")(model, X, labels) == model.score(X, labels) < 1


def test_macro_f_is_over_the_classes_of_the_truth():
    class Always:
        def predict(self, X):
            return np.array(["a", "c", "b", "b"])[: len(X)]

    scorer = labeled_scorer("f1_macro")
    assert scorer(Always(), np.eye(5), ["a", "a", None, "b", "b"]) == pytest.approx((2 / 3 + 1) / 2)
    assert pickle.loads(pickle.dumps(scorer)) == scorer


def test_scores_that_cannot_be_get_one_sentence():
    with pytest.raises(ValueError, match="metric must be one of accuracy, f1_macro, f1_micro"):
        labeled_scorer("f2")
    with pytest.raises(ValueError, match="label at least one row to be scored"):
        labeled_scorer()(PAPER, np.eye(2), [-1, -1])


def test_frames_and_lists_of_rows_can_be_scored():
    X, _, y = blobs()
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    search = clone(SMALL).set_params(random_state=0).fit(frame, y)
    assert search.feature_names_in_.tolist() == names
    assert search.cv_results_["mean_test_score"].tolist() == (
        clone(SMALL).set_params(random_state=0).fit(X, y).cv_results_["mean_test_score"].tolist()
    )


# TransductiveClassifierCV as an estimator


class Forwarding(TransductiveClassifierCV):
    """Takes the parameters of the estimator as its own, as the checks set them."""

    def set_params(self, **parameters):
        own = self.get_params(deep=False)
        return super().set_params(**{key if key in own else f"estimator__{key}": v for key, v in parameters.items()})


SKIPPED = {
    "check_repeated_row_equals_weight_two": "of a row given twice one may be hidden and the other not",
}


@pytest.mark.filterwarnings("ignore:class_prior and the labels disagree")
@pytest.mark.parametrize(
    "check", [check for check in SEMI_SUPERVISED_CHECKS if check.__name__ not in SKIPPED], ids=lambda c: c.__name__
)
def test_semi_supervised_checks(check):
    check(Forwarding((1e-3,), estimator=clone(PAPER), cv=2))


EXPECTED_FAILURES = {
    "check_classifiers_classes": "its labels are -1 and 1, and -1 means unlabelled here, as in sklearn.semi_supervised",
    "check_sample_weight_equivalence_on_dense_data": "of a row given twice one may be hidden and the other not",
    "check_sample_weight_equivalence_on_sparse_data": "of a row given twice one may be hidden and the other not",
}


@pytest.mark.filterwarnings("ignore:y holds only -1 and 1")
@pytest.mark.filterwarnings("ignore:The last weight step stopped")  # as few rounds as the checks set elsewhere
@parametrize_with_checks([QUICK], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_a_search_leaves_behind():
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
        ({1e-4: (0.5, 0.5), 1e-3: (0.5, 0.5), 1e-2: (0.5, 0.5)}, ("maxent", "hinge"), 1e-3),
    ],
)
def test_ties_go_to_the_default_alpha_and_then_the_larger(scores, losses, chosen):
    X, _, y = blobs()
    calls = {}

    def scorer(model, X, y):
        key = model.loss, model.alpha
        calls[key] = calls.get(key, -1) + 1
        return scores[model.alpha][calls[key]]

    search = TransductiveClassifierCV(scores, losses=losses, estimator=PAPER, cv=2, scoring=scorer).fit(X, y)
    assert search.alpha_ == chosen
    assert search.loss_name_ == ("hinge" if losses is None else losses[0])


def test_folds_may_be_fewer_than_asked_for_and_come_from_any_splitter():
    X, truth, y = blobs()
    few = np.where((y == 0) | (np.arange(len(y)) == np.flatnonzero(y == 1)[0]), y, -1)
    assert clone(SMALL).set_params(cv=9).fit(X, few).n_splits_ == 4
    assert clone(SMALL).set_params(cv=HiddenLabelSplit(2, n_repeats=2)).fit(X, y).n_splits_ == 4
    assert clone(SMALL).set_params(cv=KFold(3, shuffle=True, random_state=1)).fit(X, truth).n_splits_ == 3
    first = np.flatnonzero(y >= 0)[0]
    assert clone(SMALL).set_params(cv=[([], [first])]).fit(X, y).n_splits_ == 1


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"alphas": ()}, "alphas must be numbers above 0"),
        ({"alphas": (0.0, 1.0)}, "alphas must be numbers above 0"),
        ({"alphas": 1e-3}, "alphas must be numbers above 0"),
        ({"losses": ()}, "losses must be a list of losses"),
        ({"losses": "hinge"}, "losses must be a list of losses"),
        ({"losses": ("log",)}, "loss must be one of hinge"),
        ({"cv": 1}, "cv must be 2 or more folds"),
        ({"cv": "many"}, "cv must be 2 or more folds"),
        ({"cv": [([], np.arange(120))]}, "must leave every class a label, but split 0"),
        ({"cv": [([], [])]}, "must hide a labelled row in every split"),
        ({"scoring": "f2"}, "metric must be one of"),
        ({"scoring": lambda model, X, y: np.nan}, "scoring must give a finite number"),
        ({"estimator__class_prior": [50, 40, 17]}, "to the 108 unlabelled rows, but sums to 107"),
    ],
    ids=without_address,
)
def test_bad_parameters_get_one_sentence(parameters, sentence):
    X, _, y = blobs()
    with pytest.raises(ValueError, match=sentence) as error:
        clone(SMALL).set_params(**parameters).fit(X, y)
    assert "\n" not in str(error.value)


def test_a_pipeline_is_sent_to_grid_search():
    with pytest.raises(TypeError, match="use GridSearchCV with HiddenLabelSplit"):
        TransductiveClassifierCV(estimator=make_pipeline(Normalizer(), PAPER)).fit(np.eye(2), [0, 1])


def test_one_label_a_class_is_too_few():
    X, _, y = blobs()
    first = np.unique(np.where(y < 0, 9, y), return_index=True)[1][:3]
    with pytest.raises(ValueError, match="two rows of at least one class"):
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


def test_several_fits_at_a_time_change_nothing():
    X, _, y = blobs()
    one = clone(SMALL).set_params(random_state=0).fit(X, y)
    two = clone(SMALL).set_params(random_state=0, n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_a_second_fit_forgets_the_first():
    X, truth, y = blobs()
    search = clone(SMALL).set_params(losses=("hinge",), random_state=0).fit(X[:, :4], truth)
    again = search.set_params(losses=(LargeMargin(),)).fit(X, y)
    assert again.loss_name_ == "LargeMargin"
    assert again.n_features_in_ == 8


def test_verbose_tells_of_every_fit(capsys):
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
    with pytest.warns(ConvergenceWarning, match="before it reached its tolerance"):
        TransductiveClassifierCV((1e-9,), estimator=rough.set_params(tol=1e-12), cv=2).fit(X, truth)


def test_doubts_about_the_prior_are_said_once():
    X, _, y = blobs()
    y[np.flatnonzero(y == 0)[:2]] = -1
    doubtful = clone(PAPER).set_params(class_prior=[0.02, 0.02, 0.96])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(SMALL).set_params(estimator=doubtful).fit(X, y)
    assert [warning.category for warning in caught] == [PriorWarning]
    assert caught[0].filename == __file__


def test_rows_with_open_labels_stay_open_and_are_never_scored():
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


class Interrupting:
    """A label step during which Ctrl-C is pressed."""

    def solve(self, problem, prices=None, start=None):
        raise KeyboardInterrupt


def test_ctrl_c_ends_the_search():
    X, _, y = blobs()
    with pytest.raises(KeyboardInterrupt):
        clone(SMALL).set_params(estimator__label_step=Interrupting()).fit(X, y)


def test_the_comparison_methods_can_be_searched():
    X, truth, y = blobs()
    base = EntropyRegularizedClassifier(class_prior=true_counts(truth, y))
    search = TransductiveClassifierCV((1e-4, 1e-3), estimator=base, cv=2, random_state=0)
    assert np.mean(search.fit(X, y).transduction_ == truth) > 0.9
    assert search.loss_name_ == "maxent"


# Learning curves


def test_learning_curves_rise_and_repeat():
    X, truth, y = blobs()
    labels = np.where(np.arange(len(y)) < 80, truth, -1)
    clf = clone(PAPER).set_params(class_prior=true_counts(truth, labels), random_state=0)
    curve = learning_curve(clf, X, labels, [3, 40], n_repeats=4, random_state=1)
    again = learning_curve(clf, X, labels, [3, 40], n_repeats=4, random_state=1)
    assert np.array_equal(curve.scores, again.scores)
    assert curve.mean[1] >= curve.mean[0]
    assert np.array_equal(curve.std, curve.scores.std(axis=1))


def test_learning_curves_keep_a_label_of_every_class_and_nest():
    X, truth, _ = blobs()
    Spy.seen.clear()
    learning_curve(Spy(annealing="paper"), X, truth, [3, 10, 20], n_repeats=2, random_state=0)
    for repeat in (Spy.seen[:3], Spy.seen[3:]):
        known = [set(np.flatnonzero(labels >= 0)) for _, labels in repeat]
        assert [len(rows) for rows in known] == [3, 10, 20]
        assert known[0] < known[1] < known[2]
        assert {truth[row] for row in known[0]} == {0, 1, 2}


@pytest.mark.parametrize("sizes", [[2], [12], [3.5], 12])
def test_sizes_that_cannot_be_get_one_sentence(sizes):
    X, _, y = blobs()
    with pytest.raises(ValueError, match="sizes must be whole numbers from 3, the classes, to 11"):
        learning_curve(PAPER, X, y, sizes)
    with pytest.raises(ValueError, match="at least one number of labels"):
        learning_curve(PAPER, X, y, [])


def test_learning_curves_of_pipelines_from_texts():
    texts, truth = corpus(400)[2:]
    labels = [name if i < 60 else None for i, name in enumerate(truth)]
    curve = learning_curve(make_pipeline(TfidfVectorizer(), PAPER), list(texts), labels, [30], n_repeats=1)
    assert 0 < curve.mean[0] < 1


# Honest


@cache
def corpus(n_rows, seed=0):
    texts, labels, _ = load_clinc150()
    rows = np.random.default_rng(seed).permutation(len(texts))[:n_rows]
    truth = np.array([label.split("/")[0] for label in labels[rows]])
    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts[rows]), texts[rows], texts[rows], truth


def test_scores_are_near_the_truth_and_nearer_than_naive_ones():
    off, naive, fooled = [], [], []
    for seed in range(4):
        X, _, _, truth = corpus(2000, seed)
        y = np.where(np.arange(2000) < 300, truth, "")
        clf = TransductiveClassifier(class_prior=np.full(10, 0.1), annealing="paper", random_state=0)
        search = TransductiveClassifierCV((1e-3,), estimator=clf, scoring="accuracy", random_state=0).fit(X, y)
        right = np.mean(search.predict(X)[y == ""] == truth[y == ""])
        plain = cross_val_score(clf, X, y, cv=KFold(5, shuffle=True, random_state=0), scoring="accuracy").mean()
        off.append(search.best_score_ - right)
        naive.append(clf.fit(X, y).score(X, y) - right)
        fooled.append(plain - right)
    assert np.abs(off).mean() < 0.06
    assert np.all(np.abs(off) < np.abs(naive) / 2)
    assert np.all(np.abs(off) < np.abs(fooled) / 4)


def test_the_sensible_alpha_is_chosen_among_absurd_ones():
    X, _, _, truth = corpus(2000)
    y = np.where(np.arange(2000) < 300, truth, "")
    clf = TransductiveClassifier(class_prior=np.full(10, 0.1), annealing="paper", price_shift=False, random_state=0)
    search = TransductiveClassifierCV((1e-8, 1e-3, 10), estimator=clf, random_state=0).fit(X, y)
    assert search.alpha_ == 1e-3
    scores = [
        f1_score(truth[y == ""], clone(clf).set_params(alpha=alpha).fit(X, y).predict(X)[y == ""], average="macro")
        for alpha in (1e-8, 1e-3)
    ]
    assert scores[1] > scores[0]
    mean = search.cv_results_["mean_test_score"]
    assert mean[1] > mean[0]


@pytest.mark.parametrize("pipeline", [False, True])
def test_ctrl_c_ends_a_learning_curve(pipeline):
    X, truth, _ = blobs()
    clf = clone(PAPER).set_params(label_step=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        learning_curve(make_pipeline(Normalizer(), clf) if pipeline else clf, X, truth, [9], n_repeats=1)


def test_inner_nodes_without_a_taxonomy_are_asked_after():
    y = ["hot/tea", "hot/tea", "hot/soup", "hot/soup", "hot", "hot"]
    tree = ["hot/tea", "hot/soup"]
    with pytest.warns(UserWarning, match="'hot' in y is treated as a class of its own beside 'hot/"):
        list(HiddenLabelSplit(2, random_state=0).split(np.eye(6), y))
    model = TransductiveClassifier(taxonomy=tree, random_state=0).fit(np.eye(6), y)
    with pytest.warns(UserWarning, match="Pass taxonomy= to make it a partial label"):
        labeled_scorer()(model, np.eye(6), y)
    list(HiddenLabelSplit(2, random_state=0, taxonomy=tree).split(np.eye(6), y))
    assert labeled_scorer(taxonomy=tree)(model, np.eye(6), y) == 1.0
