"""Class sizes on the command line: options and files read into a class prior, and its errors in the command's words.

    --prior sport=0.2  --prior rec=10%:30%  --prior other=?  --prior prior.toml

The syntax of sizes and files is that of `transduce.class_prior`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.files import FORMATS, parse_prior
from transduce.class_prior.spec import CompletePrior, Prior, Size, parse_size
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
    """Turn errors about class sizes into input errors in the words of the command line."""
    try:
        yield
    except PriorError as error:
        raise InputError(describe_prior_error(error)) from None


def read_prior(options: Iterable[str]) -> Prior:
    """Read options, each NAME=SIZE or a file; options override files, later files override earlier ones.

    >>> read_prior(["sport=0.2", "rec=10%:30%", "other=?"])
    {'sport': 0.2, 'rec': (0.1, 0.3), 'other': None}
    """
    in_files: Prior = {}
    stated: Prior = {}
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


def _check_option(option: str, name: str, equals: str, value: str, stated: Mapping[str, Size]) -> None:
    """Raise InputError unless an option is NAME=SIZE for one more class."""
    if not equals or not name:
        raise InputError(
            f"--prior must be NAME=SIZE, such as sport=0.2 or sport=0.1:0.3, or a .toml, .json or .csv file, but is "
            f"{option!r}."
        )
    if not value:
        raise InputError(f"--prior {option} states no size; write {name}=? for a class you know nothing about.")
    if _SEVERAL.search(name):
        raise InputError(f"--prior {option} names several classes; give one --prior for each class.")
    if name in stated:
        raise InputError(f"--prior states the size of {name!r} twice; keep one of them.")


def assumptions(prior: CompletePrior) -> list[str]:
    """What was assumed to complete a prior, in clauses.

    >>> from transduce.class_prior.spec import complete_prior
    >>> assumptions(complete_prior({"tea": 0.3}, ["coffee", "tea"]))
    ["classes without a stated size ('coffee') get what the texts suggest within what is left"]
    """
    found = []
    if prior.unstated:
        listed = name_list(prior.unstated)
        found.append(f"classes without a stated size ({listed}) get what the texts suggest within what is left")
    if prior.total is not None:
        found.append(f"stated sizes sum to {prior.total:.4g} and were divided by that")
    return found


def stated_counts(prior: Mapping[str, Size], classes: Sequence[str], bounds: Bounds, n_rows: int) -> list[str]:
    """The stated sizes as numbers of rows, in a sentence; none if nothing is stated.

    >>> import numpy as np
    >>> forty = np.array([0, 40]), np.array([60, 40])
    >>> stated_counts({"tea": 0.4, "coffee": None}, ["coffee", "tea"], Bounds(*forty), 100)
    ['Class sizes: tea: 40 rows (40 %).']
    """
    ranges = dict(zip(classes, zip(bounds.low.tolist(), bounds.high.tolist(), strict=True), strict=True))
    if bounds.groups is not None:
        groups = zip(bounds.groups.low.tolist(), bounds.groups.high.tolist(), strict=True)
        ranges |= dict(zip(bounds.groups.names, groups, strict=True))
    found = [
        f"{name}: {_rows(*ranges[name], n_rows)}" for name, size in prior.items() if size is not None and name in ranges
    ]
    more = f"; and {len(found) - MOST_SIZES} more" if len(found) > MOST_SIZES else ""
    return [f"Class sizes: {'; '.join(found[:MOST_SIZES])}{more}."] if found else []


def _rows(low: int, high: int, n_rows: int) -> str:
    percent = [f"{100 * end / max(n_rows, 1):.3g}" for end in (low, high)]
    if low == high:
        return f"{low} row{'' if low == 1 else 's'} ({percent[0]} %)"
    return f"{low} to {high} rows ({percent[0]} to {percent[1]} %)"
