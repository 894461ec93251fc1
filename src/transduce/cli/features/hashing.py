"""Hashed words: the column of a word is its hash, so that no vocabulary and no first pass over the texts is needed."""

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_matrix

from transduce.cli.features.word_counts import count_words, map_columns


def hash_words(texts: Iterable[str], ngrams: int, bits: int) -> csr_matrix:
    """Count the words of each text in 2**bits columns, the same in every process and on every machine.

    >>> hash_words(["tea tea", "tea"], ngrams=1, bits=8).data.tolist()
    [2.0, 1.0]
    """
    from sklearn.feature_extraction import FeatureHasher  # takes half a second to import

    words, counts = count_words(texts, ngrams)
    hasher = FeatureHasher(1 << bits, input_type="string", dtype=np.float32, alternate_sign=False)
    columns = hasher.transform([word] for word in words).indices if words else np.empty(0, np.int32)
    return map_columns(counts, columns, 1 << bits)


def unit_hashed_rows(counts: csr_matrix, sublinear: bool) -> csr_matrix:
    """Scale rows of counts, or of 1 + log counts, to length 1 in place; empty rows stay empty.

    >>> unit_hashed_rows(csr_matrix([[3.0, 4.0]]), sublinear=False).toarray().tolist()
    [[0.6, 0.8]]
    """
    from sklearn.preprocessing import normalize  # slow to import

    if sublinear:
        np.log(counts.data, out=counts.data)
        counts.data += 1
    return normalize(counts, copy=False)
