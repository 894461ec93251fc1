"""Word counts of texts as sparse matrices, computed in chunks; the result does not depend on the chunks."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from transduce.features.tokenize import words_of

T = TypeVar("T")

PARALLEL_CHARACTERS = 50_000_000
"""Below this, starting processes and moving data costs more than it saves."""
CHUNK_CHARACTERS, CHUNK_DOCUMENTS = 2_000_000, 10_000


def count_words(texts: Iterable[str], ngrams: int = 1) -> tuple[list[str], csr_matrix]:
    """Return the sorted words of some texts, and how often each text has them (texts, words), float32."""
    index: defaultdict[str, int] = defaultdict(count().__next__)
    matrix = _occurrences(texts, ngrams, lambda words: map(index.__getitem__, words))
    words = sorted(word for word in index if len(word) > 1 or not word.isascii())
    columns = np.full(len(index), -1, np.int32)
    columns[[index[word] for word in words]] = np.arange(len(words))
    return words, map_columns(matrix, columns, len(words))


def look_up_words(texts: Iterable[str], ngrams: int, column_of: Mapping[str, int]) -> csr_matrix:
    """Count only the words of a vocabulary; faster than `count_words` followed by `map_columns`."""
    n_columns = len(column_of)
    matrix = _occurrences(texts, ngrams, lambda words: map(column_of.get, words, repeat(n_columns)))
    return map_columns(matrix, np.append(np.arange(n_columns, dtype=np.int32), np.int32(-1)), n_columns)


def hash_words(texts: Iterable[str], ngrams: int, bits: int) -> csr_matrix:
    """Count words in 2**bits columns, the column of a word being its hash, the same on every machine."""
    from sklearn.feature_extraction import FeatureHasher  # takes half a second to import

    words, counts = count_words(texts, ngrams)
    hasher = FeatureHasher(1 << bits, input_type="string", dtype=np.float32, alternate_sign=False)
    columns = hasher.transform([word] for word in words).indices if words else np.empty(0, np.int32)
    return map_columns(counts, columns, 1 << bits)


def map_columns(matrix: csr_matrix, columns: NDArray[np.int32], n_columns: int) -> csr_matrix:
    """Move column j to columns[j], adding up columns that coincide and dropping those at -1."""
    data, indices, indptr = matrix.data, columns[matrix.indices], matrix.indptr
    kept = indices >= 0
    if not kept.all():
        indptr = np.append(0, np.cumsum(kept))[indptr]
        data, indices = data[kept], indices[kept]
    mapped = csr_matrix((data, indices, indptr), shape=(matrix.shape[0], n_columns))
    mapped.sum_duplicates()
    return mapped


def _occurrences(texts: Iterable[str], ngrams: int, columns_of: Callable[[list[str]], Iterable[int]]) -> csr_matrix:
    """Return a matrix with an entry 1 for every occurrence of a word; entries of one row may share a column."""
    columns, ends = array("i"), array("q", [0])
    for text in texts:
        columns.extend(columns_of(words_of(text, ngrams)))
        ends.append(len(columns))
    indices, indptr = np.array(columns, np.int32), np.array(ends, np.int64)
    shape = (indptr.size - 1, int(indices.max(initial=-1)) + 1)
    return csr_matrix((np.ones(indices.size, np.float32), indices, indptr), shape=shape)


def is_large(texts: Sequence[str]) -> bool:
    """Whether several processes are faster than one."""
    return sum(map(len, texts)) >= PARALLEL_CHARACTERS


def map_chunks(function: Callable[[list[str]], T], texts: Sequence[str], n_jobs: int | None) -> Iterator[T]:
    """Apply a function to chunks of texts, in order; large inputs use `n_jobs` processes (None: one per core)."""
    if n_jobs == 1 or not is_large(texts):
        return map(function, _chunks(texts))
    from joblib import Parallel, delayed  # slow to import, and seldom needed

    run = Parallel(n_jobs=n_jobs or -1, return_as="generator")
    results: Iterator[T] = run(delayed(function)(chunk) for chunk in _chunks(texts))
    return results


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split texts into consecutive chunks; no texts give one empty chunk."""
    start = size = 0
    for end, text in enumerate(texts):
        if end > start and (size + len(text) > CHUNK_CHARACTERS or end - start == CHUNK_DOCUMENTS):
            yield list(texts[start:end])
            start, size = end, 0
        size += len(text)
    yield list(texts[start:])
