"""Constraints on the labels of a sequence, as objects and as sentences.

    title: once                   at most one block of title (also "at most once", "at least once", "exactly once")
    author before title           no block of author after one of title
    volume needs journal          a sequence with volume has journal too
    year: /^\\d{4}$/              tokens that match are year
    year: not /^[a-z]+$/          tokens that match are not year
    title: once (cost 5)          each violation costs 5 in units of the score; without a cost it is not allowed

With a scheme such as BIO, names are those of the fields: title stands for B-title and I-title.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.sequences.schemes import OUTSIDE
from transduce.suggest import did_you_mean, name_list


class ConstraintError(ValueError):
    """A constraint that cannot be used."""


@dataclass(frozen=True)
class Once:
    """A label has at most, at least, or exactly one block in a sequence."""

    label: Any
    at_most: bool = True
    at_least: bool = False
    cost: float = np.inf


@dataclass(frozen=True)
class Before:
    """No block of `first` comes after one of `second`."""

    first: Any
    second: Any
    cost: float = np.inf


@dataclass(frozen=True)
class Needs:
    """A sequence that has `label` has `other` too."""

    label: Any
    other: Any
    cost: float = np.inf


@dataclass(frozen=True)
class Pattern:
    """Tokens that match a regular expression have the label, or do not have it if `forbids`."""

    label: Any
    pattern: str
    forbids: bool = False
    cost: float = np.inf


Constraint = Once | Before | Needs | Pattern

_COST = re.compile(r"\s*\(\s*cost\s+([^()]*)\)\s*$")
_PATTERN = re.compile(r"(not\s+)?/(.*)/$", re.DOTALL)
_AMOUNTS = {"once": (True, False), "at most once": (True, False), "at least once": (False, True),
            "exactly once": (True, True)}  # fmt: skip
_FORMS = "'title: once', 'author before title', 'volume needs journal' or 'year: /pattern/'"


def parse_constraint(text: str, labels: Iterable[Any]) -> Constraint:
    """Read a constraint.

    Parameters
    ----------
    text : str
        The sentence; see the module's description.
    labels : iterable
        Names that it may use: labels, or fields of a scheme.

    Returns
    -------
    Once, Before, Needs or Pattern

    Examples
    --------
    >>> parse_constraint("title: at least once (cost 5)", ["author", "title"])
    Once(label='title', at_most=False, at_least=True, cost=5.0)
    >>> parse_constraint("author before title", ["author", "title"])
    Before(first='author', second='title', cost=inf)
    """
    known = {str(name): name for name in labels}
    found = _COST.search(text)
    body, cost = (text[: found.start()], _cost(found[1], text)) if found else (text, np.inf)
    name, colon, rest = _split_label(body.strip(), known)
    pattern, amount = _PATTERN.fullmatch(rest), _AMOUNTS.get(" ".join(rest.split()))
    if colon and pattern:
        return Pattern(_label(name, known, text), _checked(pattern[2], text), bool(pattern[1]), cost)
    if colon and amount:
        return Once(_label(name, known, text), *amount, cost)
    for word, kind in ((" before ", Before), (" needs ", Needs)):
        first, middle, second = body.partition(word)
        if middle:
            return kind(_label(first.strip(), known, text), _label(second.strip(), known, text), cost)
    raise ConstraintError(
        f"constraint {text!r} is not understood. Write {_FORMS}, with (cost 5) at the end if it has one."
    )


def _split_label(body: str, known: Iterable[str]) -> tuple[str, str, str]:
    """Split at the colon after a known name, which may have colons itself, or at the first one."""
    name = max((name for name in known if re.match(rf"{re.escape(name)}\s*:", body)), key=len, default=None)
    if name is None:
        first, colon, rest = body.partition(":")
        return first.strip(), colon, rest.strip()
    return name, ":", body[len(name) :].strip()[1:].strip()


def _label(name: str, known: dict[str, Any], text: str) -> Any:
    if name == OUTSIDE and name not in known:
        raise ConstraintError(f"constraint {text!r}: O is outside of all blocks, so it cannot be constrained.")
    if name not in known:
        hint = f"{did_you_mean(name, known)} The labels are {name_list(known)}."
        raise ConstraintError(f"constraint {text!r} names {name!r}, which is not a label.{hint}")
    return known[name]


def _cost(written: str, text: str) -> float:
    try:
        cost = float(written)
    except ValueError:
        cost = np.nan
    if not cost > 0:
        raise ConstraintError(f"constraint {text!r} has the cost {written.strip()!r}, but it must be a number above 0.")
    return cost


def _checked(pattern: str, text: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ConstraintError(f"constraint {text!r} has a pattern that cannot be read: {error}. Correct it.") from None
    return pattern


def read_constraints(constraints: Any, fields: Sequence[Any]) -> list[Constraint]:
    """Read sentences and check objects; raises ConstraintError for unknown labels and for cycles of "before"."""
    if isinstance(constraints, (str, Once, Before, Needs, Pattern)) or not isinstance(constraints, Iterable):
        raise ConstraintError(f"constraints must be a list, but is {constraints!r}. Write [{constraints!r}].")
    found = [parse_constraint(each, fields) if isinstance(each, str) else each for each in constraints]
    known = {str(name): name for name in fields}
    for each in found:
        if not isinstance(each, Constraint):
            raise ConstraintError(f"constraints must be sentences or Constraint objects, but one is {each!r}.")
        for name in (getattr(each, key, None) for key in ("label", "first", "second", "other")):
            if name is not None and name not in known.values():
                _label(str(name), known, repr(each))
        _cost(str(each.cost), repr(each))
        if isinstance(each, Pattern):
            _checked(each.pattern, repr(each))
    _check_order([(each.first, each.second) for each in found if isinstance(each, Before) and each.cost == np.inf])
    return found


def _check_order(pairs: list[tuple[Any, Any]]) -> None:
    """Raise ConstraintError if labels must come before each other in a cycle."""
    after: dict[Any, set[Any]] = {}
    for first, second in pairs:
        after.setdefault(first, set()).add(second)
    for start in after:
        reached: set[Any] = set()
        left = [start]
        while left:
            new = after.get(left.pop(), set()) - reached
            if start in new:
                raise ConstraintError(
                    f"constraints ask {start!r} to come before itself, through a cycle. Remove one of them."
                )
            reached |= new
            left += new
