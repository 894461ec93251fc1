"""Texts as vectors of an encoder: scaled to length 1, centred by the mean of the training rows, and scaled again."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.errors import InputError
from transduce.features.centering import center_and_scale, mean_of_rows
from transduce.features.encode import EncodingStatus, as_encoder, encode_texts
from transduce.features.encoders import Encoder, EncoderError
from transduce.features.identity import EncoderIdentity, identify
from transduce.features.tfidf import Features, Vectorizer
from transduce.features.vector_cache import VectorCache

FOLDER_NOTE = "folder.txt"
"""A file beside the stored vectors of an encoder, with the folder that it was loaded from."""


@dataclass(frozen=True)
class Encoding:
    """The encoder, the cache and the number of jobs as `encode_texts` takes them, and the progress callback."""

    encoder: Any = None
    cache: bool | str | Path = True
    n_jobs: int | None = None
    report: Callable[[Encoder, EncodingStatus], object] = lambda encoder, status: None


def fit_embeddings(texts: Sequence[str], encoding: Encoding) -> tuple[Vectorizer, Array]:
    """Encode training texts; returns the vectorizer, and rows (n, d) of length 1."""
    encoder = as_encoder(encoding.encoder)
    identity = identify(encoder, encoding.cache)
    X = _unit_vectors(texts, encoder, encoding)
    _remember(encoder, encoding.cache)
    if not X.any():
        raise InputError(f"none of the {len(texts)} texts has a vector. Check that this is the text column.")
    return fit_vectors(X, Features("embeddings", n_features=X.shape[1], encoder=identity))


def fit_vectors(X: Any, features: Features | None = None) -> tuple[Vectorizer, Any]:
    """Centre dense rows of length 1 in place, and scale them to length 1 again; sparse ones stay as they are.

    Centring would fill sparse rows. Returns the vectorizer, which can do the same with other rows, and the rows.
    """
    features = Features("vectors", n_features=X.shape[1]) if features is None else features
    if sparse.issparse(X):
        return Vectorizer(features), X
    center = mean_of_rows(X)
    center_and_scale(X, center)
    return Vectorizer(features, center=center), X


def transform_embeddings(vectorizer: Vectorizer, texts: Sequence[str], encoding: Encoding) -> Array:
    """Encode texts by the encoder that a model was trained with; another one is refused."""
    trained = vectorizer.features.encoder
    assert trained is not None
    encoder = as_encoder(_find(trained, encoding.cache) if encoding.encoder is None else encoding.encoder)
    found = identify(encoder, encoding.cache)
    if not trained.agrees_with(found):
        raise EncoderError(
            f"the model was trained with the encoder {_described(trained)}, and {_described(found)} makes other "
            "vectors. Name the same encoder."
        )
    X = _unit_vectors(texts, encoder, encoding)
    center_and_scale(X, vectorizer.center)
    return X


def _unit_vectors(texts: Sequence[str], encoder: Encoder, encoding: Encoding) -> Array:
    def report(status: EncodingStatus) -> None:
        encoding.report(encoder, status)

    X = encode_texts(texts, encoder, cache=encoding.cache, n_jobs=encoding.n_jobs, progress=report)
    center_and_scale(X, np.zeros(X.shape[1], X.dtype))
    return X


def _described(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision})" if encoder.revision else encoder.name


def _remember(encoder: Any, cache: bool | str | Path) -> None:
    """Note the folder of an encoder, so that it is found again: a model file holds no paths."""
    place, folder = VectorCache.of(encoder, cache).folder, getattr(encoder, "folder", None)
    if folder is not None and "/" not in encoder.name and place is not None and place.is_dir():
        with contextlib.suppress(OSError):  # a disk that fails was reported, and naming the encoder needs no note
            (place / FOLDER_NOTE).write_text(str(folder.resolve()), encoding="utf-8")


def _find(trained: EncoderIdentity, cache: bool | str | Path) -> str:
    """Return the name and revision of a published encoder, or the folder of any other."""
    if "/" in trained.name:
        return f"{trained.name}@{trained.revision}"
    place = VectorCache.of(trained, cache).folder  # type: ignore[arg-type] # name and revision suffice
    note = None if place is None else place / FOLDER_NOTE
    if note is None or not note.is_file() or not Path(note.read_text(encoding="utf-8")).is_dir():
        raise EncoderError(
            f"the model was trained with the encoder {_described(trained)}, which is not known here. Name its folder "
            "(--encoder on the command line), or pass the encoder itself in Python."
        )
    return note.read_text(encoding="utf-8")
