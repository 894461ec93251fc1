"""TransductiveClassifierCV on the built-in corpus: scores are near the truth, and absurd candidates lose."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, cross_val_score

from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150
from transduce.model_selection import TransductiveClassifierCV


@cache
def corpus(n_rows, seed=0):
    texts, labels, _ = load_clinc150()
    rows = np.random.default_rng(seed).permutation(len(texts))[:n_rows]
    truth = np.array([label.split("/")[0] for label in labels[rows]])
    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts[rows]), truth


@pytest.mark.slow
def test_scores_are_near_the_truth_and_nearer_than_naive_ones():
    off, naive, fooled = [], [], []
    for seed in range(4):
        X, truth = corpus(2000, seed)
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


@pytest.mark.slow
def test_the_sensible_alpha_is_chosen_among_absurd_ones():
    X, truth = corpus(2000)
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
