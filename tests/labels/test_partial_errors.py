"""Mistakes in partial labels: they are refused or reported, with the row or the name."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers.partial_labels import NAMES, TRIPS, fit_trips, labels, rows, trips
from scipy import sparse

from transduce import EntropyRegularizedClassifier, TransductiveClassifier
from transduce.errors import LabelError, LabelErrorKind, LabelWarning
from transduce.label_step import InfeasibleError, solve_labels
from transduce.labels.partial import RuledOut, read_matrix


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


def test_every_column_is_a_class_and_an_empty_branch_is_refused():
    y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1], [1, 1, 0]], dtype=bool)
    assert TransductiveClassifier(annealing="paper").fit(np.eye(4), y).classes_.tolist() == [0, 1, 2]
    X, truth = rows()
    with pytest.raises(ValueError, match="names 'art', but no class under it is labelled"):
        TransductiveClassifier(taxonomy=[*NAMES, "art/song"]).fit(X, labels(truth, RuledOut("art")))


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
    clf = TransductiveClassifier(annealing="paper", class_prior=prior, tol=0.05, random_state=0)
    with pytest.warns(LabelWarning, match=sentence) as caught:
        clf.fit(*trips(entry))
    assert [warning.filename for warning in caught] == [__file__]


def test_dissimilar_names_need_no_label():
    fit_trips({"banking", "parties"})
    fit_trips(None, class_prior={"banking": 0.3, "travel": 0.3, "work": 0.3, "homework": 0.1})
    fit_trips({"travel"}, class_prior={"banking": 0.3, "travel": 0.4, "work": 0.3})


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
