"""The error for a file that cannot be read or written, with the position of the problem."""

from dataclasses import dataclass

from transduce.cli.errors import InputError

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


def printable(text: str) -> str:
    r"""Escape characters that do not print, such as line breaks and direction marks.

    >>> printable("a\nb")
    'a\\nb'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(value: object) -> str:
    """Shorten a user's value and put it in double quotes.

    >>> quoted("x" * 100)
    '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"'
    """
    text = str(value)
    return f'"{printable(text[:_MAX_QUOTED])}{"…" if len(text) > _MAX_QUOTED else ""}"'
