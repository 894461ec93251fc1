"""How far label counts can be trusted: whether their prices make labels likelier that were hidden from a fit.

Fractions among a few labelled sequences are a poor guide where sequences differ much, and prices of tokens are a poor
tool where errors are not a matter of counts. So a fifth of the labelled sequences is hidden at a time, the supervised
tagger of the others labels them with and without prices, and the gain is the relative decrease of their log loss.
Measured on development splits: a gain of .08 to .14 on citations, where transduction with these counts raises token
accuracy by .03 to .04; of -.09 to .08 on posts about hotels, where it loses unless the belief in the counts is weak.
"""

import numpy as np

from transduce.arrays import Array, FloatArray
from transduce.sequences.counts import Counts
from transduce.sequences.problem import ChainProblem
from transduce.sequences.sizes import token_bounds

N_FOLDS, MAX_OPEN, TOL = 5, 2000, 3e-3
"""Parts of the labelled sequences, unlabelled sequences that prices are computed from, and tolerance of the fits."""
NO_GAIN, FULL_GAIN = 0.03, 0.09
"""Gains at which counts from labels are not trusted at all, and fully."""


def trust_in_counts(problem: ChainProblem, classes: Array, counts: Counts) -> float:
    """Return 0 to 1: how far the fractions of labels among known tokens should be believed."""
    closed, is_open = np.flatnonzero(~problem.is_open), np.flatnonzero(problem.is_open)[:MAX_OPEN]
    n_folds = min(N_FOLDS, closed.size)
    if n_folds < 2 or is_open.size == 0:
        return 0.0
    losses = np.sum([_losses(problem, classes, counts, closed, f, n_folds, is_open) for f in range(n_folds)], axis=0)
    gain = 1.0 - losses[1] / max(losses[0], 1e-12)
    return float(np.clip((gain - NO_GAIN) / (FULL_GAIN - NO_GAIN), 0.0, 1.0))


def _losses(
    problem: ChainProblem, classes: Array, counts: Counts, closed: Array, fold: int, n_folds: int, is_open: Array
) -> FloatArray:
    """Sums of the log losses of hidden tokens, without and with prices."""
    hidden, kept = closed[fold::n_folds], np.delete(closed, slice(fold, None, n_folds))
    part = problem.select(kept)
    kappa = part.kappa(0.0)
    theta = part.fit_weights(part.zeros(), kappa, part.known_labels(kappa), TOL, 10 * N_FOLDS * N_FOLDS).W
    chains, y = problem.chains.free().select(np.concatenate((hidden, is_open))), problem.select(hidden).codes
    S, A = chains.scores(theta), chains.transitions(theta)
    codes = np.concatenate((part.codes, np.full(len(S), -1)))
    own = Counts(token_bounds("labeled", classes, codes), np.zeros(len(classes)), counts.fields)
    prices = own.maximize(chains, S, A, 1.0, own.start(), 1e-2)
    found, at = chains.select(np.arange(hidden.size)), np.arange(y.size)
    losses = []
    for v in (None, prices.tokens):
        Q = S[: y.size].copy()
        found.marginals(Q, A, v, out=Q)
        losses.append(-np.log(np.maximum(Q[at, y], 1e-9)).sum())
    return np.array(losses)
