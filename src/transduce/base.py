"""What every estimator here does with X, y and the class sizes, before and after its problem is solved.

X and y come as users have them and leave as problems of plain arrays; fitted attributes end in an underscore. Each
estimator says how its problem is solved.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.diagnostics import diagnose_prior, warn_balanced_labels, warn_harmful_prior
from transduce.class_prior.estimation import Estimation, supervised_counts
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.resolve import are_rows, labeled_counts, prior_bounds
from transduce.design import Design
from transduce.engines.base import Engine
from transduce.engines.local import LocalEngine
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import Checkpoint
from transduce.label_step import LabelProblem
from transduce.label_step.entropic import Entropic
from transduce.label_step.infeasible import InfeasibleError, in_users_words
from transduce.labels.encode import (
    check_above_zero,
    check_rows,
    check_whole,
    classes_and_tree,
    plain,
    read_prior,
    row_weights,
    warn_similar_names,
)
from transduce.labels.missing import find_labeled
from transduce.labels.partial import EncodedLabels, code, from_matrix, read_full
from transduce.losses import Loss, MaxEnt
from transduce.parallel import one_blas_thread
from transduce.problem import TrainingProblem, allowed_costs
from transduce.solvers.alternating import Settings
from transduce.solvers.schedule import stages
from transduce.taxonomy import Taxonomy

Array = NDArray[Any]
Self = TypeVar("Self", bound="BaseTransductiveClassifier")

EARLY_TOL = 0.25
"""Weight steps stop at this relative gap while labels still move: they will be looked at again."""
TROUBLE = (FitStatus.NOT_CONVERGED, FitStatus.UNMET, FitStatus.STILL_FALLING)


class Run(NamedTuple):
    """How a fit goes about it: its chance, that of a first fit, who hears of its rounds, and where stages are kept."""

    rng: np.random.Generator
    first_rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]
    checkpoint: Checkpoint


class Given(NamedTuple):
    """What is known of class sizes: as stated, as bounds, and labelled rows (K,) by number and by weight."""

    prior: object
    bounds: Bounds
    labeled_rows: Array
    labeled_weight: Array

    @property
    def estimated(self) -> bool:
        """Whether the rows themselves are to say."""
        return isinstance(self.prior, str) and self.prior == "estimate"


class BaseTransductiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that is told class sizes, or finds them."""

    transduction_: Any
    label_distributions_: Any

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled and unlabelled rows together."""
        self._check_parameters()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Mark unlabelled rows by -1 or None.")
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), accept_large_sparse=True)
        y, columns = from_matrix(y)
        values, labeled = find_labeled(y, self.unlabeled)
        check_rows(X.shape[0], values, labeled)
        prior = read_prior(self.class_prior)
        self.classes_, self.taxonomy_ = classes_and_tree(values, labeled, prior, self.taxonomy, columns)
        read = code(plain(values), labeled, self.classes_.tolist(), self.taxonomy_, self.taxonomy is not None)
        self._check_labels(read)
        sample_weight = row_weights(sample_weight, X.shape[0], read.codes >= 0)
        order = np.lexsort((read.codes < 0, ~read.partial & (read.codes < 0)))
        codes, n_labeled = np.maximum(read.codes[order], 0), int((read.codes >= 0).sum())
        weights = None if sample_weight is None else sample_weight[order]
        of_labels = None if weights is None else weights[:n_labeled]
        forbidden = None if read.allowed is None else ~read.allowed[order[n_labeled:]]
        given = self._given(prior, codes[:n_labeled], codes.size - n_labeled, of_labels, forbidden)
        if self.taxonomy is None and not columns:
            warn_similar_names(values, labeled, prior, stacklevel=3)
        problem = self._problem(X, order, n_labeled, weights, self._n_heavy(read), forbidden)
        rows = LocalEngine(problem, codes)

        def keep(outcome: FitResult, bounds: Bounds) -> Array:
            self._keep_model(outcome, problem.design.in_original_order(outcome.W), bounds, X.shape[1])
            return self._keep_labels(problem, outcome, bounds, order)

        seeds = self._seeds(2 if given.estimated and rows.n_unlabeled else 1)
        self._learn(rows, given, seeds, lambda: self._checkpoint(problem, codes, given.bounds, seeds), keep)
        return self

    def _given(
        self, prior: object, codes: Array, n_unlabeled: int, weights: Array | None, forbidden: Array | None
    ) -> Given:
        """Class sizes as they are stated, given the labels of the labelled rows."""
        tree = None if self.taxonomy is None else self.taxonomy_
        stated = "labeled" if isinstance(prior, str) and prior == "estimate" else prior
        bounds = prior_bounds(stated, self.classes_, codes, n_unlabeled, weights, tree, forbidden)
        numbers = np.bincount(codes, minlength=len(self.classes_))
        return Given(prior, bounds, numbers, labeled_counts(len(self.classes_), codes, weights))

    def _seeds(self, number: int) -> list[int]:
        return [int(check_random_state(self.random_state).randint(2**31 - 1)) for _ in range(number)]

    def _learn(
        self,
        rows: Engine,
        given: Given,
        seeds: list[int],
        opened: Callable[[], Checkpoint],
        keep: Callable[[FitResult, Bounds], Array],
    ) -> None:
        """Solve, hand the outcome to `keep`, which answers the model's own class sizes, and doubt the stated ones."""
        prior, bounds = given.prior, given.bounds
        with one_blas_thread(), opened() as checkpoint:
            rngs = [np.random.default_rng(seed) for seed in checkpoint.seeds or seeds]
            run = Run(rngs[0], rngs[-1], self._listener(), checkpoint)
            try:
                if given.estimated and rows.n_unlabeled:
                    outcome, bounds = self._solve_estimated(rows, given, run)
                else:
                    outcome = self._solve(rows, bounds, run)
            except InfeasibleError as error:
                raise in_users_words(error, self.classes_, bounds.groups) from None
            if outcome.status in TROUBLE:
                warnings.warn(outcome.status.value, ConvergenceWarning, stacklevel=4)
            own = keep(outcome, bounds)
            self.prior_diagnostics_ = diagnose_prior(bounds, given.labeled_rows, own, self.prices_, are_rows(prior))
            if not isinstance(prior, str) and self.prior_diagnostics_.are_open and rows.n_unlabeled:
                self._judge(rows)
        if not isinstance(prior, str):
            warn_harmful_prior(self.prior_diagnostics_, self.classes_, int(given.labeled_rows.sum()), stacklevel=4)
        elif prior == "labeled" and self.prior_diagnostics_.by_design and rows.n_unlabeled:
            warn_balanced_labels(stacklevel=4)

    def _listener(self) -> Callable[[HistoryRow], None]:
        """What hears of each round: the user's own function, the printer, or nobody."""
        if callable(self.verbose):
            return self.verbose  # type: ignore[no-any-return]
        return _print_round if self.verbose else _say_nothing

    def _judge(self, rows: Engine) -> None:
        """Compare stated sizes with those of the supervised classifier; Ctrl-C leaves the fit as it is."""
        try:  # a chance of its own: whether sizes are doubted changes nothing that comes after
            counts = supervised_counts(rows, self._first_settings(), np.random.default_rng(0))
        except KeyboardInterrupt:
            self.termination_condition_ = FitStatus.INTERRUPTED.value
        else:
            self.prior_diagnostics_ = self.prior_diagnostics_.judged(counts)

    def _first_settings(self) -> Settings:
        early = max(float(self.tol), float(getattr(self, "early_tol", EARLY_TOL)))
        return Settings(stages("paper", 1.0), float(self.tol), early, int(self.max_iter))

    def _solve_estimated(self, rows: Engine, given: Given, run: Run) -> tuple[FitResult, Bounds]:
        """Solve with class sizes by the rows themselves; where that is interrupted too early, the first fit is kept."""
        by_labels = (given.labeled_weight, are_balanced_by_design(given.labeled_rows), given.bounds)
        estimation = Estimation.create(rows, *by_labels, self._first_settings(), run.first_rng, run.on_round)
        first = estimation.first_fit(run.checkpoint.slot("first fit"))
        try:
            if first.status is not FitStatus.INTERRUPTED:
                bounds = estimation.sizes(first)
                return self._solve(rows, bounds, run), bounds
        except KeyboardInterrupt:
            first.status = FitStatus.INTERRUPTED
        return first, estimation.bounds

    @abstractmethod
    def _solve(self, rows: Any, bounds: Bounds, run: Run) -> FitResult:
        """Weights and labels for these rows."""

    def _checkpoint(self, problem: TrainingProblem, codes: Array, bounds: Bounds, seeds: list[int]) -> Checkpoint:
        """Where stages of this fit are kept; nowhere, unless the user asks for it."""
        return Checkpoint()

    def _loss(self) -> Loss:
        return MaxEnt()

    def _shift(self, loss: Loss, prices: Array) -> Array:
        """What the scores of new rows gain from the class sizes."""
        return np.zeros_like(prices)

    def _check_parameters(self) -> None:
        check_above_zero(self, "alpha", "tol")
        check_whole(self)

    def decision_function(self, X: Any) -> Array:
        """Scores (n, K) of the classes, or (n,) in favour of the second of two."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        scores: Array = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    @available_if(lambda self: hasattr(self._loss(), "posterior"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the classes."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack((np.zeros_like(scores), scores))
        return np.asarray(self._loss().posterior(scores))  # type: ignore[attr-defined]

    def predict(self, X: Any) -> Array:
        """The class of the best score for each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the rows with one label; others have no truth to compare with."""
        values, labeled = find_labeled(from_matrix(y)[0], self.unlabeled)
        tree = None if self.taxonomy is None else Taxonomy.create(self.taxonomy)
        entries, labeled = read_full(plain(values), labeled, tree, self.classes_.tolist())
        if not labeled.any():
            raise ValueError("y must label at least one row to be scored, but every row is unlabelled. Pass the truth.")
        guesses, truth = self.predict(X)[labeled].tolist(), [entries[row] for row in np.flatnonzero(labeled)]
        right = np.array([guess == name for guess, name in zip(guesses, truth, strict=True)], dtype=np.float64)
        weights = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _n_heavy(self, read: EncodedLabels) -> int:
        """Rows with a partial label that weigh as labelled ones."""
        return 0

    def _check_labels(self, read: EncodedLabels) -> None:
        """See that some row has one label, and that no others come but those that the method takes."""
        if not np.any(read.codes >= 0):
            raise ValueError("y must give at least one row a single label, but all are open. Label a few rows in full.")

    def _problem(
        self, X: Any, order: Array, n_labeled: int, sample_weight: Array | None, n_partial: int, forbidden: Array | None
    ) -> TrainingProblem:
        if self.fit_intercept:
            constant = np.ones((X.shape[0], 1), X.dtype)
            X = sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
        design = Design.create(X, self.taxonomy_, self.n_jobs, order).reordered_by_frequency()
        return TrainingProblem.create(
            design, self._loss(), float(self.alpha), n_labeled, sample_weight, n_partial, forbidden
        )

    def _keep_model(self, outcome: FitResult, leaf: Array, bounds: Bounds, n_features: int) -> None:
        """Weights, with a row for each column of X, class sizes and what happened, as fitted attributes."""
        if not self.taxonomy_.is_flat:
            leaf = np.asarray(sparse.csr_matrix(self.taxonomy_.paths, dtype=leaf.dtype) @ leaf.T).T
        if leaf.shape[1] == 2:
            leaf = leaf[:, 1:] - leaf[:, :1]
        self.coef_ = np.ascontiguousarray(leaf[:n_features].T)
        self.intercept_ = leaf[n_features].copy() if self.fit_intercept else np.zeros(leaf.shape[1], leaf.dtype)
        self.loss_ = self._loss()
        shift = self.price_shift_ = self._shift(self.loss_, outcome.prices)
        self.intercept_ += (shift[1:] - shift[:1] if shift.size == 2 else shift).astype(leaf.dtype)
        self.prices_ = outcome.prices
        self.objective_ = outcome.objective
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.termination_condition_ = outcome.status.value
        self.bounds_ = bounds

    def _keep_labels(self, problem: TrainingProblem, outcome: FitResult, bounds: Bounds, order: Array) -> Array:
        """Labels of all rows, as fitted attributes; returns the counts (K,) that the scores alone would give."""
        labels = np.empty(order.size, np.int64)
        labels[order] = outcome.labels
        self.transduction_ = self.classes_[labels]
        self.class_counts_ = np.bincount(outcome.labels[problem.n_labeled :], minlength=len(self.classes_))
        scores = problem.design.scores(outcome.W)[problem.n_labeled :]
        self.__dict__.pop("label_distributions_", None)
        if hasattr(problem.loss, "posterior"):
            distributions = np.empty((order.size, len(self.classes_)), problem.design.dtype)
            distributions[order] = _distributions(problem, outcome, bounds, scores)
            self.label_distributions_ = distributions
        return np.bincount(scores.argmax(axis=1), minlength=len(self.classes_))


def _distributions(problem: TrainingProblem, outcome: FitResult, bounds: Bounds, scores: Array) -> Array:
    """Distributions over labels for all rows: the given ones, and the posterior corrected for the class sizes."""
    n_labeled, n_classes = problem.n_labeled, problem.n_classes
    distributions = np.zeros((problem.n_rows, n_classes), problem.design.dtype)
    distributions[np.arange(n_labeled), outcome.labels[:n_labeled]] = 1.0
    if len(scores):
        costs = problem.loss.posterior(scores)  # type: ignore[attr-defined]
        np.maximum(costs, np.finfo(costs.dtype).tiny, out=costs)
        np.negative(np.log(costs, out=costs), out=costs)
        soft = Entropic(1.0, tol=1e-3, n_threads=problem.design.n_threads)
        soft.solve(LabelProblem(allowed_costs(problem, costs), *bounds), out=distributions[n_labeled:])
    return distributions


def _say_nothing(row: HistoryRow) -> None:
    """Rounds pass in silence."""


def _print_round(row: HistoryRow) -> None:
    print(  # noqa: T201 -- verbose asks for it
        f"restart {row.restart} stage {row.stage}  unlabelled weight {row.unlabeled_weight:<8.4g} T {row.temperature:<8.3g} "
        f"objective {row.objective:<12.6g} moved {row.n_moved:<7} gap {row.gap:<9.2e} off {row.residual:<8.1e} "
        f"{row.seconds:.2f} s"
    )
