"""Class sizes on the command line, in the syntax of `transduce.class_prior`: as options, in files and in messages.

--prior sport=0.2  --prior rec=10%:30%  --prior other=?  --prior prior.toml
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.files import FORMATS, parse_prior
from transduce.class_prior.spec import CompletePrior, Prior, parse_size
from transduce.cli.config import read_small
from transduce.cli.errors import InputError
from transduce.cli.fit_messages import describe_prior_error
from transduce.errors import PriorError
from transduce.suggest import name_list

MOST_SIZES = 12
"""The line that repeats the stated sizes lists at most so many."""
_SEVERAL = re.compile(r"=\s*[0-9.?][^=]*[,;]")
"""What the name of a class looks like if several were written into one option."""


@contextmanager
def prior_errors() -> Iterator[None]:
    """Turn errors about class sizes into input errors."""
    try:
        yield
    except PriorError as error:
        raise InputError(describe_prior_error(error)) from None


def read_prior(options: Iterable[str]) -> Prior:
    """Read options, each NAME=SIZE or a file; options override files, later files override earlier ones."""
    in_files, stated = Prior(), Prior()
    for option in options:
        name, equals, value = (part.strip() for part in option.rpartition("="))
        suffix = Path(option).suffix.lower()[1:]
        with prior_errors():
            if suffix in FORMATS and not (equals and not Path(option).exists()):
                in_files.update(parse_prior(read_small(option, "file of class sizes"), suffix, option))
            else:
                _check_option(option, name, equals, value, stated)
                stated[name] = parse_size(value, f"--prior {option}")
    return in_files | stated


def _check_option(option: str, name: str, equals: str, value: str, stated: Prior) -> None:
    """Check that an option is NAME=SIZE for one more class."""
    if not equals or not name:
        forms = "NAME=SIZE, such as sport=0.2 or sport=0.1:0.3, or a .toml, .json or .csv file"
        raise InputError(f"--prior must be {forms}, but is {option!r}.")
    if not value:
        raise InputError(f"--prior {option} states no size; write {name}=? for a class you know nothing about.")
    if _SEVERAL.search(name):
        raise InputError(f"--prior {option} names several classes; give one --prior for each class.")
    if name in stated:
        raise InputError(f"--prior states the size of {name!r} twice; keep one of them.")


def assumptions(prior: CompletePrior) -> list[str]:
    """What was assumed to complete a prior, in clauses."""
    found = []
    if prior.unstated:
        listed = name_list(prior.unstated)
        found.append(f"classes without a stated size ({listed}) get what the texts suggest within what is left")
    if prior.total is not None:
        found.append(f"stated sizes sum to {prior.total:.4g} and were divided by that")
    return found


def stated_counts(prior: Prior, classes: Sequence[str], bounds: Bounds, n_rows: int) -> list[str]:
    """The stated sizes as numbers of rows, in a sentence; none if nothing is stated."""
    ranges = list(zip(classes, bounds.low, bounds.high, strict=True))
    if bounds.groups is not None:
        ranges += zip(bounds.groups.names, bounds.groups.low, bounds.groups.high, strict=True)
    rows = {name: _rows(low, high, n_rows) for name, low, high in ranges}
    sizes = [f"{name}: {rows[name]}" for name, size in prior.items() if size is not None and name in rows]
    more = f"; and {len(sizes) - MOST_SIZES} more" if len(sizes) > MOST_SIZES else ""
    return [f"Class sizes: {'; '.join(sizes[:MOST_SIZES])}{more}."] if sizes else []


def _rows(low: int, high: int, n_rows: int) -> str:
    percent = [f"{100 * end / max(n_rows, 1):.3g}" for end in (low, high)]
    if low == high:
        return f"{low} row{'' if low == 1 else 's'} ({percent[0]} %)"
    return f"{low} to {high} rows ({percent[0]} to {percent[1]} %)"
