"""What a model file records of an encoder: its name, its revision, and its vectors of a few fixed texts.

Of each vector, scaled to the length √d, up to sixteen evenly spaced numbers are kept, rounded to hundredths. Two
machines compute slightly different vectors, and a copy of an encoder may have another name, so encoders are the same
if these numbers nearly agree.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.features.encode import encode_texts
from transduce.features.encoders import Encoder

PROBE_TEXTS = (
    "How do I change the password of my account?",
    "The invoice of 12 March was paid twice, please refund 19.90.",
    "Der Zug nach München fällt heute leider aus.",
    "東京の天気はどうですか",
)
MAX_NUMBERS = 16
TOLERANCE = 0.1
"""Numbers of typical size 1 may differ by this much: half precision changes them by .01."""


@dataclass(frozen=True)
class EncoderIdentity:
    """Name and revision of an encoder, and a few numbers of its vector of each probe text."""

    name: str
    revision: str
    probe: tuple[tuple[float, ...], ...]

    def agrees_with(self, other: "EncoderIdentity") -> bool:
        """Whether the vectors of two encoders are the same but for rounding."""
        same_shape = np.shape(self.probe) == np.shape(other.probe)
        return same_shape and np.allclose(self.probe, other.probe, rtol=0, atol=TOLERANCE)


def identify(encoder: Encoder, cache: bool | str | Path = True) -> EncoderIdentity:
    """Return the identity of an encoder; `cache` is that of `encode_texts`.

    >>> from transduce.features import FunctionEncoder
    >>> identify(FunctionEncoder(lambda texts: [[len(text), 1] for text in texts])).probe
    ((1.41, 0.03), (1.41, 0.02), (1.41, 0.03), (1.41, 0.13))
    """
    vectors = encode_texts(PROBE_TEXTS, encoder, cache=cache).astype(np.float64)
    dimension, lengths = vectors.shape[1], np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = vectors * np.sqrt(dimension) / np.where(lengths == 0, 1, lengths)
    columns = np.linspace(0, dimension - 1, min(dimension, MAX_NUMBERS)).round().astype(int)
    probe = (scaled[:, columns].round(2) + 0.0).tolist()  # + 0.0: no negative zeros
    return EncoderIdentity(encoder.name, encoder.revision, tuple(map(tuple, probe)))
