"""Rows in memory: labels and problem as the user passed them, and the engine over arrays of this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.contract import check_labeled_weight, check_sample_weight, check_sampled
from transduce.design import Design, mean_squared_length, sum_of_squares
from transduce.engines.base import FittedLabels, LabelOptions, LabelSummary, ProblemSettings, StepSettings
from transduce.engines.common import (
    Calibration,
    best_scores,
    doubtful_below,
    finite_costs,
    follows_prices,
    posterior_costs,
    predicted_counts,
    priced_probabilities,
    rows_of_block,
    threshold_below,
    total_confidence,
)
from transduce.engines.held_out import held_out_scores
from transduce.engines.local_restart import LocalRestart
from transduce.errors import LabelError, LabelErrorKind
from transduce.evidence import Evidence
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint
from transduce.io.fingerprint import fingerprint
from transduce.label_step import Exact, LabelProblem
from transduce.label_step.entropic import Entropic
from transduce.labels.classes import as_objects, find_classes, warn_similar_names
from transduce.labels.encode import EncodedLabels, check_labels, encode_labels
from transduce.labels.evidence import read_evidence
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix
from transduce.losses.blockwise import as_distributions
from transduce.parallel import row_blocks
from transduce.problem import TrainingProblem, allowed_costs
from transduce.taxonomy import Taxonomy
from transduce.weight_step import weight_step_for

SINGLE_ALPHA, SINGLE_SPREAD = 1e-5, 1e4
"""Least alpha, relative to the mean squared length of a row, and largest squared length for single precision."""
TOGETHER = 0.5
"""A sample of at most this fraction of sparse rows is copied, so that they are near each other in memory."""
MANY_THREADS = 8
"""From this many threads on, each of a few restarts has three quarters of them."""
PARALLEL_CELLS = 10_000_000
"""Rows times classes up to which restarts run at the same time; beyond, they would need too much memory."""


@dataclass(frozen=True, eq=False)
class LocalEngine:
    """A training problem in memory.

    labels     (n,) class of every labelled row, which come first; other entries are ignored
    order      (n,) position in y of every row of the problem; None if it is the same
    precision  type of the weights of results; None if it is that of the rows
    """

    problem: TrainingProblem
    labels: Array
    order: Array | None = None
    precision: np.dtype[Any] | None = field(default=None, kw_only=True)

    @property
    def n_unlabeled(self) -> int:
        return self.problem.n_rows - self.problem.n_labeled

    @property
    def n_classes(self) -> int:
        return self.problem.n_classes

    @property
    def is_dense(self) -> bool:
        return self.problem.design.is_dense

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> LocalRestart:
        step = weight_step_for(self.problem.loss, settings.max_sweeps)
        problem = replace(self.problem, design=self.problem.design.with_own_threads())
        return LocalRestart(problem, self.labels.copy(), settings, step, rng, precision=self.precision)

    def split_threads(self, n_restarts: int) -> tuple[int, "LocalEngine"]:
        """Run as many restarts as there are threads if they are small, and divide the threads among them.

        Many threads are divided generously: restarts wait for other things than threads, and some end early.
        """
        n_all = self.problem.design.n_threads
        n_threads = 1 if self.is_large else min(n_all, n_restarts)
        if n_threads == 1:
            return 1, self
        n_each = n_all // n_threads if n_all < MANY_THREADS else 3 * n_all // 4
        problem = replace(self.problem, design=replace(self.problem.design, n_threads=n_each))
        return n_threads, replace(self, problem=problem)

    @property
    def is_large(self) -> bool:
        return self.problem.n_rows * self.problem.n_classes > PARALLEL_CELLS

    def predicted_counts(self, W: Array) -> Array:
        return predicted_counts(self.problem, self._unlabeled_scores(W))

    def sample(self, max_rows: int, rng: np.random.Generator) -> "LocalEngine":
        if self.n_unlabeled <= max_rows:
            return self
        part, rows = self.problem.with_unlabeled(np.sort(rng.choice(self.n_unlabeled, max_rows, replace=False)))
        if not self.is_dense and part.n_rows <= TOGETHER * self.problem.n_rows:
            part = replace(part, design=part.design.together())
        return replace(self, problem=part, labels=self.labels[rows], order=None)

    def in_memory(self) -> "LocalEngine":
        return self

    def in_single_precision(self) -> "LocalEngine":
        design, squares = self.problem.design, self.problem.design.squared_norms
        mean = float(squares.mean()) if squares.size else 0.0
        if self.problem.alpha < SINGLE_ALPHA * mean or squares.max(initial=0.0) > SINGLE_SPREAD * mean:
            return self
        problem = replace(self.problem, design=design.in_single_precision())
        return replace(self, problem=problem, precision=self.precision or design.dtype)

    def in_original_order(self, W: Array) -> Array:
        return self.problem.design.in_original_order(W)

    def fitted_labels(
        self, result: FitResult, bounds: Bounds, classes: Array, calibration: Calibration
    ) -> FittedLabels:
        problem, scores = self.problem, self._unlabeled_scores(result.W)
        counts = np.bincount(result.labels[problem.n_labeled :], minlength=self.n_classes)[: self.n_classes]
        predicted, distributions, confidence = predicted_counts(problem, scores), None, np.nan
        if hasattr(problem.loss, "posterior"):
            dtype = np.float64 if calibration.smoothing else problem.design.dtype
            posterior = np.empty(scores.shape, dtype)
            if follows_prices(problem.loss, bounds, len(scores)):
                posterior[...] = priced_probabilities(problem, scores, result.prices, calibration)
                if result.evidence is not None:
                    posterior[...] = softmax(
                        np.log(np.maximum(posterior, np.finfo(dtype).tiny)) - result.evidence, axis=1
                    )
            elif len(scores):
                costs = posterior_costs(problem.loss, scores, calibration, problem.design.threads)
                costs = allowed_costs(problem, costs if result.evidence is None else costs + result.evidence)
                soft = Entropic(1.0, tol=1e-3, n_threads=problem.design.threads)
                soft.solve(LabelProblem(costs, *bounds), out=posterior)
            if len(scores):
                has_class = result.labels[problem.n_labeled :] < self.n_classes
                threads = problem.design.threads
                total = total_confidence(problem.loss, scores, result.prices, calibration, has_class, threads)
                confidence = total / max(int(has_class.sum()), 1)
            distributions = self.distributions(result.labels, posterior)
        transduction = classes[self.in_order_of_y(result.labels)]
        return FittedLabels(transduction, counts, predicted, distributions, confidence)

    def held_out_scores(self, result: FitResult) -> Array:
        return held_out_scores(self.problem, result.labels, max(row.unlabeled_weight for row in result.history))

    def set_aside(
        self,
        result: FitResult,
        bounds: Bounds,
        n_outliers: tuple[int, int],
        temperature: float,
        shift: Array,
        held_out: Array | None,
    ) -> tuple[Array, float]:
        problem, scores = self.problem, self._unlabeled_scores(result.W)
        held_out = scores if held_out is None else held_out
        costs = finite_costs(problem.loss, scores) - result.prices
        costs = costs if result.evidence is None else costs + result.evidence
        costs = allowed_costs(problem, costs).astype(np.float64)
        scale = getattr(problem.loss, "price_scale", 0.0)
        probabilities = Calibration(temperature).probabilities(problem.loss, scores + scale * result.prices)
        best, confidence = (held_out + scale * result.prices).max(axis=1), probabilities.max(axis=1)
        above = best - doubtful_below(best, confidence, self.n_classes)
        costs = np.column_stack((costs, costs.min(axis=1) + above / (scale or 1.0)))
        if problem.forbidden is not None:  # exchanges visit each class once, and so never gain as much as this costs
            costs[problem.forbidden.any(axis=1), -1] += (self.n_classes + 1) * np.ptp(costs[np.isfinite(costs)])
        solution = Exact().solve(LabelProblem(costs, *bounds.with_outliers(self.n_unlabeled, *n_outliers)))
        n_aside = int(np.count_nonzero(solution.labels == self.n_classes))
        threshold = threshold_below(best_scores(held_out + shift), n_aside)
        return np.concatenate((result.labels[: problem.n_labeled], solution.labels)), threshold

    def in_order_of_y(self, values: Array) -> Array:
        """Return values of the rows of the problem in the order of y."""
        out = np.empty_like(values)
        out[slice(None) if self.order is None else self.order] = values
        return out

    def distributions(self, labels: Array, posterior: Array) -> Array:
        """Return distributions (n, K) in the order of y: one-hot for labelled rows, the posterior for all others."""
        at, n_labeled = np.arange(labels.size) if self.order is None else self.order, self.problem.n_labeled
        out, others = np.empty((labels.size, self.n_classes), posterior.dtype), at[n_labeled:]
        out[at[:n_labeled]] = as_distributions(labels[:n_labeled], self.n_classes, posterior.dtype)

        def place(rows: slice) -> None:
            out[others[rows]] = posterior[rows]

        self.problem.design.threads.each(place, row_blocks(others.size, rows_of_block(out)))
        return out

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        problem = self.problem
        parts = parameters | {
            "X": (*problem.design.rows, problem.design.n_features, problem.row_weights),
            "y": (self.labels, problem.n_labeled, problem.n_partial, problem.forbidden),
        }
        if problem.evidence is not None:
            parts["evidence"] = problem.evidence.scores, problem.evidence.is_judged
        return Checkpoint.open(path, fingerprint(parts), seeds)

    def _unlabeled_scores(self, W: Array) -> Array:
        return self.problem.design.scores(W)[self.problem.n_labeled :]


@dataclass(eq=False)
class LocalData:
    """X (n, d), checked, with y, sample weights and the origin of the labels as users have them."""

    X: Any
    y: Any
    sample_weight: Any = None
    sampled: Any = None
    scores: Any = None
    guesses: Any = None
    taxonomy: Taxonomy = field(init=False)
    encoded: EncodedLabels = field(init=False)
    evidence: Array | None = field(init=False, default=None)

    def encode(self, options: LabelOptions) -> LabelSummary:
        y, columns = read_matrix(self.y)
        values, labeled = find_labeled(y, options.unlabeled)
        source = read_evidence(self.scores, self.guesses, self.X.shape[0], options.unlabeled)
        check_labels(self.X.shape[0], values, labeled, required=source is None)
        names = () if source is None else source.names_for(values[labeled], options.class_prior, options.taxonomy)
        self.sample_weight = check_sample_weight(self.sample_weight, values.size)
        self.encoded, summary = encode_entries(
            values, labeled, columns, self.sample_weight, self.X.shape, options, names=names
        )
        self.taxonomy = summary.taxonomy
        self.evidence = None if source is None else source.in_order_of(as_objects(summary.classes))
        return summary._replace(sampled=check_sampled(self.sampled, self.encoded.codes >= 0))

    def mean_squared_length(self, n_jobs: int | None) -> float:
        return mean_squared_length(sum_of_squares(self.X, n_jobs), self.X.shape[0])

    def build(self, settings: ProblemSettings) -> LocalEngine:
        engine = build_rows(self.X, self.sample_weight, self.encoded, self.taxonomy, settings)
        design = engine.problem.design.reordered_by_frequency()
        problem = replace(engine.problem, design=design)
        if self.evidence is not None:
            problem = replace(problem, evidence=Evidence.create(self.evidence[engine.order]))
        return replace(engine, problem=problem)


def encode_entries(
    values: Array,
    labeled: Array,
    columns: Sequence[Any],
    weights: Array | None,
    shape: tuple[int, int],
    options: LabelOptions,
    warn: bool = True,
    names: Sequence[Any] = (),
) -> tuple[EncodedLabels, LabelSummary]:
    """Find the classes, and encode these entries of y, those of all labelled rows among them; X has this shape.

    A full label is required unless other evidence names classes (`names`).
    """
    prior, taxonomy = options.class_prior, options.taxonomy
    classes, tree = find_classes(values, labeled, prior, taxonomy, [*columns, *names])
    encoded = encode_labels(as_objects(values), labeled, classes.tolist(), tree, taxonomy is not None)
    if warn and taxonomy is None and not columns:
        warn_similar_names(values, labeled, prior, names)
    full, allowed = encoded.codes >= 0, encoded.allowed
    if not names and not full.any():
        raise LabelError(LabelErrorKind.NOTHING_LABELED_IN_FULL)
    own_weights, forbidden = None if weights is None else weights[full], None if allowed is None else ~allowed[~full]
    if full.any():
        check_labeled_weight(own_weights)
    n_unlabeled, labels = shape[0] - int(full.sum()), encoded.codes[full]
    return encoded, LabelSummary(shape[1], classes, tree, labels, own_weights, n_unlabeled, forbidden)


def build_rows(
    X: Any,
    sample_weight: Array | None,
    encoded: EncodedLabels,
    taxonomy: Taxonomy,
    settings: ProblemSettings,
    total_weights: tuple[float, float] | None = None,
    create: Callable[..., Any] | None = None,
) -> LocalEngine:
    """Order rows by label (full, partial, none), and build a problem whose columns keep their order.

    `total_weights` are for rows that are one block of many, see TrainingProblem.create. `create` makes the
    design, Design.create by default.
    """
    codes, partial, allowed = encoded.codes, encoded.partial, encoded.allowed
    order = np.lexsort((codes < 0, ~partial & (codes < 0)))
    n_labeled = int((codes >= 0).sum())
    constant = settings.constant if settings.fit_intercept else 0.0
    problem = TrainingProblem.create(
        (create or Design.create)(X, taxonomy, settings.n_jobs, order, constant),
        settings.loss,
        settings.alpha,
        n_labeled,
        None if sample_weight is None else sample_weight[order],
        int(partial.sum()) if settings.partial_as_labeled else 0,
        None if allowed is None else ~allowed[order[n_labeled:]],
        total_weights,
    )
    return LocalEngine(problem, np.maximum(codes[order], 0), order)
