"""The weights W of a restart on a shard, which are the same on all shards after every sum of their changes."""

from dataclasses import dataclass

import numpy as np

from transduce.arrays import Array
from transduce.engines.common import inner_products, move_towards


@dataclass(eq=False)
class SharedWeights:
    """Weights W (d, M), and the `base` (d, M) that all shards agree on. The first shard has the `accepted` weights."""

    W: Array
    base: Array
    accepted: Array | None = None

    def amplify(self, factor: float) -> None:
        """Multiply the change since the base by a factor."""
        self.W -= self.base
        self.W *= factor
        self.W += self.base

    def change(self, factor: float) -> Array:
        """Return the change since the base times a factor."""
        change = self.W - self.base
        change *= factor
        return change

    def add_change(self, change: Array) -> None:
        """Add a change that all shards add to the base; W is then the same everywhere."""
        self.base += change
        self.W[...] = self.base

    def set_weights(self, W: Array) -> None:
        """Replace W, on all shards."""
        self.W[...] = self.base[...] = W

    def set_accepted(self, W: Array) -> None:
        """Accept weights that were sent."""
        self.accepted = np.zeros_like(self.W)
        self.accepted[...] = W

    def accept_weights(self, step_length: float = 1.0) -> None:
        """Accept W, or the point this far between the accepted weights and W."""
        if self.accepted is None:
            self.accepted = self.W.copy()
        move_towards(self.accepted, self.W, step_length)

    def products(self) -> tuple[float, float, float]:
        """Return ⟨V, V⟩, ⟨V, W⟩ and ⟨W, W⟩ for the accepted weights V."""
        assert self.accepted is not None
        return inner_products(self.accepted, self.W)

    def get_weights(self, accepted: bool) -> Array:
        """Return a copy of W, or of the accepted weights."""
        return self.W.copy() if not accepted or self.accepted is None else self.accepted.copy()
