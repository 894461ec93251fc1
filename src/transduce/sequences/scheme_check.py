"""Known labels checked against their scheme: IOB1, say, looks like BIO, but starts blocks with I."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.arrays import IntArray
from transduce.errors import InputError
from transduce.sequences.automaton import forbidden_transitions
from transduce.sequences.schemes import OUTSIDE, SCHEMES


@dataclass(eq=False)
class SchemeError(InputError):
    """A known label that its scheme does not allow there.

    sequence, token  its place, both from 0
    problem          what is wrong
    """

    sequence: int
    token: int
    problem: str

    def __str__(self) -> str:
        where = f"Sequence {self.sequence} of y, token {self.token}"
        return f"{where}: {self.problem}. Convert the labels, or pass scheme=None."


def check_names(labels: Sequence[Any], scheme: str | None) -> None:
    """Raise ValueError for a label that is not written in the scheme."""
    for label in labels if scheme is not None else ():
        is_tagged = isinstance(label, str) and label[:1] in SCHEMES[str(scheme)] and label[1:2] == "-" and label[2:]
        if label != OUTSIDE and not is_tagged:
            expected = f"scheme={scheme!r} needs labels such as 'B-title', 'I-title' and 'O'"
            raise ValueError(f"{expected}, but one is {label!r}. Rename it, or pass scheme=None.")


def check_known_labels(codes: IntArray, offsets: IntArray, labels: Sequence[str], scheme: str | None) -> None:
    """Raise SchemeError for known labels codes (N,), −1 if not known, that are not valid in the scheme.

    >>> check_known_labels(np.array([1, -1]), np.array([0, 2]), ["B-x", "I-x", "O"], "BIO")
    Traceback (most recent call last):
    transduce.sequences.scheme_check.SchemeError: Sequence 0 of y, token 0: 'I-x' starts a block, ...
    """
    if scheme is None:
        return
    forbidden, K, last = forbidden_transitions(labels, scheme), len(labels), offsets[1:] - 1
    before = np.concatenate(([K], codes[:-1]))
    before[offsets[:-1]] = K
    is_wrong = (codes >= 0) & (before >= 0) & forbidden[before, codes]
    starts = is_wrong & np.array([*(label[0] in "IE" for label in labels), False])[codes]
    ends = np.zeros_like(starts)
    ends[:-1] = (is_wrong & ~starts)[1:]  # the label before, whose block goes on
    ends[last] = (codes[last] >= 0) & forbidden[K + 1, codes[last]]
    if (starts | ends).any():
        t = int(np.argmax(starts | ends))
        sequence = int(np.searchsorted(offsets, t, side="right")) - 1
        problem = f"{labels[codes[t]]!r} {'starts' if starts[t] else 'ends'} a block, which {scheme} does not allow"
        raise SchemeError(sequence, t - int(offsets[sequence]), problem)
