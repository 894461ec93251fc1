"""What errors and warnings share: a kind, whose value is a sentence, and the fields that fill it."""

import string
import sys
from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Any

from transduce.suggest import name_list, short_repr


class Names(tuple[Any, ...]):
    """Names of classes that a sentence lists: the first ten, in quotes.

    >>> f"The classes are {Names(['tea', 'milk'])}."
    "The classes are 'tea' and 'milk'."
    """

    def __format__(self, spec: str) -> str:
        return name_list(self)


class Percents(tuple[float, ...]):
    """Fractions that a sentence lists as per cents.

    >>> f"{Percents([0.5, 0.125])} of the rows"
    '50% and 12.5% of the rows'
    """

    def __format__(self, spec: str) -> str:
        return name_list((f"{100 * fraction:.4g}%" for fraction in self), quote=False)


class _Filler(string.Formatter):
    def convert_field(self, value: Any, conversion: Any) -> Any:
        is_any = conversion == "r" and not isinstance(value, str)
        return short_repr(value) if is_any else super().convert_field(value, conversion)


def _fill(sentence: str, fields: Mapping[str, Any]) -> str:
    """Fill a sentence with fields; a quoted one that is not a string is cut to one short line.

    >>> _fill("it is {value!r}. Correct it.", {"value": list(range(1000))})[-18:]
    '21, …. Correct it.'
    """
    return _Filler().vformat(sentence, (), fields)


class InputError(ValueError):
    """Texts, vectors, an encoder or a model file that cannot be used; the command line prints it and exits with 2."""


class Record(Exception):  # noqa: N818 -- the base of errors and of warnings
    """A kind of problem and its fields; a subclass is an error or a warning.

    Parameters
    ----------
    kind : Enum
        Kind of problem; its value is the sentence.
    **fields : object
        What fills the sentence.
    """

    def __init__(self, kind: Enum, **fields: Any) -> None:
        super().__init__(kind, fields)
        self.kind = kind
        self.fields = fields

    def __str__(self) -> str:
        return _fill(self.kind.value, self.fields)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}.") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.kind, **self.fields), ()


def user_stacklevel() -> int:
    """Return the stack level of the user's code, for a warning issued in a function that the caller calls.

    The first frame outside this package is the user's; subtract 1 for a warning that the caller issues itself.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "transduce":
        frame, level = frame.f_back, level + 1
    return level
