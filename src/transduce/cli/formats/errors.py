"""The errors for a file that cannot be read or written, with the position of the problem."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from transduce.cli.errors import InputError

Value = TypeVar("Value")
Result = TypeVar("Result")

_MAX_QUOTED = 40


@dataclass(eq=False)
class FileError(InputError):
    """A problem with a file, optionally at a line (text formats) or a data row (other formats), counted from 1.

    >>> raise FileError("data.csv", "expected 3 cells, found 2.", line=4)
    Traceback (most recent call last):
    transduce.cli.formats.errors.FileError: data.csv, line 4: expected 3 cells, found 2.
    """

    file: str
    problem: str
    line: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        row = "" if self.row is None else f", row {self.row}"
        return f"{printable(self.file)}{line}{row}: {self.problem}"


@dataclass(eq=False)
class ContentError(Exception):
    """A problem with the content of a file, raised where the name of the file is not known."""

    problem: str
    line: int | None = None
    row: int | None = None


@contextmanager
def errors_in(file: str) -> Iterator[None]:
    """Turn content errors into file errors."""
    try:
        yield
    except ContentError as error:
        raise FileError(file, error.problem, error.line, error.row) from None


def map_rows(function: Callable[[Value], Result], values: Iterable[Value]) -> list[Result]:
    """Apply a function to the value of each row; a content error gets the number of the row."""
    results: list[Result] = []
    try:
        results.extend(map(function, values))  # keeps the results of the rows before the error
    except ContentError as error:
        raise ContentError(error.problem, row=len(results) + 1) from None
    return results


def printable(text: str) -> str:
    """Escape characters that do not print, such as line breaks and direction marks."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(value: object) -> str:
    """Shorten a user's value and put it in double quotes."""
    text = str(value)
    return f'"{printable(text[:_MAX_QUOTED])}{"…" if len(text) > _MAX_QUOTED else ""}"'
