"""What a command ended with and said."""

from collections.abc import Callable
from typing import NamedTuple


class Told(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Tell = Callable[..., Told]
