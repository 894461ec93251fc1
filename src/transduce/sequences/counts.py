"""Label counts over all sequences, and their prices.

    max over u of Σ_j min over n of (f_j(n) + u_j n) − T Σ_s log Z_s((score + u) / T)

is the dual of the label step with the counts n_j of tokens of each label, and of blocks of the fields that have a size.
f_j is the cost of a count (`class_prior.belief`), infinite outside its bounds. A token price is added to the scores of
its label, a block price to the transitions that start a block. At T = 0, T log Z is the best score. The dual is
concave, and BFGS maximises it in as many variables as there are counts.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from transduce.arrays import Array, FloatArray, IntArray
from transduce.label_step.count_tree import CountTree
from transduce.sequences.chains import Chains, ChainSums, Fields

BLOCK_LENGTH = 5.0
"""How many tokens change their label together, for a first guess of the curvature."""
MAX_STEPS = 20
"""Most steps of one search for prices."""
MAX_PRICE = 30.0
"""Prices are held near this where counts cannot be met, as when constraints forbid it."""


class Prices(NamedTuple):
    """Prices of tokens (K,), and of blocks of the fields that have a size."""

    tokens: FloatArray
    blocks: FloatArray

    def without(self) -> "Prices":
        """Return prices of 0."""
        return Prices(np.zeros_like(self.tokens), self.blocks[:0])


@dataclass(frozen=True, eq=False)
class Counts:
    """Bounds and beliefs on the counts of the tokens without a known label, and of blocks.

    tokens  of each label, or None
    blocks  of the fields `stated`, or None
    known   (K,) tokens whose label is known, which are not counted
    fields  of the labels
    """

    tokens: CountTree | None
    known: FloatArray
    fields: Fields
    blocks: CountTree | None = None
    stated: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def is_empty(self) -> bool:
        """Whether no count is known."""
        return self.tokens is None and self.blocks is None

    def empty(self) -> "Counts":
        """Return counts of which nothing is known."""
        return Counts(None, self.known, self.fields)

    def scaled(self, fraction: float, known: FloatArray) -> "Counts":
        """Return the counts in proportion for a sample with this fraction of the tokens, and its known tokens (K,)."""

        def part(tree: CountTree | None) -> CountTree | None:
            n = 0 if tree is None else max(round(fraction * tree.n_rows), 1)
            return None if tree is None else CountTree.create(tree.bounds.scaled(tree.n_rows, n), n)

        return replace(self, tokens=part(self.tokens), blocks=part(self.blocks), known=known)

    def weaker(self, factor: float) -> "Counts":
        """Return the same counts with a belief in those of tokens that is weaker by a factor."""
        if self.tokens is None or self.tokens.bounds.belief is None:
            return self
        bounds, belief = self.tokens.bounds, self.tokens.bounds.belief
        belief = belief._replace(strength=factor * belief.strength)
        return replace(self, tokens=CountTree.create(bounds._replace(belief=belief), self.tokens.n_rows))

    def start(self) -> Prices:
        """Return prices of 0."""
        return Prices(np.zeros(self.known.size), np.zeros(self.stated.size))

    def with_prices(self, A: FloatArray, prices: Prices) -> FloatArray:
        """Return transitions with the prices of the blocks that they start."""
        if self.blocks is None:
            return A
        added, K = np.zeros(self.fields.field.max() + 1), self.known.size
        added[self.stated] = prices.blocks
        by_label = np.where(self.fields.field >= 0, added[self.fields.field], 0.0)
        return np.vstack((A[: K + 1] + np.where(self.fields.starts, by_label, 0.0), A[K + 1 :]))

    def tally(self, tokens: Array, blocks: Array) -> list[tuple[CountTree, FloatArray]]:
        """Bounds with the counts they are about, given tokens (K,) and blocks (n, F)."""
        own = [] if self.tokens is None else [(self.tokens, tokens - self.known)]
        return own if self.blocks is None else [*own, (self.blocks, blocks.sum(axis=0)[self.stated])]

    def table(self, tokens: Array, blocks: Array) -> FloatArray:
        """Counts with the mean and strength of the belief and the bounds, (K, 5) or (K + F, 5) with those of blocks."""
        K, F = self.known.size, 0 if self.blocks is None else blocks.shape[1]
        found = np.tile([0.0, 1.0, 0.0, 0.0, np.inf], (K + F, 1))
        trees = (self.tokens, np.arange(K)), (self.blocks, K + self.stated)
        for tree, at in ((tree, at) for tree, at in trees if tree is not None):
            strength = np.where(tree.believed, tree.belief.strength, 0.0)
            found[at, 1:] = np.column_stack((tree.belief.mean, strength, tree.low, tree.high))
        found[:K, 0] = tokens - self.known
        if F:
            found[K:, 0] = blocks.sum(axis=0)
        return found

    def cost(self, tokens: Array, blocks: Array) -> float:
        """Cost of the counts."""
        return sum(tree.count_cost(counts) for tree, counts in self.tally(tokens, blocks))

    def missed(self, tokens: Array, blocks: Array) -> list[tuple[bool, int, int, int, int]]:
        """Counts outside their bounds: whether of tokens, label or field, the count, and the bounds."""
        found = []
        for tree, counts in self.tally(tokens, blocks):
            outside = np.flatnonzero((counts < tree.low) | (counts > tree.high))
            names = outside if tree is self.tokens else self.stated[outside]
            numbers = np.column_stack((names, counts[outside], tree.low[outside], tree.high[outside])).astype(int)
            found += [(tree is self.tokens, *row) for row in numbers.tolist()]
        return found

    def dual(self, prices: Prices, best_scores: float) -> float:
        """Lower bound on the cost of all labels, given the sum of the best scores of all sequences at the prices."""
        return self._worth(prices)[0] + float(prices.tokens @ self.known) - best_scores

    def _worth(self, prices: Prices) -> tuple[float, list[FloatArray]]:
        """What the bounds are worth at prices, and the counts at which they are."""
        value, best = 0.0, []
        for tree, u in ((self.tokens, prices.tokens), (self.blocks, prices.blocks)):
            if tree is not None:
                masses = tree.best_masses(u)
                value += float(masses @ u) + tree.count_cost(masses)
                best.append(masses)
        return value, best

    def maximize(
        self,
        chains: Chains,
        S: FloatArray,
        A: FloatArray,
        temperature: float,
        prices: Prices,
        tol: float,
        max_steps: int = MAX_STEPS,
    ) -> Prices:
        """Maximise the dual at a temperature until counts are met to `tol` of all tokens, shared by the labels."""
        if self.is_empty:
            return prices
        n, K = max(len(S), 1), self.known.size if self.tokens is not None else 0

        def unpack(u: FloatArray) -> Prices:
            return Prices(u[:K] if K else prices.tokens, u[K:])

        def negative(u: FloatArray) -> tuple[float, FloatArray]:
            at = unpack(u)
            sums = self._sums(chains, S, A, at, temperature)
            value, best = self._worth(at)
            value += float(at.tokens @ self.known) - temperature * float(sums.log_z.sum())
            tallies = [counts for _, counts in self.tally(sums.tokens, sums.blocks)]
            deficits = [one - other for one, other in zip(best, tallies, strict=True)]
            beyond = np.sign(u) * np.maximum(np.abs(u) - MAX_PRICE, 0.0)
            return 0.5 * float(beyond @ beyond) - value / n, beyond - np.concatenate(deficits) / n

        first = np.concatenate((prices.tokens if K else prices.tokens[:0], prices.blocks))
        curvature = self._curvature(temperature) / n
        options = {"gtol": tol / first.size, "maxiter": max_steps, "hess_inv0": np.diag(1.0 / curvature)}
        return unpack(minimize(negative, first, jac=True, method="BFGS", options=options).x)

    def _sums(self, chains: Chains, S: FloatArray, A: FloatArray, prices: Prices, temperature: float) -> ChainSums:
        fields = None if self.blocks is None else self.fields
        return chains.marginals(S, self.with_prices(A, prices), prices.tokens, temperature, fields=fields)

    def _curvature(self, temperature: float) -> FloatArray:
        """First guess of the second derivative of minus the dual, if labels of blocks changed independently."""
        found = []
        for tree, length in ((self.tokens, BLOCK_LENGTH), (self.blocks, 1.0)):
            if tree is not None:
                mean = np.where(tree.believed, tree.belief.mean, (tree.low + np.minimum(tree.high, tree.n_rows)) / 2.0)
                strength = np.where(tree.believed, np.maximum(tree.belief.strength, 1e-9), np.inf)
                found.append(np.maximum(mean, 1.0) * (length / temperature + 1.0 / strength))
        return np.concatenate(found)
