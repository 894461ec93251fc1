"""Rows of texts: a mix has words and vectors with the asked share, for training texts and for others; auto chooses."""

import numpy as np
import pytest
from helpers.encoders import CountingEncoder
from scipy import sparse

from transduce.errors import InputError
from transduce.features import text_rows
from transduce.features.embeddings import Encoding
from transduce.features.text_rows import Choice, fit_texts, transform_texts
from transduce.features.tfidf import Features

TEXTS = ["green tea", "black tea", "black coffee", "coffee with milk", "", "thé vert, 茶"]
NEW = ["green coffee", "juice", "", "black tea"]


@pytest.fixture
def encoding():
    return Encoding(CountingEncoder(), cache=False)


def lengths(block):
    return np.sqrt(np.asarray(block.multiply(block).sum(axis=1))).ravel()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_blocks_of_a_mix_are_those_of_its_parts(share, encoding):
    mix = fit_texts(TEXTS, "mix", encoding, 2, share)
    words, vectors = fit_texts(TEXTS, "tfidf", encoding, 2), fit_texts(TEXTS, "embeddings", encoding)
    n_words = words.vectorizer.n_columns
    assert mix.vectorizer.n_columns == mix.X.shape[1] == n_words + CountingEncoder.dimension
    assert (mix.X.dtype, mix.X.format) == (np.float32, "csr")
    assert np.allclose(mix.X[:, :n_words].toarray(), np.sqrt(share) * words.X.toarray(), atol=1e-6)
    assert np.allclose(mix.X[:, n_words:].toarray(), np.sqrt(1 - share) * vectors.X, atol=1e-6)
    assert np.allclose(lengths(mix.X), [1, 1, 1, 1, 0, 1])
    assert (transform_texts(mix.vectorizer, TEXTS, encoding) != mix.X).nnz == 0


def test_other_texts_get_the_words_and_the_centre_of_training(encoding):
    mix = fit_texts(TEXTS, "mix", encoding, words_share=0.5)
    X = transform_texts(mix.vectorizer, NEW, encoding)
    n_words = len(mix.vectorizer.vocabulary)
    vectors = fit_texts(TEXTS, "embeddings", encoding).vectorizer
    assert np.allclose(X[:, n_words:].toarray(), np.sqrt(0.5) * transform_texts(vectors, NEW, encoding), atol=1e-6)
    assert np.allclose(lengths(X[:, :n_words]), np.sqrt([0.5, 0, 0, 0.5]))
    assert np.allclose(X[3].toarray(), mix.X[1].toarray(), atol=1e-6)


@pytest.mark.parametrize(("share", "kind"), [(1.0, "tfidf"), (0.0, "embeddings"), (0.4, "mix")])
def test_auto_makes_what_was_chosen_from_all_training_data(share, kind, encoding):
    asked = []

    def choose(*arguments):
        asked.append(arguments)
        return Choice(share, "By lot.")

    rows = fit_texts(TEXTS, "auto", encoding, choose=choose)
    expected = fit_texts(TEXTS, kind, encoding, words_share=share)
    assert rows.vectorizer.features == expected.vectorizer.features
    dense = [X.toarray() if sparse.issparse(X) else X for X in (rows.X, expected.X)]
    assert np.array_equal(*dense)
    assert str(rows.choice).endswith(" By lot.")
    ((words, vectors),) = asked
    assert words.shape[0] == vectors.shape[0] == len(TEXTS)


@pytest.mark.parametrize("n_words", [4, 15, 60])
def test_a_mix_follows_the_length_of_the_texts_unless_a_share_is_stated(n_words, encoding):
    texts = [" ".join(f"word{k}" for k in range(shift, shift + n_words)) for shift in range(5)]
    mix = fit_texts(texts, "mix", encoding)
    assert mix.vectorizer.features.words_share == text_rows.share_for(n_words) == mix.choice.share
    assert f"have {n_words} or more distinct words" in mix.choice.reason
    stated = fit_texts(texts, "mix", encoding, words_share=0.35)
    assert (stated.vectorizer.features.words_share, stated.choice) == (0.35, None)


WORDLESS = {
    "emoji": ["🙂", "🙃 🙃", "", "🙂"],
    "single characters": ["5", "7 + 2", "5", "x"],
    "punctuation": ["?!", "!!"],
}


@pytest.mark.parametrize("texts", WORDLESS.values(), ids=WORDLESS)
def test_texts_without_a_word_are_vectors_for_auto(texts, encoding):
    rows, expected = (fit_texts(texts, kind, encoding) for kind in ("auto", "embeddings"))
    assert rows.vectorizer.features == expected.vectorizer.features
    assert np.array_equal(rows.X, expected.X)
    assert str(rows.choice) == "Features are vectors of the encoder. The texts have no words to use."


def test_words_that_are_all_rare_are_none(encoding):
    texts = [f"word{row}" for row in range(1000)]
    assert fit_texts(texts, "auto", encoding).choice is text_rows.NO_WORDS


@pytest.mark.parametrize("kind", ["tfidf", "hashing", "mix"])
def test_texts_without_a_word_are_refused_where_words_are_asked_for(kind, encoding):
    with pytest.raises(InputError, match=r"none of the 4 texts contains a word\. Check .* or use vectors"):
        fit_texts(WORDLESS["emoji"], kind, encoding)


def test_without_an_encoder_texts_without_a_word_are_refused():
    with pytest.raises(InputError, match=r"none of the 4 texts contains a word\. Check .* or use vectors"):
        fit_texts(WORDLESS["emoji"], "auto", Encoding())


def test_a_choice_says_what_and_why():
    assert str(Choice(1.0, "So.")) == "Features are words. So."
    assert str(Choice(0.0, "So.")) == "Features are vectors of the encoder. So."
    assert str(Choice(0.25, "So.")) == "Features are a mix of 25% words and 75% vectors. So."


def test_without_an_encoder_auto_encodes_nothing():
    rows = fit_texts(TEXTS, "auto", Encoding())
    assert (rows.vectorizer.features.kind, rows.choice) == ("tfidf", text_rows.NO_ENCODER)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "mix", "words_share": 0.5},
        {"kind": "tfidf", "words_share": 0.5},
        {"kind": "mix", "words_share": 1.0, "encoder": "any"},
        {"kind": "mix", "words_share": None, "encoder": "any"},
        {"kind": "mix", "words_share": "0.5", "encoder": "any"},
    ],
)
def test_features_that_contradict_themselves_are_refused(values):
    with pytest.raises(InputError, match=r"need an encoder|words_share must be"):
        Features(**values)
