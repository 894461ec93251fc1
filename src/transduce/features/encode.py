"""From texts to vectors: each distinct text once, in batches of similar length, and none that is stored already."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from transduce.arrays import Array
from transduce.features.encoders import Encoder, EncoderError, FunctionEncoder
from transduce.features.pretrained import load_encoder
from transduce.features.vector_cache import VectorCache, text_key
from transduce.suggest import as_sentence, short_repr
from transduce.validation import has_methods

BATCH_CHARACTERS, LONG_TEXT = 1 << 15, 1 << 10
"""Characters encoded between two reports and two writes to the cache, a few seconds on a slow machine; longer texts
than the second number cost no more, since encoders read their first few hundred tokens."""


class EncodingStatus(NamedTuple):
    """Texts done, of those that were not stored when encoding began, and the fraction of their characters done."""

    n_done: int
    n_texts: int
    fraction: float


Report = Callable[[EncodingStatus], object]


def encode_texts(
    texts: Any,
    encoder: Any = None,
    *,
    cache: bool | str | Path = True,
    n_jobs: int | None = None,
    progress: Report | None = None,
) -> Array:
    """Encode texts. An interrupted call can be repeated: what it encoded is read from the cache.

    Parameters
    ----------
    texts : sequence of str
        A list, an array, or a column of pandas or polars. Blank texts become rows of zeros.
    encoder : Encoder, callable, str, Path or None, default=None
        An encoder, a function from a list of texts to an array, or what `load_encoder` takes.
    cache : bool, str or Path, default=True
        Folder to store vectors in. True is the one in the environment variable TRANSDUCE_CACHE, or else the platform's
        place for caches; False or "none" stores nothing.
    n_jobs : int or None, default=None
        Number of threads; None leaves it to the encoder.
    progress : callable or None, default=None
        Called with an `EncodingStatus` before the first batch and after each one.

    Returns
    -------
    ndarray of shape (n_texts, dimension), float32
        Vectors as the encoder returns them, not scaled.

    Examples
    --------
    >>> encode_texts(["tea", "green tea", "tea"], lambda texts: [[len(text), 1] for text in texts]).tolist()
    [[3.0, 1.0], [9.0, 1.0], [3.0, 1.0]]
    """
    texts, encoder = checked_texts(texts), as_encoder(encoder)
    stored = VectorCache.of(encoder, cache)
    keys = [text_key(text) if text and not text.isspace() else None for text in texts]
    row_of: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        if key is not None:
            row_of.setdefault(key, row)
    out = np.zeros((len(texts), stored.dimension or encoder.dimension), np.float32)
    found = stored.read(row_of, out)
    missing = {row: key for key, row in row_of.items() if key not in found}
    if missing:
        _ = encoder.max_characters  # loads the model: limits hold for libraries that are loaded
    with threadpool_limits(n_jobs):
        for rows in _batches(texts, missing, encoder, progress or (lambda status: None)):
            out[rows] = _encode(encoder, [texts[row] for row in rows], out.shape[1])
            stored.append([missing[row] for row in rows], out[rows])
    for row, key in enumerate(keys):
        if key is not None and row_of[key] != row:
            out[row] = out[row_of[key]]
    return out


def as_encoder(encoder: Any) -> Encoder:
    """Return the encoder that `encode_texts` uses."""
    if encoder is None or isinstance(encoder, (str, Path)):
        return load_encoder(encoder)
    if has_methods(encoder, "encode"):
        return encoder  # type: ignore[no-any-return]
    if callable(encoder):
        return FunctionEncoder(encoder)
    raise TypeError(
        f"encoder must be a name, a folder, an Encoder or a function, but is {short_repr(encoder)}. Pass one of them."
    )


def checked_texts(texts: Any) -> list[str]:
    """Return texts as a list; anything else than texts raises TypeError."""
    if isinstance(texts, str):
        raise TypeError("texts must be a list of texts, but is a single one. Put it into a list.")
    if isinstance(texts, Mapping) or not hasattr(texts, "__iter__"):
        raise TypeError(f"texts must be a list of texts, but is {short_repr(texts)}. Pass a list.")
    listed = list(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(
                f"texts must be strings, but text {place} is {short_repr(text)}. Convert it; '' is an empty text."
            )
    return listed


def _batches(texts: Sequence[str], rows: Any, encoder: Encoder, report: Report) -> Iterator[list[int]]:
    """Yield rows in batches, the longest texts first: batches need little padding, and time left is not too short.

    A batch is reported as done when the next one is asked for.
    """
    if not rows:
        return
    lengths = {row: min(len(texts[row]), LONG_TEXT) for row in rows}
    ordered = sorted(rows, key=lambda row: len(texts[row]), reverse=True)
    total, done, start = sum(lengths.values()), 0, 0
    report(EncodingStatus(0, len(ordered), 0.0))
    while start < len(ordered):
        end, size = start, 0
        while end < len(ordered) and (end == start or size + lengths[ordered[end]] <= BATCH_CHARACTERS):
            size += lengths[ordered[end]]
            end += 1
        yield ordered[start:end]
        start, done = end, done + size
        report(EncodingStatus(start, len(ordered), done / total))


def _encode(encoder: Encoder, texts: Sequence[str], dimension: int) -> Array:
    """Encode a batch, and check what comes back."""
    cut = [text[: encoder.max_characters] for text in texts]
    clean = [text.encode("utf-8", "replace").decode("utf-8") for text in cut]  # tokenizers refuse lone surrogates
    try:
        vectors = np.asarray(encoder.encode(clean), dtype=np.float32)
    except EncoderError:
        raise
    except (TypeError, ValueError) as error:
        problem = f"the encoder {encoder.name} must return {dimension} numbers for each text, but it failed"
        raise EncoderError(f"{problem}: {as_sentence(str(error))} Correct it.") from error
    if vectors.shape == (len(texts), dimension) and np.isfinite(vectors).all():
        return vectors
    found = "NaN or infinity" if vectors.shape == (len(texts), dimension) else f"the shape {vectors.shape}"
    expected = f"{dimension} finite numbers for each of {len(texts)} texts"
    raise EncoderError(f"the encoder {encoder.name} must return {expected}, but returned {found}. Correct it.")
