"""Hashed words; scikit-learn is the oracle."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from transduce.datasets import load_clinc150
from transduce.features.tfidf import Features, fit_vectorizer
from transduce.features.word_counts import hash_words

CORPUS = [str(text) for text in load_clinc150().texts[::9]]


@pytest.mark.parametrize("ngrams", [1, 2])
def test_counts_equal_scikit_learn(ngrams):
    oracle = HashingVectorizer(n_features=64, alternate_sign=False, norm=None, ngram_range=(1, ngrams))
    counts = hash_words(CORPUS[:50], ngrams, bits=6)
    assert abs(counts - oracle.transform(CORPUS[:50])).max() == 0


def test_columns_are_weighted_by_document_frequency():
    vectorizer, X = fit_vectorizer(["tea tea", "tea coffee", "milk"], Features("hashing", hash_bits=16))
    tea = vectorizer.transform(["tea"]).indices
    assert vectorizer.vocabulary == ()
    assert vectorizer.idf.shape == (2**16,)
    assert vectorizer.idf[tea] == pytest.approx(1 + np.log(4 / 3))
    assert X.shape == (3, 2**16)


def test_columns_are_the_same_on_every_machine():
    assert hash_words(["tea grün 茶"], 1, 20).indices.tolist() == [316924, 360646, 534615]
