"""Class sizes for the first fits by Algorithm 1: from a random sample of labels, or from supervised classifiers.

Before labels count as a random sample, supervised classifiers that a fifth of them is hidden from check whether their
numbers agree with the texts. Fits by Algorithm 1 cannot check that: they would make the texts agree with the labels.

Labels that are no sample say nothing about class sizes, and the numbers of labels must not matter. Supervised
classifiers predict large classes where there are many labels. So each is fitted to about as many of every class.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.estimation import MIN_SAMPLED, contradicts, estimate_from_predictions
from transduce.class_prior.proportions import SizeEstimate
from transduce.class_prior.resolve import ResolvedPrior
from transduce.engines.base import Engine, StepSettings
from transduce.history import FitResult, FitStatus
from transduce.io.checkpoint import Checkpoint
from transduce.label_step import METHODS
from transduce.solvers.alternating import Settings, Supervised
from transduce.solvers.cross_fit import cross_fit, draw_sample, hide_labels
from transduce.solvers.first_labels import CALIBRATION_LABELS, evidence_counts, evidence_of, is_uncalibrated
from transduce.solvers.loop import FitContext, Loop

N_SUBSETS = 5
"""Subsets of the labels, about as many of every class, that supervised classifiers are fitted to."""


def first_estimate(data: Engine, prior: ResolvedPrior, settings: Settings) -> tuple[SizeEstimate, ResolvedPrior]:
    """Estimate class sizes before labels are hidden from fits by Algorithm 1.

    In the prior that is returned, no label is a random sample if supervised classifiers contradict it.
    """
    evidence = evidence_of(data)
    few = is_uncalibrated(data) or prior.labels.size < CALIBRATION_LABELS * data.n_classes
    if evidence is not None and data.n_unlabeled and few:
        return estimate_from_predictions(evidence_counts(evidence, prior.labels.size)), prior
    is_checked = prior.is_estimated and not prior.is_known and int(prior.sampled.sum()) >= MIN_SAMPLED
    if is_checked and _are_contradicted(data, prior.sampled, settings):
        prior = prior._replace(sampled=np.zeros_like(prior.sampled))
    estimate = prior.from_labels()
    if estimate is None:
        estimate = estimate_from_predictions(balanced_counts(data, settings, np.random.default_rng(0)))
    return estimate, prior


def _are_contradicted(data: Engine, sampled: Array, settings: Settings) -> bool:
    """Whether supervised classifiers contradict that labels (l,) were drawn at random."""
    rng = np.random.default_rng(0)  # its own, so that the check changes nothing else
    context = FitContext(rng, rng, lambda row: None, Checkpoint())
    found = cross_fit(data, _no_rows(data), replace(settings, weights=()), context)
    if isinstance(found, FitResult):
        raise KeyboardInterrupt
    return found is not None and contradicts(found.hidden_labels(found.calibration()), sampled)


def balanced_counts(data: Engine, settings: Settings, rng: np.random.Generator) -> Array:
    """Mean predicted counts (K,) of supervised classifiers, each of a subset of the labels.

    A subset has at most as many labels of each class as the median class has; of two classes, the smaller one.
    """
    engine = draw_sample(data, rng)
    n_labeled = engine.problem.n_labeled
    labels = np.where(engine.problem.row_weights[:n_labeled] > 0, engine.labels[:n_labeled], -1)
    counts = np.bincount(labels[labels >= 0], minlength=engine.n_classes)
    present = np.sort(counts[counts > 0])
    most = int(present[(present.size - 1) // 2]) if present.size else 0
    if counts.max(initial=0) <= most:
        return supervised_counts(engine, settings, rng)
    found = []
    for _ in range(N_SUBSETS):
        order = rng.permutation(n_labeled)
        chosen = np.concatenate([order[labels[order] == k][:most] for k in range(engine.n_classes)])
        subset, _ = hide_labels(engine, ~np.isin(np.arange(n_labeled), chosen))
        found.append(engine.predicted_counts(supervised_weights(subset, settings, rng)))
    return np.asarray(np.mean(found, axis=0))


def supervised_weights(engine: Engine, settings: Settings, rng: np.random.Generator) -> Any:
    """Weights of a classifier of the labelled rows alone, where these are."""
    steps = StepSettings(_no_rows(engine), METHODS["exact"], 100 * settings.max_rounds)
    result = Loop().run(Supervised(engine.sample(0, rng).new_restart(steps, rng), settings.tol))
    if result.status is FitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return result.W


def supervised_counts(engine: Engine, settings: Settings, rng: np.random.Generator) -> Array:
    """Count the unlabelled rows of each class (K,) as predicted by a classifier of the labelled rows alone."""
    return engine.predicted_counts(supervised_weights(engine, settings, rng))


def _no_rows(engine: Engine) -> Bounds:
    """Bounds for fits without a label step."""
    return Bounds.exact(np.zeros(engine.n_classes, np.int64))
