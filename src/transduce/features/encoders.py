"""The interface of encoders, and encoders made of functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from transduce.arrays import Array
from transduce.errors import InputError
from transduce.suggest import short_repr

MAX_CHARACTERS = 1 << 15


class EncoderError(InputError):
    """An encoder that is not installed, not there, not safe to load, or not the one that is needed."""


class Encoder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def revision(self) -> str:
        """Changes whenever its vectors do; if it is "", vectors are not stored."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    @property
    def max_characters(self) -> int:
        """Longer texts are cut, so that they cost little."""

    def encode(self, texts: Sequence[str]) -> Array:
        """Return the vectors of texts.

        Parameters
        ----------
        texts : sequence of str
            Texts of at most `max_characters`, none of them blank.

        Returns
        -------
        ndarray of shape (n_texts, dimension), float32
            Vectors.
        """


@dataclass(frozen=True)
class FunctionEncoder:
    """An encoder made of a function.

    Parameters
    ----------
    function : callable
        Takes a list of texts and returns their vectors, (n, d).
    name : str, default="function"
        What to call it.
    revision : str, default=""
        Change it whenever the function changes. Without one, vectors are not stored on disk.
    max_characters : int, default=32768
        Longer texts are cut.

    Examples
    --------
    >>> from transduce.features import FunctionEncoder, encode_texts
    >>> lengths = FunctionEncoder(lambda texts: [[len(text), text.count(" ")] for text in texts])
    >>> encode_texts(["green tea", "", "tea"], lengths).tolist()
    [[9.0, 1.0], [0.0, 0.0], [3.0, 0.0]]
    """

    function: Callable[[list[str]], Any]
    name: str = "function"
    revision: str = ""
    max_characters: int = MAX_CHARACTERS

    @cached_property
    def dimension(self) -> int:
        """See `Encoder.dimension`."""
        shape = np.shape(self.function(["text"]))
        if len(shape) != 2 or not shape[1]:
            found = f"an array of shape {shape}"
            raise EncoderError(f"the encoder {self.name} must return one vector for each text, but returned {found}.")
        return int(shape[1])

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must take texts and return vectors, but is {short_repr(self.function)}.")
        for key in ("name", "revision"):
            if not isinstance(getattr(self, key), str):
                raise TypeError(f"{key} must be a string, but is {short_repr(getattr(self, key))}.")
        if not isinstance(self.max_characters, Integral) or self.max_characters < 1:
            raise ValueError(
                f"max_characters must be a whole number above 0, but is {short_repr(self.max_characters)}."
            )

    def encode(self, texts: Sequence[str]) -> Array:
        """See `Encoder.encode`."""
        return np.asarray(self.function(list(texts)), dtype=np.float32)
