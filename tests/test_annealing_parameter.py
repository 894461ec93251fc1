"""annealing="auto": the paper's for dense rows and soft annealing for sparse ones, wherever the rows are."""

import inspect

import numpy as np
import pytest
from helpers.dask_blocks import assert_equal_fits, hide_most, history_without_times, make_rows, split
from helpers.documents import documents
from helpers.inline_pool import fit_inline

from transduce import TextClassifier, TransductiveClassifier
from transduce.dask import TransductiveClassifier as OverDask
from transduce.features import FunctionEncoder

X, TRUTH = make_rows(n=90)
Y = hide_most(TRUTH, 12)
QUICK = {"class_prior": "labeled", "alpha": 1e-2, "tol": 1e-2, "random_state": 3}
STORED = {"dense": (X.toarray(), "paper"), "sparse": (X, "soft")}
stored = pytest.mark.parametrize(("rows", "used"), STORED.values(), ids=STORED)


def n_restarts(clf):
    return len({row.restart for row in clf.history_})


def test_auto_is_the_default_of_all_classifiers():
    for estimator in (TransductiveClassifier, TextClassifier, OverDask):
        assert inspect.signature(estimator).parameters["annealing"].default == "auto"


@stored
@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_auto_is_the_annealing_that_suits_the_storage_of_the_rows(rows, used, loss):
    clf, expected = (TransductiveClassifier(loss, annealing=how, **QUICK).fit(rows, Y) for how in ("auto", used))
    assert_equal_fits(clf, expected)
    assert (clf.annealing, clf.annealing_, expected.annealing_) == ("auto", used, used)
    assert n_restarts(clf) == (1 if used == "paper" else 3)


@stored
def test_auto_over_blocks_is_that_of_one_matrix(rows, used):
    fits = [OverDask(annealing=how, **QUICK) for how in ("auto", used)]
    for clf in fits:
        fit_inline(clf, split(rows, (30, 30, 61)), split(Y, (30, 30, 61)), n_workers=2)
    assert_equal_fits(*fits)
    assert fits[0].annealing_ == used


def test_blocks_of_which_one_is_sparse_are_sparse_rows():
    clf = OverDask(**QUICK)
    fit_inline(clf, [X[:30].toarray(), X[30:]], [Y[:30], Y[30:]], n_workers=2)
    assert clf.annealing_ == "soft"


@stored
def test_a_checkpoint_of_auto_is_that_of_the_annealing_it_stands_for(rows, used, tmp_path):
    finished = TransductiveClassifier(annealing=used, checkpoint=tmp_path, **QUICK).fit(rows, Y)
    resumed = TransductiveClassifier(checkpoint=tmp_path, **QUICK).fit(rows, Y)
    assert history_without_times(resumed) == history_without_times(finished)
    with pytest.raises(ValueError, match="checkpoint"):
        TransductiveClassifier(annealing=None, checkpoint=tmp_path, **QUICK).fit(rows, Y)


@pytest.mark.parametrize(
    ("features", "used"), [("tfidf", "soft"), ("hashing", "soft"), ("mix", "soft"), ("embeddings", "paper")]
)
def test_texts_are_annealed_by_what_they_become_and_the_file_says_so(features, used):
    frame = documents()
    letters = FunctionEncoder(lambda texts: [[text.count(letter) for letter in "aeirst"] for text in texts], name="six")
    clf = TextClassifier(features=features, encoder=letters, cache=False, **QUICK)
    clf.fit(frame["text"], frame["label"])
    assert clf.annealing_ == clf.about_["settings"]["annealing"] == used


@pytest.mark.parametrize("annealing", [None, [0.1, 1.0], np.array([0.1, 1.0])], ids=str)
def test_other_schedules_are_used_as_they_are(annealing):
    clf = TransductiveClassifier(annealing=annealing, **QUICK).fit(X.toarray(), Y)
    assert clf.annealing_ is annealing
