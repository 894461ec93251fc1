"""tf-idf features; scikit-learn is the oracle."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce.cli.errors import InputError
from transduce.datasets import load_clinc150
from transduce.features import word_counts
from transduce.features.tfidf import Features, Vectorizer, fit_vectorizer
from transduce.features.word_counts import count_words

CORPUS = [str(text) for text in load_clinc150().texts[::9]]


ANYTHING = st.text(max_size=30)


KINDS = [Features(), Features(ngrams=2), Features("hashing", hash_bits=10), Features("hashing", 2, hash_bits=6)]


def same(A, B):
    return A.dtype == B.dtype and A.shape == B.shape and (A != B).nnz == 0 and np.array_equal(A.indices, B.indices)


def sklearn_oracle(texts, features, min_df):
    oracle = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, features.ngrams), min_df=min_df, dtype=np.float64, strip_accents=None
    )
    return oracle, oracle.fit_transform(texts)


@pytest.mark.parametrize("ngrams", [1, 2])
@pytest.mark.parametrize("n_texts", [999, 2500])
def test_vocabulary_and_values_equal_scikit_learn(ngrams, n_texts):
    texts = CORPUS[:n_texts]
    oracle, expected = sklearn_oracle(texts, Features(ngrams=ngrams), min_df=1 if n_texts < 1000 else 2)
    vectorizer, X = fit_vectorizer(texts, Features(ngrams=ngrams))
    assert vectorizer.vocabulary == tuple(oracle.get_feature_names_out())
    assert X.dtype == np.float32
    assert abs(X - expected).max() < 1e-6
    new = ["A brand-new text about MY account balance", "", "zzzz"]
    assert abs(vectorizer.transform(new) - oracle.transform(new)).max() < 1e-6


@settings(max_examples=25, deadline=None)
@given(st.lists(ANYTHING, min_size=1, max_size=8), st.sampled_from(KINDS))
def test_rows_of_any_text_have_length_one_or_are_empty(texts, features):
    try:
        vectorizer, X = fit_vectorizer(texts, features)
    except InputError:
        assert count_words(texts)[0] == []
        return
    lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1
    assert np.all((np.abs(lengths - 1) < 1e-5) | ((lengths == 0) & (np.diff(X.indptr) == 0)))
    assert all("\n" not in word and word.encode("utf-8") for word in vectorizer.vocabulary)
    assert same(vectorizer.transform(texts), X)


@pytest.mark.parametrize("features", KINDS)
def test_transform_equals_the_matrix_of_the_fit(features):
    vectorizer, X = fit_vectorizer(CORPUS, features)
    assert same(vectorizer.transform(CORPUS), X)
    assert same(sparse.vstack([vectorizer.transform([text]) for text in CORPUS[:20]], format="csr"), X[:20])


@pytest.mark.parametrize("features", KINDS)
def test_result_does_not_depend_on_chunks(features, monkeypatch):
    vectorizer, X = fit_vectorizer(CORPUS[:300], features)
    monkeypatch.setattr(word_counts, "CHUNK_CHARACTERS", 150)
    again, Y = fit_vectorizer(CORPUS[:300], features)
    assert same(X, Y)
    assert same(again.transform(CORPUS[:300]), X)
    assert np.array_equal(vectorizer.idf, again.idf)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_result_does_not_depend_on_n_jobs(monkeypatch, backend):
    texts, kinds = CORPUS[:600], KINDS[1:3]
    serial = [fit_vectorizer(texts, features, n_jobs=1) for features in kinds]
    monkeypatch.setattr(word_counts, "PARALLEL_CHARACTERS", 0)
    monkeypatch.setattr(word_counts, "CHUNK_DOCUMENTS", 200)
    with parallel_config(backend=backend):
        for features, (vectorizer, X) in zip(kinds, serial, strict=True):
            parallel, Y = fit_vectorizer(texts, features, n_jobs=2)
            assert parallel.vocabulary == vectorizer.vocabulary
            assert np.array_equal(parallel.idf, vectorizer.idf)
            assert same(X, Y)
            assert same(parallel.transform(texts, n_jobs=2), X)


def test_min_df_applies_from_a_thousand_documents():
    texts = ["tea"] * 999 + ["coffee"]
    assert fit_vectorizer(texts[1:], Features())[0].vocabulary == ("coffee", "tea")
    assert fit_vectorizer(texts, Features())[0].vocabulary == ("tea",)
    assert fit_vectorizer(texts, Features(min_df=1))[0].vocabulary == ("coffee", "tea")


def test_empty_texts_give_empty_rows():
    vectorizer, X = fit_vectorizer(["tea", "", "? !"], Features())
    assert np.diff(X.indptr).tolist() == [1, 0, 0]
    assert vectorizer.transform([]).shape == (0, 1)
    assert vectorizer.transform(np.array(["tea"], dtype=object)).nnz == 1
    assert vectorizer.transform(pl.Series(["tea"])).nnz == 1


@pytest.mark.parametrize("kind", ["tfidf", "hashing"])
@pytest.mark.parametrize("texts", [[], ["", "?", "a b"]])
def test_texts_without_words_are_refused(kind, texts):
    with pytest.raises(InputError, match=rf"none of the {len(texts)} texts contains a word"):
        fit_vectorizer(texts, Features(kind))


def test_texts_with_only_rare_words_are_refused():
    with pytest.raises(InputError, match="no word occurs in at least 2 of the 1000 texts"):
        fit_vectorizer([f"word{i}" for i in range(1000)], Features())


@pytest.mark.parametrize(
    "wrong", [{"kind": "bert"}, {"ngrams": 3}, {"ngrams": True}, {"min_df": 0}, {"hash_bits": 25}, {"n_features": 1.0}]
)
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong)).removesuffix("_")):
        Features(**wrong)


def test_vectors_have_no_vocabulary():
    with pytest.raises(InputError, match="trained on vectors"):
        Vectorizer(Features("vectors", n_features=3)).transform(["tea"])
    with pytest.raises(ValueError, match="no vocabulary"):
        fit_vectorizer(["tea"], Features("vectors"))
