"""Scorers: the labelled rows are scored, and no others."""

import pickle

import numpy as np
import pytest
from helpers.classifiers import PAPER
from sklearn.base import clone
from sklearn.metrics import f1_score

from transduce import TransductiveClassifier
from transduce.model_selection import labeled_scorer
from transduce.testing import blobs


def test_scores_ignore_unlabelled_rows():
    X, truth, y = blobs()
    model = clone(PAPER).set_params(random_state=0).fit(X, y)
    model.intercept_ += np.array([2.0, 0.0, -2.0])  # so that it makes mistakes
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


def test_unknown_metrics_and_y_without_labels_are_errors():
    with pytest.raises(ValueError, match="metric must be one of accuracy, f1_macro, f1_micro"):
        labeled_scorer("f2")
    with pytest.raises(ValueError, match="no labelled row to score"):
        labeled_scorer()(PAPER, np.eye(2), [-1, -1])


def test_inner_nodes_without_a_taxonomy_raise_a_warning():
    y = ["hot/tea", "hot/tea", "hot/soup", "hot/soup", "hot", "hot"]
    tree = ["hot/tea", "hot/soup"]
    model = TransductiveClassifier(taxonomy=tree, random_state=0).fit(np.eye(6), y)
    with pytest.warns(UserWarning, match="Pass taxonomy= to make it a partial label"):
        labeled_scorer()(model, np.eye(6), y)
    assert labeled_scorer(taxonomy=tree)(model, np.eye(6), y) == 1.0
