"""Fits with evidence: the surest rows by the evidence are the first labels, the texts decide how far it counts.

    1  classes with few labels get those of the rows that the evidence is surest of, after transport to the class sizes
    2  annealing with these labels, with the evidence in the label costs if known labels calibrate it
    3  the evidence is calibrated and weighed by the labels that the texts led to
    4  Algorithm 1 at the final weight of all rows, the first labels free again, with the evidence in the label costs

Guesses are judged before the fit (`solvers.guesses`) and count in full; step 4 starts from them alone.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.engines.local import LocalEngine
from transduce.evidence import (
    MIN_WEIGHT,
    SAMPLE_ROWS,
    Evidence,
    calibrate,
    check_agreement,
    part_not_in_texts,
)
from transduce.label_step import Exact, InfeasibleError, LabelProblem
from transduce.problem import TrainingProblem

FIRST_LABELS = 5
"""Labels that each class starts with, known ones and the surest rows together, at most half of its rows."""
CALIBRATION_LABELS = 2
"""Known labels for each class on average that calibrate evidence; with fewer, the labels that the texts led to do."""


def calibrate_by_labels(engine: LocalEngine, unlabeled_weight: float) -> LocalEngine:
    """Return the engine with evidence that known labels calibrate, if there are enough of them."""
    evidence: Evidence = engine.problem.evidence  # type: ignore[assignment]
    evidence = replace(evidence, full=unlabeled_weight)
    known = np.flatnonzero(evidence.is_known[: engine.problem.n_labeled])
    check_agreement(evidence.scores[known], engine.labels[known])
    has_all = bool(evidence.scores.any(axis=0).all())  # labels of classes without scores calibrate nothing
    if evidence.costs is None and has_all and known.size >= CALIBRATION_LABELS * engine.n_classes:
        evidence = evidence.calibrated(*calibrate(evidence.scores[known], engine.labels[known]))
    return _with_evidence(engine, evidence)


def recalibrate(engine: LocalEngine, fitted: LocalEngine, labels: Array, rng: np.random.Generator) -> LocalEngine:
    """Return the engine with evidence that labels (n,) of a fit to some of its rows weigh, and calibrate if need be."""
    evidence, shown = engine.problem.evidence, fitted.problem.evidence
    assert evidence is not None
    assert shown is not None
    known = np.flatnonzero(shown.is_known)
    rows = rng.permutation(known)[:SAMPLE_ROWS]
    final = part_not_in_texts(fitted.problem.design.select_rows(rows).matrix(), shown.scores[rows], labels[rows])
    if evidence.costs is None:
        evidence = evidence.calibrated(*calibrate(shown.scores[known], labels[known]))
    return _with_evidence(engine, replace(evidence, final=max(final, MIN_WEIGHT)))


def with_first_labels(engine: LocalEngine, bounds: Bounds) -> LocalEngine:
    """Return the engine with labels of the surest rows for classes that have few; rows keep their evidence."""
    problem = engine.problem
    evidence = problem.evidence
    assert evidence is not None
    n_labeled, n_unlabeled = problem.n_labeled, engine.n_unlabeled
    lacking = FIRST_LABELS - np.bincount(engine.labels[:n_labeled], minlength=engine.n_classes)
    lacking = np.minimum(lacking, np.maximum(bounds.center(n_unlabeled) * n_unlabeled / 2.0, 1.0).astype(np.int64))
    lacking[~evidence.scores.any(axis=0)] = 0  # a class without scores: its labels, or what fits no other
    known = np.flatnonzero(evidence.is_known[n_labeled:] & (problem.row_weights[n_labeled:] > 0))
    costs = -evidence.scores[n_labeled:][known]
    if problem.forbidden is not None:
        costs = np.where(problem.forbidden[known], np.inf, costs)
    labels = np.full(n_unlabeled, -1)
    bounds = bounds.scaled(n_unlabeled, known.size)
    try:
        labels[known] = surest_rows(costs, lacking, bounds)
    except InfeasibleError:  # more of these rows have some partial label than of all rows
        labels[known] = surest_rows(costs, lacking, bounds.as_belief(known.size))
    if n_unlabeled and np.all(labels >= 0):
        labels[-1] = -1  # one row at least is for the label step
    return label_rows(engine, labels)


def surest_rows(costs: Array, n_rows: Array, bounds: Bounds) -> Array:
    """Classes (n,) of so many rows (K,) of each class that costs (n, K) are surest of within the bounds; else −1.

    >>> costs = -np.array([[3.0, 0.0], [2.0, 0.0], [1.5, 0.0], [1.0, 0.0]])
    >>> surest_rows(costs, np.array([1, 1]), Bounds.exact(np.array([2, 2])))
    array([ 0, -1, -1,  1])
    """
    solution = Exact().solve(LabelProblem(costs, *bounds))
    priced = np.sort(solution.prices - costs, axis=1)
    margins, chosen = priced[:, -1] - priced[:, -2], np.full(len(costs), -1)
    for k, most in enumerate(n_rows.tolist()):
        rows = np.flatnonzero(solution.labels == k)
        chosen[rows[np.argsort(-margins[rows], kind="stable")][: max(most, 0)]] = k
    return chosen


def label_rows(engine: LocalEngine, chosen: Array) -> LocalEngine:
    """Return the engine with labels for rows without a full label (n_unlabeled,), −1 for those that stay without one.

    They weigh as labelled rows.
    """
    problem, n_labeled = engine.problem, engine.problem.n_labeled
    is_new = chosen >= 0
    order = np.concatenate(
        (np.arange(n_labeled), n_labeled + np.flatnonzero(is_new), n_labeled + np.flatnonzero(~is_new))
    )
    labels, weights = engine.labels.copy(), problem.row_weights.copy()
    labels[n_labeled:][is_new] = chosen[is_new]
    weights[n_labeled:][is_new] = weights[:n_labeled].mean() if n_labeled else 1.0
    part = TrainingProblem.create(
        problem.design.select_rows(order),
        problem.loss,
        problem.alpha,
        n_labeled + int(is_new.sum()),
        weights[order],
        int((~is_new[: problem.n_partial]).sum()),
        None if problem.forbidden is None else problem.forbidden[~is_new],
    )
    return LocalEngine(part.with_evidence(problem.evidence, order), labels[order])


def evidence_of(engine: Any) -> Evidence | None:
    """The evidence of an engine in memory; None for other engines."""
    return engine.problem.evidence if isinstance(engine, LocalEngine) else None


def is_uncalibrated(engine: Any) -> bool:
    """Whether there is evidence that only the labels of the fit will calibrate: fits before it could not use it."""
    evidence = evidence_of(engine)
    return evidence is not None and evidence.costs is None


def evidence_counts(evidence: Evidence, n_labeled: int) -> Array:
    """Rows without a full label that the evidence gives each class (K,) without regard to class sizes.

    A class without scores gets as many as the others on average.
    """
    known = n_labeled + np.flatnonzero(evidence.is_known[n_labeled:])
    if evidence.costs is not None:
        return np.asarray(np.exp(-evidence.costs[known]).sum(axis=0))
    has_scores = evidence.scores.any(axis=0)
    best = np.where(has_scores, evidence.scores[known], -np.inf).argmax(axis=1)
    counts = np.bincount(best, minlength=has_scores.size).astype(np.float64)
    return np.where(has_scores, counts, counts[has_scores].mean())


def _with_evidence(engine: LocalEngine, evidence: Evidence) -> LocalEngine:
    return replace(engine, problem=replace(engine.problem, evidence=evidence))
