"""Texts are encoded once each, in batches of similar length, and from the cache where it has them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.encoders import CountingEncoder

from transduce.features import EncoderError, FunctionEncoder, encode_texts
from transduce.features.encode import BATCH_CHARACTERS, LONG_TEXT
from transduce.features.identity import EncoderIdentity, identify

TEXTS = ["green tea", "black tea", "", "green tea", " \n\t", "coffee", "black tea"]


@pytest.mark.parametrize("column", [list, tuple, np.array, pd.Series, pl.Series, lambda texts: iter(texts)])
def test_each_row_has_the_vector_of_its_text(column):
    encoder = CountingEncoder(revision="")
    X = encode_texts(column(TEXTS), encoder)
    assert X.dtype == np.float32
    assert np.array_equal(X[[0, 1, 5]], CountingEncoder().encode(["green tea", "black tea", "coffee"]))
    assert np.array_equal(X[[0, 1]], X[[3, 6]])
    assert not X[[2, 4]].any()
    assert sorted(encoder.texts) == ["black tea", "coffee", "green tea"]


def test_no_texts_and_only_blank_texts_need_no_encoding():
    encoder = CountingEncoder()
    assert encode_texts([], encoder).shape == (0, 6)
    assert not encode_texts(["", " "], encoder).any()
    assert encoder.batches == []


def test_long_texts_are_cut_before_they_are_encoded():
    encoder = CountingEncoder(revision="")
    million = "tea " * 250_000
    X = encode_texts([million, "tea", million + "!"], encoder)
    assert sorted(map(len, encoder.texts)) == [3, 1000, 1000]
    assert np.array_equal(X[0], X[2])


def test_batches_have_similar_lengths_the_longest_first():
    lengths = np.random.default_rng(0).integers(1, 2000, 400)
    encoder, seen = CountingEncoder(revision=""), []
    encode_texts([f"{place:04}" + "x" * size for place, size in enumerate(lengths)], encoder, progress=seen.append)
    assert len(encoder.batches) > 3
    assert all(sum(min(len(text), LONG_TEXT) for text in batch) <= BATCH_CHARACTERS for batch in encoder.batches)
    encoded = [len(text) for text in encoder.texts]
    assert encoded == sorted(encoded, reverse=True)
    assert [status.n_done for status in seen] == np.cumsum([0, *map(len, encoder.batches)]).tolist()
    assert {status.n_texts for status in seen} == {400}
    fractions = [status.fraction for status in seen]
    assert (fractions[0], fractions[-1]) == (0, 1)
    assert fractions == sorted(fractions)


def test_lone_surrogates_reach_the_encoder_as_text():
    encoder = CountingEncoder(revision="")
    X = encode_texts(["tea \ud800", "tea \udfff!"], encoder)
    assert "".join(encoder.texts).isprintable()
    assert X.any(axis=1).all()


def test_a_function_is_an_encoder():
    X = encode_texts(TEXTS, lambda texts: [[len(text), 1.0] for text in texts])
    assert X[:, 0].tolist() == [9, 9, 0, 9, 0, 6, 9]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda texts: np.ones((len(texts) + 1, 2)),
            r"2 finite numbers for each of 3 texts, but returned the shape \(4, 2\)",
        ),
        (lambda texts: np.full((len(texts), 2), np.nan), "but returned NaN or infinity"),
        (lambda texts: [[1.0], *([1.0, 2.0] for _ in texts[1:])], "but it failed: .*inhomogeneous"),
    ],
)
def test_wrong_vectors_are_refused(function, message):
    with pytest.raises(EncoderError, match=message):
        encode_texts(TEXTS, FunctionEncoder(function, name="mine"))


@pytest.mark.parametrize(
    ("texts", "encoder", "message"),
    [
        ("tea", len, "single one"),
        (["tea", None], len, "text 1 is None"),
        (["tea", 3.0], len, "text 1 is 3.0"),
        (["tea"], 7, "encoder must be a name"),
    ],
)
def test_wrong_arguments_are_refused(texts, encoder, message):
    with pytest.raises(TypeError, match=message):
        encode_texts(texts, encoder)


class RotatedEncoder(CountingEncoder):
    """Vectors with the same cosines as another encoder."""

    def encode(self, texts):
        return np.roll(super().encode(texts), 1, axis=1)


class NoisyEncoder(CountingEncoder):
    """Vectors as another machine may compute them, at half precision and another scale."""

    name = "copy"

    def encode(self, texts):
        vectors = 3 * super().encode(texts)
        return vectors.astype(np.float16) * (1 + 1e-3 * np.sin(np.arange(vectors.size)).reshape(vectors.shape))


def test_an_encoder_is_recognised_by_its_vectors():
    identity = identify(CountingEncoder(), cache=False)
    assert (identity.name, identity.revision, np.shape(identity.probe)) == ("counting", "1", (4, 6))
    assert identity.agrees_with(identify(NoisyEncoder("2"), cache=False))
    assert not identity.agrees_with(identify(RotatedEncoder(), cache=False))
    assert not identity.agrees_with(identify(FunctionEncoder(lambda texts: np.ones((len(texts), 5)))))
    assert not identity.agrees_with(EncoderIdentity("counting", "1", ()))


def test_an_error_of_the_encoder_itself_is_passed_on_as_it_is():
    def out_of_memory(texts):
        raise EncoderError("the encoder x failed: out of memory. Use a smaller one.")

    with pytest.raises(EncoderError) as caught:
        encode_texts(["tea"], FunctionEncoder(out_of_memory, name="x"), cache=False)
    assert str(caught.value) == "the encoder x failed: out of memory. Use a smaller one."
