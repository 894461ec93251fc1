"""Constraints as automata: which blocks a sequence has had, in as few bits as its labels make necessary.

A field is a label, or what B-x and I-x have in common. One bit for each of F fields would need 2^F states. But a
sequence needs a bit only for the fields whose constraints its best labels break without one: a relaxation whose
solution breaks nothing is optimal. So bits are added until nothing is broken (lazy constraints).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.arrays import Array, BoolArray, FloatArray, IntArray
from transduce.sequences._kernels.violations import batch_violations
from transduce.sequences.chains import Automaton, Group
from transduce.sequences.constraints import Before, Constraint, Needs, Once
from transduce.sequences.schemes import OUTSIDE, split_label, starts_block


@dataclass(frozen=True, eq=False)
class Rules:
    """Constraints on the blocks of a sequence as tables, with their costs; 0 where there is none.

    names   (F) fields
    field   (K,) field of each label, −1 for none
    starts  (K + 1, K) whether a label after another one starts a block; row K is for the first token
    most, before, least, needs   costs (see `_kernels.violations`)
    """

    names: list[Any]
    field: IntArray
    starts: BoolArray
    most: FloatArray
    before: FloatArray
    least: FloatArray
    needs: FloatArray

    @classmethod
    def create(cls, labels: Sequence[Any], scheme: str | None, constraints: Sequence[Constraint] = ()) -> "Rules":
        """Return the tables for these labels (K)."""
        names = fields_of(labels, scheme)
        parts = [split_label(label, scheme) for label in labels]
        position = {name: f for f, name in enumerate(names)}
        field = np.array([-1 if tag == OUTSIDE else position[name] for tag, name in parts])
        starts = np.array([[starts_block(one, other) for other in parts] for one in [*parts, (OUTSIDE, "")]])
        F = len(names)
        rules = cls(names, field, starts, np.zeros(F), np.zeros((F, F)), np.zeros(F), np.zeros((F, F)))
        for each in constraints:
            rules._add(each, position)
        return rules

    def _add(self, each: Constraint, position: dict[Any, int]) -> None:
        if isinstance(each, Once):
            f = position[each.label]
            self.most[f] += each.cost if each.at_most else 0.0
            self.least[f] += each.cost if each.at_least else 0.0
        elif isinstance(each, Before):
            self.before[position[each.first], position[each.second]] += each.cost
        elif isinstance(each, Needs):
            self.needs[position[each.label], position[each.other]] += each.cost

    @property
    def is_empty(self) -> bool:
        """Whether nothing is constrained."""
        return not any(table.any() for table in (self.most, self.before, self.least, self.needs))

    @property
    def tables(self) -> tuple[Array, ...]:
        """Fields and costs as kernels take them; costs are empty if nothing is constrained."""
        if self.is_empty:
            none, square = np.zeros(0), np.zeros((0, 0))
            return self.field, self.starts, none, square, none, square
        return self.field, self.starts, self.most, self.before, self.least, self.needs

    def check(self, y: IntArray, offsets: IntArray) -> tuple[FloatArray, BoolArray, IntArray]:
        """Costs (n,) of labels y (N,), fields (n, F) to watch where they break something, and blocks (n, F)."""
        n, F = offsets.size - 1, len(self.names)
        costs, broken, blocks = np.zeros(n), np.zeros((n, F), bool), np.zeros((n, F), np.int64)
        spans = np.column_stack((offsets[:-1], offsets[1:]))
        batch_violations(
            y, spans, self.field, self.starts, self.most, self.before, self.least, self.needs, costs, broken, blocks
        )
        return costs, broken, blocks

    def automaton(self, watched: IntArray) -> Automaton:
        """Return the automaton that watches some fields, with a bit for each."""
        B = 1 << watched.size
        bits = (np.arange(B)[:, None] >> np.arange(watched.size)) & 1  # (B, w)
        concerned = np.isin(np.arange(len(self.names)), watched) | self.before[:, watched].any(axis=1)
        label = np.flatnonzero((self.field >= 0) & concerned[self.field])
        own = self.field[label]
        bit = {int(f): b for b, f in enumerate(watched)}
        move = np.array([1 << bit[f] if f in bit else 0 for f in own.tolist()], dtype=np.int64)
        again = np.array([bits[:, bit[f]] if f in bit else np.zeros(B) for f in own.tolist()]).T.reshape(B, label.size)
        with np.errstate(invalid="ignore"):
            entry = np.where(again > 0, self.most[own], 0.0)
            after = np.where(bits[:, None, :] > 0, self.before[np.ix_(own, watched)], 0.0)
            last = np.where(bits > 0, 0.0, self.least[watched]).sum(axis=1)
            pairs = (bits[:, :, None] > 0) & (bits[:, None, :] == 0)
            last += np.where(pairs, self.needs[np.ix_(watched, watched)], 0.0).sum(axis=(1, 2))
        return Automaton(label, move, self.starts[:-1][:, label], entry + after.sum(axis=2), last)

    def groups(self, watched: BoolArray, sequences: IntArray) -> list[Group]:
        """Automata for some sequences, given the fields (n, F) that each watches."""
        if not sequences.size:
            return []
        sets, which = np.unique(watched[sequences], axis=0, return_inverse=True)
        which = which.reshape(-1)
        return [(self.automaton(np.flatnonzero(each)), sequences[which == i]) for i, each in enumerate(sets)]


def fields_of(labels: Sequence[Any], scheme: str | None) -> list[Any]:
    """Names of the fields of labels, sorted: the labels themselves without a scheme, except O.

    >>> fields_of(["B-year", "I-year", "O"], "BIO"), fields_of(["O", "title", "year"], None)
    (['year'], ['title', 'year'])
    """
    return sorted({name for tag, name in (split_label(label, scheme) for label in labels) if tag != OUTSIDE})


def forbidden_transitions(labels: Sequence[Any], scheme: str | None) -> BoolArray:
    """Transitions (K + 2, K) that are not valid in a scheme; the last rows are for first and last labels.

    >>> forbidden_transitions(["B-x", "I-x", "O"], "BIO").astype(int).tolist()
    [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    parts, edge = [split_label(label, scheme) for label in labels], (OUTSIDE, "")
    pairs = [[(one, other) for other in parts] for one in [*parts, edge]] + [[(other, edge) for other in parts]]
    if scheme is None:
        return np.zeros((len(parts) + 2, len(parts)), bool)
    return np.array([[not _is_valid(one, other, scheme) for one, other in row] for row in pairs])


def _is_valid(one: tuple[str, str], other: tuple[str, str], scheme: str) -> bool:
    """Whether a label may follow another one."""
    continues, is_open = other[0] in ("I", "E"), one[0] in ("B", "I")
    if continues:
        return is_open and one[1] == other[1]
    return scheme == "BIO" or not is_open
