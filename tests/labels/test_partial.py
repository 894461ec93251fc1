"""Partial labels: every notation, what they forbid, and how much they help."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.partial_labels import NAMES, TRIPS, fit_trips, labels, rows, trips
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from transduce import EntropyRegularizedClassifier, TransductiveClassifier
from transduce.datasets import load_clinc150
from transduce.errors import PriorWarning
from transduce.history import FitStatus
from transduce.labels.partial import RuledOut
from transduce.taxonomy import Taxonomy

EQUAL = dict.fromkeys(NAMES, "=25%")
"""The sizes of the classes: a fit that need not estimate them is one fit and not six."""


@pytest.mark.parametrize(
    "entry", [{"hot/coffee", "cold/milk"}, frozenset({"hot/coffee", "cold/milk"}), RuledOut(["hot/tea", "cold/juice"])]
)
@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_a_row_gets_a_class_that_its_partial_label_allows(entry, annealing):
    X, truth = rows()
    X[5] = [0, 3, 0, 0]  # looks like tea, which it may not be
    model = TransductiveClassifier(annealing=annealing, class_prior=EQUAL, random_state=0).fit(X, labels(truth, entry))
    assert model.transduction_[5] in {"hot/coffee", "cold/milk"}
    forbidden = [k for k, name in enumerate(model.classes_) if name not in {"hot/coffee", "cold/milk"}]
    assert np.all(model.label_distributions_[5, forbidden] == 0.0)
    unlabeled = TransductiveClassifier(annealing="paper", class_prior=EQUAL, random_state=0).fit(X, labels(truth, ""))
    assert unlabeled.transduction_[5] == "hot/tea"


@pytest.mark.parametrize("entry", ["hot", ("hot",), ["hot"]])
def test_an_inner_node_allows_its_leaves(entry):
    X, truth = rows()
    X[5] = [0, 0, 3, 0]
    y = labels(truth, "")
    y[5] = entry
    model = TransductiveClassifier(class_prior=EQUAL, taxonomy=NAMES, annealing="paper", random_state=0).fit(X, y)
    assert model.transduction_[5] in {"hot/coffee", "hot/tea"}
    assert list(model.classes_) == sorted(NAMES)


def test_a_set_of_one_class_is_a_full_label():
    X, truth = rows()
    model = TransductiveClassifier(annealing="paper", class_prior=EQUAL, random_state=0)
    one, plain = (clone(model).fit(X, labels(truth, entry)) for entry in ({"hot/tea"}, "hot/tea"))
    assert np.array_equal(one.coef_, plain.coef_)


def test_a_matrix_and_sets_give_the_same_fit():
    X, truth = rows()
    y = np.ones((truth.size, 4), bool)
    entries = np.full(truth.size, None, dtype=object)
    for i, k in enumerate(truth):
        if i % 40 < 2:
            y[i] = np.arange(4) == k
            entries[i] = int(k)
        elif i % 40 < 9:
            y[i] = np.isin(np.arange(4), [k, (k + 1) % 4])
            entries[i] = {int(k), int((k + 1) % 4)}
    model = TransductiveClassifier(annealing="paper", class_prior=["=25%"] * 4, random_state=0)
    matrix, frame, sets = (clone(model).fit(X, each) for each in (y, pd.DataFrame(y), entries))
    assert matrix.transduction_.tolist() == sets.transduction_.tolist() == frame.transduction_.tolist()
    assert all(allowed[label] for allowed, label in zip(y, matrix.transduction_, strict=True))


@pytest.mark.parametrize("weight", ["unlabeled", "labeled"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
def test_partially_labelled_and_unlabelled_rows_meet_the_counts_together(weight, loss):
    X, truth = rows()
    y = labels(truth, "")
    for i in range(2, 160, 3):
        if y[i] == "":
            y[i] = {NAMES[truth[i]], NAMES[(truth[i] + 2) % 4]}
    prior = dict.fromkeys(NAMES, 38)
    model = TransductiveClassifier(
        loss, annealing="paper", class_prior=prior, partial_weight=weight, random_state=0
    ).fit(X, y)
    assert model.class_counts_.tolist() == [38] * 4
    assert all(label in entry for label, entry in zip(model.transduction_, y, strict=True) if isinstance(entry, set))


def test_partial_labels_help():
    texts, paths, _ = load_clinc150()
    tops = np.array([path.split("/")[0] for path in paths])
    some = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(tops, ["travel", "work", "banking"])))[:2000]
    X, paths, tops = TfidfVectorizer(sublinear_tf=True).fit_transform(texts[some]), paths[some], tops[some]
    full = np.zeros(some.size, bool)
    for name in np.unique(paths):
        full[np.flatnonzero(paths == name)[:2]] = True
    bare = np.where(full, paths, "").astype(object)
    partial = np.where(full, paths, tops).astype(object)
    sizes = dict(zip(*np.unique(paths[~full], return_counts=True), strict=True))
    f = []
    for y in (bare, partial):
        model = TransductiveClassifier(class_prior=sizes, taxonomy=np.unique(paths), annealing="paper", random_state=0)
        f.append(f1_score(paths[~full], model.fit(X, y).transduction_[~full], average="macro"))
    assert f[1] > f[0] + 0.03


@pytest.mark.parametrize("prior", ["labeled", "estimate"])
def test_sizes_from_labels_respect_partial_labels(prior):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 60)
    X = np.eye(4)[truth] + 0.3 * rng.normal(size=(60, 4))
    y = np.array([frozenset({0, 1}) if k < 2 else frozenset({2, 3}) for k in truth], dtype=object)
    for k in range(4):
        y[np.flatnonzero(truth == k)[:4]] = k
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)  # as many labels of each class say nothing of sizes
        model = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.9
    assert model.score(X, y) > 0.9  # of the rows with a single label


WIDE = [*NAMES, "hot/soup", "art/song"]


@pytest.mark.filterwarnings("ignore::transduce.PriorWarning")  # equal numbers of labels
@pytest.mark.parametrize("entry", ["hot", {"hot", "cold/milk"}])
@pytest.mark.parametrize("prior", ["labeled", "estimate", {"hot": 0.5, "cold/juice": 0.25, "cold/milk": 0.25}])
@pytest.mark.parametrize("annealing", ["paper", pytest.param("soft", marks=pytest.mark.slow)])
def test_all_leaves_under_an_inner_node_are_classes(entry, prior, annealing):
    X, truth = rows()
    y = labels(truth, entry)
    y[[6, 46]] = entry, entry
    model = TransductiveClassifier(class_prior=prior, taxonomy=WIDE, annealing=annealing, random_state=0).fit(X, y)
    assert list(model.classes_) == sorted([*NAMES, "hot/soup"])
    open_to = {"hot/coffee", "hot/tea", "hot/soup", "cold/milk" if isinstance(entry, set) else "hot/soup"}
    assert set(model.transduction_[[5, 6, 46]]) <= open_to
    assert np.mean(model.transduction_ == np.array(NAMES)[truth]) > 0.7


def test_an_inner_node_is_partial_although_one_leaf_is_labelled():
    X = np.eye(6)
    y = ["hot/tea", "cold/milk", "hot", "", "", ""]
    model = TransductiveClassifier(
        taxonomy=["hot/tea", "hot/soup", "cold/milk"], class_prior=[1, 2, 1], annealing=None
    ).fit(X, y)
    assert model.classes_.tolist() == ["cold/milk", "hot/soup", "hot/tea"]
    assert model.class_counts_.sum() == 4  # the row with the inner node is one of those to be labelled
    two = TransductiveClassifier(
        taxonomy=["hot/tea", "hot/soup", "cold/milk"], class_prior={"hot/tea": 2, "cold/milk": 2}, annealing=None
    )
    assert two.fit(X, y).class_counts_.tolist() == [2, 0, 2]


@pytest.mark.parametrize("kind", ["path", "own", "ints"])
def test_unlabelled_leaves_get_names_of_the_same_type(kind):
    paths = [("hot", "tea"), ("hot", "soup"), ("cold", "milk")]
    y, taxonomy, called = {
        "path": ([paths[0], paths[2], ("hot",), None], ["/".join(path) for path in paths], paths),
        "own": (["hot/tea", "cold/milk", "hot", ""], paths, ["/".join(path) for path in paths]),
        "ints": ([0, 2, ("hot",), -1], Taxonomy((0, 1, 2), tuple(paths)), [0, 1, 2]),
    }[kind]
    model = TransductiveClassifier(taxonomy=taxonomy, class_prior=[1, 0, 1], annealing=None).fit(np.eye(4), y)
    assert model.classes_.tolist() == sorted(called)


class Interrupt:
    """A progress callback that raises KeyboardInterrupt in round n."""

    def __init__(self, n):
        self.rows, self.n = [], n

    def __call__(self, row):
        self.rows.append(row)
        if len(self.rows) == self.n:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("estimator", "entry"),
    [
        (TransductiveClassifier, ""),
        (TransductiveClassifier, {"hot/tea", "cold/milk"}),
        (EntropyRegularizedClassifier, ""),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 6])
def test_an_interrupt_while_labels_are_hidden_keeps_the_fit(estimator, entry, n):
    X, truth = rows()
    pressed = Interrupt(n)
    model = estimator(class_prior="estimate", verbose=pressed, random_state=0, n_jobs=1).fit(X, labels(truth, entry))
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    assert model.history_ == pressed.rows
    assert {row.restart for row in model.history_} == {-1}
    assert len(model.history_) == n
    assert np.mean(model.predict(X) == np.array(NAMES)[truth]) > 0.5


def test_an_interrupt_of_fits_in_threads_keeps_one_of_them():
    X, truth = rows()
    pressed = Interrupt(6)
    model = TransductiveClassifier(class_prior="estimate", verbose=pressed, random_state=0, n_jobs=4)
    model.fit(X, labels(truth, ""))
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    assert sorted(row.seconds for row in pressed.rows)[:6] == [row.seconds for row in model.history_][:6]
    assert np.mean(model.predict(X) == np.array(NAMES)[truth]) > 0.5


def test_minus_one_may_be_a_class_without_a_marker():
    X, y = trips()
    y = [0 if name == "travel" else 1 if name else None for name in y]
    y[20] = {-1, 0}
    assert TransductiveClassifier(unlabeled=None, annealing=None).fit(X, y).classes_.tolist() == [-1, 0, 1]
    with pytest.raises(ValueError, match="row 20 of y has -1 in"):
        TransductiveClassifier().fit(X, y)


def test_ruled_out_classes_may_come_from_sets_prior_or_taxonomy():
    X, y = trips(RuledOut("party"))
    y[21] = {"party", "work"}
    assert "party" in TransductiveClassifier(annealing="paper").fit(X, y).classes_
    fit_trips(RuledOut("party"), class_prior={"banking": 0.3, "travel": 0.3, "work": 0.3, "party": 0.1})
    assert "party" in fit_trips(RuledOut("party"), taxonomy=[*TRIPS, "party"]).classes_


@pytest.mark.parametrize("kind", [list, "tuples", sparse.csr_matrix, "arrays"])
def test_a_matrix_may_be_sparse_or_lists(kind):
    X, y = trips()
    matrix = np.array([[name in ("", each) for each in TRIPS] for name in y])
    matrix[20] = [True, False, True]
    other = {"tuples": [tuple(row) for row in matrix.tolist()], "arrays": list(matrix)}
    y = other[kind] if isinstance(kind, str) else matrix.tolist() if kind is list else kind(matrix)
    model, same = (TransductiveClassifier(annealing="paper", random_state=0).fit(X, each) for each in (y, matrix))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.transduction_.tolist() == same.transduction_.tolist()


def test_tuples_of_numbers_are_labels():
    y = [(0, 1), (1, 0), None, None]
    assert TransductiveClassifier(annealing="paper").fit(np.eye(4), y).classes_.tolist() == [(0, 1), (1, 0)]
