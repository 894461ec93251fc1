"""How a fault of the input is put: always one line, always the file's name first and then the place in it."""

from transduce.cli.errors import InputError

_SHOWN_CHARACTERS = 40


def fault(name: str, what: str, *, line: int | None = None, row: int | None = None) -> InputError:
    """Make the error for `name`, at a line (text formats) or a data row (the others), both counted from 1.

    >>> str(fault("data.csv", "expected 3 cells, found 2.", line=4))
    'data.csv, line 4: expected 3 cells, found 2.'
    """
    place = "" if line is None else f", line {line}"
    place += "" if row is None else f", row {row}"
    return InputError(f"{shown(name)}{place}: {what}")


def shown(text: str) -> str:
    r"""Text that can stand in a message: what does not print (line ends, marks of direction) is escaped.

    >>> shown("a\nb")
    'a\\nb'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(value: object) -> str:
    """Show a piece of the user's data in double quotes, shortened.

    >>> quoted("x" * 100)
    '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"'
    """
    text = str(value)
    return f'"{shown(text[:_SHOWN_CHARACTERS])}{"…" if len(text) > _SHOWN_CHARACTERS else ""}"'
