"""Compiling kernels ahead: small fits of every kind of rows, after which fits in other processes find compiled code.

`python -m transduce.warm` and `transduce warm` do the same; the first needs no extra.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from transduce.design import Design
from transduce.estimators import TransductiveClassifier
from transduce.match_sizes import match_class_sizes

__all__ = ["Compiled", "warm"]

LOSSES = ("hinge", "squared_hinge", "maxent")
_N_ROWS, _N_COLUMNS, _N_CLASSES = 60, 8, 3
_PATHS = (("a", "b"), ("a", "c"), ("d",))


class Compiled(NamedTuple):
    """One kind of fit whose kernels are compiled now.

    Parameters
    ----------
    name : str
        Kind of fit.
    seconds : float
        Seconds that its first fit took.
    """

    name: str
    seconds: float


def warm(*, every: bool = False, report: Callable[[Compiled], None] | None = None) -> list[Compiled]:
    """Compile the kernels that fits use, and store them where numba keeps compiled code.

    That is the `__pycache__` folders of the package, or the user's cache folder where these are read-only, or the
    folder that the environment variable NUMBA_CACHE_DIR names. What is stored already is loaded, not compiled again.

    Parameters
    ----------
    every : bool, default=False
        Whether to compile all losses, and classes in a tree. By default flat classes with the default loss, for sparse
        and dense rows of single and double precision.
    report : callable, default=None
        Called with a `Compiled` after each kind of fit.

    Returns
    -------
    list of Compiled
        Kinds of fits and the seconds that each took.

    Examples
    --------
    >>> from transduce.warm import warm
    >>> [each.name for each in warm()]
    ['sparse float32', 'sparse float64', 'dense float32', 'dense float64']
    """
    done = []
    for name, fit in _fits(every):
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # random rows have no classes to find
            fit()
        done.append(Compiled(name, time.perf_counter() - start))
        if report is not None:
            report(done[-1])
    return done


def _fits(every: bool) -> Iterator[tuple[str, Callable[[], None]]]:
    """Kinds of fits by name."""
    for loss in LOSSES if every else LOSSES[:1]:
        for tree in (False, True) if every else (False,):
            for layout in ("sparse", "dense"):
                for dtype in ("float32", "float64"):
                    words = [layout, dtype, *([loss] if every else []), *(["tree"] if tree else [])]
                    yield " ".join(words), partial(_fit, layout, dtype, loss, tree)


def _fit(layout: str, dtype: str, loss: str, tree: bool) -> None:
    """Fit and predict with both kinds of annealing, with class sizes that are estimated, stated, and ranges."""
    rng = np.random.default_rng(0)
    codes = np.arange(_N_ROWS) % _N_CLASSES
    rows = np.eye(_N_CLASSES, _N_COLUMNS)[codes] + rng.uniform(0, 0.5, (_N_ROWS, _N_COLUMNS))
    X: Any = rows.astype(dtype)
    X = sparse.csr_matrix(X) if layout == "sparse" else X
    labels = np.array(["/".join(path) for path in _PATHS], dtype=object)
    y = labels[codes]
    y[_N_ROWS // 3 :] = None
    options: dict[str, Any] = {"loss": loss, "taxonomy": list(labels) if tree else None, "random_state": 0}
    ranges = dict.fromkeys(labels, (0.2, 0.5))
    for changes in ({}, {"class_prior": "labeled", "annealing": "paper"}, {"class_prior": ranges}):
        clf = TransductiveClassifier(**options, **changes).fit(X, y)
    match_class_sizes(clf.predict_proba(X), np.full(_N_CLASSES, 1 / _N_CLASSES))
    if layout == "sparse":  # what fits of many rows, or of some of them, begin with
        design = Design.create(X, clf.taxonomy_)
        design.together().reordered(design.column_counts)


def main() -> None:
    """Compile what `python -m transduce.warm [--all]` asks for."""
    if sys.argv[1:] not in ([], ["--all"]):
        sys.exit("Usage: python -m transduce.warm [--all]")
    done = warm(every="--all" in sys.argv)
    sys.stdout.write(summary(done) + "\n")


def summary(done: list[Compiled]) -> str:
    """Say what was compiled.

    >>> summary([Compiled("sparse float32", 20.0), Compiled("dense float32", 12.2)])
    'Compiled code is ready for 2 kinds of fits (32 s).'
    """
    return f"Compiled code is ready for {len(done)} kinds of fits ({sum(each.seconds for each in done):.0f} s)."


if __name__ == "__main__":
    main()
