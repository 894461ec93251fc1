"""Features of texts: tf-idf of words or of hashed words, with rows of length 1 or empty.

    (1 + log tf) · (1 + log((1 + n) / (1 + df))), each row scaled to length 1, float32

tf is the count of the word in the text, df the number of the n texts that contain it: the values of scikit-learn's
TfidfVectorizer(sublinear_tf=True). `tokenize` defines what a word is.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count, repeat, starmap

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.errors import InputError
from transduce.features.identity import EncoderIdentity
from transduce.features.word_counts import count_words, hash_words, is_large, look_up_words, map_chunks, map_columns

KINDS = ("tfidf", "hashing", "vectors", "embeddings", "mix")
WORD_KINDS, ENCODER_KINDS = ("tfidf", "hashing"), ("embeddings", "mix")
LIMITS = {"ngrams": (1, 2), "min_df": (1, 2**31), "hash_bits": (1, 24), "n_features": (0, 2**31)}
FEW_DOCUMENTS = 1000
"""Below this number of documents min_df is ignored: there are too few to tell which words are rare."""
_NO_WORDS = "none of the {} texts contains a word. "
_NO_WORDS_ADVICE = "Check that this is the text column, or use vectors instead of words."


class NoWordsError(InputError):
    """Texts that have no words to use."""


@dataclass(frozen=True)
class Features:
    """How texts become rows, as plain values that a model file can store.

    kind         "tfidf", "hashing" (columns are hashes of words; no vocabulary is stored), "vectors" (the user's own),
                 "embeddings" (vectors of an encoder) or "mix" (tf-idf and vectors of an encoder side by side)
    ngrams       1 for words, 2 to add pairs of adjacent words
    min_df       tfidf and mix: minimum number of documents that contain a word; ignored below 1000 documents
    hash_bits    hashing: the number of columns is 2**hash_bits
    n_features   vectors, embeddings and mix: how many numbers a vector has
    encoder      embeddings and mix: the encoder
    words_share  mix: the squared length of the words in a row of length 1; None for the other kinds
    """

    kind: str = "tfidf"
    ngrams: int = 1
    min_df: int = 2
    hash_bits: int = 20
    n_features: int = 0
    encoder: EncoderIdentity | None = None
    words_share: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"The kind of features must be one of {', '.join(KINDS)}, but is {self.kind!r}.")
        if (self.kind in ENCODER_KINDS) != (self.encoder is not None):
            raise InputError("Embeddings and mixes need an encoder, and other features have none.")
        share = self.words_share
        if (share is not None) if self.kind != "mix" else (type(share) is not float or not 0 < share < 1):
            raise InputError(f"words_share must be above 0 and below 1 for a mix, else None, but is {share!r}.")
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise InputError(f"{name} must be a whole number from {low} to {high}, but is {value!r}.")


@dataclass(frozen=True, eq=False)
class Vectorizer:
    """Vocabulary and weights of a collection of texts; turns any texts into rows with the same columns.

    features    the settings it was fitted with
    vocabulary  tfidf and mix: the words of the first columns, sorted; otherwise ()
    idf         the weights of the columns of words; empty if there are none
    center      mean of dense vectors: subtracted from rows of length 1, which are then scaled again; else empty
    """

    features: Features
    vocabulary: tuple[str, ...] = ()
    idf: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    center: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))

    @property
    def n_columns(self) -> int:
        """Number of columns of the matrices returned by `transform`."""
        if self.features.kind == "hashing":
            return 1 << self.features.hash_bits
        return len(self.vocabulary) + (0 if self.features.kind == "tfidf" else self.features.n_features)

    @cached_property
    def words(self) -> "Vectorizer":
        """The vectorizer of the words in a mix."""
        features = replace(self.features, kind="tfidf", n_features=0, encoder=None, words_share=None)
        return Vectorizer(features, self.vocabulary, self.idf)

    def transform(self, texts: Sequence[str], n_jobs: int | None = None) -> csr_matrix:
        """Return rows of length 1 (n, d), float32; large inputs use `n_jobs` processes (None: one per core)."""
        if self.features.kind not in WORD_KINDS:
            raise InputError("The model was trained on vectors, not on texts. Pass the vectors of these rows.")
        return self._weighted(list(self._counts(list(texts), n_jobs)))

    def _counts(self, texts: list[str], n_jobs: int | None) -> Iterator[csr_matrix]:
        ngrams = self.features.ngrams
        if self.features.kind == "hashing":
            return map_chunks(partial(hash_words, ngrams=ngrams, bits=self.features.hash_bits), texts, n_jobs)
        if n_jobs == 1 or not is_large(texts):
            return map_chunks(partial(look_up_words, ngrams=ngrams, column_of=self._column_of), texts, 1)
        return starmap(self._select, map_chunks(partial(count_words, ngrams=ngrams), texts, n_jobs))

    def _select(self, words: list[str], counts: csr_matrix) -> csr_matrix:
        columns = np.fromiter(map(self._column_of.get, words, repeat(-1)), np.int32, len(words))
        return map_columns(counts, columns, self.n_columns)

    @cached_property
    def _column_of(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.vocabulary)}

    def _weighted(self, parts: list[csr_matrix]) -> csr_matrix:
        X = sparse.vstack(parts, format="csr", dtype=np.float32)
        np.log(X.data, out=X.data)
        X.data += 1
        X.data *= self.idf[X.indices]
        row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        lengths = np.sqrt(np.bincount(row_of, np.square(X.data, dtype=np.float64), X.shape[0]))
        X.data /= lengths[row_of]
        return X


def fit_vectorizer(
    texts: Sequence[str], features: Features, n_jobs: int | None = None
) -> tuple[Vectorizer, csr_matrix]:
    """Fit the vocabulary and weights; the matrix equals `transform` of the same texts.

    >>> vectorizer, X = fit_vectorizer(["tea", "coffee", "coffee, tea"], Features(ngrams=2))
    >>> vectorizer.vocabulary, X.shape
    (('coffee', 'coffee tea', 'tea'), (3, 3))
    """
    if features.kind not in WORD_KINDS:
        raise ValueError("vectors have no vocabulary: use fit_vectors.")
    fit = _fit_hashing if features.kind == "hashing" else _fit_words
    return fit(list(texts), features, n_jobs)


def _fit_words(texts: list[str], features: Features, n_jobs: int | None) -> tuple[Vectorizer, csr_matrix]:
    index: defaultdict[str, int] = defaultdict(count().__next__)
    parts = [
        (np.fromiter(map(index.__getitem__, words), np.intp, len(words)), counts)
        for words, counts in map_chunks(partial(count_words, ngrams=features.ngrams), texts, n_jobs)
    ]
    if not index:
        raise NoWordsError(_NO_WORDS.format(len(texts)) + _NO_WORDS_ADVICE)
    df = np.zeros(len(index), np.int64)
    for word_ids, counts in parts:
        df[word_ids] += np.bincount(counts.indices, minlength=counts.shape[1])  # one entry per text and word
    min_df = features.min_df if len(texts) >= FEW_DOCUMENTS else 1
    vocabulary = tuple(sorted(word for word, n in zip(index, df.tolist(), strict=True) if n >= min_df))
    if not vocabulary:
        raise NoWordsError(f"no word occurs in at least {min_df} of the {len(texts)} texts. {_NO_WORDS_ADVICE}")
    kept = np.array([index[word] for word in vocabulary])
    columns = np.full(len(index), -1, np.int32)
    columns[kept] = np.arange(len(vocabulary))
    vectorizer = Vectorizer(features, vocabulary, _idf(df[kept], len(texts)))
    mapped = [map_columns(counts, columns[word_ids], len(vocabulary)) for word_ids, counts in parts]
    return vectorizer, vectorizer._weighted(mapped)


def _fit_hashing(texts: list[str], features: Features, n_jobs: int | None) -> tuple[Vectorizer, csr_matrix]:
    parts = list(Vectorizer(features)._counts(texts, n_jobs))
    df = np.zeros(1 << features.hash_bits, np.int64)
    for counts in parts:
        df += np.bincount(counts.indices, minlength=counts.shape[1])
    if not df.any():
        raise NoWordsError(_NO_WORDS.format(len(texts)) + _NO_WORDS_ADVICE)
    vectorizer = Vectorizer(features, (), _idf(df, len(texts)))
    return vectorizer, vectorizer._weighted(parts)


def _idf(df: NDArray[np.int64], n_texts: int) -> NDArray[np.float32]:
    return (1.0 + np.log((1 + n_texts) / (1 + df))).astype(np.float32)
