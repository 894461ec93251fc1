"""Blocks of labels: runs of one label, or chunks in the BIO and BIOES schemes.

Blocks are those of seqeval in its default mode: a block begins at B and S, after E and S, after a token outside of any
block, and where the type changes, so labels that are not valid in their scheme have blocks too.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from transduce.suggest import short_repr

OUTSIDE = "O"
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}
"""The tags of each scheme, beside O."""


class Block(NamedTuple):
    """Neighbouring tokens of one label.

    Attributes
    ----------
    label : str
        Their label, without the tag of the scheme.
    start, end : int
        First token, and the one after the last.
    """

    label: str
    start: int
    end: int


def split_label(label: str, scheme: str | None) -> tuple[str, str]:
    """Return the tag and the type of a label.

    >>> split_label("B-author", "BIO"), split_label("O", "BIO"), split_label("author", None)
    (('B', 'author'), ('O', ''), ('I', 'author'))
    """
    if label == OUTSIDE:
        return OUTSIDE, ""
    return ("I", label) if scheme is None else (label[:1], label[2:])


def check_scheme(scheme: object) -> None:
    """Raise ValueError unless a scheme is known."""
    if scheme is not None and not (isinstance(scheme, str) and scheme in SCHEMES):
        raise ValueError(f"scheme must be None, 'BIO' or 'BIOES', but is {short_repr(scheme)}.")


def check_label_list(labels: Any, *, of_strings: bool = True) -> None:
    """Raise TypeError unless labels are a list, of strings if these are to be split; a single string is none."""
    is_list = hasattr(labels, "__iter__") and not isinstance(labels, (str, Mapping))
    if not is_list or (of_strings and not all(isinstance(label, str) for label in labels)):
        raise TypeError(f"labels must be a list of strings, but are {short_repr(labels)}. Convert them.")


def blocks(labels: Sequence[str], scheme: str | None = None) -> list[Block]:
    """Return the blocks of a sequence.

    Parameters
    ----------
    labels : sequence of str
        Labels of the tokens. "O" is outside of any block.
    scheme : {None, "BIO", "BIOES"}, default=None
        None: a block is a run of one label.

    Returns
    -------
    list of Block

    Examples
    --------
    >>> blocks(["author", "author", "title"])
    [Block(label='author', start=0, end=2), Block(label='title', start=2, end=3)]
    >>> [tuple(block) for block in blocks(["B-a", "I-a", "B-a", "O", "I-b"], "BIO")]
    [('a', 0, 2), ('a', 2, 3), ('b', 4, 5)]
    """
    check_scheme(scheme)
    check_label_list(labels, of_strings=scheme is not None)
    parts = [split_label(label, scheme) for label in labels]
    starts = [i for i, part in enumerate(parts) if starts_block(parts[i - 1] if i else (OUTSIDE, ""), part)]
    outside = [i for i, (tag, _) in enumerate(parts) if tag == OUTSIDE]
    borders = sorted({*starts, *outside, len(parts)})
    following = dict(pairwise(borders))
    return [Block(parts[i][1], i, following[i]) for i in starts]


def starts_block(before: tuple[str, str], part: tuple[str, str]) -> bool:
    """Whether a block starts at a token, given the tag and type of the one before."""
    tag, name = part
    return tag != OUTSIDE and (tag in "BS" or before[0] in (OUTSIDE, "E", "S") or before[1] != name)


def find_scheme(labels: Iterable[str]) -> str | None:
    """Return the scheme that a set of labels is written in, or None.

    Parameters
    ----------
    labels : iterable of str

    Returns
    -------
    {None, "BIO", "BIOES"}

    Examples
    --------
    >>> find_scheme(["O", "B-author", "I-author"]), find_scheme(["S-year", "O"]), find_scheme(["author", "O"])
    ('BIO', 'BIOES', None)
    """
    labels = list(labels) if hasattr(labels, "__iter__") and not isinstance(labels, str) else labels
    check_label_list(labels)
    inside = {label for label in labels if label != OUTSIDE}
    if not inside or any(label[1:2] != "-" or len(label) < 3 for label in inside):
        return None
    tags = {label[0] for label in inside}
    known = (scheme for scheme, allowed in SCHEMES.items() if tags <= set(allowed))
    return next(known, None) if tags & {"B", "S"} else None
