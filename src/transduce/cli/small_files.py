"""Read small text files that a user writes by hand: options and class sizes."""

from pathlib import Path

from transduce.cli.errors import InputError

MAX_BYTES = 10_000_000


def read_small(name: str, what: str) -> str:
    """Return the text of a file; `what` says what it should be, such as "config file".

    >>> read_small("none.toml", "config file")
    Traceback (most recent call last):
    transduce.cli.errors.InputError: the config file none.toml does not exist. Check its name.
    """
    path = Path(name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"the {what} {name} is larger than 10 MB. Check its name.")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"the {what} {name} does not exist. Check its name.") from None
    except OSError as error:
        raise InputError(f"the {what} {name} cannot be read ({error.strerror}). Name a file.") from None
    except UnicodeDecodeError:
        raise InputError(f"the {what} {name} is not UTF-8 text. Save it as UTF-8.") from None
