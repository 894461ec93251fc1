"""Guesses of which some are wrong: how they come about, and the probability of each class given text and guess.

    p(y = k | x, g) ∝ softmax_k(β s(x)) p(g | k, x)
    p(g | k, x) = r_k if g = k, else (1 − r_k) ((1 − ω) a_g(x) / (1 − a_k(x)) + ω M[k, g]),      a(x) = softmax(γ t(x))

Scores s are those of maxent weights for the guesses, each row by weights that it took no part in. How often guesses of
a class are right, r_k, shows where the texts are clearest: there text and guess agree as often as the guess is right
(Patrini et al., 2017). Wrong guesses are counted there for each class, M, shrunk towards errors that are the same for
all classes. A model that guesses wrong has its reasons in the text, too: a second classifier, t, is fitted to the
guesses that look wrong. β, γ and ω make the guesses most likely. Later rounds use weights for the labels of the one
before, but r stays: labels that follow the guesses would make them look right more often. Two classes that are alike
could become one, with all guesses of the other explained as errors: no class loses more than a part of its size after
the first round.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax

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
SHRINKAGE, ROUNDS, N_FOLDS = 20.0, 5, 5
"""Rows that the average errors count as in those of each class, rounds, and parts of the rows that are left out."""
LEAST_SIZE, SIZE_ROUNDS = 0.85, 20
"""Least size of a class, relative to its expected size after the first round, and rounds in which offsets meet it."""
DOUBTFUL, LEAST_DOUBTFUL = 0.15, 50
"""Least probability to be wrong of a guess that the classifier of errors learns from, and the fewest of them."""
LOG_SCALES, STEP, MODEL_ROWS = (-2.0, 4.0), 0.7, 2000
"""Range of log β and log γ, first step of the search for β, γ and ω, and rows that choose them."""
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


@dataclass(frozen=True, eq=False)
class GuessModel:
    """The model of the guesses of some rows.

    scores    (m, K) scores s of the texts
    errors    (m, K) scores t of the classifier of errors, or None without one
    confusion (K, K) errors M of the guesses of each class; the diagonal is not used
    accuracy  (K,) how often the guesses of each class are right
    guesses   (m,)
    """

    scores: Array
    errors: Array | None
    confusion: Array
    accuracy: Array
    guesses: Array

    def select(self, rows: Array) -> "GuessModel":
        """The model of some rows."""
        errors = None if self.errors is None else self.errors[rows]
        return replace(self, scores=self.scores[rows], errors=errors, guesses=self.guesses[rows])

    def joint_logs(self, parameters: Array) -> Array:
        """log p(y = k, g | x) of each class (m, K) at these log β, log γ and logit ω."""
        rows = np.arange(self.guesses.size)
        wrong = self.confusion / np.maximum(1.0 - np.diag(self.confusion), 1e-12)[:, None]
        found = wrong[:, self.guesses].T
        scale, error_scale = np.exp(np.clip(parameters[:2], *LOG_SCALES))
        if self.errors is not None:
            a, part = softmax(error_scale * self.errors, axis=1), expit(parameters[2])
            found = (1.0 - part) * a[rows, self.guesses][:, None] / np.maximum(1.0 - a, 1e-6) + part * found
        found = found * (1.0 - self.accuracy)
        found[rows, self.guesses] = self.accuracy[self.guesses]
        return np.asarray(log_softmax(scale * self.scores, axis=1) + np.log(np.maximum(found, 1e-12)))

    def likeliest(self, start: Array) -> Array:
        """Parameters at which the guesses are most likely, sought from `start`."""
        sample = self.select(np.random.default_rng(0).permutation(self.guesses.size)[:MODEL_ROWS])
        simplex = start + STEP * np.vstack((np.zeros(3), np.eye(3)))
        options = {"initial_simplex": simplex, "maxiter": 60, "xatol": 0.05, "fatol": 1e-4}

        def loss(parameters: Array) -> float:
            return -float(logsumexp(sample.joint_logs(parameters), axis=1).mean())

        return np.asarray(minimize(loss, start, method="Nelder-Mead", options=options).x)


def class_log_probabilities(problem: TrainingProblem, labels: Array, guesses: Array) -> Array:
    """Log-probabilities (n, K) of the classes of all rows, given labels (l,), texts and guesses (n,), −1 for none."""
    n_labeled, n_rows, n_classes = problem.n_labeled, problem.n_rows, problem.n_classes
    known = np.flatnonzero((guesses >= 0) & (np.arange(n_rows) >= n_labeled))
    others = np.flatnonzero((guesses < 0) & (np.arange(n_rows) >= n_labeled))
    rows, fixed, shown = np.concatenate((np.arange(n_labeled), known)), labels[:n_labeled], guesses[known]
    given = guesses[:n_labeled] >= 0
    pairs, is_error = (fixed[given], guesses[:n_labeled][given]), given & (fixed != guesses[:n_labeled])
    part, weight = _maxent_problem(problem, rows, np.ones(rows.size))
    current, errors, parameters = np.concatenate((fixed, shown)), None, np.zeros(3)
    accuracy: Array | None = None
    sizes, logs = np.zeros(n_classes), np.zeros((0, n_classes))
    for _ in range(ROUNDS if known.size else 0):  # none if all guesses are about labelled rows
        scores = held_out_scores(part, current, weight, N_FOLDS).astype(np.float64)
        confusion = estimate_confusion(scores, shown, pairs)
        accuracy = np.diag(confusion) if accuracy is None else accuracy
        model = GuessModel(scores, errors, confusion, accuracy, shown)
        parameters = model.likeliest(parameters)
        logs = with_least_sizes(model.joint_logs(parameters), sizes)
        sizes = sizes if sizes.any() else LEAST_SIZE * np.exp(logs).sum(axis=0)
        current = np.concatenate((fixed, logs.argmax(axis=1)))
        doubt = 1.0 - np.exp(logs[np.arange(known.size), shown])
        errors = _error_scores(problem, rows, np.concatenate((is_error, doubt)), np.maximum(guesses[rows], 0))
    found = np.full((n_rows, n_classes), -np.log(n_classes))
    found[known] = logs
    if others.size:
        scale = np.exp(np.clip(parameters[0], *LOG_SCALES))
        found[others] = log_softmax(scale * _new_scores(problem, part, current, weight, others), axis=1)
    return found


def _maxent_problem(problem: TrainingProblem, rows: Array, counts: Array) -> tuple[TrainingProblem, float]:
    """The problem of maxent weights for some rows that count as given (m,), and the weight of the unlabelled ones.

    Guesses weigh as much as labels. The regulariser grows with the weight of both, so that one label changes little.
    """
    n_labeled = problem.n_labeled
    n_known = float(counts[:n_labeled].sum())
    weight = float(counts[n_labeled:].sum()) / n_known if n_known else 1.0
    alpha = problem.alpha * default_alpha(MaxEnt()) / default_alpha(problem.loss)
    alpha *= 1.0 + weight if n_known else 1.0
    weights = problem.row_weights[rows] * counts
    return TrainingProblem.create(problem.design.select_rows(rows), MaxEnt(), alpha, n_labeled, weights), weight


def _error_scores(problem: TrainingProblem, rows: Array, doubt: Array, guesses: Array) -> Array | None:
    """Scores (m, K) of rows without a label by weights for guesses (n,) as far as these are wrong; None if few are."""
    doubt = np.where(doubt >= DOUBTFUL, doubt, 0.0)
    if np.count_nonzero(doubt[problem.n_labeled :]) < LEAST_DOUBTFUL:
        return None
    part, weight = _maxent_problem(problem, rows, doubt)
    return held_out_scores(part, guesses, weight, N_FOLDS).astype(np.float64)


def with_least_sizes(logs: Array, sizes: Array) -> Array:
    """Log-probabilities (m, K) of the classes with offsets such that at least so many rows are expected in each (K,).

    >>> logs = np.log([[0.9, 0.1], [0.8, 0.2]])
    >>> np.exp(with_least_sizes(logs, np.array([0.0, 0.6]))).sum(axis=0).round(2).tolist()
    [1.4, 0.6]
    """
    offsets, wanted = np.zeros(sizes.size), np.log(np.maximum(sizes, 1e-12))
    for _ in range(SIZE_ROUNDS if sizes.any() else 0):
        expected = logsumexp(log_softmax(logs + offsets, axis=1), axis=0)
        offsets = np.maximum(offsets + wanted - expected, 0.0)
    return np.asarray(log_softmax(logs + offsets, axis=1))


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


def _new_scores(problem: TrainingProblem, part: TrainingProblem, labels: Array, weight: float, rows: Array) -> Array:
    """Scores of other rows by maxent weights for these labels."""
    step = weight_step_for(part.loss, FIRST_SWEEPS)
    state = step.start(part, labels)
    step.retarget(part, state, labels, part.kappa(weight))
    step.solve(part, state, FIRST_TOL, np.random.default_rng(0))
    return np.asarray(problem.design.select_rows(rows).scores(state.W), dtype=np.float64)
