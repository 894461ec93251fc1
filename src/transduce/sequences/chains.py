"""Chains of tokens: scores, marginals, expected counts and best labels of many sequences, in threads over sequences.

    score(y) = Σ_t (S[t, y_t] + v[y_t]) + Σ_t A[y_{t−1}, y_t] + A[K, y_1] + A[K + 1, y_T]
    p(y) ∝ exp(score(y) / T)

S = X W are token scores, v prices of labels. A (K + 2, K) holds the transitions, then the scores of first and last
labels. Weights θ (d + K + 2, K) are W above A, so that one regulariser and one solver serve both. An automaton
(`automaton`) restricts or penalises the labels of a sequence; sequences that need the same one are solved together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from transduce.arrays import Array, BoolArray, FloatArray, IntArray
from transduce.design import Design
from transduce.parallel import Threads
from transduce.sequences._kernels.batch import batch_marginals, batch_viterbi, score_labels

Result = TypeVar("Result")

TOKENS_PER_BLOCK = 4096
"""Tokens that a thread takes at a time; fixed, so that sums do not depend on the number of threads."""
LEAST = 1e-300
"""Probabilities of transitions below this have lost digits."""


class Automaton(NamedTuple):
    """What a sequence has seen, as bits, and the costs that follow from it (see `_kernels.chain`).

    label (n,)      labels whose blocks are watched
    move (n,)       bits that a block of each sets
    starts (K, n)   whether a transition to the label starts a block of it
    entry (B, n)    cost of a block that starts while the bits are m; inf forbids it
    last (B,)       cost of a sequence that ends with the bits m
    """

    label: IntArray
    move: IntArray
    starts: BoolArray
    entry: FloatArray
    last: FloatArray

    @classmethod
    def plain(cls, n_labels: int) -> "Automaton":
        """Return an automaton that watches nothing."""
        none = np.zeros(0, np.int64)
        return cls(none, none, np.zeros((n_labels, 0), bool), np.zeros((1, 0)), np.zeros(1))

    def tables(self, A: FloatArray, scale: float) -> tuple[float, tuple[Array, ...], tuple[Array, ...]]:
        """Return the shift of the transitions, and tables of probabilities and of logarithms as kernels take them."""
        K = A.shape[1]
        log_stay = scale * A[:K]
        log_start = np.where(self.starts, log_stay[:, self.label], -np.inf)
        for i, k in enumerate(self.label):
            log_stay[self.starts[:, i], k] = -np.inf
        logs = log_stay, log_start, -scale * self.entry, -scale * self.last
        shift = float(max(log_stay.max(), log_start.max(initial=-np.inf)))
        shift = shift if np.isfinite(shift) else 0.0
        chances = [np.exp(each - shift) for each in logs[:2]] + [np.exp(each) for each in logs[2:]]
        if any(((each < LEAST) & np.isfinite(log)).any() for each, log in zip(chances, logs, strict=True)):
            chances = [np.zeros_like(each) for each in chances]  # kernels then use the logarithms
        return shift, tuple(chances), logs


Group = tuple[Automaton, IntArray]


class Bias(NamedTuple):
    """Scores (R, K) that tokens may have in addition, and the row (N,) of each token; no rows for none."""

    table: FloatArray
    rows: NDArray[np.int32]


class ChainSums(NamedTuple):
    """Sums over the labels of sequences.

    log_z   (n,) logarithms of the normalizers
    edges   (K + 2, K) expected transitions, times the weights of their sequences
    tokens  (K,) expected tokens of each label
    blocks  (n, F) expected blocks of each field, where fields are given
    peaks   (n, F) largest marginal of each field among the tokens of a sequence
    """

    log_z: FloatArray
    edges: FloatArray
    tokens: FloatArray
    blocks: FloatArray
    peaks: FloatArray


class Fields(NamedTuple):
    """Field (K,) of each label, −1 for none, and whether a label after another one starts a block (K + 1, K)."""

    field: IntArray
    starts: BoolArray

    @classmethod
    def none(cls) -> "Fields":
        """Return no fields."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 0), bool))


@dataclass(frozen=True, eq=False)
class Chains:
    """Sequences of tokens that lie one after another.

    design    features of all N tokens
    offsets   (n + 1,) where sequences begin and end
    allowed   scores that are added to those of the weights, −inf for labels that are not allowed
    groups    automata and the sequences that each is for; every sequence once
    """

    design: Design
    offsets: IntArray
    allowed: Bias
    groups: Sequence[Group] = field(default_factory=list)

    @classmethod
    def create(cls, design: Design, offsets: IntArray, allowed: Bias | None = None) -> "Chains":
        """Return chains without constraints."""
        K = design.taxonomy.n_classes
        allowed = Bias(np.zeros((0, K)), np.zeros(0, np.int32)) if allowed is None else allowed
        return cls(design, offsets, allowed, [(Automaton.plain(K), np.arange(offsets.size - 1))])

    @property
    def n_labels(self) -> int:
        """K."""
        return self.design.taxonomy.n_classes

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return self.offsets.size - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sequence (n,)."""
        return np.diff(self.offsets)

    def tokens_of(self, sequences: IntArray) -> IntArray:
        """Positions of the tokens of some sequences."""
        return np.concatenate([np.arange(*self.offsets[s : s + 2]) for s in sequences] or [np.zeros(0, np.int64)])

    def select(self, sequences: IntArray) -> "Chains":
        """Return some of the sequences, without their automata."""
        tokens = self.tokens_of(sequences)
        offsets = np.concatenate(([0], np.cumsum(self.lengths[sequences])))
        rows = self.allowed.rows[tokens] if self.allowed.rows.size else self.allowed.rows
        return Chains.create(self.design.select_rows(tokens), offsets, self.allowed._replace(rows=rows))

    def free(self) -> "Chains":
        """Return the same sequences without what is allowed, as the model sees them."""
        return Chains.create(self.design, self.offsets)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Token scores S (N, K) at the weights."""
        return np.asarray(self.design.scores(theta[: self.design.n_features]), dtype=np.float64)

    def transitions(self, theta: FloatArray) -> FloatArray:
        """A (K + 2, K), a view."""
        return theta[self.design.n_features :]

    def marginals(
        self,
        S: FloatArray,
        A: FloatArray,
        v: FloatArray | None = None,
        temperature: float = 1.0,
        weights: FloatArray | None = None,
        out: FloatArray | None = None,
        fields: Fields | None = None,
    ) -> ChainSums:
        """Sum over all sequences; marginals, times the weights (n,) of their sequences, are written to `out` (N, K)."""
        fields = Fields.none() if fields is None else fields
        blocks, peaks = np.zeros((2, self.n_sequences, fields.field.max(initial=-1) + 1))
        K, scale = self.n_labels, 1.0 / temperature
        v = np.zeros(K) if v is None else v
        weights = np.ones(self.n_sequences) if weights is None else weights
        out = np.zeros((0, K)) if out is None else out
        log_z, total, tokens = np.empty(self.n_sequences), np.zeros((K + 2, K)), np.zeros(K)

        def run(group: tuple[Automaton, Any, IntArray]) -> tuple[FloatArray, FloatArray]:
            automaton, (shift, tables, logs), rows = group
            edges, mass, own = np.zeros((K + 2, K)), np.zeros(K), np.zeros(rows.size)
            at = np.zeros((2, rows.size, blocks.shape[1]))
            given = [S, *self.allowed, self._spans[rows], weights[rows], A, v, scale, shift, *tables, *logs]
            batch_marginals(*given, *[automaton.label, automaton.move, *fields, own, edges, mass, *at, out])
            log_z[rows], blocks[rows], peaks[rows] = own, *at
            return edges, mass

        for edges, mass in self._map(run, A, scale):
            total += edges
            tokens += mass
        return ChainSums(log_z, total, tokens, blocks, peaks)

    def viterbi(self, S: FloatArray, A: FloatArray, v: FloatArray | None = None) -> tuple[IntArray, FloatArray]:
        """Best labels (N,), and their scores (n,); −inf where no labels are allowed."""
        y, values = np.zeros(len(S), np.int64), np.empty(self.n_sequences)
        v = np.zeros(self.n_labels) if v is None else v

        def run(group: tuple[Automaton, Any, IntArray]) -> None:
            automaton, (_, _, logs), rows = group
            own = np.empty(rows.size)
            given = [S, *self.allowed, self._spans[rows], A, v, *logs, automaton.label, automaton.move, own, y]
            batch_viterbi(*given)
            values[rows] = own

        for _ in self._map(run, A, 1.0):
            pass
        return y, values

    def score(self, S: FloatArray, A: FloatArray, y: IntArray) -> FloatArray:
        """Scores (n,) of labels y (N,), without the costs of the automata."""
        out = np.empty(self.n_sequences)
        score_labels(S, *self.allowed, self._spans, A, y, out)
        return out

    def pullback(self, R: FloatArray, edges: FloatArray) -> FloatArray:
        """Weighted expected features (d + K + 2, K), from weighted marginals R (N, K) and transitions."""
        out = np.empty((self.design.n_features + edges.shape[0], edges.shape[1]))
        self.design.pullback(R.astype(self.design.dtype, copy=False), out[: self.design.n_features])
        out[self.design.n_features :] = edges
        return out

    def with_groups(self, groups: Sequence[Group]) -> "Chains":
        """Return the same sequences with other automata."""
        return replace(self, groups=groups)

    @property
    def _spans(self) -> IntArray:
        return np.column_stack((self.offsets[:-1], self.offsets[1:]))

    def _map(self, run: Callable[[Any], Result], A: FloatArray, scale: float) -> Any:
        """Apply a function to blocks of sequences with the same automaton, in order."""
        work = []
        for automaton, rows in self.groups:
            tables = automaton.tables(A, scale)
            block = np.cumsum(self.lengths[rows]) // TOKENS_PER_BLOCK
            parts = np.split(rows, np.flatnonzero(np.diff(block)) + 1)
            work += [(automaton, tables, part) for part in parts if part.size]
        with Threads(self.design.n_threads) as threads:
            yield from threads.map(run, work)
