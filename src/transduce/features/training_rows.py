"""Digests of the labelled training rows, by which `evaluate` recognises rows that a model was fitted with.

A model file holds no training rows. For each row with a full label it holds four bytes of a hash of the row and its
label. The salt is a hash of all of them, so that the same training gives the same file, and others cannot be compared.
A new row is mistaken for a training row in n of 2^32 cases, where n is the number of digests.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from transduce.features.tfidf import ENCODER_KINDS
from transduce.features.tokenize import words_of

MAX_DIGESTS = 1_000_000
"""Labelled rows whose digests are stored; of more, a random sample is."""
_DIGEST_BYTES, _SALT_BYTES = 4, 16
_DIGEST = np.dtype("<u4")


def row_contents(texts: Iterable[str], X: Any, kind: str) -> list[bytes]:
    """What identifies each row: its words for text features, else its vector, rounded so that float noise is lost.

    >>> row_contents(["Green  TEA!"], None, "tfidf"), row_contents(["Green  TEA! "], None, "embeddings")
    ([b'green tea'], [b'Green  TEA!'])
    """
    if kind == "vectors":
        if not issparse(X):
            return [_vector_content(np.arange(row.size), row) for row in X]
        rows = csr_matrix(X)
        parts = map(slice, rows.indptr[:-1], rows.indptr[1:])
        return [_vector_content(rows.indices[part], rows.data[part]) for part in parts]
    as_read = str.strip if kind in ENCODER_KINDS else lambda text: " ".join(words_of(text))  # an encoder sees all signs
    return [as_read(text).encode("utf-8", "surrogatepass") for text in texts]


def digest_training_rows(contents: Sequence[bytes], labels: Sequence[str | None]) -> dict[str, str]:
    """Salt and digests of the rows that have a label, as the model file stores them.

    >>> stored = digest_training_rows([b"green tea", b"black coffee"], ["tea", None])
    >>> find_training_rows(stored, [b"green tea", b"green tea", b"black coffee"], ["tea", "coffee", "coffee"]).tolist()
    [True, False, False]
    """
    pairs = [(content, label) for content, label in zip(contents, labels, strict=True) if label is not None]
    salt = _salt(pairs)
    digests = np.unique(_digests(salt, pairs))[:MAX_DIGESTS]  # the smallest of random numbers are a random sample
    return {"salt": salt.hex(), "digests": b64encode(digests.tobytes()).decode("ascii")}


def find_training_rows(
    stored: Mapping[str, Any], contents: Sequence[bytes], labels: Sequence[str | None]
) -> NDArray[np.bool_]:
    """Which rows (n,) were in training with the same label; `stored` is what `digest_training_rows` returned."""
    salt, digests = read_digests(stored)
    labeled = np.array([label is not None for label in labels], dtype=bool)
    pairs = [(content, label) for content, label in zip(contents, labels, strict=True) if label is not None]
    labeled[labeled] = np.isin(_digests(salt, pairs), digests)
    return labeled


def read_digests(stored: Mapping[str, Any]) -> tuple[bytes, NDArray[np.uint32]]:
    """Salt and digests; a ValueError says what is wrong with them."""
    try:
        salt, packed = bytes.fromhex(stored["salt"]), b64decode(stored["digests"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise ValueError("its labelled_rows are not a salt in hexadecimal and digests in base64") from None
    if len(salt) != _SALT_BYTES or len(packed) % _DIGEST_BYTES or len(packed) > MAX_DIGESTS * _DIGEST_BYTES:
        raise ValueError(f"its labelled_rows must have a salt of {_SALT_BYTES} bytes and whole digests")
    return salt, np.frombuffer(packed, _DIGEST)


def _salt(pairs: Sequence[tuple[bytes, str]]) -> bytes:
    """A salt that cannot be known without all labelled rows."""
    everything = hashlib.blake2b(digest_size=_SALT_BYTES)
    for content, label in pairs:
        everything.update(_joined(content, label))
    return everything.digest()


def _digests(salt: bytes, pairs: Sequence[tuple[bytes, str]]) -> NDArray[np.uint32]:
    """Digest rows with their labels."""
    start = hashlib.blake2b(key=salt, digest_size=_DIGEST_BYTES)
    packed = bytearray()
    for content, label in pairs:
        one = start.copy()
        one.update(_joined(content, label))
        packed += one.digest()
    return np.frombuffer(bytes(packed), _DIGEST)


def _joined(content: bytes, label: str) -> bytes:
    return label.encode("utf-8", "surrogatepass") + b"\0" + content


def _vector_content(columns: NDArray[Any], numbers: NDArray[Any]) -> bytes:
    values = numbers.astype("<f2")
    kept = np.flatnonzero(values)
    return bytes(columns[kept].astype("<i8").tobytes() + values[kept].tobytes())
