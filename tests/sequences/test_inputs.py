"""Sequences, labels and statements that cannot be used are refused in one sentence; other forms of them are taken."""

import re
from collections import UserDict

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from transduce.errors import InputError, Names, PriorError
from transduce.sequences import TransductiveTagger
from transduce.sequences.constraints import Before, Once, Pattern
from transduce.sequences.size_errors import _SENTENCES, SizeError

TOKENS, LABELS = [["a", "b"], ["b", "a"], ["a"]], [["x", "y"], ["y", "x"], None]
DICTS = [[{"w": word} for word in one] for one in TOKENS]
STRINGS = [[[word] for word in one] for one in TOKENS]
VECTORS = [[[float(word == "a"), float(word == "b")] for word in one] for one in TOKENS]


def fit(X=TOKENS, y=LABELS, **parameters) -> TransductiveTagger:
    return TransductiveTagger(**({"annealing": None} | parameters)).fit(X, y)


BAD_X = {
    "None": ([["a", None], *TOKENS[1:]], "Sequence 0 has the token None"),
    "a number later": ([*TOKENS[:2], 3], "Sequence 2 is 3, but must be a list of tokens"),
    "a text later": ([*TOKENS[:2], "a"], "Sequence 2 is 'a', but must be a list of tokens"),
    "a dict": ([{"a": 1}, *TOKENS[1:]], "Sequence 0 is {'a': 1}, but must be a list of tokens"),
    "unequal widths": ([*VECTORS[:2], [[1.0, 2.0, 3.0]]], "sequence 2 have 3 numbers, not 2 as in sequence 0"),
    "ragged": ([VECTORS[0], [[1.0], [1.0, 2.0]], VECTORS[2]], "Sequence 1 must be an array"),
    "one dimension": ([*VECTORS[:2], [1.0]], "Sequence 2 must be an array"),
    "a word in a vector": ([VECTORS[0], [["a", "b"], [1.0, 2.0]], VECTORS[2]], "Sequence 1 must be an array"),
    "inf": ([[[1.0, np.inf], [1.0, 1.0]], *VECTORS[1:]], "must be finite numbers"),
    "huge": ([[[1.0, 1e200], [1.0, 1.0]], *VECTORS[1:]], "finite numbers up to 1e"),
    "a huge value": ([[{"w": 1e200}, {"w": 1.0}], *DICTS[1:]], "finite numbers up to 1e"),
    "sparse": ([sparse.csr_matrix(np.eye(2)), *VECTORS[1:]], "Sequence 0 is a sparse matrix. Pass its array"),
    "all sparse": (sparse.csr_matrix(np.eye(3)), "X must be a list of sequences"),
    "a string among dicts": ([[{"w": "a"}, "b"], *DICTS[1:]], "A token is 'b', but must be a feature dict"),
    "a string among lists": ([[["a"], "b"], *STRINGS[1:]], "A token is 'b', but must be a list of feature strings"),
    "a number among lists": ([[["a"], 3], *STRINGS[1:]], "A token is 3, but must be a list of feature strings"),
    "a number in a list": ([[["a", 3], ["b"]], *STRINGS[1:]], "Names of features must be strings, but one is 3"),
    "a number as a name": ([[{1: "a"}, {"w": "b"}], *DICTS[1:]], "Names of features must be strings, but one is 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_X)
def test_bad_sequences_are_refused_with_one_sentence(name):
    X, message = BAD_X[name]
    with pytest.raises(InputError, match=message):
        fit(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.Series(TOKENS, index=[5, 6, 7]),
        [pd.Series(one, index=range(3, 3 + len(one))) for one in TOKENS],
        [pd.DataFrame(one) for one in VECTORS],
        [[UserDict(token) for token in one] for one in DICTS],
        [[set(token) for token in one] for one in STRINGS],
    ],
    ids=["a series of sequences", "sequences as series", "data frames", "mappings", "sets"],
)
def test_other_forms_of_sequences_are_taken(X):
    assert fit(X).predict(X) == [["x", "y"], ["y", "x"], ["x"]]


def test_new_vectors_of_another_width_are_refused():
    with pytest.raises(InputError, match="sequence 1 have 3 numbers, not 2 as in training"):
        fit(VECTORS).predict([[[1.0, 2.0]], [[1.0, 2.0, 3.0]]])


@pytest.mark.parametrize("label", [["x", "y"], np.array([1, 2]), {"x": 1}])
def test_labels_that_are_lists_are_refused(label):
    with pytest.raises(InputError, match=r"Sequence 0 has the label .* Pass a set for candidates"):
        fit(y=[[label, "y"], *LABELS[1:]])


def test_tuples_are_labels():
    one, other = ("x", 1), ("y", 2)
    model = fit(y=[[one, other], [other, one], None])
    assert model.predict(TOKENS) == [[one, other], [other, one], [one]]
    assert model.score(TOKENS[:1], [[one, other]]) == 1.0


BAD_CONSTRAINTS = {
    "pattern": (Pattern("x", "("), "has a pattern that cannot be read"),
    "pattern of another type": (Pattern("x", 3), "has a pattern that cannot be read"),
    "negative cost": (Once("x", cost=-5), "has the cost '-5', but it must be a number above 0"),
    "nan cost": (Before("x", "y", cost=np.nan), "has the cost 'nan'"),
    "text as cost": (Once("x", cost="much"), "has the cost 'much'"),
}


@pytest.mark.parametrize("name", BAD_CONSTRAINTS)
def test_constraint_objects_are_checked_as_sentences_are(name):
    constraint, message = BAD_CONSTRAINTS[name]
    with pytest.raises(ValueError, match=message):
        fit(constraints=[constraint])


def test_an_unknown_number_of_blocks_says_nothing():
    assert fit(block_prior={"x": None, "y": "?"}).block_prices_ == {}


BAD_SIZES = {
    "syntax": ({"label_prior": {"x": "many"}}, r"label_prior\['x'\] must be .* a number of tokens"),
    "of a list": ({"label_prior": [0.5, -1]}, r"label_prior\['y'\] must be from 0 to 1e15"),
    "sum": ({"label_prior": {"x": 0.9, "y": 0.9}}, r"label_prior sums to 1\.8, not 1\. .* the 1 tokens to label"),
    "keyword": ({"label_prior": "even"}, "label_prior must be 'labeled', 'equal', None"),
    "too many": ({"label_prior": {"x": 7}}, "label_prior gives 'x' 7 tokens, but only 1 are to be labelled"),
    "blocks": ({"block_prior": {"x": "many"}}, r"block_prior\['x'\] must be .* a number of blocks"),
    "half a block": ({"block_prior": {"x": (0.4, 0.6)}}, "block_prior gives 'x' 0.4 to 0.6 blocks, a range without"),
    "more than all blocks": ({"block_prior": {"x": "150%"}}, "more than all blocks"),
}


@pytest.mark.parametrize("name", BAD_SIZES)
def test_errors_about_sizes_name_the_parameter_and_the_unit(name):
    parameters, message = BAD_SIZES[name]
    with pytest.raises(PriorError, match=message) as caught:
        fit(**parameters)
    assert not {"class_prior", "rows"} & {*re.findall(r"\w+", str(caught.value))}


def test_every_sentence_about_sizes_speaks_of_labels():
    fields = {"name": "x", "value": 1, "low": 0.0, "high": 1.0, "total": 1, "n_rows": 1, "n_total": 1, "n_labeled": 1}
    fields |= {
        "classes": Names(["x"]),
        "hint": "",
        "with_labeled": "",
        "source": "s",
        "fraction": 0.1,
        "fractions": "50% and 70%",
        "n_classes": 2,
        "n_sizes": 1,
        "below": "",
    }
    for kind, sentence in _SENTENCES.items():
        text = str(SizeError(kind, **fields, parameter="label_prior", unit="tokens"))
        assert "row" not in text
        assert "class" not in text
        assert sentence != kind.value


def test_sizes_of_some_labels_that_are_more_than_all_tokens():
    with pytest.raises(ValueError, match="label_prior states 70% and 60% of the tokens, 130% together") as caught:
        fit(label_prior={"x": 0.7, "y": 0.6}, y=[["x", "y"], ["z", "x"], None])
    assert "class" not in str(caught.value)


def test_labels_outside_of_blocks_cannot_be_constrained():
    with pytest.raises(ValueError, match="O is outside of all blocks, so it cannot be constrained"):
        fit(y=[["x", "O"], ["O", "x"], None], constraints=["O: once"])


def test_scores_need_labels_that_the_tagger_knows():
    model = fit()
    with pytest.raises(InputError, match="y has the label 'z', which the tagger does not know"):
        model.score(TOKENS[:1], [["x", "z"]])
    with pytest.raises(InputError, match="y has no label to compare with"):
        model.score(TOKENS[:1], [None])
    assert model.score(TOKENS[:2], [["x", None], ["x", "x"]]) == pytest.approx(2 / 3)
