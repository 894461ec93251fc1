"""Small text files that a user writes by hand, options and class sizes: read whole, or one sentence says why not."""

from pathlib import Path

from transduce.cli.errors import InputError

MOST_BYTES = 10_000_000


def read_small(name: str, what: str) -> str:
    """The text of a file; `what` is what it should be, such as "config file".

    >>> read_small("none.toml", "config file")
    Traceback (most recent call last):
    transduce.cli.errors.InputError: the config file none.toml does not exist; check its name.
    """
    path = Path(name)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"the {what} {name} is too large to be one; check its name.")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"the {what} {name} does not exist; check its name.") from None
    except OSError as error:
        raise InputError(f"the {what} {name} cannot be read ({error.strerror}); name a file.") from None
    except UnicodeDecodeError:
        raise InputError(f"the {what} {name} is not UTF-8 text; save it as UTF-8.") from None
