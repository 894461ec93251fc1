"""The objective of a tagger, J, and its weight step.

    J(θ, q) = λ/2 ‖θ‖² + Σ_s κ_s loss_s(θ, q)        κ_s = f_s / n_known + (1 − f_s) C / n_free

f_s is the fraction of the tokens of sequence s whose label is known, n_known and n_free count tokens with and without a
known label. So labelled tokens weigh 1 together, the others C, and a sequence with some labels is in between.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from transduce.arrays import BoolArray, FloatArray, IntArray
from transduce.sequences.chains import Chains
from transduce.sequences.weights import ChainLoss
from transduce.weight_step.lbfgs import Minimum


class Labeling(NamedTuple):
    """Distributions over the labels of some sequences.

    posterior  (N, K) marginals of the tokens' labels, times the weights κ of their sequences
    edges      (K + 2, K) expected transitions, first and last labels, weighted likewise
    """

    posterior: FloatArray
    edges: FloatArray


@dataclass(frozen=True, eq=False)
class ChainProblem:
    """Sequences, the labels that their tokens may have, and the weight of the regulariser.

    chains     all sequences, with allowed labels and constraints
    codes      (N,) known label of each token, or −1
    alpha      λ
    is_margin  whether the loss is the structured margin; otherwise it is maxent
    """

    chains: Chains
    codes: IntArray
    alpha: float
    is_margin: bool = False

    @property
    def n_known(self) -> int:
        """Tokens with a known label."""
        return int((self.codes >= 0).sum())

    @property
    def known_fraction(self) -> FloatArray:
        """f (n,)."""
        known = np.add.reduceat((self.codes >= 0).astype(np.float64), self.chains.offsets[:-1])
        return np.asarray(known / self.chains.lengths)

    @property
    def is_open(self) -> BoolArray:
        """Which sequences (n,) have tokens without a known label."""
        return self.known_fraction < 1.0

    def kappa(self, unlabeled_weight: float) -> FloatArray:
        """Weights κ (n,) of the sequences for C."""
        f, n_known = self.known_fraction, self.n_known
        n_free = max(self.codes.size - n_known, 1)
        return f / max(n_known, 1) + unlabeled_weight * (1.0 - f) / n_free

    def zeros(self) -> FloatArray:
        """Weights θ of 0."""
        K = self.chains.n_labels
        return np.zeros((self.chains.design.n_features + K + 2, K))

    def select(self, sequences: IntArray) -> "ChainProblem":
        """Return the problem of some sequences."""
        return replace(self, chains=self.chains.select(sequences), codes=self.codes[self.chains.tokens_of(sequences)])

    def fit_weights(
        self, theta: FloatArray, kappa: FloatArray, labeling: Labeling, tol: float, max_iter: int
    ) -> Minimum:
        """Minimise J in θ for these labels, from θ; the gradient of the result is relative to that at 0."""
        return self._loss(kappa, labeling).minimize(theta, self.alpha, tol, max_iter)

    def objective(self, theta: FloatArray, kappa: FloatArray, labeling: Labeling) -> float:
        """J for these labels."""
        return self._loss(kappa, labeling)(theta)[0] + 0.5 * self.alpha * float(np.vdot(theta, theta))

    def _loss(self, kappa: FloatArray, labeling: Labeling) -> ChainLoss:
        Q, features = None, self.chains.pullback(*labeling)
        if self.is_margin:
            weights = np.repeat(kappa, self.chains.lengths)[:, None]
            Q = np.divide(labeling.posterior, weights, out=np.zeros_like(labeling.posterior), where=weights > 0.0)
        return ChainLoss(self.chains.free(), kappa, features, Q)

    def known_labels(self, kappa: FloatArray) -> Labeling:
        """Labels of sequences that are known in full, as a labelling of them."""
        return given_labels(self.codes, self.chains.offsets, kappa, self.chains.n_labels)


def given_labels(y: IntArray, offsets: IntArray, kappa: FloatArray, n_labels: int) -> Labeling:
    """Hard labels y (N,) of sequences with weights κ (n,), as a labelling."""
    K, weight = n_labels, np.repeat(kappa, np.diff(offsets))
    posterior, edges = np.zeros((y.size, K)), np.zeros((K + 2, K))
    posterior[np.arange(y.size), y] = weight
    inside = np.ones(y.size, bool)
    inside[offsets[1:] - 1] = False
    at = np.flatnonzero(inside)
    np.add.at(edges, (y[at], y[at + 1]), weight[at])
    np.add.at(edges[K], y[offsets[:-1]], kappa)
    np.add.at(edges[K + 1], y[offsets[1:] - 1], kappa)
    return Labeling(posterior, edges)
