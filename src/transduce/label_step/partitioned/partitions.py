"""Rows in many places: a part holds the costs of its own rows, and what travels is never larger than a few prices.

A label step over parts sees them through one verb, `each`: a function goes to every part and small answers come back.
The function is one of a module, its arguments and answers are of the size of the classes, or of a few chosen rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


@dataclass(eq=False)
class Part:
    """Some of the rows: costs (n, K), +inf where a label is forbidden, and the labels (n,) they have, or −1.

    `notes` are arrays that a label step leaves here between its visits; it clears them when it is done.
    """

    costs: NDArray[Any]
    labels: IntArray
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Rows of this part."""
        return int(self.costs.shape[0])

    @property
    def n_classes(self) -> int:
        """Classes to choose from."""
        return int(self.costs.shape[1])


class Parts(Protocol):
    """All parts, wherever they are."""

    def each(
        self,
        function: Callable[Concatenate[Part, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        """Answers of function(part, *args), in the order of the parts."""
        ...

    def each_with(self, function: Callable[[Part, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Answers of function(part, own[p]) for part p: what goes to a part is its own."""
        ...


@dataclass(frozen=True, eq=False)
class Here:
    """Parts in this process.

    >>> parts = Here([Part(np.zeros((2, 3)), np.zeros(2, int)), Part(np.zeros((1, 3)), np.zeros(1, int))])
    >>> parts.each(lambda part: part.n_rows)
    [2, 1]
    """

    parts: Sequence[Part]

    def each(
        self,
        function: Callable[Concatenate[Part, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        """Answers of function(part, *args), in the order of the parts."""
        return [function(part, *args, **kwargs) for part in self.parts]

    def each_with(self, function: Callable[[Part, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Answers of function(part, own[p]) for part p."""
        return [function(part, mine) for part, mine in zip(self.parts, own, strict=True)]
