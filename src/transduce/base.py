"""What all estimators share: `fit` and the fitted attributes; `prediction` has what they do afterwards.

`fit` is one pipeline: encode the labels, resolve the class prior, build the problem, solve it, set fitted attributes.
"""

import warnings
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from transduce.arrays import Array
from transduce.class_prior.accuracy import estimate_accuracy
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.diagnostics import diagnose_prior, warn_balanced_labels, warn_harmful_prior
from transduce.class_prior.estimation import contradicts, estimate_sizes
from transduce.class_prior.resolve import ResolvedPrior
from transduce.class_prior.rounding import outlier_counts
from transduce.class_prior.spec import read_prior
from transduce.contract import read_rows
from transduce.engines.base import Engine, FittedLabels, LabelOptions, ProblemSettings, TrainingData
from transduce.engines.common import Calibration
from transduce.engines.device.arrays import Arrays, is_on_device, to_host
from transduce.engines.device.engine import DeviceData, DeviceEngine, check_rows, memory_explained
from transduce.engines.local import LocalData
from transduce.errors import LabelError, LabelErrorKind, user_stacklevel
from transduce.history import FitResult, FitStatus, progress_callback
from transduce.io.checkpoint import Checkpoint
from transduce.label_step.infeasible import InfeasibleError
from transduce.labels.classes import with_none
from transduce.labels.missing import AUTO
from transduce.losses import Loss, MaxEnt, default_alpha
from transduce.parallel import one_blas_thread
from transduce.prediction import LinearPredictor
from transduce.solvers.alternating import Settings
from transduce.solvers.cross_fit import cross_fit
from transduce.solvers.first_labels import is_uncalibrated
from transduce.solvers.first_sizes import first_estimate, supervised_counts
from transduce.solvers.loop import CatchInterrupt, FitContext
from transduce.solvers.schedule import stages
from transduce.validation import (
    check_alpha,
    check_flag,
    check_fractions,
    check_iterations,
    check_positive,
    random_generator,
)

EARLY_TOL = 0.25
"""Relative gap at which weight steps stop while labels still move: later steps continue from there."""
_UNFINISHED = (FitStatus.NOT_CONVERGED, FitStatus.UNMET, FitStatus.STILL_FALLING)


@dataclass(kw_only=True, eq=False, repr=False)
class BaseTransductiveClassifier(LinearPredictor):
    """Parameters and methods of all estimators; a subclass gives the loss and solves the problem."""

    alpha: float | str = "auto"
    class_prior: object = "estimate"
    taxonomy: object = None
    fit_intercept: bool = False
    tol: float = 1e-4
    max_iter: int = 100
    unlabeled: object = AUTO
    random_state: Any = None
    n_jobs: int | None = None
    verbose: Any = 0

    _takes_partial_labels = True
    _takes_device_rows = False
    # parameters of TransductiveClassifier alone
    partial_weight = "unlabeled"
    price_shift = False
    outlier_fraction = None
    estimate_accuracy = False
    early_tol = EARLY_TOL

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sampled: Any = None) -> Self:
        """Learn from labelled and unlabelled rows together.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or boolean matrix of shape (n_samples, n_classes)
            Labels. -1, None, NaN and "" mark unlabelled rows (see the parameter `unlabeled`). Partial labels are sets,
            inner nodes of the taxonomy and `RuledOut` labels, or True for the classes that a row may have.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; all equal if None.
        sampled : bool or array-like of bool of shape (n_samples,), default=None
            Which labels were drawn at random, so that their numbers say something about class sizes. Labels that were
            chosen in another way, such as ten of each class or the answers to a queue, were not. None: all of them,
            unless their numbers are equal by design. Unless it is True for all labels, the classifier may
            contradict it.

        Returns
        -------
        self : object
        """
        self._check_fit(y)
        with memory_explained(X):
            self._fit_data(self._local_data(X, y, sample_weight, sampled), self._draw_seeds())
        if is_on_device(self.coef_) and is_on_device(y):
            for name in ("transduction_", "class_counts_", "prices_", "price_shift_"):
                setattr(self, name, Arrays.of(X).copied(getattr(self, name)))
        return self

    def fit_predict(self, X: Any, y: Any, sample_weight: Any = None, sampled: Any = None, **evidence: Any) -> Any:
        """Fit, and return the labels of all training rows; a scikit-learn pipeline has this method too.

        Parameters
        ----------
        X, y, sample_weight, sampled, **evidence
            As in `fit`; evidence is `scores` or `guesses`, where `fit` takes them.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            `transduction_`.
        """
        return self.fit(X, y, sample_weight, sampled, **evidence).transduction_

    def _check_fit(self, y: Any) -> None:
        self._check_parameters()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Mark unlabelled rows by -1 or None.")

    def _draw_seeds(self) -> list[int]:
        """Draw the seeds of the fit and of the fits that labels are hidden from."""
        random = random_generator(self.random_state)
        return [int(random.randint(2**31 - 1)) for _ in range(2)]

    def hidden_log_likelihood(self, X: Any, y: Any, sample_weight: Any = None, sampled: Any = None) -> float:
        """Return the mean logarithm of the probabilities of labels that were hidden: a score of features or parameters.

        Five fits by the paper's annealing each leave out a fifth of the labels. It needs no further labels, and less
        time than cross-validation of complete fits. The loss, alpha, the class prior and the intercept count; other
        methods, annealings, label steps and weights of the unlabelled rows make no difference. The estimator is not
        changed.

        Parameters
        ----------
        X, y, sample_weight, sampled
            As in `fit`.

        Returns
        -------
        float
            At most 0, higher is better; NaN if no class has two labels.

        Examples
        --------
        >>> from transduce import TransductiveClassifier
        >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
        >>> y, clf = ["tea", "tea", "coffee", "coffee", "", ""], TransductiveClassifier(random_state=0)
        >>> bool(clf.hidden_log_likelihood(X, y) > clf.hidden_log_likelihood(X[::-1], y))
        True
        """
        self._check_fit(y)
        copy = clone(self)
        engine, prior, _ = copy._prepare(copy._local_data(X, y, sample_weight, sampled))
        rngs = [np.random.default_rng(seed) for seed in self._draw_seeds()]
        with one_blas_thread():
            estimate, prior = first_estimate(engine, prior, self._settings())
            bounds = prior.bounds(estimate)
            context = FitContext(rngs[0], rngs[-1], progress_callback(self.verbose), Checkpoint())
            found = cross_fit(engine, bounds, self._settings(), context)
        if isinstance(found, FitResult):
            raise KeyboardInterrupt
        return np.nan if found is None else found.log_likelihood(found.calibration())

    def _local_data(self, X: Any, y: Any, sample_weight: Any, sampled: Any) -> LocalData:
        if self._takes_device_rows and is_on_device(X):
            check_rows(X, to_fit=True)
            y, sample_weight = (to_host(values) if is_on_device(values) else values for values in (y, sample_weight))
            return DeviceData(X, y, sample_weight, sampled)
        return LocalData(read_rows(X, self), y, sample_weight, sampled)

    def _fit_data(self, data: TrainingData, seeds: list[int]) -> None:
        """Run the pipeline from the labels to the fitted attributes; the same data and seeds give the same result."""
        engine, prior, settings = self._prepare(data)
        with one_blas_thread(), self._open_checkpoint(engine, prior, seeds) as checkpoint:
            rngs = [np.random.default_rng(seed) for seed in checkpoint.seeds or seeds]
            context = FitContext(rngs[0], rngs[-1], progress_callback(self.verbose), checkpoint)
            result, bounds = self._solve_prior(engine, prior, context)
            if result.status in _UNFINISHED:
                warnings.warn(result.status.value, ConvergenceWarning, stacklevel=user_stacklevel() - 1)
            self._set_fitted(engine, prior, result, bounds, settings.constant)
        self._warn_of_prior(prior, engine.n_unlabeled)

    def _prepare(self, data: TrainingData) -> tuple[Engine, ResolvedPrior, ProblemSettings]:
        """Encode the labels, resolve the class prior and build the problem."""
        stated = read_prior(self.class_prior)
        labels = data.encode(LabelOptions(stated, self.taxonomy, self.unlabeled))
        if labels.forbidden is not None and not self._takes_partial_labels:
            raise LabelError(LabelErrorKind.PARTIAL_LABELS, estimator=type(self).__name__)
        self.classes_, self.taxonomy_, self.n_features_in_ = labels.classes, labels.taxonomy, labels.n_features
        tree = None if self.taxonomy is None else labels.taxonomy
        counted = labels.labels, labels.n_unlabeled, labels.weights
        prior = ResolvedPrior.create(stated, labels.classes, *counted, tree, labels.forbidden, labels.sampled)
        settings = self._problem_settings(data)
        self.alpha_ = settings.alpha
        return data.build(settings), prior, settings

    def _set_fitted(
        self, engine: Any, prior: ResolvedPrior, result: FitResult, bounds: Bounds, constant: float
    ) -> None:
        """Set the fitted attributes; see `_set_model` for the constant."""
        self._set_model(result, engine.in_original_order(result.W), bounds, constant)
        if isinstance(engine, DeviceEngine):
            self.coef_, self.intercept_ = engine.like_rows(self.coef_), engine.like_rows(self.intercept_)
        names = self._set_outliers(engine, result, bounds)
        fitted = engine.fitted_labels(result, bounds, names, self.calibration_)
        self._set_labels(fitted)
        self._estimate_accuracy(fitted, prior)
        self._diagnose(engine, prior, fitted)

    def _problem_settings(self, data: TrainingData) -> ProblemSettings:
        """Resolve "auto": alpha follows the loss and the scale of X, and so does the constant of the intercept.

        Rows c times as long, with alpha c² times as large, then give weights 1/c as large, and the same scores.
        """
        loss, alpha, constant = self._loss(), self.alpha, 1.0
        if isinstance(alpha, str):
            squared_length = data.mean_squared_length(self.n_jobs)
            alpha, constant = default_alpha(loss) * squared_length, float(np.sqrt(squared_length))
        as_labeled = self.partial_weight == "labeled"
        return ProblemSettings(loss, float(alpha), self.fit_intercept, as_labeled, self.n_jobs, constant)

    def _open_checkpoint(self, engine: Engine, prior: ResolvedPrior, seeds: list[int]) -> Checkpoint:
        """Open the checkpoint folder; without the parameter `checkpoint` nothing is saved."""
        return Checkpoint()

    def _solve_prior(self, engine: Engine, prior: ResolvedPrior, context: FitContext) -> tuple[FitResult, Bounds]:
        """Estimate class sizes unless they are stated exactly, and solve with them; return the bounds too.

        Labels are hidden for that, or to estimate the accuracy. An interruption meanwhile keeps the fit that got
        furthest, in which some labels were hidden.
        """
        estimate, checked = first_estimate(engine, prior, self._settings())
        self.calibration_, found = Calibration(), None
        self._hidden, self._data_estimate = None, None
        self._contradicted = bool(np.any(prior.sampled & ~checked.sampled))
        self.size_estimate_ = prior.combine(estimate)
        try:
            bounds = prior.bounds(estimate)
            hides = prior.is_estimated or (self.estimate_accuracy and engine.n_unlabeled)
            if hides and not is_uncalibrated(engine):
                with suppress(InfeasibleError):  # all rows can meet the sizes, or the error about them has the numbers
                    found = cross_fit(engine, bounds, self._settings(), context)
            if isinstance(found, FitResult):
                return found, bounds
            if found is not None:
                self.calibration_ = found.calibration()
                hidden = self._hidden = found.hidden_labels(self.calibration_)
                self._data_estimate = estimate_sizes(hidden, checked.sampled)
                if prior.is_estimated:
                    self.size_estimate_ = prior.combine(self._data_estimate)
                    bounds = prior.bounds(self._data_estimate)
                elif not prior.is_known:
                    self._contradicted = contradicts(hidden, prior.sampled)
            return self._solve(engine, bounds, context), bounds
        except InfeasibleError as error:
            raise error.with_names(self.classes_, prior.statement.groups) from None

    def _settings(self, annealing: Any = "paper", unlabeled_weight: float = 1.0) -> Settings:
        """Settings of Algorithm 1; fits that estimate or check class sizes use the paper's stages."""
        early_tol = max(float(self.tol), float(self.early_tol))
        return Settings(stages(annealing, unlabeled_weight), float(self.tol), early_tol, int(self.max_iter))

    @abstractmethod
    def _solve(self, engine: Any, bounds: Bounds, context: FitContext) -> FitResult:
        """Find weights and labels that meet the bounds."""

    def _estimate_accuracy(self, fitted: FittedLabels, prior: ResolvedPrior) -> None:
        """Estimate accuracy and macro F of the new labels, if labels were hidden."""
        self.accuracy_estimate_ = None
        if self._hidden is not None and np.isfinite(fitted.mean_confidence):
            is_sample = bool(prior.sampled.all()) and not self._contradicted
            known = self.size_estimate_.mean, is_sample, prior.statement.all_stated
            self.accuracy_estimate_ = estimate_accuracy(self._hidden, fitted.mean_confidence, *known)

    def _diagnose(self, engine: Engine, prior: ResolvedPrior, fitted: FittedLabels) -> None:
        """Compare stated class sizes with the data; where they disagree, with the supervised classifier too."""
        stated, in_rows = prior.statement.likely_bounds(), prior.statement.in_rows
        diagnostics = diagnose_prior(stated, prior.labeled_rows, fitted.predicted_counts, self.prices_, in_rows)
        self.prior_diagnostics_ = diagnostics
        if not prior.is_stated or not diagnostics.needs_supervised or not engine.n_unlabeled or not prior.labels.size:
            return
        with CatchInterrupt() as interruption:  # a generator of its own, so that the check changes nothing else
            counts = supervised_counts(engine, self._settings(), np.random.default_rng(0))
            self.prior_diagnostics_ = diagnostics.with_supervised(counts)
        if interruption.happened:
            self._set_status(FitStatus.INTERRUPTED)

    def _warn_of_prior(self, prior: ResolvedPrior, n_unlabeled: int) -> None:
        if prior.is_stated:
            n_labeled = int(prior.labeled_rows.sum())
            warn_harmful_prior(self.prior_diagnostics_, self.classes_, n_labeled, stacklevel=user_stacklevel())
        elif prior.stated == "labeled" and self.prior_diagnostics_.balanced_labels and n_unlabeled:
            warn_balanced_labels(stacklevel=user_stacklevel())

    def _loss(self) -> Loss:
        return MaxEnt()

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)
        check_positive(self, "tol")
        check_iterations(self.max_iter, self.n_jobs)
        check_flag("fit_intercept", self.fit_intercept)

    def _set_model(self, result: FitResult, W: Array, bounds: Bounds, constant: float) -> None:
        """Set weights, class sizes and what happened as fitted attributes.

        W has a row for each column of X, and one for the feature with this constant value if there is an intercept.
        """
        self._set_weights(W, constant if self.fit_intercept else 0.0)
        self.loss_ = self._loss()
        scale = getattr(self.loss_, "price_scale", 0.0) if self.price_shift else 0.0
        shift = self.price_shift_ = scale * result.prices if scale else np.zeros_like(result.prices)
        self.intercept_ += (shift[1:] - shift[:1] if shift.size == 2 else shift).astype(W.dtype)
        self.prices_ = result.prices
        self.objective_, self.history_, self.n_iter_ = result.objective, result.history, len(result.history)
        self._set_status(result.status)
        self.bounds_ = bounds

    def _set_outliers(self, engine: Engine, result: FitResult, bounds: Bounds) -> Array:
        """Leave rows that fit no class without one, if asked to; return the names that the labels of `result` index."""
        self.outlier_score_: float | None = None
        if self.outlier_fraction is None or not engine.n_unlabeled:
            return np.asarray(self.classes_)
        fractions = check_fractions("outlier_fraction", self.outlier_fraction)
        low, high = outlier_counts(fractions, engine.n_unlabeled)
        held_out = None
        with CatchInterrupt() as interruption:
            held_out = engine.held_out_scores(result)
        if interruption.happened:
            self._set_status(FitStatus.INTERRUPTED)
        found = self.calibration_.temperature, self.price_shift_, held_out
        result.labels, self.outlier_score_ = engine.set_aside(result, bounds, (low, high), *found)
        return with_none(self.classes_)

    def _set_status(self, status: FitStatus) -> None:
        self._status, self.termination_condition_ = status, status.value

    def _set_labels(self, fitted: FittedLabels) -> None:
        """Set the labels of the training rows as fitted attributes."""
        self.transduction_: Any = fitted.transduction
        self.class_counts_ = fitted.class_counts
        self.__dict__.pop("label_distributions_", None)
        if fitted.distributions is not None:
            self.label_distributions_: Any = fitted.distributions
