"""Texts as rows for a linear classifier: words, vectors of an encoder, or a mix of both.

x = (√s · w, √(1 − s) · v),     w tf-idf, v a centred vector, both of length 1, and s the share of words

Vectors tell short texts apart better, words long ones, and a mix nearly all. With m the median number of distinct
words of a text, the share is s = 0.2 + 0.7 log₁₀(m / 10), from 0.2 at ten words to 0.9 at a hundred.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.arrays import Array
from transduce.features.embeddings import Encoding, fit_embeddings, transform_embeddings
from transduce.features.pretrained import local_encoder
from transduce.features.tfidf import WORD_KINDS, Features, NoWordsError, Vectorizer, fit_vectorizer

TEXT_KINDS = ("auto", *WORD_KINDS, "embeddings", "mix")
"""What texts can become; "auto" chooses a mix, tf-idf alone, or vectors alone if the texts have no words."""
SHARES, LENGTHS = (0.2, 0.9), (10.0, 100.0)
"""Smallest and largest share of words, and the number of distinct words that each suits."""


class Choice(NamedTuple):
    """The share of words, 1 for words alone and 0 for vectors alone, and the reason for it in a sentence."""

    share: float
    reason: str

    def __str__(self) -> str:
        mix = f"a mix of {self.share:.0%} words and {1 - self.share:.0%} vectors"
        what = {1.0: "words", 0.0: "vectors of the encoder"}.get(self.share, mix)
        return f"Features are {what}. {self.reason}"


NO_ENCODER = Choice(1.0, "There is no encoder on this machine; docs/features.md says how to install one.")
NO_WORDS = Choice(0.0, "The texts have no words to use.")


class TextRows(NamedTuple):
    """The vectorizer, the rows of the training texts, sparse or dense, and the choice of the share if there was one."""

    vectorizer: Vectorizer
    X: Any
    choice: Choice | None = None


def fit_texts(
    texts: Sequence[str],
    kind: str,
    encoding: Encoding,
    ngrams: int = 1,
    words_share: float | None = None,
    choose: Callable[[csr_matrix, Array], Choice] | None = None,
) -> TextRows:
    """Turn training texts into rows; `kind` is one of TEXT_KINDS.

    For "auto", `choose` is called with the words (n, d) and vectors (n, e) of all texts. The share of words in a mix
    follows the length of the texts, unless `words_share` states it.

    >>> rows = fit_texts(["tea", "milk tea"], "mix", Encoding(lambda texts: [[len(text), 1] for text in texts]))
    >>> rows.X.toarray().astype(float).round(2).tolist()
    [[0.0, 0.45, -0.2, 0.87], [0.36, 0.26, 0.2, -0.87]]
    """
    if kind == "auto" and encoding.encoder is None and local_encoder() is None:
        return TextRows(*fit_vectorizer(texts, Features("tfidf", ngrams), encoding.n_jobs), NO_ENCODER)
    if kind in WORD_KINDS:
        return TextRows(*fit_vectorizer(texts, Features(kind, ngrams), encoding.n_jobs))
    if kind == "embeddings":
        return TextRows(*fit_embeddings(texts, encoding))
    try:
        words, W = fit_vectorizer(texts, Features("tfidf", ngrams), encoding.n_jobs)
    except NoWordsError:
        if kind != "auto":
            raise
        return TextRows(*fit_embeddings(texts, encoding), NO_WORDS)
    vectors, V = fit_embeddings(texts, encoding)
    choice, share = None, words_share
    if kind == "auto" or share is None:
        choice = choose(W, V) if kind == "auto" and choose is not None else share_by_length(W)
        share = choice.share
    if share in (0.0, 1.0):
        return TextRows(words, W, choice) if share else TextRows(vectors, V, choice)
    features = replace(vectors.features, kind="mix", ngrams=ngrams, words_share=float(share))
    mixed = Vectorizer(features, words.vocabulary, words.idf, vectors.center)
    return TextRows(mixed, mix_rows(W, V, share), choice)


def transform_texts(vectorizer: Vectorizer, texts: Sequence[str], encoding: Encoding) -> Any:
    """Turn other texts into rows with the same columns, with the encoder of training."""
    kind, share = vectorizer.features.kind, vectorizer.features.words_share
    if kind == "embeddings":
        return transform_embeddings(vectorizer, texts, encoding)
    if share is None:
        return vectorizer.transform(texts, encoding.n_jobs)
    vectors = transform_embeddings(vectorizer, texts, encoding)
    return mix_rows(vectorizer.words.transform(texts, encoding.n_jobs), vectors, share)


def share_by_length(words: csr_matrix) -> Choice:
    """Choose the share of words by the median number of distinct words; words (n, d) are the rows of all texts."""
    lengths = np.diff(words.indptr)
    length = float(np.median(lengths[lengths > 0])) if lengths.any() else 0.0
    return Choice(share_for(length), f"Half of the texts have {length:.0f} or more distinct words.")


def share_for(length: float) -> float:
    """Return the share of words that suits texts with so many distinct words, to two digits.

    >>> share_for(7), share_for(15), share_for(40), share_for(200)
    (0.2, 0.32, 0.62, 0.9)
    """
    grown = math.log(max(length, LENGTHS[0]) / LENGTHS[0]) / math.log(LENGTHS[1] / LENGTHS[0])
    return round(SHARES[0] + (SHARES[1] - SHARES[0]) * min(grown, 1.0), 2)


def mix_rows(words: csr_matrix, vectors: Array, share: float) -> csr_matrix:
    """Put words (n, d) of length √share and vectors (n, e) of length √(1 - share) side by side."""
    blocks = words * np.float32(np.sqrt(share)), csr_matrix(vectors * np.float32(np.sqrt(1 - share)))
    return sparse.hstack(blocks, format="csr", dtype=np.float32)
