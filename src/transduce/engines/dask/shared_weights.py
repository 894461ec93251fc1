"""The weights of a restart on a shard, which are the same on all shards after every sum of their changes.

The weights b (M,) of the constant feature are apart from the other weights W (d, M): sweeps leave them alone.
"""

from dataclasses import dataclass

import numpy as np

from transduce.arrays import Array
from transduce.engines.common import inner_products, move_towards


@dataclass(eq=False)
class SharedWeights:
    """Weights and the points that a round starts from.

    W         (d, M) weights that sweeps change
    base      (d, M) where the present round started, the same on all shards
    last      (d, M) weights before the present round
    bias      (M,) weights b of the constant feature; no entries without one
    accepted  (d, M) or (d + 1, M) accepted weights, b last; on the first shard only
    """

    W: Array
    base: Array
    last: Array
    bias: Array
    accepted: Array | None = None

    def start_round(self, beta: float) -> None:
        """Start from the weights, plus beta times their last change; with 0, keep what labels have withdrawn from W."""
        if beta:
            self.base, self.last = extrapolated(self.base, self.last, beta), self.base
            self.W[...] = self.base
        else:
            self.last[...] = self.base

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

    def set_weights(self, W: Array) -> None:
        """Replace all weights, b last, on all shards."""
        self.base[...] = W[: len(self.W)]
        self.W[...] = self.base
        self.bias = np.array(W[len(self.W) :]).reshape(-1)

    def all_weights(self) -> Array:
        """Return a copy of W and b, b last."""
        return np.vstack((self.W, self.bias[None])) if self.bias.size else self.W.copy()

    def set_accepted(self, W: Array) -> None:
        """Accept weights that were sent."""
        self.accepted = np.array(W)

    def accept_weights(self, step_length: float = 1.0) -> None:
        """Accept the weights, or the point this far between the accepted weights and these."""
        if self.accepted is None:
            self.accepted = self.all_weights()
        move_towards(self.accepted, self.all_weights(), step_length)

    def products(self) -> tuple[float, float, float]:
        """Return ⟨V, V⟩, ⟨V, W⟩ and ⟨W, W⟩ for the accepted weights V."""
        assert self.accepted is not None
        return inner_products(self.accepted, self.all_weights())

    def get_weights(self, accepted: bool) -> Array:
        """Return a copy of the weights, or of the accepted ones, b last."""
        return self.all_weights() if not accepted or self.accepted is None else self.accepted.copy()


def extrapolated(now: Array, last: Array, beta: float) -> Array:
    """Return now + beta (now − last), in the array `last`."""
    last -= now
    last *= -beta
    last += now
    return last
