"""From texts to rows a classifier can use: tf-idf of words or of hashed words; one text, one row of length 1 or empty.

    (1 + log tf) · (1 + log((1 + n) / (1 + df))), each row scaled to length 1, float32

tf is how often the text has the word, df how many of the n texts of the pile have it: the values of scikit-learn's
TfidfVectorizer(sublinear_tf=True). `words` says what a word is. Vectors that a user brings pass through `vectors`.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count, repeat, starmap

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.cli.errors import InputError
from transduce.cli.features.tokenize import count_words, hash_words, in_chunks, is_large, look_up_words, moved

KINDS = ("tfidf", "hashing", "vectors")
LIMITS = {"ngrams": (1, 2), "min_df": (1, 2**31), "hash_bits": (1, 24), "n_features": (0, 2**31)}
FEW_DOCUMENTS = 1000
"""Piles under this keep the words of single documents: there are too few documents to tell which words are rare."""


@dataclass(frozen=True)
class Features:
    """How texts become rows, in plain values that a model file can hold.

    kind        "tfidf", "hashing" (words are numbered by a hash and never stored) or "vectors" (the user's own)
    ngrams      1 for words, 2 for pairs of neighbouring words too
    min_df      tfidf: documents that a word must stand in; 1 for piles under 1000 documents
    hash_bits   hashing: words fall into 2**hash_bits columns
    n_features  vectors: how many numbers each has

    >>> Features(kind="bert")
    Traceback (most recent call last):
    transduce.cli.errors.InputError: The kind of features must be tfidf, hashing or vectors, but is 'bert'.
    """

    kind: str = "tfidf"
    ngrams: int = 1
    min_df: int = 2
    hash_bits: int = 20
    n_features: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"The kind of features must be tfidf, hashing or vectors, but is {self.kind!r}.")
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise InputError(f"{name} must be a whole number from {low} to {high}, but is {value!r}.")


def _no_weights() -> NDArray[np.float32]:
    return np.empty(0, np.float32)


@dataclass(frozen=True, eq=False)
class Vectorizer:
    """The words of a pile and their weights; turns any texts into rows of the same columns.

    features    how it was made
    vocabulary  tfidf: the word of each column, sorted; else ()
    idf         tfidf and hashing: the weight of each column; else empty

    >>> vectorizer, _ = fit_vectorizer(["green tea", "black tea", "black coffee"], Features())
    >>> vectorizer.vocabulary
    ('black', 'coffee', 'green', 'tea')
    >>> vectorizer.transform(["Black tea, hot"]).toarray().astype(float).round(2).tolist()
    [[0.71, 0.0, 0.0, 0.71]]
    """

    features: Features
    vocabulary: tuple[str, ...] = ()
    idf: NDArray[np.float32] = field(default_factory=_no_weights)

    @property
    def n_columns(self) -> int:
        """Columns of every matrix that comes out."""
        if self.features.kind == "tfidf":
            return len(self.vocabulary)
        return 1 << self.features.hash_bits if self.features.kind == "hashing" else self.features.n_features

    def transform(self, texts: Sequence[str], n_jobs: int | None = None) -> csr_matrix:
        """Rows of length 1 (n, d), float32; words that the pile did not have count for nothing.

        n_jobs is the number of processes for large piles, None for one a core; the matrix does not depend on it.
        """
        if self.features.kind == "vectors":
            raise InputError("The model was trained on vectors, not on texts. Give the vectors of these rows.")
        return self._weighted(list(self._counts(list(texts), n_jobs)))

    def _counts(self, texts: list[str], n_jobs: int | None) -> Iterator[csr_matrix]:
        ngrams = self.features.ngrams
        if self.features.kind == "hashing":
            return in_chunks(partial(hash_words, ngrams=ngrams, bits=self.features.hash_bits), texts, n_jobs)
        if n_jobs == 1 or not is_large(texts):
            return in_chunks(partial(look_up_words, ngrams=ngrams, column_of=self._column_of), texts, 1)
        return starmap(self._placed, in_chunks(partial(count_words, ngrams=ngrams), texts, n_jobs))

    def _placed(self, words: list[str], counts: csr_matrix) -> csr_matrix:
        columns = np.fromiter(map(self._column_of.get, words, repeat(-1)), np.int32, len(words))
        return moved(counts, columns, self.n_columns)

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
    """Learn the words of a pile and their weights; the matrix equals what `transform` makes of the same texts.

    >>> vectorizer, X = fit_vectorizer(["tea", "coffee", "coffee, tea"], Features(ngrams=2))
    >>> vectorizer.vocabulary, X.shape
    (('coffee', 'coffee tea', 'tea'), (3, 3))
    """
    if features.kind == "vectors":
        raise ValueError("vectors have no words to learn: make Vectorizer(Features('vectors', n_features=d)) instead.")
    fit = _fit_hashing if features.kind == "hashing" else _fit_words
    return fit(list(texts), features, n_jobs)


def _fit_words(texts: list[str], features: Features, n_jobs: int | None) -> tuple[Vectorizer, csr_matrix]:
    number: defaultdict[str, int] = defaultdict(count().__next__)
    parts = [
        (np.fromiter(map(number.__getitem__, words), np.intp, len(words)), counts)
        for words, counts in in_chunks(partial(count_words, ngrams=features.ngrams), texts, n_jobs)
    ]
    _refuse_wordless(number, texts)
    df = np.zeros(len(number), np.int64)
    for numbers, counts in parts:
        df[numbers] += _document_frequencies(counts)
    least = features.min_df if len(texts) >= FEW_DOCUMENTS else 1
    vocabulary = tuple(sorted(word for word, n in zip(number, df.tolist(), strict=True) if n >= least))
    if not vocabulary:
        raise InputError(
            f"No word stands in {least} of the {len(texts)} texts or more: they have nothing in common. "
            "Check that this is the column of the texts, or give vectors."
        )
    kept = np.array([number[word] for word in vocabulary])
    columns = np.full(len(number), -1, np.int32)
    columns[kept] = np.arange(len(vocabulary))
    vectorizer = Vectorizer(features, vocabulary, _idf(df[kept], len(texts)))
    return vectorizer, vectorizer._weighted([moved(counts, columns[ids], len(vocabulary)) for ids, counts in parts])


def _fit_hashing(texts: list[str], features: Features, n_jobs: int | None) -> tuple[Vectorizer, csr_matrix]:
    hashed = partial(hash_words, ngrams=features.ngrams, bits=features.hash_bits)
    parts = list(in_chunks(hashed, texts, n_jobs))
    df = np.zeros(1 << features.hash_bits, np.int64)
    for counts in parts:
        df += _document_frequencies(counts)
    _refuse_wordless(df.any(), texts)
    vectorizer = Vectorizer(features, (), _idf(df, len(texts)))
    return vectorizer, vectorizer._weighted(parts)


def _refuse_wordless(words: object, texts: Sequence[str]) -> None:
    if not words:
        raise InputError(f"None of the {len(texts)} texts holds a word. Name the column that holds the texts.")


def _document_frequencies(counts: csr_matrix) -> NDArray[np.int64]:
    """How many texts each word stands in; counts hold no word of a text twice."""
    return np.bincount(counts.indices, minlength=counts.shape[1])


def _idf(df: NDArray[np.int64], n_texts: int) -> NDArray[np.float32]:
    return (1.0 + np.log((1 + n_texts) / (1 + df))).astype(np.float32)
