"""Partial labels: every notation, what they forbid, and how much they help."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from transduce import EntropyRegularizedClassifier, TransductiveClassifier
from transduce.datasets import load_clinc150
from transduce.errors import LabelError, LabelErrorKind, LabelWarning, PriorWarning
from transduce.history import FitStatus
from transduce.label_step import InfeasibleError, solve_labels
from transduce.labels.partial import RuledOut, read_matrix
from transduce.taxonomy import Taxonomy

NAMES = ["hot/coffee", "hot/tea", "cold/juice", "cold/milk"]


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), n)
    return np.eye(4)[truth] + rng.normal(0, 0.4, (4 * n, 4)), truth


def labels(truth, entry):
    y = np.empty(truth.size, dtype=object)
    y[:] = ""
    for k in range(4):
        y[k * 40], y[k * 40 + 1] = NAMES[k], NAMES[k]
    y[5] = entry
    return y


@pytest.mark.parametrize(
    "entry", [{"hot/coffee", "cold/milk"}, frozenset({"hot/coffee", "cold/milk"}), RuledOut(["hot/tea", "cold/juice"])]
)
@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_a_row_gets_a_class_that_its_partial_label_allows(entry, annealing):
    X, truth = rows()
    X[5] = [0, 3, 0, 0]  # looks like tea, which it may not be
    model = TransductiveClassifier(annealing=annealing, random_state=0).fit(X, labels(truth, entry))
    assert model.transduction_[5] in {"hot/coffee", "cold/milk"}
    forbidden = [k for k, name in enumerate(model.classes_) if name not in {"hot/coffee", "cold/milk"}]
    assert np.all(model.label_distributions_[5, forbidden] == 0.0)
    assert (
        TransductiveClassifier(annealing="paper", random_state=0).fit(X, labels(truth, "")).transduction_[5]
        == "hot/tea"
    )


@pytest.mark.parametrize("entry", ["hot", ("hot",), ["hot"]])
def test_an_inner_node_allows_its_leaves(entry):
    X, truth = rows()
    X[5] = [0, 0, 3, 0]
    y = labels(truth, "")
    y[5] = entry
    model = TransductiveClassifier(taxonomy=NAMES, annealing="paper", random_state=0).fit(X, y)
    assert model.transduction_[5] in {"hot/coffee", "hot/tea"}
    assert list(model.classes_) == sorted(NAMES)


def test_a_set_of_one_class_is_a_full_label():
    X, truth = rows()
    one = TransductiveClassifier(annealing="paper", random_state=0).fit(X, labels(truth, {"hot/tea"}))
    plain = TransductiveClassifier(annealing="paper", random_state=0).fit(X, labels(truth, "hot/tea"))
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
    matrix = TransductiveClassifier(annealing="paper", random_state=0).fit(X, y)
    frame = TransductiveClassifier(annealing="paper", random_state=0).fit(X, pd.DataFrame(y))
    sets = TransductiveClassifier(annealing="paper", random_state=0).fit(X, entries)
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


@pytest.mark.parametrize(
    ("entry", "taxonomy", "sentence"),
    [
        ("warm", NAMES, "'warm' is not in the taxonomy"),
        (RuledOut(NAMES), None, "rules out all 4 classes"),
        (set(), None, "is an empty set"),
    ],
)
def test_entries_that_allow_no_class_are_refused(entry, taxonomy, sentence):
    X, truth = rows()
    with pytest.raises(ValueError, match=sentence):
        TransductiveClassifier(taxonomy=taxonomy).fit(X, labels(truth, entry))


def test_rows_that_allow_nothing_and_labels_without_a_full_one_are_refused():
    with pytest.raises(ValueError, match="row 1 of y allows no class"):
        read_matrix(np.array([[True, False], [False, False]]))
    with pytest.raises(ValueError, match="y has partial labels only"):
        TransductiveClassifier().fit(np.eye(2), [{"a", "b"}, {"a", "b"}])
    with pytest.raises(ValueError, match="partial_weight must be"):
        TransductiveClassifier(partial_weight="heavy").fit(np.eye(2), ["a", "b"])
    with pytest.raises(ValueError, match="takes no partial labels"):
        EntropyRegularizedClassifier().fit(np.eye(3), ["a", "b", {"a", "b"}])


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


def test_every_column_is_a_class_and_an_empty_branch_is_refused():
    y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1], [1, 1, 0]], dtype=bool)
    assert TransductiveClassifier(annealing="paper").fit(np.eye(4), y).classes_.tolist() == [0, 1, 2]
    X, truth = rows()
    with pytest.raises(ValueError, match="names 'art', but no class under it is labelled"):
        TransductiveClassifier(taxonomy=[*NAMES, "art/song"]).fit(X, labels(truth, RuledOut("art")))


WIDE = [*NAMES, "hot/soup", "art/song"]


@pytest.mark.filterwarnings("ignore::transduce.PriorWarning")  # equal numbers of labels
@pytest.mark.parametrize("entry", ["hot", {"hot", "cold/milk"}])
@pytest.mark.parametrize("prior", ["labeled", "estimate", {"hot": 0.5, "cold/juice": 0.25, "cold/milk": 0.25}])
@pytest.mark.parametrize("annealing", ["paper", "soft"])
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
    model = TransductiveClassifier(taxonomy=["hot/tea", "hot/soup", "cold/milk"], class_prior=[1, 2, 1]).fit(X, y)
    assert model.classes_.tolist() == ["cold/milk", "hot/soup", "hot/tea"]
    assert model.class_counts_.sum() == 4  # the row with the inner node is one of those to be labelled
    two = TransductiveClassifier(
        taxonomy=["hot/tea", "hot/soup", "cold/milk"], class_prior={"hot/tea": 2, "cold/milk": 2}
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
    model = TransductiveClassifier(taxonomy=taxonomy, class_prior=[0.3, 0.3, 0.4]).fit(np.eye(4), y)
    assert model.classes_.tolist() == sorted(called)


@pytest.mark.parametrize("prior", [{"tea": 0.5, "hot/tea": 0.2, "cold/milk": 0.3}, {"tea": 0.5, "cold/milk": 0.5}])
def test_two_names_of_one_class_are_refused(prior):
    with pytest.raises(ValueError, match="but 'hot/tea' and 'tea' are the same class"):
        TransductiveClassifier(taxonomy=["hot/tea", "cold/milk"], class_prior=prior).fit(
            np.eye(3), ["hot/tea", "cold/milk", ""]
        )


def test_a_tuple_of_ruled_out_labels_is_ambiguous():
    with pytest.raises(TypeError, match=r"Write \[\(0, 1\)\] for a path, and \[0, 1\] for several labels"):
        RuledOut((0, 1))
    assert RuledOut([("hot", "tea")]) == RuledOut([["hot", "tea"]])
    assert RuledOut({0, 1}).labels == RuledOut([0, 1]).labels == {0, 1}


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
    model = estimator(class_prior="estimate", verbose=pressed, random_state=0).fit(X, labels(truth, entry))
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    assert model.history_ == pressed.rows
    assert {row.restart for row in model.history_} == {-1}
    assert len(model.history_) == n
    assert np.mean(model.predict(X) == np.array(NAMES)[truth]) > 0.5


TRIPS = np.array(["banking", "travel", "work"], dtype=object)


def trips(entry=None, n=30):
    truth = np.arange(n) % 3
    y = np.where(np.arange(n) < 7, TRIPS[truth], "").astype(object)
    if entry is not None:
        y[20:21] = np.fromiter([entry], dtype=object)
    return 2 * np.eye(3)[truth] + 0.2 * np.random.default_rng(0).normal(size=(n, 3)), y


def fit_trips(entry=None, **parameters):
    return TransductiveClassifier(annealing="paper", random_state=0, **parameters).fit(*trips(entry))


@pytest.mark.parametrize(
    ("entry", "kind", "fields"),
    [
        (RuledOut("tarvel"), "UNKNOWN_RULED_OUT", {"name": "tarvel", "hint": " Did you mean 'travel'?"}),
        (RuledOut(["travel", "zzz"]), "UNKNOWN_RULED_OUT", {"name": "zzz", "hint": ""}),
        (np.array(["travel", "work"]), "ARRAY_ENTRY", {"example": "{'travel', 'work'}"}),
        (["travel", "work"], "PATH_WITHOUT_TAXONOMY", {"entry": ("travel", "work"), "example": "{'travel', 'work'}"}),
        (("travel", "work"), "PATH_WITHOUT_TAXONOMY", {"entry": ("travel", "work")}),
        ({"travel", None}, "MISSING_IN_SET", {"name": None}),
        ({"travel", ""}, "MISSING_IN_SET", {"name": ""}),
        ({"travel", np.nan}, "MISSING_IN_SET", {}),
        (RuledOut(""), "MISSING_IN_SET", {"name": "", "entry": RuledOut("")}),
        (RuledOut(list(TRIPS)), "ALL_RULED_OUT", {"n_classes": 3}),
    ],
)
def test_mistakes_in_partial_labels_name_the_row(entry, kind, fields):
    with pytest.raises(LabelError, match="row 20 of y") as caught:
        fit_trips(entry)
    assert caught.value.kind is LabelErrorKind[kind]
    assert {name: getattr(caught.value, name) for name in fields} == fields
    assert len(str(caught.value)) < 220


def test_an_array_in_a_list_is_refused():
    X, y = trips()
    with pytest.raises(ValueError, match="row 20 of y is an array"):
        TransductiveClassifier().fit(X, [*y[:20], np.array(["travel", "work"]), *y[21:]])


def test_minus_one_may_be_a_class_without_a_marker():
    X, y = trips()
    y = [0 if name == "travel" else 1 if name else None for name in y]
    y[20] = {-1, 0}
    assert TransductiveClassifier(unlabeled=None).fit(X, y).classes_.tolist() == [-1, 0, 1]
    with pytest.raises(ValueError, match="row 20 of y has -1 in"):
        TransductiveClassifier().fit(X, y)


def test_ruled_out_classes_may_come_from_sets_prior_or_taxonomy():
    X, y = trips(RuledOut("party"))
    y[21] = {"party", "work"}
    assert "party" in TransductiveClassifier(annealing="paper").fit(X, y).classes_
    fit_trips(RuledOut("party"), class_prior={"banking": 0.3, "travel": 0.3, "work": 0.3, "party": 0.1})
    assert "party" in fit_trips(RuledOut("party"), taxonomy=[*TRIPS, "party"]).classes_


@pytest.mark.parametrize(
    ("entry", "prior", "sentence"),
    [
        ({"banking", "tarvel"}, "estimate", "'tarvel' is in partial labels of y.*If you mean 'travel'"),
        (
            None,
            {"banking": 0.3, "travel": 0.3, "work": 0.3, "bankng": 0.1},
            "'bankng' is in class_prior, but no row.*If you mean 'banking'",
        ),
        ("banking/card", "estimate", "'banking' in y is treated as a class of its own beside 'banking/card'"),
        (frozenset({"banking/card", "work"}), "estimate", "'banking' in y is treated as a class of its own"),
    ],
)
def test_names_that_look_like_mistakes_cause_a_warning(entry, prior, sentence):
    with pytest.warns(LabelWarning, match=sentence) as caught:
        fit_trips(entry, class_prior=prior)
    assert [warning.filename for warning in caught] == [__file__]


def test_dissimilar_names_need_no_label():
    fit_trips({"banking", "parties"})
    fit_trips(None, class_prior={"banking": 0.3, "travel": 0.3, "work": 0.3, "homework": 0.1})
    fit_trips({"travel"}, class_prior={"banking": 0.3, "travel": 0.4, "work": 0.3})


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


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (
            np.eye(4, 2, dtype=int),
            r"y is a matrix of 0 and 1 with shape \(4, 2\).*\.astype\(bool\) if it holds partial labels",
        ),
        (np.eye(4, 2, dtype=int).tolist(), r"y is a matrix of 0 and 1.*\.astype\(bool\)"),
        (pd.DataFrame(np.eye(4, 2)), r"y is a matrix of 0 and 1.*\.astype\(bool\)"),
        (sparse.csr_matrix(np.eye(4, 2)), r"y is a sparse matrix of float64\. Pass y\.astype\(bool\)"),
        (np.ones((4, 1), bool), "y is a boolean matrix with one column"),
    ],
)
def test_matrices_that_are_no_partial_labels_are_refused(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        TransductiveClassifier().fit(np.eye(4), y)


def test_tuples_of_numbers_are_labels():
    y = [(0, 1), (1, 0), None, None]
    assert TransductiveClassifier(annealing="paper").fit(np.eye(4), y).classes_.tolist() == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("prior", "taxonomy", "sentence"),
    [
        (
            dict(zip(NAMES, (2, 2, 74, 74), strict=True)),
            None,
            "'cold/juice' and 'cold/milk' must get 148 rows, but only 132 rows may take them, 16 too few. "
            "Allow more classes in the partial labels, or widen these sizes in class_prior.",
        ),
        (
            {"hot/coffee": (0, 2), "hot/tea": (0, 2), "cold/milk": None, "cold/juice": None},
            None,
            "20 rows may take 'hot/coffee' and 'hot/tea' only, "
            "but 'hot/coffee' and 'hot/tea' may get at most 4, 16 too many.",
        ),
        (
            {"hot": 13, "cold": None},
            NAMES,
            "20 rows may take 'hot/coffee' and 'hot/tea' only, but branch 'hot' may get at most 13, 7 too many.",
        ),
        (
            {"cold": 140, "hot": None},
            NAMES,
            "branch 'cold' must get 140 rows, but only 132 rows may take 'cold/juice' and 'cold/milk', 8 too few.",
        ),
    ],
)
@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_sizes_that_contradict_partial_labels_are_refused(prior, taxonomy, sentence, annealing):
    X, truth = rows()
    y = labels(truth, "")
    y[2:22] = [{"hot/coffee", "hot/tea"}] * 20
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        TransductiveClassifier(class_prior=prior, taxonomy=taxonomy, annealing=annealing).fit(X, y)
    assert str(caught.value).startswith("class_prior and the partial labels in y cannot both be met: ")


def test_without_names_infeasible_counts_are_reported_by_number():
    with pytest.raises(ValueError, match="the counts cannot be met: class 1 must get 2 rows") as caught:
        solve_labels([[0.0, np.inf], [0.0, np.inf], [0.0, 1.0]], [1, 2])
    assert isinstance(caught.value, InfeasibleError)


def test_an_unknown_branch_comes_with_a_suggestion():
    X, truth = rows()
    with pytest.raises(ValueError, match=r"neither a class nor a branch: label 'clod' .*Did you mean 'cold'"):
        TransductiveClassifier(taxonomy=NAMES, class_prior={"hot": 0.5, "clod": 0.5}).fit(X, labels(truth, ""))
