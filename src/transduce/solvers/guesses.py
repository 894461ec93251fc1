"""Guesses of which some are wrong: a confusion matrix, and the probability of each class given text and guess.

    p(y = k | x, g) ∝ softmax_k(β s(x)) M[k, g],      M[k, g] = p(guess g | class k)

Scores s are those of maxent weights for the guesses, each row by weights that it took no part in. How often guesses are
right shows where the texts are clearest: there text and guess agree as often as the guess is right (Patrini et al.,
2017), and M is counted there, shrunk towards errors that are the same for all classes. The scale β makes the guesses
most likely. Later rounds use weights for the labels of the one before.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from transduce.arrays import Array
from transduce.engines.common import FIRST_SWEEPS, FIRST_TOL
from transduce.engines.held_out import held_out_scores
from transduce.engines.local import LocalEngine
from transduce.evidence import Evidence
from transduce.losses import MaxEnt, default_alpha
from transduce.problem import TrainingProblem
from transduce.weight_step import weight_step_for

CLEAREST, CLEAR_ROWS = (0.1, 0.5), 20
"""Least and greatest fraction of the rows, by the margin of their scores, that shows how often guesses are right, and
the rows for each class to aim at."""
SHRINKAGE, ROUNDS = 20.0, 3
"""Rows that the average errors count as in those of each class, and rounds."""
LOG_SCALES, SCALE_ROWS = (-2.0, 4.0), 5000
"""Range of log β, and rows that choose it."""
NO_PAIRS = np.zeros(0, np.int64), np.zeros(0, np.int64)


def judge_guesses(engine: LocalEngine, unlabeled_weight: float) -> LocalEngine:
    """Return the engine with evidence by texts and guesses together."""
    problem, evidence = engine.problem, engine.problem.evidence
    assert evidence is not None
    guesses = np.where(evidence.is_known, evidence.scores.argmax(axis=1), -1)
    if problem.forbidden is not None:  # a partial label rules some guesses out
        others = guesses[problem.n_labeled :]
        others[problem.forbidden[np.arange(others.size), others]] = -1
    logs = class_log_probabilities(problem, engine.labels, guesses)
    known = replace(evidence, costs=np.maximum(-logs, 0.0), final=1.0, full=unlabeled_weight, is_judged=True)
    return replace(engine, problem=replace(problem, evidence=known))


def suspicion(evidence: Evidence, labels: Array, n_labeled: int) -> Array:
    """How clearly labels (n,) contradict the guesses: their costs less those of the labels, 0 where they agree.

    It is 0 where labels are known, too: nobody has to check these rows, which come first.
    """
    costs, rows, guesses = evidence.costs, np.arange(labels.size), evidence.scores.argmax(axis=1)
    assert costs is not None
    has_class = labels < costs.shape[1]
    found = costs[rows, guesses] - costs[rows, np.where(has_class, labels, guesses)]
    differs = evidence.is_known & has_class & (labels != guesses) & (rows >= n_labeled)
    return np.where(differs, np.maximum(found, np.finfo(np.float64).tiny), 0.0)


def class_log_probabilities(problem: TrainingProblem, labels: Array, guesses: Array) -> Array:
    """Log-probabilities (n, K) of the classes of all rows, given labels (l,), texts and guesses (n,), −1 for none."""
    n_labeled, n_rows, n_classes = problem.n_labeled, problem.n_rows, problem.n_classes
    known = np.flatnonzero((guesses >= 0) & (np.arange(n_rows) >= n_labeled))
    others = np.flatnonzero((guesses < 0) & (np.arange(n_rows) >= n_labeled))
    weight = known.size / n_labeled if n_labeled else 1.0  # a guess weighs as much as a label
    alpha = problem.alpha * default_alpha(MaxEnt()) / default_alpha(problem.loss)
    alpha *= 1.0 + weight if n_labeled else 1.0  # as do labels and guesses together, so that one label changes little
    rows = np.concatenate((np.arange(n_labeled), known))
    part = TrainingProblem.create(
        problem.design.select_rows(rows), MaxEnt(), alpha, n_labeled, problem.row_weights[rows]
    )
    current, shown = np.concatenate((labels[:n_labeled], guesses[known])), guesses[known]
    pairs = labels[:n_labeled][guesses[:n_labeled] >= 0], guesses[:n_labeled][guesses[:n_labeled] >= 0]
    for _ in range(ROUNDS):
        scores = held_out_scores(part, current, weight).astype(np.float64)
        confusion = estimate_confusion(scores, shown, pairs)
        scale = _scale(scores, shown, confusion)
        logs = log_softmax(scale * scores + np.log(confusion[:, shown].T), axis=1)
        current = np.concatenate((labels[:n_labeled], logs.argmax(axis=1)))
    found = np.full((n_rows, n_classes), -np.log(n_classes))
    found[known] = logs
    if others.size:
        found[others] = log_softmax(scale * _new_scores(problem, part, current, weight, others), axis=1)
    return found


def uniform_errors(accuracy: float, guesses: Array, n_classes: int) -> Array:
    """Confusion matrix (K, K) of guesses that are right this often, and otherwise as frequent as among all guesses.

    >>> uniform_errors(0.7, np.array([0, 1, 2]), 3).round(2).tolist()
    [[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]]
    """
    others = np.tile(np.bincount(guesses, minlength=n_classes) + 1.0, (n_classes, 1))
    np.fill_diagonal(others, 0.0)
    others /= others.sum(axis=1, keepdims=True)
    return np.asarray(accuracy * np.eye(n_classes) + (1.0 - accuracy) * others)


def estimate_confusion(scores: Array, guesses: Array, pairs: tuple[Array, Array] = NO_PAIRS) -> Array:
    """Confusion matrix (K, K) of guesses (m,) where scores (m, K) are clearest, shrunk towards uniform errors.

    `pairs` are known labels (l,) and the guesses (l,) of their rows, which count too.
    """
    best, n_classes = np.sort(scores, axis=1), scores.shape[1]
    n_clear = int(np.clip(CLEAR_ROWS * n_classes, CLEAREST[0] * len(scores), max(CLEAREST[1] * len(scores), 1)))
    clearest = np.argsort(best[:, -2] - best[:, -1], kind="stable")[:n_clear]
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (scores[clearest].argmax(axis=1), guesses[clearest]), 1.0)
    np.add.at(counts, pairs, 1.0)
    accuracy = (np.trace(counts) + 1.0) / (counts.sum() + 2.0)
    prior = SHRINKAGE * uniform_errors(accuracy, guesses, n_classes)
    return np.asarray((counts + prior) / (counts.sum(axis=1, keepdims=True) + SHRINKAGE))


def _scale(scores: Array, guesses: Array, confusion: Array) -> float:
    """The scale β of scores (m, K) at which guesses (m,) are most likely."""
    rows = np.random.default_rng(0).permutation(len(scores))[:SCALE_ROWS]
    scores, logs = scores[rows], np.log(confusion[:, guesses[rows]].T)

    def loss(log_scale: float) -> float:
        return -float(logsumexp(log_softmax(np.exp(log_scale) * scores, axis=1) + logs, axis=1).mean())

    return float(np.exp(minimize_scalar(loss, bounds=LOG_SCALES, method="bounded").x))


def _new_scores(problem: TrainingProblem, part: TrainingProblem, labels: Array, weight: float, rows: Array) -> Array:
    """Scores of other rows by maxent weights for these labels."""
    step = weight_step_for(part.loss, FIRST_SWEEPS)
    state = step.start(part, labels)
    step.retarget(part, state, labels, part.kappa(weight))
    step.solve(part, state, FIRST_TOL, np.random.default_rng(0))
    return np.asarray(problem.design.select_rows(rows).scores(state.W), dtype=np.float64)
