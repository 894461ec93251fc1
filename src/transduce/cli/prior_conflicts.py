"""Why stated class sizes and partial labels cannot both be met, in the words of a user."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds

Array = NDArray[Any]

BOTH = "the class sizes of --prior and the partial labels cannot both be met"
ADVICE = "Change these sizes, or correct the labels"
_MOST_SETS, _SHOWN = 500, 4


def clash_of(classes: Sequence[str], bounds: Bounds, open_rows: Iterable[frozenset[str]], n_rows: int) -> str | None:
    """What a class, branch or set lacks of the `n_rows` rows to be labelled; None if nothing is seen to be amiss.

    open_rows are the classes that each partial label leaves open. What only several sets suffer together is not seen
    here: the fit itself finds that out.

    >>> sizes = Bounds(np.array([1, 0, 0]), np.array([1, 9, 2]))
    >>> clash_of(["coffee", "milk", "tea"], sizes, [frozenset({"coffee", "tea"})] * 4, 9)
    "4 rows are labelled in part as 'coffee' or 'tea', but these may get at most 3"
    """
    tally = Counter(open_rows).most_common()
    rows = np.array([count for _, count in tally], np.int64)
    sets = np.array([[name in each for name in classes] for each, _ in tally], bool).reshape(-1, len(classes))
    reached = n_rows - rows @ ~sets
    short = np.flatnonzero(bounds.low > reached)
    if short.size:
        k = int(short[0])
        return _too_few(repr(classes[k]), int(bounds.low[k]), int(reached[k]))
    low, high, members = _branches(bounds, len(classes))
    names = [] if bounds.groups is None else [repr(name) for name in bounds.groups.names]
    masks = [*members, *sets[:_MOST_SETS], sets.any(axis=0)]
    for name, mask in zip([*names, *[""] * (len(masks) - len(names))], masks, strict=True):
        called = name or _either(classes, mask)
        room = min([int(bounds.high[mask].sum()), *high[(members >= mask).all(axis=1)].tolist()])
        needed = max([int(bounds.low[mask].sum()), *low[(members <= mask).all(axis=1)].tolist()])
        held, apart = int(rows[(sets <= mask).all(axis=1)].sum()), int(rows[~(sets & mask).any(axis=1)].sum())
        if held > room:
            verb = "this" if name else "these"
            return f"{held} rows are labelled in part as {called}, but {verb} may get at most {room}"
        if needed > n_rows - apart:
            return _too_few(called, needed, n_rows - apart)
    return None


def _branches(bounds: Bounds, n_classes: int) -> tuple[Array, Array, Array]:
    """Rows at least (G,) and at most (G,), and the classes (G, K) of the branches that have a size."""
    if bounds.groups is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, n_classes), bool)
    return bounds.groups.low, bounds.groups.high, bounds.groups.members(n_classes)


def _too_few(name: str, needed: int, reached: int) -> str:
    return f"{name} must get at least {needed} rows, but the labels leave it open for {reached}"


def _either(classes: Sequence[str], mask: Array) -> str:
    names = [repr(classes[k]) for k in np.flatnonzero(mask).tolist()]
    return " or ".join(names) if len(names) <= _SHOWN else f"one of {', '.join(names[:_SHOWN])}, …"
