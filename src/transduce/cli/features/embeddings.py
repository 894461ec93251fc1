"""Texts as vectors of an encoder: scaled to length 1, centred by the mean of the training rows, and scaled again."""

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce.arrays import Array
from transduce.cli.errors import InputError
from transduce.cli.features.tfidf import Features, Vectorizer
from transduce.cli.features.vectors import fit_vectors
from transduce.features.centering import center_and_scale
from transduce.features.encode import EncodingStatus, encode_texts
from transduce.features.encoders import Encoder, EncoderError
from transduce.features.identity import EncoderIdentity, identify
from transduce.features.pretrained import load_encoder
from transduce.features.vector_cache import VectorCache

if TYPE_CHECKING:
    from transduce.cli.progress import Progress

FOLDER_NOTE = "folder.txt"
"""A file beside the stored vectors of an encoder, with the folder that it was loaded from."""


def fit_embeddings(texts: Sequence[str], options: Mapping[str, Any], progress: "Progress") -> tuple[Vectorizer, Array]:
    """Encode training texts by the encoder of the options; returns the vectorizer, and rows (n, d) of length 1."""
    with _reported(options, progress):
        encoder = load_encoder(options["encoder"])
        identity = identify(encoder, _cache(options))
        X = _unit_vectors(texts, encoder, options, progress)
        _remember(encoder, options)
    if not X.any():
        raise InputError(f"None of the {len(texts)} texts has a vector. Check that this is the text column.")
    return fit_vectors(X, Features("embeddings", n_features=X.shape[1], encoder=identity))


def transform_embeddings(
    vectorizer: Vectorizer, texts: Sequence[str], options: Mapping[str, Any], progress: "Progress"
) -> Array:
    """Encode texts by the encoder that a model was trained with; another one is refused."""
    trained = vectorizer.features.encoder
    assert trained is not None
    with _reported(options, progress):
        encoder = load_encoder(options["encoder"] or _find(trained, options))
        found = identify(encoder, _cache(options))
        if not trained.agrees_with(found):
            raise EncoderError(
                f"the model was trained with the encoder {trained.name} (revision {trained.revision}), and "
                f"{found.name} (revision {found.revision}) makes other vectors. Name the same encoder by --encoder."
            )
        X = _unit_vectors(texts, encoder, options, progress)
    center_and_scale(X, vectorizer.center)
    return X


def _unit_vectors(texts: Sequence[str], encoder: Encoder, options: Mapping[str, Any], progress: "Progress") -> Array:
    def report(status: EncodingStatus) -> None:
        if status.n_done == 0:
            number = "1 text" if status.n_texts == 1 else f"{status.n_texts} texts"
            progress.say(f"Encoding {number} with {encoder.name}.")
        progress.show_encoding(status)

    X = encode_texts(texts, encoder, cache=_cache(options), n_jobs=options["jobs"], progress=report)
    center_and_scale(X, np.zeros(X.shape[1], X.dtype))
    return X


def _cache(options: Mapping[str, Any]) -> bool | str:
    return True if options["cache"] is None else str(options["cache"])


def _remember(encoder: Any, options: Mapping[str, Any]) -> None:
    """Note the folder of an encoder, so that `predict` finds it: a model file holds no paths."""
    place = VectorCache.of(encoder, _cache(options)).folder
    if "/" not in encoder.name and place is not None and place.is_dir():
        with contextlib.suppress(OSError):  # a disk that fails was reported, and --encoder works without the note
            (place / FOLDER_NOTE).write_text(str(encoder.folder.resolve()), encoding="utf-8")


def _find(trained: EncoderIdentity, options: Mapping[str, Any]) -> str:
    """Return the name and revision of a published encoder, or the folder of any other."""
    if "/" in trained.name:
        return f"{trained.name}@{trained.revision}"
    place = VectorCache.of(trained, _cache(options)).folder  # type: ignore[arg-type] # name and revision suffice
    note = None if place is None else place / FOLDER_NOTE
    if note is None or not note.is_file() or not Path(note.read_text(encoding="utf-8")).is_dir():
        raise EncoderError(
            f"the model was trained with the encoder in a folder {trained.name!r} (revision {trained.revision}), which "
            "is not known here. Name its folder by --encoder."
        )
    return note.read_text(encoding="utf-8")


@contextlib.contextmanager
def _reported(options: Mapping[str, Any], progress: "Progress") -> Iterator[None]:
    """Errors as input errors, warnings as notes, and downloads without bars if --quiet asks for silence."""
    silence = contextlib.redirect_stderr(io.StringIO()) if options["quiet"] else contextlib.nullcontext()
    with warnings.catch_warnings(record=True) as caught, silence:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except EncoderError as error:
            raise InputError(str(error)) from None
    progress.say(*dict.fromkeys(f"Note: {warning.message}" for warning in caught))
