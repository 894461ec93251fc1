"""Rows to ask about: distinct, spread over the data, uncertain before certain, and better than chance."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from transduce import TextClassifier, TransductiveClassifier, select_rows
from transduce.datasets import load_clinc150
from transduce.errors import InputError
from transduce.selection import expected_error, nearness, reduce_rows, spread_rows


def clumps(n_each=20, seed=0):
    """Rows around five directions, and the direction of each."""
    rng = np.random.default_rng(seed)
    X = np.repeat(np.eye(5), n_each, axis=0) + 0.05 * rng.random((5 * n_each, 5))
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(np.arange(5), n_each)


def test_without_a_classifier_each_clump_has_a_row():
    X, clump = clumps()
    assert sorted(clump[select_rows(None, X, 5, random_state=0)]) == [0, 1, 2, 3, 4]
    assert sorted(clump[select_rows(None, sparse.csr_matrix(X), 5, random_state=0)]) == [0, 1, 2, 3, 4]


def test_clumps_with_a_label_come_after_those_without():
    X, clump = clumps()
    y = np.where((np.arange(100) % 20 == 0) & (clump < 3), clump, -1)
    assert sorted(clump[select_rows(None, X, 2, y=y, random_state=0)]) == [3, 4]


@pytest.mark.parametrize("clump", range(5))
def test_the_uncertain_clump_comes_first(clump):
    X, clumps_of = clumps()
    P = np.where((clumps_of == clump)[:, None], 0.5, np.eye(2)[0])
    chosen = spread_rows(P, X, 5)
    assert clumps_of[chosen[0]] == clump
    assert len(set(chosen.tolist())) == 5


def test_errors_in_small_classes_count_more():
    P = np.array([[0.5, 0.5, 0.0]] * 90 + [[0.0, 0.5, 0.5]] * 10)
    error = expected_error(P)
    assert error[-1] > error[0] > 0
    assert expected_error(np.eye(3)).tolist() == [0, 0, 0]


def test_lengths_of_rows_make_no_difference():
    X, _ = clumps()
    lengths = np.random.default_rng(1).uniform(0.1, 10, (100, 1))
    P = np.random.default_rng(2).dirichlet(np.ones(3), 100)

    class Known:
        def predict_proba(self, X):
            return P

    for kind in (np.asarray, sparse.csr_matrix):
        rows = [select_rows(Known(), kind(each), 20, random_state=0).tolist() for each in (X, 4 * X, X * lengths)]
        assert rows[0] == rows[1]
        assert kind is sparse.csr_matrix or rows[0] == rows[2]  # an SVD does depend on lengths


def test_as_many_rows_come_back_as_were_asked_for(monkeypatch):
    monkeypatch.setattr("transduce.selection.MAX_POOL", 30)
    assert len(select_rows(None, clumps()[0], 50, random_state=0)) == 50


def test_nearness_is_that_of_the_definition():
    X, _ = clumps(6)
    cosines = X @ X.T
    np.fill_diagonal(cosines, 0)
    expected = np.sort(cosines, axis=1)[:, -20:].mean(axis=1)
    assert np.allclose(nearness(X), expected)
    assert np.allclose(nearness(sparse.csr_matrix(X)), expected)


def test_no_row_is_chosen_twice_and_labelled_rows_never():
    X = np.tile(clumps(4)[0], (3, 1))
    y = np.where(np.arange(60) < 7, 1, -1)
    for n in (1, 10, 60):
        chosen = select_rows(None, X, n, y=y, random_state=1)
        assert len(chosen) == min(n, 20)
        assert len({X[row].tobytes() for row in chosen}) == len(chosen)
        assert np.all(y[chosen] == -1)


def test_a_fraction_is_random_and_comes_last():
    X, _ = clumps()
    chosen = [select_rows(None, X, 10, random_fraction=0.3, random_state=seed) for seed in range(2)]
    assert all(len(set(rows.tolist())) == 10 for rows in chosen)
    assert set(chosen[0][7:].tolist()) != set(chosen[1][7:].tolist())
    assert select_rows(None, X, 4, random_fraction=1.0, random_state=0).size == 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_texts_and_other_classifiers_are_taken():
    texts = ["green tea", "black tea, milk", "an espresso", "one more espresso", "tea for two", "tea or espresso"]
    y = ["tea", "", "coffee", "", "", ""]
    clf = TextClassifier(features="tfidf", class_prior={"tea": 2, "coffee": 2}, random_state=0).fit(texts, y)
    assert set(select_rows(clf, texts, 2, y=y, random_state=0)) <= {1, 3, 4, 5}
    X, clump = clumps()
    peer = LogisticRegression().fit(X[::20], clump[::20])
    assert len(select_rows(peer, X, 3, random_state=0)) == 3


def test_empty_rows_and_single_columns_are_taken():
    assert reduce_rows(sparse.csr_matrix((4, 3))).shape[0] == 4
    assert len(select_rows(None, np.zeros((4, 3)), 3, random_state=0)) == 1
    assert len(select_rows(None, np.arange(4.0)[:, None], 3, random_state=0)) == 2


@pytest.mark.parametrize(
    ("n", "options", "message"), [(0, {}, "1 or more"), (1, {"random_fraction": 2}, "from 0 to 1")]
)
def test_invalid_arguments_are_refused(n, options, message):
    with pytest.raises(InputError, match=message):
        select_rows(None, np.eye(3), n, **options)


@pytest.mark.slow
def test_chosen_answers_help_more_than_random_ones():
    texts, intents, _ = load_clinc150()
    domains = np.unique([intent.split("/")[0] for intent in intents], return_inverse=True)[1]
    gains = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(len(texts))
        X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts[rows[:6000]])
        y = domains[rows[:6000]]
        found = []
        for is_random in (False, True):
            known = np.where(np.arange(3000) < 40, y[:3000], -1)
            for _ in range(4):
                clf = TransductiveClassifier(annealing="paper", random_state=0, n_jobs=1).fit(X[:3000], known)
                chosen = select_rows(clf, X[:3000], 15, y=known, random_fraction=float(is_random), random_state=seed)
                known[chosen] = y[chosen]
            clf.fit(X[:3000], known)
            found.append(f1_score(y[3000:], clf.predict(X[3000:]), average="macro"))
        gains.append(found[0] - found[1])
    assert np.mean(gains) > 0.02
