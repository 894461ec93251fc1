"""--none: how many rows fit no class and stay without a label, in the syntax of class sizes.

--none 5%  --none 0.05  --none 120  --none 0%:5%  --none 100:200
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from transduce.class_prior.rounding import outlier_counts
from transduce.class_prior.spec import Prior, Size, parse_size
from transduce.class_prior.stated_sizes import ROUNDING, with_units
from transduce.cli.errors import InputError
from transduce.cli.prior_options import has_size, prior_errors, topmost_names

EXPECTED = "a fraction or a number of rows, such as 5%, 0%:5% or 120"

Rows = tuple[int, int]
"""The least and the greatest number of rows without a class."""


def read_none(option: str | None) -> Size | None:
    """Read the option; None if it is missing."""
    if option is None:
        return None
    with prior_errors():
        size = parse_size(option, "--none")
    if not size.is_known:
        raise InputError(f"--none must be {EXPECTED}, but is {option!r}. For a guess, state a range from 0.")
    if not size.in_rows and size.high >= 1:
        raise InputError(f"--none must be below 100 % of the rows, but is {option!r}. Lower it.")
    return size


def none_rows(size: Size | None, n_rows: int) -> Rows | None:
    """The least and the greatest number of rows without a class, of n_rows rows to label; None without the option.

    >>> none_rows(read_none("5%"), 60), none_rows(read_none("0%:5%"), 50), none_rows(read_none("7"), 50)
    ((3, 3), (0, 3), (7, 7))
    """
    if size is None or n_rows == 0:
        return None
    if not size.in_rows:
        low, high = outlier_counts((size.low, size.high), n_rows)
        if size.low == size.high:
            low = high = round(size.low * n_rows)
        return min(low, n_rows - 1), min(high, n_rows - 1)
    if size.low >= n_rows:
        raise InputError(f"--none leaves {size.low:g} rows without a label, but {n_rows} are to be labelled. Lower it.")
    return int(size.low), int(min(size.high, n_rows - 1))


def fraction_left(none: Rows | None, n_rows: int) -> float:
    """About which fraction of the rows to label gets a class."""
    return 1.0 if none is None else 1.0 - 0.5 * sum(none) / max(n_rows, 1)


def divide_sizes(
    prior: Prior, classes: Iterable[str], labeled: Mapping[str, int], none: Rows, n_rows: int, *, tree: bool
) -> Prior:
    """Sizes of the rows that get a class, from sizes that add up to all rows together with those of --none.

    `labeled` are the labelled rows of each class. Sizes that do not add up so are returned as they are.

    >>> prior = {"tea": parse_size("60%", ""), "milk": parse_size("30%", "")}
    >>> [round(size.low, 3) for size in divide_sizes(prior, ["tea", "milk"], {}, (5, 5), 50, tree=False).values()]
    [0.667, 0.333]
    """
    n_total = n_rows + sum(labeled.values())
    outer = topmost_names(prior, tree=tree)
    sizes = with_units(prior, outer, n_rows, n_total)
    if not all(has_size(name, prior, tree=tree) for name in classes) or any(s.low < s.high for s in sizes.values()):
        return prior
    total = sum(sizes[name].low for name in outer)
    if not any(size.in_rows and size.low for size in sizes.values()):
        low, high = (1.0 - rows / n_rows for rows in reversed(none))
        is_sum = abs(total - 1.0) > ROUNDING and low - ROUNDING <= total <= high + ROUNDING
        return _divided(sizes, total) if is_sum and total else prior
    if not all(size.is_count for size in sizes.values()) or total in (n_rows, n_total):
        return prior
    if n_rows - none[1] <= total <= n_rows - none[0]:
        return _divided(sizes, total)
    if n_total - none[1] <= total <= n_total - none[0]:
        left = {name: max(size.low - _labeled(name, labeled, tree=tree), 0.0) for name, size in sizes.items()}
        sizes = {name: replace(size, low=left[name]) for name, size in sizes.items()}
        whole = sum(left[name] for name in outer)
        return _divided(sizes, whole) if whole else prior
    return prior


def _divided(sizes: Prior, total: float) -> Prior:
    """Sizes as fractions of the total; whether they are rough or exact stays."""
    fractions = {name: size.low / total for name, size in sizes.items()}
    return {
        name: replace(size, low=fractions[name], high=fractions[name], in_rows=False, is_plain=False)
        for name, size in sizes.items()
    }


def _labeled(name: str, labeled: Mapping[str, int], *, tree: bool) -> int:
    """Labelled rows of a class, or of the classes below a branch."""
    return sum(n for other, n in labeled.items() if other == name or (tree and other.startswith(f"{name}/")))
