"""Rows to ask about: away from labels, no text twice, better than chance."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from transduce import TransductiveClassifier
from transduce.cli.errors import InputError
from transduce.cli.queue import choose_rows
from transduce.datasets import load_clinc150


def _random_rows(n, seed, n_classes=4):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, 30, 0.2, format="csr", random_state=seed, dtype=np.float64)
    return rng.dirichlet(np.full(n_classes, 0.5), n), X


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [sparse.csr_matrix, np.asarray])
def test_rows_that_are_covered_by_labels_come_after_others(seed, kind):
    """Rows around eight directions, all equally uncertain; four of the directions have a label."""
    rng = np.random.default_rng(seed)
    clump = rng.permutation(np.repeat(np.arange(8), 25))
    X = np.eye(8)[clump] + 0.05 * rng.random((200, 8))
    labeled = kind(np.eye(8)[:4])
    chosen = choose_rows(np.full((200, 2), 0.5), kind(X), 4, labeled=labeled, seed=seed)
    assert sorted(clump[chosen]) == [4, 5, 6, 7]


def test_of_many_rows_a_sample_is_looked_at(monkeypatch):
    monkeypatch.setattr("transduce.cli.queue.selection.MAX_ROWS", 50)
    P, X = _random_rows(400, 0)
    assert len(set(choose_rows(P, X, 12, labeled=X[:100]).tolist())) == 12
    assert len(set(choose_rows(P, X, 60).tolist())) == 60


def test_no_dense_row_is_chosen_twice():
    X = np.random.default_rng(0).normal(size=(10, 5)).astype(np.float32)
    chosen = choose_rows(np.full((300, 2), 0.5), np.tile(X, (30, 1)), 20)
    assert sorted(chosen % 10) == list(range(10))


def test_rows_that_fit_no_class_are_as_uncertain_as_can_be():
    P, X = _random_rows(200, 0)
    fits_none = np.arange(200) % 7 == 0
    tied = P.copy()
    tied[fits_none] = 0.25  # equally probable classes
    chosen = choose_rows(P, X, 12, fits_none=fits_none)
    assert chosen.tolist() == choose_rows(tied, X, 12).tolist()
    assert fits_none[chosen].mean() > fits_none.mean()


def test_sparse_arrays_give_the_same_rows_and_nothing_is_changed():
    P, X = _random_rows(300, 0)
    before, P_before = X.copy(), P.copy()
    chosen = choose_rows(P, X, 20, labeled=X[:5], fits_none=np.arange(300) < 9)
    same = choose_rows(P, sparse.csr_array(X), 20, labeled=sparse.csr_array(X[:5]), fits_none=np.arange(300) < 9)
    assert np.array_equal(same, chosen)
    assert (before != X).nnz == 0
    assert np.array_equal(X.indices, before.indices)
    assert np.array_equal(P, P_before)


def test_no_text_is_chosen_twice():
    P, X = _random_rows(40, 3)
    copies = np.concatenate((np.repeat(np.arange(3), 2000), np.arange(3, 40)))
    P[:3] = 0.25  # the copied ones are the most uncertain
    chosen = choose_rows(P[copies], X[copies], 40)
    texts = copies[chosen]
    assert len(set(texts.tolist())) == len(chosen) == len({tuple(row) for row in X.toarray().tolist()})


def test_near_copies_come_after_new_texts():
    X = sparse.csr_matrix(np.vstack((np.eye(5), np.eye(5) + 0.01 * np.roll(np.eye(5), 1, axis=1))))
    chosen = choose_rows(np.full((10, 2), 0.5), X, 5)
    assert sorted(chosen % 5) == [0, 1, 2, 3, 4]


def test_certain_and_empty_rows_come_last():
    X = sparse.csr_matrix(np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    P = np.array([[1.0, 0.0], [0.5, 0.5], [0.8, 0.2], [0.5, 0.5]])
    assert choose_rows(P, X, 10).tolist()[:2] == [1, 2]
    assert sorted(choose_rows(np.ones((4, 1)), X, 4)) == [0, 1, 2, 3]


def test_the_seed_breaks_ties():
    X, P = sparse.eye(50, format="csr"), np.full((50, 2), 0.5)
    same = [choose_rows(P, X, 5, seed=1).tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert len({tuple(choose_rows(P, X, 5, seed=seed)) for seed in range(5)}) > 1


def test_invalid_arguments_are_refused():
    P, X = _random_rows(10, 0)
    with pytest.raises(InputError, match="1 or more, but is 0"):
        choose_rows(P, X, 0)
    with pytest.raises(ValueError, match="10 rows of X"):
        choose_rows(P[:5], X, 2)
    with pytest.raises(ValueError, match="finite"):
        choose_rows(np.full((10, 2), np.nan), X, 2)


def _fit(X, truth, labeled):
    names, sizes = np.unique(truth[~labeled], return_counts=True)
    prior = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    model = TransductiveClassifier(annealing="paper", class_prior=prior, random_state=0, n_jobs=1)
    return model.fit(X, np.where(labeled, truth, ""))


def _gains(seed, n_labeled=60, n=50, n_draws=3):
    """Macro F on documents outside the queue: before, after n queued answers, after n random ones (averaged)."""
    texts, intents, _ = load_clinc150()
    domains = np.array([intent.split("/")[0] for intent in intents])
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    documents, new = order[:5000], order[5000:15000]
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X, X_new, truth = vectorizer.fit_transform(texts[documents]), vectorizer.transform(texts[new]), domains[documents]
    labeled = np.zeros(len(documents), bool)
    labeled[rng.choice(len(documents), n_labeled, replace=False)] = True
    unlabeled = np.flatnonzero(~labeled)

    def score(asked):
        known = labeled.copy()
        known[unlabeled[asked]] = True
        return f1_score(domains[new], _fit(X, truth, known).predict(X_new), average="macro")

    model = _fit(X, truth, labeled)
    queued = choose_rows(model.label_distributions_[unlabeled], X[unlabeled], n, labeled=X[labeled], seed=seed)
    drawn = [score(rng.choice(unlabeled.size, n, replace=False)) for _ in range(n_draws)]
    return score([]), score(queued), np.mean(drawn)


@pytest.mark.slow
def test_fifty_queued_answers_help_at_least_as_much_as_fifty_random_ones():
    before, queued, drawn = np.mean([_gains(seed) for seed in range(3)], axis=0)
    assert queued >= drawn > before
