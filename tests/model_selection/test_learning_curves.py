"""Learning curves: nested labels of every class, the same rows scored at every size."""

import numpy as np
import pytest
from helpers.classifiers import PAPER, InterruptedLabelStep, RecordingClassifier
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from transduce.datasets import load_clinc150
from transduce.model_selection import learning_curve
from transduce.testing import blobs, true_counts


def test_scores_rise_with_the_labels_and_repeat_with_the_seed():
    X, truth, y = blobs()
    labels = np.where(np.arange(len(y)) < 80, truth, -1)
    clf = clone(PAPER).set_params(class_prior=true_counts(truth, labels), random_state=0)
    curve = learning_curve(clf, X, labels, [3, 40], n_repeats=2, random_state=1)
    again = learning_curve(clf, X, labels, [3, 40], n_repeats=2, random_state=1)
    assert np.array_equal(curve.scores, again.scores)
    assert curve.mean[1] >= curve.mean[0]
    assert np.array_equal(curve.std, curve.scores.std(axis=1))


def test_label_sets_are_nested_and_have_every_class():
    X, truth, _ = blobs()
    RecordingClassifier.fits.clear()
    learning_curve(RecordingClassifier(annealing="paper"), X, truth, [3, 10, 20], n_repeats=2, random_state=0)
    for repeat in (RecordingClassifier.fits[:3], RecordingClassifier.fits[3:]):
        known = [set(np.flatnonzero(labels >= 0)) for _, labels in repeat]
        assert [len(rows) for rows in known] == [3, 10, 20]
        assert known[0] < known[1] < known[2]
        assert {truth[row] for row in known[0]} == {0, 1, 2}


@pytest.mark.parametrize("sizes", [[2], [12], [3.5], 12])
def test_impossible_sizes_are_errors(sizes):
    X, _, y = blobs()
    with pytest.raises(ValueError, match=r"sizes must be integers from 3, .*, to 11, .* Change it, or label more rows"):
        learning_curve(PAPER, X, y, sizes)
    with pytest.raises(ValueError, match="at least one number of labels"):
        learning_curve(PAPER, X, y, [])


def test_a_pipeline_from_texts():
    corpus = load_clinc150()
    rows = np.random.default_rng(0).permutation(len(corpus.texts))[:400]
    labels = [corpus.labels[row].split("/")[0] if i < 60 else None for i, row in enumerate(rows)]
    curve = learning_curve(make_pipeline(TfidfVectorizer(), PAPER), list(corpus.texts[rows]), labels, [30], n_repeats=1)
    assert 0 < curve.mean[0] < 1


@pytest.mark.parametrize("pipeline", [False, True])
def test_ctrl_c_ends_a_learning_curve(pipeline):
    X, truth, _ = blobs()
    clf = clone(PAPER).set_params(label_step=InterruptedLabelStep())
    with pytest.raises(KeyboardInterrupt):
        learning_curve(make_pipeline(Normalizer(), clf) if pipeline else clf, X, truth, [9], n_repeats=1)
