"""The scikit-learn estimators: conventions and names here, checks in `inputs`, mathematics below.

X and y come as users have them and leave as problems of plain arrays; fitted attributes end in an underscore. The base
class does what all have in common, and each estimator says how its problem is solved.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.alternate import Alternation, Settings, allowed_costs
from transduce.anneal import SoftAnnealing
from transduce.candidates import Coded, code, from_matrix, read_full
from transduce.checkpoints import Checkpoint
from transduce.counts import Bounds
from transduce.design import Design
from transduce.doubts import doubts_of, warn_of_design, warn_of_harm
from transduce.estimating import Estimation, supervised_counts
from transduce.fingerprints import fingerprint
from transduce.history import Ending, HistoryRow, Outcome
from transduce.inputs import (
    can,
    check_above_zero,
    check_rows,
    check_whole,
    classes_and_tree,
    plain,
    read_prior,
    row_weights,
    warn_of_names,
)
from transduce.label_step import METHODS, LabelProblem, LabelStep, is_label_step
from transduce.label_step.entropic import Entropic
from transduce.label_step.infeasible import InfeasibleError, in_users_words
from transduce.losses import LargeMargin, Loss, MaxEnt, SquaredLargeMargin
from transduce.markers import AUTO, find_labeled
from transduce.priors import are_rows, labeled_counts, prior_bounds
from transduce.problem import TrainingProblem
from transduce.schedule import coolings, stages
from transduce.shares import are_by_design
from transduce.taxonomy import Taxonomy
from transduce.threads import one_blas_thread
from transduce.weight_step import weight_step_for

Array = NDArray[Any]
Self = TypeVar("Self", bound="CountedClassifier")

LOSSES: Mapping[str, Callable[[], Loss]] = {
    "hinge": LargeMargin,
    "squared_hinge": SquaredLargeMargin,
    "maxent": MaxEnt,
}
EARLY_TOL = 0.25
"""Weight steps stop at this relative gap while labels still move: they will be looked at again."""
NOT_OF_THE_RESULT = ("class_prior", "taxonomy", "unlabeled", "random_state", "n_jobs", "verbose", "checkpoint")
"""Parameters that a fit's result does not depend on, or by what they are read into only."""
TROUBLE = (Ending.NOT_CONVERGED, Ending.UNMET, Ending.STILL_FALLING)


class Run(NamedTuple):
    """How a fit goes about it: its chance, that of a first fit, who hears of its rounds, and where stages are kept."""

    rng: np.random.Generator
    first_rng: np.random.Generator
    on_round: Callable[[HistoryRow], None]
    checkpoint: Checkpoint


class CountedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What every estimator here does with X, y and the class sizes, before and after its problem is solved."""

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled and unlabelled rows together."""
        self._check_parameters()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Mark unlabelled rows by -1 or None.")
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), accept_large_sparse=True)
        y, columns = from_matrix(y)
        values, labeled = find_labeled(y, self.unlabeled)
        check_rows(X, values, labeled)
        prior = read_prior(self.class_prior)
        self.classes_, self.taxonomy_ = classes_and_tree(values, labeled, prior, self.taxonomy, columns)
        read = code(plain(values), labeled, self.classes_.tolist(), self.taxonomy_, self.taxonomy is not None)
        self._check_labels(read)
        sample_weight = row_weights(sample_weight, X, read.codes >= 0)
        order = np.lexsort((read.codes < 0, ~read.partial & (read.codes < 0)))
        codes, n_labeled = np.maximum(read.codes[order], 0), int((read.codes >= 0).sum())
        weights = None if sample_weight is None else sample_weight[order]
        of_labels = None if weights is None else weights[:n_labeled]
        estimated = isinstance(prior, str) and prior == "estimate"
        tree = None if self.taxonomy is None else self.taxonomy_
        known = ("labeled" if estimated else prior, self.classes_, codes[:n_labeled], codes.size - n_labeled)
        forbidden = None if read.allowed is None else ~read.allowed[order[n_labeled:]]
        bounds = prior_bounds(*known, of_labels, tree, forbidden)
        if tree is None and not columns:
            warn_of_names(values, labeled, prior, stacklevel=3)
        problem = self._problem(X, order, n_labeled, weights, self._n_heavy(read), forbidden)
        in_two = estimated and codes.size > n_labeled
        seeds = [self._seed() for _ in range(1 + in_two)]
        labeled_rows = np.bincount(codes[:n_labeled], minlength=len(self.classes_))
        with one_blas_thread(), self._checkpoint(problem, codes, bounds, seeds) as checkpoint:
            rngs = [np.random.default_rng(seed) for seed in checkpoint.seeds or seeds]
            run = Run(rngs[0], rngs[-1], _listener(self.verbose), checkpoint)
            try:
                if in_two:
                    counts = labeled_counts(len(self.classes_), codes[:n_labeled], of_labels)
                    design = are_by_design(labeled_rows)
                    outcome, bounds = self._solve_estimated(problem, codes, counts, design, bounds, run)
                else:
                    outcome = self._solve(problem, codes, bounds, run)
            except InfeasibleError as error:
                raise in_users_words(error, self.classes_, bounds.groups) from None
            own = self._keep(problem, outcome, bounds, order, X.shape[1])
            self.doubts_ = doubts_of(bounds, labeled_rows, own, self.prices_, are_rows(prior))
            if not isinstance(prior, str) and self.doubts_.are_open and codes.size > n_labeled:
                self._judge(problem, codes)
        if not isinstance(prior, str):
            warn_of_harm(self.doubts_, self.classes_, n_labeled, stacklevel=3)
        elif prior == "labeled" and self.doubts_.by_design and codes.size > n_labeled:
            warn_of_design(stacklevel=3)
        return self

    def _judge(self, problem: TrainingProblem, codes: Array) -> None:
        """Compare stated sizes with those of the supervised classifier; Ctrl-C leaves the fit as it is."""
        try:  # a chance of its own: whether sizes are doubted changes nothing that comes after
            counts = supervised_counts(problem, codes, self._first_settings(), np.random.default_rng(0))
        except KeyboardInterrupt:
            self.termination_condition_ = Ending.INTERRUPTED.value
        else:
            self.doubts_ = self.doubts_.judged(counts)

    def _first_settings(self) -> Settings:
        return Settings(stages("paper", 1.0), float(self.tol), max(float(self.tol), EARLY_TOL), int(self.max_iter))

    def _solve_estimated(
        self,
        problem: TrainingProblem,
        codes: Array,
        labeled: Array,
        by_design: bool,
        bounds: Bounds,
        run: Run,
    ) -> tuple[Outcome, Bounds]:
        """Solve with class sizes by the rows themselves; where that is interrupted too early, the first fit is kept."""
        known = (problem, codes, labeled, by_design, bounds)
        estimation = Estimation.create(*known, self._first_settings(), run.first_rng, run.on_round)
        first = estimation.first_fit(codes, run.checkpoint.shelf("first fit"))
        try:
            if first.ending is not Ending.INTERRUPTED:
                bounds = estimation.sizes(first)
                return self._solve(problem, codes, bounds, run), bounds
        except KeyboardInterrupt:
            first.ending = Ending.INTERRUPTED
        return first, estimation.bounds

    @abstractmethod
    def _solve(self, problem: TrainingProblem, codes: Array, bounds: Bounds, run: Run) -> Outcome:
        """Weights and labels for rows that come labelled ones first."""

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

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
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
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

    def _n_heavy(self, read: Coded) -> int:
        """Rows with a partial label that weigh as labelled ones."""
        return 0

    def _check_labels(self, read: Coded) -> None:
        """See that some row has one label, and that no others come but those that the method takes."""
        if not np.any(read.codes >= 0):
            raise ValueError("y must give at least one row a single label, but all are open. Label a few rows in full.")

    def _problem(
        self, X: Any, order: Array, n_labeled: int, sample_weight: Array | None, n_partial: int, forbidden: Array | None
    ) -> TrainingProblem:
        if self.fit_intercept:
            constant = np.ones((X.shape[0], 1), X.dtype)
            X = sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
        design = Design.create(X, self.taxonomy_, self.n_jobs, order)
        return TrainingProblem.create(
            design, self._loss(), float(self.alpha), n_labeled, sample_weight, n_partial, forbidden
        )

    def _keep(self, problem: TrainingProblem, outcome: Outcome, bounds: Bounds, order: Array, n_features: int) -> Array:
        """Fitted attributes from the outcome; returns the counts (K,) that the scores alone would give."""
        if outcome.ending in TROUBLE:
            warnings.warn(outcome.ending.value, ConvergenceWarning, stacklevel=3)
        leaf = outcome.W if self.taxonomy_.is_flat else outcome.W @ self.taxonomy_.paths.T.astype(outcome.W.dtype)
        if leaf.shape[1] == 2:
            leaf = leaf[:, 1:] - leaf[:, :1]
        self.coef_ = np.ascontiguousarray(leaf[:n_features].T)
        self.intercept_ = leaf[n_features].copy() if self.fit_intercept else np.zeros(leaf.shape[1], leaf.dtype)
        shift = self.price_shift_ = self._shift(problem.loss, outcome.prices)
        self.intercept_ += (shift[1:] - shift[:1] if shift.size == 2 else shift).astype(leaf.dtype)
        labels = np.empty(order.size, np.int64)
        labels[order] = outcome.labels
        self.transduction_ = self.classes_[labels]
        self.class_counts_ = np.bincount(outcome.labels[problem.n_labeled :], minlength=len(self.classes_))
        self.prices_ = outcome.prices
        self.objective_ = outcome.objective
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.termination_condition_ = outcome.ending.value
        self.bounds_ = bounds
        self.loss_ = problem.loss
        scores = problem.design.scores(outcome.W)[problem.n_labeled :]
        self.__dict__.pop("label_distributions_", None)
        if hasattr(problem.loss, "posterior"):
            distributions = np.empty((order.size, len(self.classes_)))
            distributions[order] = _distributions(problem, outcome, bounds, scores)
            self.label_distributions_ = distributions
        return np.bincount(scores.argmax(axis=1), minlength=len(self.classes_))


class TransductiveClassifier(CountedClassifier):
    """A linear classifier from a few labels, many unlabelled rows and the class sizes.

    y may hold, beside labels and markers of unlabelled rows, sets of candidate labels, inner nodes of the taxonomy, and
    `RuledOut` labels; or it is a boolean matrix (n, K) of the classes that each row may have.

    Parameters
    ----------
    loss : "hinge", "squared_hinge", "maxent", or an object with label_costs, value and gradient

    alpha : weight of the regulariser; for rows of length 1 between 1e-4 and 1e-3

    unlabeled_weight : weight of all unlabelled rows together, where the labelled ones weigh 1

    class_prior : shares of the rows without a full label: fractions or counts in the order of `classes_`, or a mapping
        by name (of a class, or of an inner node of the taxonomy); each a number, (low, high), or None for "not known";
        "estimate" for sizes that all rows suggest together; "labeled" for ranges by the labelled rows alone

    taxonomy : the tree of classes, or anything that Taxonomy.create takes; None for flat classes

    label_step : "exact", "switching", "multi_switch", "single_switch", "simplex", "greedy", or a LabelStep

    annealing : "soft" lets labels cool from distributions to hard ones, in several ways, and keeps the best; "paper"
        lets the unlabelled rows gain weight in nine stages, ten times as fast; None, or growing weights of your own,
        which then stand in the place of unlabeled_weight

    partial_weight : whether a row that y leaves several classes open for (by a set of them, or an inner node of the
        taxonomy) weighs as an unlabelled row or as a labelled one; the first has been better

    price_shift : whether new rows are labelled as the label step would label them, with the prices of the class sizes
        in `intercept_`; False goes by the scores alone, as the paper does

    fit_intercept : whether to add a constant feature, regularised like the others; texts do better without

    tol : relative accuracy of the last weight steps

    max_iter : rounds a stage, and sweeps a weight step in hundreds

    unlabeled : "auto" reads -1, None, NaN and blanks in y as unlabelled; a value, that one and missing ones; None, only
        missing ones

    random_state : seed of the order in which rows are visited

    n_jobs : threads for large problems; None or -1 for one a core. Results do not depend on it

    verbose : whether to print a line a round; or a function, called with each row of the history as it comes, and with
        those of the fit that class_prior="estimate" begins with

    checkpoint : a folder to keep every complete stage in; a fit that was killed goes on from there when it is called
        again with the same data and parameters, and ends as if nothing had happened. Where random_state is None, it
        goes on with the seed that it began with

    Attributes
    ----------
    classes_ : names of the classes, sorted; coef_, intercept_ : weights; transduction_ : labels of all training rows

    class_counts_ : rows of each class among the unlabelled; prices_ : of the classes, where counts pull; price_shift_ :
        the part of them in `intercept_`; bounds_ : class sizes as they were read; doubts_ : whether they fit the data

    label_distributions_ : probabilities (n, K) of the training rows, which meet the counts and the given labels

    objective_, history_, n_iter_, termination_condition_ : what happened; taxonomy_, n_features_in_

    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> clf = TransductiveClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y)
    >>> clf.transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    >>> clf.predict([[0.0, 2.0]]).tolist()
    ['tea']
    """

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        alpha: float = 1e-3,
        unlabeled_weight: float = 1.0,
        class_prior: object = "estimate",
        taxonomy: object = None,
        label_step: str | LabelStep = "exact",
        annealing: object = "soft",
        partial_weight: str = "unlabeled",
        price_shift: bool = True,
        fit_intercept: bool = False,
        tol: float = 1e-3,
        max_iter: int = 100,
        unlabeled: object = AUTO,
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: object = 0,
        checkpoint: object = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.unlabeled_weight = unlabeled_weight
        self.class_prior = class_prior
        self.taxonomy = taxonomy
        self.label_step = label_step
        self.annealing = annealing
        self.partial_weight = partial_weight
        self.price_shift = price_shift
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _n_heavy(self, read: Coded) -> int:
        return int(read.partial.sum()) if self.partial_weight == "labeled" else 0

    def _shift(self, loss: Loss, prices: Array) -> Array:
        share = getattr(loss, "price_share", 0.0) if self.price_shift else 0.0
        return np.asarray(share * prices)

    def _loss(self) -> Loss:
        return LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_above_zero(self, "unlabeled_weight")
        if self.partial_weight not in ("unlabeled", "labeled"):
            raise ValueError(f"partial_weight must be 'unlabeled' or 'labeled', but is {self.partial_weight!r}.")
        named = isinstance(self.loss, str) and self.loss in LOSSES
        if not named and not can(self.loss, "label_costs", "value", "gradient"):
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or a loss of your own, but is {self.loss!r}.")
        named = isinstance(self.label_step, str) and self.label_step in METHODS
        if not named and not is_label_step(self.label_step):
            raise ValueError(
                f"label_step must be one of {', '.join(METHODS)}, or your own with solve(problem, prices, start) that "
                f"gives every row one label, but is {self.label_step!r}."
            )

    def _checkpoint(self, problem: TrainingProblem, codes: Array, bounds: Bounds, seeds: list[int]) -> Checkpoint:
        if self.checkpoint is None:
            return Checkpoint()
        design, groups = problem.design, bounds.groups
        parts = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_OF_THE_RESULT}
        parts["X"] = (*design.rows, design.n_features, problem.shares)
        parts["y"] = (codes, problem.n_labeled, problem.n_partial, problem.forbidden)
        parts["taxonomy"] = self.taxonomy_.paths
        parts["class_prior"] = (
            isinstance(self.class_prior, str) and self.class_prior == "estimate",
            *bounds[:2],
            None if groups is None else (groups.above, groups.low, groups.high),
        )
        drawn = self.random_state is None or self.random_state is np.random
        parts["random_state"] = None if drawn else seeds
        return Checkpoint.open(self.checkpoint, fingerprint(parts), seeds)

    def _solve(self, problem: TrainingProblem, codes: Array, bounds: Bounds, run: Run) -> Outcome:
        weights = stages(self.annealing, float(self.unlabeled_weight))  # type: ignore[arg-type]
        step = METHODS[self.label_step] if isinstance(self.label_step, str) else self.label_step
        if bounds.groups is not None and not getattr(step, "takes_groups", True):
            raise ValueError(
                f"label_step {self.label_step!r} takes no sizes of branches, but class_prior states them. "
                "Use label_step='exact', or state sizes of classes only."
            )
        alternation = Alternation(
            problem,
            bounds.low,
            bounds.high,
            weight_step_for(problem.loss, 100 * int(self.max_iter)),
            step,
            Settings(
                weights if problem.n_rows > problem.n_labeled else (),
                float(self.tol),
                max(float(self.tol), EARLY_TOL),
                int(self.max_iter),
            ),
            run.rng,
            run.on_round,
            bounds.groups,
        )
        if isinstance(self.annealing, str) and self.annealing == "soft":
            return SoftAnnealing(alternation, coolings(float(self.unlabeled_weight)), run.checkpoint).run(codes)
        return replace(alternation, shelf=run.checkpoint.shelf("way 0")).run(codes)


def _distributions(problem: TrainingProblem, outcome: Outcome, bounds: Bounds, scores: Array) -> Array:
    """Distributions over labels for all rows: the given ones, and the posterior corrected for the class sizes."""
    n_labeled, n_classes = problem.n_labeled, problem.n_classes
    distributions = np.zeros((problem.n_rows, n_classes))
    distributions[np.arange(n_labeled), outcome.labels[:n_labeled]] = 1.0
    if len(scores):
        posterior = problem.loss.posterior(scores)  # type: ignore[attr-defined]
        costs = allowed_costs(problem, -np.log(np.maximum(posterior, np.finfo(posterior.dtype).tiny)))
        distributions[n_labeled:] = Entropic(1.0, tol=1e-3).solve(LabelProblem(costs, *bounds)).posterior
    return distributions


def _listener(verbose: object) -> Callable[[HistoryRow], None]:
    """What hears of each round: the user's own function, the printer, or nobody."""
    if callable(verbose):
        return verbose
    return _print_round if verbose else _say_nothing


def _say_nothing(row: HistoryRow) -> None:
    """Rounds pass in silence."""


def _print_round(row: HistoryRow) -> None:
    print(  # noqa: T201 -- verbose asks for it
        f"way {row.way} stage {row.stage}  unlabelled weight {row.unlabeled_weight:<8.4g} T {row.temperature:<8.3g} "
        f"objective {row.objective:<12.6g} moved {row.n_moved:<7} gap {row.gap:<9.2e} off {row.residual:<8.1e} "
        f"{row.seconds:.2f} s"
    )
