"""Class sizes on the command line, in the syntax of `transduce.class_prior.spec`: options, files and messages.

--prior sport=0.2  --prior rec=10%:30%  --prior news==5%  --prior other=?  --prior prior.toml  --prior equal
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from transduce.class_prior.files import FORMATS, parse_prior
from transduce.class_prior.spec import KEYWORDS, UNKNOWN, Prior, parse_size
from transduce.class_prior.stated_sizes import with_units
from transduce.class_prior.statement import Statement
from transduce.cli.classes import parents_of
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


def read_prior(options: Sequence[str]) -> Prior | str:
    """Read options, each NAME=SIZE or a file, or one keyword.

    Options override files, later files override earlier ones. NAME==SIZE is an exact size.
    """
    in_files, stated = Prior(), Prior()
    keyword = next((option for option in options if option in KEYWORDS), None)
    if keyword is not None:
        if len(set(options)) > 1:
            raise InputError(f"--prior {keyword} is about all classes, but others are stated too; keep one of them.")
        return keyword
    for option in options:
        name, equals, value = (part.strip() for part in option.rpartition("="))
        if name.endswith("="):
            name, value = name[:-1].rstrip(), f"={value}"
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
        forms = "NAME=SIZE, such as sport=0.2 or sport=0.1:0.3, a .toml, .json or .csv file, or equal"
        raise InputError(f"--prior must be {forms}, but is {option!r}.")
    if value in ("", "="):
        raise InputError(f"--prior {option} states no size; write {name}=? for a class you know nothing about.")
    if _SEVERAL.search(name):
        raise InputError(f"--prior {option} names several classes; give one --prior for each class.")
    if name in stated:
        raise InputError(f"--prior states the size of {name!r} twice; keep one of them.")


def unstated(prior: Prior, classes: Iterable[str], *, tree: bool) -> list[str]:
    """Classes that are not named and are in no branch with a size."""
    return [name for name in classes if name not in prior and not has_size(name, prior, tree=tree)]


def has_size(name: str, prior: Prior, *, tree: bool) -> bool:
    """Whether a class, or a branch that it is in, has a stated size."""
    return any(prior.get(node, UNKNOWN).is_known for node in (name, *(parents_of(name) if tree else ())))


def assumptions(unstated: Sequence[str], statement: Statement) -> list[str]:
    """What was assumed to complete a prior, in clauses."""
    found = []
    if unstated:
        listed = name_list(unstated)
        found.append(f"classes without a stated size ({listed}) get an estimated one")
    if statement.divided_by is not None and (total := f"{statement.divided_by:.4g}") != "1":
        found.append(f"stated sizes sum to {total} and were divided by that")
    return found


def topmost_names(prior: Prior, *, tree: bool) -> list[str]:
    """Names of classes and branches that are in no stated branch."""
    return [name for name in prior if not tree or not any(node in prior for node in parents_of(name))]


def plain_rows(prior: Prior, classes: Iterable[str], n_rows: int, n_labeled: int, *, tree: bool) -> dict[str, float]:
    """Plain numbers of rows, which may have been meant as per cents; none if the sizes of all classes are stated.

    >>> from transduce.class_prior.spec import read_sizes
    >>> prior = read_sizes({"tea": 30, "coffee": "=20", "cocoa": 0.1}, ())
    >>> plain_rows(prior, ["tea", "coffee", "cocoa", "milk"], 500, 10, tree=False)
    {'tea': 30.0}
    """
    if all(has_size(name, prior, tree=tree) for name in classes):
        return {}
    sizes = with_units(prior, topmost_names(prior, tree=tree), n_rows, n_rows + n_labeled)
    return {name: size.low for name, size in sizes.items() if size.is_known and size.is_count and size.is_plain}


def library_prior(prior: Prior | str, classes: Iterable[str]) -> object:
    """The class prior as the library takes it: a branch is a path, which no class can be confused with."""
    if isinstance(prior, str):
        return prior
    known = set(classes)
    return {name if name in known else tuple(name.split("/")): size for name, size in prior.items()}


def stated_counts(prior: Prior, statement: Statement, left: float = 1.0) -> list[str]:
    """The stated sizes as numbers of rows, in a sentence; none if nothing is stated.

    `left` is the fraction of the rows to label that gets a class.
    """
    nodes = zip(statement.names, left * statement.low, left * statement.high, statement.is_rough, strict=True)
    rows = {
        name: f"{'about ' if rough else ''}{rows_text(low, high, statement.n_rows)}" for name, low, high, rough in nodes
    }
    sizes = [f"{name}: {rows[name]}" for name, size in prior.items() if size.is_known and name in rows]
    more = f"; and {len(sizes) - MOST_SIZES} more" if len(sizes) > MOST_SIZES else ""
    return [f"Class sizes: {'; '.join(sizes[:MOST_SIZES])}{more}."] if sizes else []


def rows_text(low: float, high: float, n_rows: int) -> str:
    """A number of rows, or a range of these, in rows and per cent.

    >>> rows_text(3, 3, 60), rows_text(0, 3, 60)
    ('3 rows (5 %)', '0 to 3 rows (0 to 5 %)')
    """
    low, high = round(low), round(high)
    percent = [f"{100 * end / max(n_rows, 1):.3g}" for end in (low, high)]
    if low == high:
        return f"{low} row{'' if low == 1 else 's'} ({percent[0]} %)"
    return f"{low} to {high} rows ({percent[0]} to {percent[1]} %)"
