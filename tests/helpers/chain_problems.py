"""Small problems of chains, and their solutions by enumeration of all labels."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import sparse

from transduce.design import Design
from transduce.sequences.automaton import Rules
from transduce.sequences.chains import Chains
from transduce.sequences.constraints import Before, Needs, Once
from transduce.taxonomy import Taxonomy

LABELS = "abcd"


class Enumerated(NamedTuple):
    """All labels of one chain (y), their scores less costs, and the logarithm of the normalizer at a temperature."""

    labels: list[tuple[int, ...]]
    scores: np.ndarray

    def log_z(self, temperature: float = 1.0) -> float:
        return float(np.logaddexp.reduce(self.scores / temperature))

    def marginals(self, n_labels: int, temperature: float = 1.0) -> np.ndarray:
        weights = np.exp(self.scores / temperature - self.log_z(temperature))
        found = np.zeros((len(self.labels[0]), n_labels))
        for y, weight in zip(self.labels, weights, strict=True):
            found[np.arange(len(y)), y] += weight
        return found


def chains_of(lengths: list[int], n_labels: int, n_jobs: int = 1, n_features: int = 1, seed: int = 0) -> Chains:
    """Chains with random features."""
    X = sparse.random(sum(lengths), n_features, 0.6, "csr", random_state=seed, dtype=np.float64)
    design = Design.create(X, Taxonomy.flat(list(LABELS[:n_labels])), n_jobs)
    return Chains.create(design, np.concatenate(([0], np.cumsum(lengths))))


def random_scores(rng: np.random.Generator, n_tokens: int, n_labels: int, scale: float = 2.0) -> tuple:
    """Token scores (N, K) and transitions (K + 2, K)."""
    return scale * rng.normal(size=(n_tokens, n_labels)), rng.normal(size=(n_labels + 2, n_labels))


def enumerate_chain(chains: Chains, s: int, S: np.ndarray, A: np.ndarray, v: np.ndarray, rules: Rules) -> Enumerated:
    """All labels of chain s."""
    begin, end = chains.offsets[s : s + 2]
    one = chains.select(np.array([s]))
    labels = list(product(range(A.shape[1]), repeat=end - begin))
    scores = []
    for y in labels:
        codes = np.array(y)
        cost = rules.check(codes, one.offsets)[0][0]
        scores.append(one.score(S[begin:end], A, codes)[0] + v[codes].sum() - cost)
    return Enumerated(labels, np.array(scores))


def random_rules(rng: np.random.Generator, n_labels: int) -> Rules:
    """A few constraints of every kind, hard or with a cost; "before" follows the alphabet, so there is no cycle."""
    names, found = list(LABELS[:n_labels]), []
    for _ in range(rng.integers(1, 5)):
        a, b = sorted(rng.choice(n_labels, 2, replace=False))
        cost = np.inf if rng.random() < 0.5 else float(rng.uniform(0.2, 3.0))
        kind = rng.integers(4)
        if kind == 0:
            found.append(Once(names[a], True, False, cost))
        elif kind == 1:
            found.append(Once(names[a], bool(rng.integers(2)), True, cost))
        elif kind == 2:
            found.append(Before(names[a], names[b], cost))
        else:
            found.append(Needs(*rng.permutation([names[a], names[b]]).tolist(), cost))
    return Rules.create(names, None, found)
