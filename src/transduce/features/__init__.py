"""Vectors of texts: encoders, a cache of what they computed, and the scaling that suits a linear classifier."""

from typing import TYPE_CHECKING

from transduce.features.encode import encode_texts
from transduce.features.encoders import Encoder, EncoderError, FunctionEncoder
from transduce.features.pretrained import load_encoder

if TYPE_CHECKING:
    from transduce.features.normalize import CenteredNormalizer

__all__ = ["CenteredNormalizer", "Encoder", "EncoderError", "FunctionEncoder", "encode_texts", "load_encoder"]


def __getattr__(name: str) -> object:
    """Import the transformer when it is first used, so that `transduce predict` needs no scikit-learn."""
    if name != "CenteredNormalizer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transduce.features.normalize import CenteredNormalizer

    return CenteredNormalizer
