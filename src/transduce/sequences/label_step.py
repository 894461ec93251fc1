"""The label step for sequences: labels, or distributions over them, under counts and constraints.

Soft labels are marginals at the prices of the counts (`counts`). Hard labels are the best ones at prices that maximise
the dual at T = 0, found at falling temperatures. Ties leave counts open there: sequences then exchange their labels for
those that are best at slightly other prices, and switches of single tokens close the rest. Cost less dual value is a
certificate: labels that cost less than the dual value do not exist.

Constraints are watched where they matter (`automaton`): hard labels watch what they would break, which is exact. Soft
labels watch fields whose constraints may be broken with a probability above `MIN_PROBABILITY`. That is bounded by
E[blocks] − max_t q_t for a field with at most one block.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from transduce.arrays import BoolArray, FloatArray, IntArray
from transduce.errors import InputError
from transduce.parallel import row_blocks
from transduce.sequences._kernels.switches import switch_tokens
from transduce.sequences.automaton import Rules
from transduce.sequences.chains import Chains, ChainSums, Fields
from transduce.sequences.counts import Counts, Prices
from transduce.sequences.exchange import choose_labelings

HARD_TEMPERATURES, HARD_STEPS = (0.3, 0.1, 0.03), 100
"""Temperatures at which prices of hard labels are searched for, one after another, and most steps at each."""
MIN_PROBABILITY = 0.02
"""Soft labels may break constraints of a sequence with this probability."""
SOFT_BITS, HARD_BITS = 6, 12
"""Most fields that a sequence watches."""
PENALTY, MAX_PENALTIES = 1.0, 40
"""First price of a block too many where more fields would have to be watched, and how often it may double."""
OTHER_PRICES, MAX_EXCHANGED, MAX_CELLS = (0.3, 1.0, 3.0), 1000, 5_000_000
"""Changes of a price at which other labellings are looked for, in how many sequences, with how many counts at most."""
MIN_GAP = 1e-3
"""A gap of this for each sequence is left as it is."""
MAX_SWEEPS = 20


class HardLabels(NamedTuple):
    """Labels y (N,) with their prices; scores (n,) less the costs of constraints; gap to the best possible total cost.

    The gap is in units of the score, for all sequences together, and counts cost what their belief says. `missed` are
    the counts outside their bounds, with which the gap is infinite.
    """

    y: IntArray
    prices: Prices
    scores: FloatArray
    gap: float
    missed: list[tuple[bool, int, int, int, int]]
    dual: float

    @property
    def rank(self) -> tuple[int, float]:
        """How bad the labels are: tokens and blocks outside the bounds, then the cost."""
        return sum(max(low - n, n - high) for _, _, n, low, high in self.missed), self.gap


@dataclass(eq=False)
class LabelStep:
    """Labels of open sequences.

    chains      sequences, with the labels that their tokens may have
    rules       constraints on blocks
    counts      bounds and beliefs on counts
    forbidden   (K + 2, K) transitions that are not allowed
    positions   (n,) of the sequences among all, for messages
    is_lenient  whether sequences that cannot meet the constraints are labelled without them
    watched     (n, F) fields that soft labels watch
    exempt      (n,) sequences that cannot meet the constraints
    """

    chains: Chains
    rules: Rules
    counts: Counts
    forbidden: BoolArray
    positions: IntArray
    is_lenient: bool = False
    watched: BoolArray = field(init=False)
    exempt: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.watched = np.zeros((self.chains.n_sequences, len(self.rules.names)), bool)
        self.exempt = np.zeros(self.chains.n_sequences, bool)

    def transitions(self, A: FloatArray) -> FloatArray:
        """Transitions with those that are not allowed at −inf."""
        return np.where(self.forbidden, -np.inf, A)

    def soft(
        self, S: FloatArray, A: FloatArray, temperature: float, prices: Prices, weights: FloatArray, watch: bool = True,
        tol: float = 1e-2,
    ) -> tuple[Prices, ChainSums]:  # fmt: skip
        """Find prices at a temperature; S (N, K) is overwritten by marginals, times the weights (n,).

        `watch` says whether to watch constraints that these labels are likely to break, from the next call on.
        """
        A, chains = self.transitions(A), self._watching()
        prices = self.counts.maximize(chains, S, A, temperature, prices, tol)
        A = self.counts.with_prices(A, prices)
        sums = chains.marginals(S, A, prices.tokens, temperature, weights, out=S, fields=self._fields)
        self._refuse_infeasible(sums.log_z)
        if watch and not self.rules.is_empty:
            self._watch_more(sums.blocks, sums.peaks)
        return prices, sums

    def hard(self, S: FloatArray, A: FloatArray, prices: Prices, tol: float = 1e-3) -> HardLabels:
        """Find labels at T = 0."""
        best, allowed = self.at_prices(S, A, prices), self.transitions(A)
        if self.counts.is_empty:
            return best
        for temperature in HARD_TEMPERATURES:
            prices = self.counts.maximize(self._watching(), S, allowed, temperature, prices, tol, HARD_STEPS)
            found = self.at_prices(S, A, prices)
            best = found if found.dual > best.dual else best
        y = self._switched(S, allowed, best.y, best.prices)
        return self._hard_labels(S, allowed, y, best.prices, best.dual)

    def at_prices(self, S: FloatArray, A: FloatArray, prices: Prices) -> HardLabels:
        """Find the best labels at these prices, whatever their counts."""
        A = self.transitions(A)
        y, scores, slack = self.best(S, self.counts.with_prices(A, prices), prices.tokens)
        return self._hard_labels(S, A, y, prices, self.counts.dual(prices, float((scores + slack).sum())))

    def improve(self, S: FloatArray, A: FloatArray, found: HardLabels) -> HardLabels:
        """Close more of the gap of hard labels, if there is one."""
        if self.counts.is_empty or found.gap <= MIN_GAP * self.chains.n_sequences:
            return found
        A = self.transitions(A)
        y = self._switched(S, A, self._exchanged(S, A, found.y, found.prices), found.prices)
        other = self._hard_labels(S, A, y, found.prices, found.dual)
        return min(found, other, key=lambda labels: labels.rank)

    def _hard_labels(self, S: FloatArray, A: FloatArray, y: IntArray, prices: Prices, dual: float) -> HardLabels:
        costs, _, blocks = self.rules.check(y, self.chains.offsets)
        scores = self.chains.score(S, A, y) - costs
        tokens = np.bincount(y, minlength=self.chains.n_labels).astype(np.float64)
        cost, missed = self.counts.cost(tokens, blocks) - float(scores.sum()), self.counts.missed(tokens, blocks)
        return HardLabels(y, prices, scores, np.inf if missed else max(cost - dual, 0.0), missed, dual)

    def best(
        self, S: FloatArray, A: FloatArray, v: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Best labels (N,) under the constraints, their scores (n,), and how much better others could be at most."""
        n = self.chains.n_sequences
        y, scores, slack = np.zeros(len(S), np.int64), np.zeros(n), np.zeros(n)
        watched, left = np.zeros_like(self.watched), np.arange(n)
        while left.size:
            some = self.chains.with_groups(self.rules.groups(watched, left))
            labels, values = some.viterbi(S, A, v)
            if self.is_lenient and watched.any():
                hopeless = ~np.isfinite(values[left])
                self.exempt[left[hopeless]], left = True, left[~hopeless]
            tokens = self.chains.tokens_of(left) if left.size < n else slice(None)
            y[tokens], scores[left] = labels[tokens], values[left]
            self._refuse_infeasible(scores)
            if self.rules.is_empty:
                break
            broken = self.rules.check(y, self.chains.offsets)[1] & ~watched & ~self.exempt[:, None]
            new = broken.any(axis=1)
            full = new & ((watched | broken).sum(axis=1) > HARD_BITS)
            for s in np.flatnonzero(full).tolist():
                at = slice(*self.chains.offsets[s : s + 2])
                y[at], scores[s], slack[s] = self._penalized(s, S, A, v, np.flatnonzero(watched[s]))
            left = np.flatnonzero(new & ~full)
            watched[left] |= broken[left]
        self.watched |= watched & ((self.watched | watched).sum(axis=1) <= SOFT_BITS)[:, None]
        self.watched[self.exempt] = False
        return y, scores, slack

    def _penalized(
        self, s: int, S: FloatArray, A: FloatArray, v: FloatArray | None, watched: IntArray
    ) -> tuple[IntArray, float, float]:
        """Labels of one sequence with too many fields to watch: prices on blocks, doubled until nothing is broken."""
        one = self.chains.select(np.array([s]))
        one = one.with_groups([(self.rules.automaton(watched), np.array([0]))])
        S, offsets, prices = S[slice(*self.chains.offsets[s : s + 2])], one.offsets, np.zeros(len(self.rules.names))
        by_label = np.where(self.rules.field >= 0, self.rules.field, -1)
        bound = np.inf
        for _ in range(MAX_PENALTIES):
            paid = np.where(by_label >= 0, prices[by_label], 0.0)
            at = np.vstack((A[:-1] - np.where(self.rules.starts, paid, 0.0), A[-1:]))
            y, value = one.viterbi(S, at, v)
            bound = min(bound, float(value[0] + prices.sum()))
            costs, broken, _ = self.rules.check(y, offsets)
            if np.isfinite(costs[0]):
                paid = np.zeros(A.shape[1]) if v is None else v
                score = float(one.score(S + paid, A, y)[0]) - float(costs[0])
                return y, score, max(bound - score, 0.0)
            prices = np.where(broken[0] & np.isinf(self.rules.most), np.maximum(2.0 * prices, PENALTY), prices)
        raise InputError(
            f"Sequence {self.positions[s]} breaks constraints of more than {HARD_BITS} labels at once. State fewer."
        )

    def _watching(self) -> Chains:
        """Sequences with the automata of the fields that they watch."""
        if not self.watched.any():
            return self.chains
        return self.chains.with_groups(self.rules.groups(self.watched, np.arange(self.chains.n_sequences)))

    @property
    def _fields(self) -> Fields | None:
        has_none = self.rules.is_empty and self.counts.blocks is None
        return None if has_none else Fields(self.rules.field, self.rules.starts)

    def _watch_more(self, blocks: FloatArray, peaks: FloatArray) -> None:
        """Watch fields whose constraints may be broken, the likeliest first."""
        rules, many = self.rules, blocks - peaks
        likely = np.where(rules.most > 0, many, 0.0)
        likely = np.maximum(likely, np.where(rules.least > 0, 1.0 - peaks, 0.0))
        for a, b in np.argwhere(rules.before > 0):
            likely[:, b] = np.maximum(likely[:, b], np.minimum(blocks[:, a], blocks[:, b]))
        for a, b in np.argwhere(rules.needs > 0):
            risk = np.minimum(blocks[:, a], 1.0 - peaks[:, b])
            likely[:, [a, b]] = np.maximum(likely[:, [a, b]], risk[:, None])
        likely[self.watched] = np.inf
        rank = (-likely).argsort(axis=1, kind="stable").argsort(axis=1)
        self.watched |= (likely > MIN_PROBABILITY) & (rank < SOFT_BITS) & ~self.exempt[:, None]

    def _switched(self, S: FloatArray, A: FloatArray, y: IntArray, prices: Prices) -> IntArray:
        """Labels after switches of single tokens, those first that cost least at the prices."""
        y, chains = y.copy(), self.chains
        counts = self._count_table(y)
        at = np.repeat(np.arange(chains.n_sequences), chains.lengths)
        for _ in range(MAX_SWEEPS):
            order = np.argsort(_margins(S, prices.tokens, y), kind="stable")
            spans = chains.offsets[at[order]], chains.offsets[at[order] + 1]
            given: list[Any] = [S, *chains.allowed, A, order, *spans, counts, *self.rules.tables, y]
            if not switch_tokens(*given):
                break
        return y

    def _exchanged(self, S: FloatArray, A: FloatArray, y: IntArray, prices: Prices) -> IntArray:
        """Labels of which some sequences have exchanged theirs for others that are nearly as good at the prices."""
        n, table = self.chains.n_sequences, self._count_table(y)
        most = max(MAX_CELLS // (2 * len(OTHER_PRICES) * len(table) ** 2), 1)
        some = np.unique(np.linspace(0, n - 1, min(n, MAX_EXCHANGED, most)).astype(np.int64))
        part = LabelStep(self.chains.select(some), self.rules, self.counts, self.forbidden, self.positions[some])
        at = self.chains.tokens_of(some)
        labelings = part._labelings(S[at], A, prices, y[at])
        scored = [part._scored(S[at], A, one) for one in labelings]
        u = np.concatenate((prices.tokens, np.zeros(len(table) - prices.tokens.size)))
        u[prices.tokens.size + self.counts.stated] = prices.blocks
        chosen = choose_labelings(np.stack([s for s, _ in scored]), np.stack([t for _, t in scored]), table, u)
        y = y.copy()
        y[at] = np.stack(labelings)[np.repeat(chosen, part.chains.lengths), np.arange(at.size)]
        return y

    def _labelings(self, S: FloatArray, A: FloatArray, prices: Prices, y: IntArray) -> list[IntArray]:
        """Labels y (N,), and the best ones at the prices, and at those that differ for one count."""
        K = prices.tokens.size
        found = [y, self.best(S, self.counts.with_prices(A, prices), prices.tokens)[0]]
        for j in range(K + prices.blocks.size):
            for change in (*OTHER_PRICES, *(-each for each in OTHER_PRICES)):
                u = np.concatenate(prices)
                u[j] += change
                found.append(self.best(S, self.counts.with_prices(A, Prices(u[:K], u[K:])), u[:K])[0])
        return found

    def _scored(self, S: FloatArray, A: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Scores (n,) of labels less the costs of constraints, and counts (n, K) or (n, K + F) in each sequence."""
        n, K = self.chains.n_sequences, self.chains.n_labels
        costs, _, blocks = self.rules.check(y, self.chains.offsets)
        at = np.repeat(np.arange(n), self.chains.lengths)
        tokens = np.bincount(at * K + y, minlength=n * K).reshape(n, K)
        tallies = tokens if self.counts.blocks is None else np.hstack((tokens, blocks))
        return self.chains.score(S, A, y) - costs, tallies.astype(np.float64)

    def _count_table(self, y: IntArray) -> FloatArray:
        blocks = self.rules.check(y, self.chains.offsets)[2]
        return self.counts.table(np.bincount(y, minlength=self.chains.n_labels), blocks)

    def _refuse_infeasible(self, values: FloatArray) -> None:
        if not np.isfinite(values).all():
            s = int(np.argmin(np.isfinite(values)))
            raise InputError(
                f"Constraints, scheme and known labels allow no labels for sequence {self.positions[s]}. "
                "Remove a constraint, or give it a cost."
            )


def _margins(S: FloatArray, v: FloatArray, y: IntArray) -> FloatArray:
    """How much the scores of labels y (N,) exceed the second best ones, at prices v."""
    found = np.empty(y.size)
    for rows in row_blocks(y.size, 1 << 14):
        paid = S[rows] + v
        found[rows] = paid[np.arange(len(paid)), y[rows]] - np.partition(paid, -2, axis=1)[:, -2]
    return found
