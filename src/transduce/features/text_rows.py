"""Texts as rows for a linear classifier: words, vectors of an encoder, or a mix of both.

x = (√s · w, √(1 − s) · v),     w tf-idf, v a centred vector, both of length 1, and s the share of words
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.arrays import Array
from transduce.features.embeddings import Encoding, fit_embeddings, transform_embeddings
from transduce.features.pretrained import local_encoder
from transduce.features.tfidf import WORD_KINDS, Features, Vectorizer, fit_vectorizer

TEXT_KINDS = ("auto", *WORD_KINDS, "embeddings", "mix")
"""What texts can become; "auto" chooses a mix, or tf-idf alone."""
DEFAULT_SHARE = 0.3
"""The share of words in a mix unless another one is chosen."""


class Choice(NamedTuple):
    """The share of words, 1 for words alone and 0 for vectors alone, and the reason for it in a sentence."""

    share: float
    reason: str

    def __str__(self) -> str:
        mix = f"a mix of {self.share:.0%} words and {1 - self.share:.0%} vectors"
        what = {1.0: "words", 0.0: "vectors of the encoder"}.get(self.share, mix)
        return f"Features are {what}. {self.reason}"


NO_ENCODER = Choice(1.0, "There is no encoder on this machine; docs/features.md says how to install one.")


class TextRows(NamedTuple):
    """The vectorizer, the rows of the training texts, sparse or dense, and what "auto" chose, None for other kinds."""

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

    For "auto", `choose` is called with the words (n, d) and vectors (n, e) of all texts.

    >>> rows = fit_texts(["tea", "milk tea"], "mix", Encoding(lambda texts: [[len(text), 1] for text in texts]))
    >>> rows.X.toarray().astype(float).round(2).tolist()
    [[0.0, 0.55, -0.19, 0.82], [0.45, 0.32, 0.19, -0.82]]
    """
    if kind == "auto" and encoding.encoder is None and local_encoder() is None:
        return TextRows(*fit_vectorizer(texts, Features("tfidf", ngrams), encoding.n_jobs), NO_ENCODER)
    if kind in WORD_KINDS:
        return TextRows(*fit_vectorizer(texts, Features(kind, ngrams), encoding.n_jobs))
    if kind == "embeddings":
        return TextRows(*fit_embeddings(texts, encoding))
    words, W = fit_vectorizer(texts, Features("tfidf", ngrams), encoding.n_jobs)
    vectors, V = fit_embeddings(texts, encoding)
    choice = choose(W, V) if kind == "auto" and choose is not None else None
    share = choice.share if choice else DEFAULT_SHARE if words_share is None else float(words_share)
    if share in (0.0, 1.0):
        return TextRows(words, W, choice) if share else TextRows(vectors, V, choice)
    features = replace(vectors.features, kind="mix", ngrams=ngrams, words_share=share)
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


def mix_rows(words: csr_matrix, vectors: Array, share: float) -> csr_matrix:
    """Put words (n, d) of length √share and vectors (n, e) of length √(1 - share) side by side."""
    blocks = words * np.float32(np.sqrt(share)), csr_matrix(vectors * np.float32(np.sqrt(1 - share)))
    return sparse.hstack(blocks, format="csr", dtype=np.float32)
