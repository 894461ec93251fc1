"""Warnings about the labels of sequences."""

from enum import Enum
from typing import NamedTuple

from transduce.errors.record import Record


class MissedCount(NamedTuple):
    """A stated count of tokens or blocks that the labels of sequences do not meet.

    Attributes
    ----------
    name : object
        Label, or field of blocks.
    unit : str
        "tokens" or "blocks".
    assigned : int
        What the labels have.
    low, high : int
        What was stated.
    """

    name: object
    unit: str
    assigned: int
    low: int
    high: int

    def __str__(self) -> str:
        stated = f"at least {self.low}" if self.assigned < self.low else f"at most {self.high}"
        return f"{self.name!r} has {self.assigned} {self.unit}, but {stated} are stated."


class CountWarningKind(Enum):
    """What is wrong with stated counts; the value is the sentence. Field: `missed`, a tuple of MissedCounts."""

    MISSED = (
        "the labels do not meet all counts: {missed} The constraints or the known labels may forbid it. Change the "
        "counts or the constraints."
    )


class CountWarning(Record, UserWarning):
    """Stated counts that the labels of sequences do not meet; see CountWarningKind."""

    kind: CountWarningKind

    def __str__(self) -> str:
        return self.kind.value.format_map({"missed": " ".join(map(str, self.fields["missed"]))})
