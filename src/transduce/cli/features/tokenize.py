"""The words of texts and how often each text has them; counted by chunks, so that the answer never depends on chunks.

A word is two or more letters, digits or underscores of any script, with the accents and vowel signs they carry, in
lower case and canonically composed (NFC: an é typed as one character or as two is the same). Scripts written without
spaces between words (Chinese, Japanese, Thai, Lao, Burmese, Khmer) give each character and each pair of neighbours.
With `ngrams=2` words next to each other are pairs too. For Latin text these are the words of scikit-learn.
"""

import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count, pairwise, repeat
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

T = TypeVar("T")
Counted: TypeAlias = tuple[list[str], csr_matrix]
"""The words of some texts, sorted, and how often each text has them (texts, words), float32."""

PARALLEL_CHARACTERS = 50_000_000
"""Below this, starting processes and moving texts there and counts back costs more than it gains."""
CHUNK_CHARACTERS, CHUNK_DOCUMENTS = 2_000_000, 10_000
_ASCII_WORDS = bytes(c if c < 128 and (chr(c).isalnum() or c == ord("_")) else 32 for c in bytes(range(256)).lower())
"""What each byte of ASCII text becomes: itself in lower case, or a space."""
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Burmese, Khmer
    "\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")


def words_of(text: str, ngrams: int = 1) -> list[str]:
    """The words of one text; a single letter of ASCII may be among them, which `count_words` leaves out.

    >>> words_of("Grüne Tees: 2 Sorten", ngrams=2)
    ['grüne', 'tees', 'sorten', 'grüne tees', 'tees sorten']
    >>> words_of("我喝茶 daily")
    ['daily', '我', '喝', '茶', '我喝', '喝茶']
    """
    if text.isascii():
        words = text.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
        return words if ngrams == 1 else _with_pairs([word for word in words if len(word) > 1])
    text = unicodedata.normalize("NFC", text.lower())
    spaced = _spaced_word()
    if not _UNSPACED_CHARACTER.search(text):
        words = spaced.findall(text)
        return words if ngrams == 1 else _with_pairs(words)
    words = []
    pieces = _UNSPACED_RUN.split(text)  # spaced and unspaced in turn; no pair of words reaches over an unspaced run
    for piece in pieces[::2]:
        words += spaced.findall(piece) if ngrams == 1 else _with_pairs(spaced.findall(piece))
    for run in pieces[1::2]:
        words += run
        words += map("".join, pairwise(run))
    return words


def _with_pairs(words: list[str]) -> list[str]:
    return words + list(map(" ".join, pairwise(words)))


@cache
def _spaced_word() -> re.Pattern[str]:
    """Two or more characters of scripts with spaces.

    A set of 16-bit characters is matched by a table, three times as fast as by `\\w`; what lies beyond is historic
    scripts and fancy letters as one range, up to where emoji begin.
    """
    characters = _UNSPACED_CHARACTER.sub("", "".join(map(chr, range(0x10000))))
    letters = {c for c in characters if c.isalnum() or c == "_"}
    signs = {c for c in characters if unicodedata.category(c) in ("Mn", "Mc") and not "\ufe00" <= c <= "\ufe0f"}
    beyond = "\U00010000-\U0001efff"
    return re.compile(f"[{_ranges(letters)}{beyond}][{_ranges(letters | signs | {chr(0x200D)})}{beyond}]+")


def _ranges(characters: Iterable[str]) -> str:
    """Characters as the inside of a set in a regular expression; none of them is punctuation."""
    codes = np.sort(np.array([ord(c) for c in characters]))
    breaks = np.flatnonzero(np.diff(codes) > 1)
    starts, ends = codes[np.append(0, breaks + 1)], codes[np.append(breaks, codes.size - 1)]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


def count_words(texts: Iterable[str], ngrams: int = 1) -> Counted:
    """Count the words of each text.

    >>> words, counts = count_words(["tea or coffee or a bun", ""])
    >>> words, counts.toarray().astype(int).tolist()
    (['bun', 'coffee', 'or', 'tea'], [[1, 1, 2, 1], [0, 0, 0, 0]])
    """
    number: defaultdict[str, int] = defaultdict(count().__next__)
    numbers, indptr = _numbered(texts, ngrams, lambda words: map(number.__getitem__, words))
    words = sorted(word for word in number if len(word) > 1 or not word.isascii())
    columns = np.full(len(number), -1, np.int32)
    columns[[number[word] for word in words]] = np.arange(len(words))
    return words, moved(_ones(numbers, indptr), columns, len(words))


def look_up_words(texts: Iterable[str], ngrams: int, column_of: Mapping[str, int]) -> csr_matrix:
    """Count the words that have a column: what `count_words` and `moved` would give, sooner.

    >>> look_up_words(["tea or coffee"], 1, {"coffee": 0, "milk": 1}).toarray().astype(int).tolist()
    [[1, 0]]
    """
    n_columns = len(column_of)
    numbers, indptr = _numbered(texts, ngrams, lambda words: map(column_of.get, words, repeat(n_columns)))
    return moved(_ones(numbers, indptr), np.append(np.arange(n_columns, dtype=np.int32), np.int32(-1)), n_columns)


def hash_words(texts: Iterable[str], ngrams: int, bits: int) -> csr_matrix:
    """Count the words of each text in 2**bits columns, the same ones in every process and on every machine.

    >>> hash_words(["tea tea", "tea"], ngrams=1, bits=8).data.tolist()
    [2.0, 1.0]
    """
    from sklearn.feature_extraction import FeatureHasher  # half a second that only hashing has to wait for

    words, counts = count_words(texts, ngrams)
    hasher = FeatureHasher(1 << bits, input_type="string", dtype=np.float32, alternate_sign=False)
    columns = hasher.transform([word] for word in words).indices if words else np.empty(0, np.int32)
    return moved(counts, columns, 1 << bits)


def moved(matrix: csr_matrix, columns: NDArray[np.int32], n_columns: int) -> csr_matrix:
    """The matrix whose column j has become columns[j]; those that meet are added up, those at −1 are left out.

    >>> moved(csr_matrix([[1, 1, 1]]), np.array([1, -1, 1], np.int32), 2).toarray().tolist()
    [[0, 2]]
    """
    data, indices, indptr = matrix.data, columns[matrix.indices], matrix.indptr
    kept = indices >= 0
    if not kept.all():
        indptr = np.append(0, np.cumsum(kept))[indptr]
        data, indices = data[kept], indices[kept]
    answer = csr_matrix((data, indices, indptr), shape=(matrix.shape[0], n_columns))
    answer.sum_duplicates()
    return answer


def is_large(texts: Sequence[str]) -> bool:
    """Whether several processes count sooner than one.

    >>> is_large(["tea"])
    False
    """
    return sum(map(len, texts)) >= PARALLEL_CHARACTERS


def in_chunks(count_chunk: Callable[[list[str]], T], texts: Sequence[str], n_jobs: int | None) -> Iterator[T]:
    """What `count_chunk` says of each chunk, in order; of large piles in `n_jobs` processes, None for one a core.

    >>> [words for words, _ in in_chunks(count_words, ["tea", "coffee"], n_jobs=None)]
    [['coffee', 'tea']]
    """
    if n_jobs == 1 or not is_large(texts):
        return map(count_chunk, _chunks(texts))
    from joblib import Parallel, delayed  # with its processes, that most piles do without

    workers = Parallel(n_jobs=n_jobs or -1, return_as="generator")
    answers: Iterator[T] = workers(delayed(count_chunk)(chunk) for chunk in _chunks(texts))
    return answers


def _numbered(
    texts: Iterable[str], ngrams: int, numbers_of: Callable[[list[str]], Iterable[int]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The number of every word of every text in turn, and where each text begins and the last one ends."""
    numbers, ends = array("i"), array("q", [0])
    for text in texts:
        numbers.extend(numbers_of(words_of(text, ngrams)))
        ends.append(len(numbers))
    return np.array(numbers, np.int32), np.array(ends, np.int64)


def _ones(indices: NDArray[np.int32], indptr: NDArray[np.int64]) -> csr_matrix:
    n_columns = int(indices.max(initial=-1)) + 1
    return csr_matrix((np.ones(indices.size, np.float32), indices, indptr), shape=(indptr.size - 1, n_columns))


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Neighbours together; at least one chunk, of no texts where there are none."""
    start = size = 0
    for end, text in enumerate(texts):
        if end > start and (size + len(text) > CHUNK_CHARACTERS or end - start == CHUNK_DOCUMENTS):
            yield list(texts[start:end])
            start, size = end, 0
        size += len(text)
    yield list(texts[start:])
