"""TransductiveClassifier: the method of the paper, with annealing that suits the rows and estimated class sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np

from transduce.base import EARLY_TOL, BaseTransductiveClassifier
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.resolve import ResolvedPrior
from transduce.engines.base import Engine, FittedLabels, ProblemSettings, StepSettings, TrainingData
from transduce.engines.device.engine import DeviceData
from transduce.engines.local import LocalData, LocalEngine
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint
from transduce.label_step import METHODS, LabelStep, is_label_step
from transduce.losses import LargeMargin, Loss, MaxEnt, SquaredLargeMargin
from transduce.parallel import one_blas_thread
from transduce.solvers.annealing import SoftAnnealing
from transduce.solvers.first_labels import calibrate_by_labels, evidence_counts, evidence_of
from transduce.solvers.guesses import judge_guesses, suspicion
from transduce.solvers.loop import FitContext
from transduce.solvers.schedule import cooling_schedules, n_restarts_of, resolve_annealing, stages
from transduce.validation import check_fractions, check_positive, has_methods

LOSSES: Mapping[str, type[Loss]] = {"hinge": LargeMargin, "squared_hinge": SquaredLargeMargin, "maxent": MaxEnt}
_NOT_IN_FINGERPRINT = (
    "class_prior", "taxonomy", "unlabeled", "random_state", "n_jobs", "verbose", "checkpoint", "client",
    "estimate_accuracy", "outlier_fraction", "features", "encoder", "ngrams", "words_share", "cache",
)  # fmt: skip
"""Parameters that do not change what is saved, or enter the fingerprint in another form, as the rows of texts do."""


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveClassifier(BaseTransductiveClassifier):
    """Linear classifier that learns from a few labels, many unlabelled rows and the class sizes.

    Weights and labels are learnt together: weight steps fit a linear classifier to the present labels, label steps give
    the unlabelled rows the best labels that meet the class sizes [1]_. See `docs/how-to-choose.md` for advice.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "maxent"} or Loss, default="hinge"
        Loss of a row. A loss of your own is an object with the methods `label_costs`, `value` and `gradient`.
    alpha : float or "auto", default="auto"
        Weight of the regulariser. "auto" is 1e-3 for margin losses and 1e-4 for maxent, times the mean squared length
        of the rows of X, so that the result does not depend on the scale of X. A loss of your own may state its value
        as `default_alpha`; without it, 1e-3 is used. Good values for rows of length 1 lie between 1e-4 and 1e-3.
    unlabeled_weight : float, default=1.0
        Total weight of the unlabelled rows; the labelled rows weigh 1.
    class_prior : array-like, dict, "estimate", "labeled" or "equal", default="estimate"
        Class sizes among the rows without a full label: in the order of `classes_`, or a dict from class names (or
        inner nodes of the taxonomy) to those that you know. A size is a fraction such as 0.2, "20%" or "1/5", which is
        rough; a number of rows or "=20%", which is exact; a range such as (0.1, 0.3) or "10%:30%"; or None. Counts of
        all classes may include the labelled rows. "estimate" estimates sizes by fits that each leave out a fifth of
        the labels, and so does any prior but exact sizes of all classes; "labeled" relies on the labelled fractions
        alone; "equal" means about the same size for all classes.
    taxonomy : Taxonomy, list of paths, dict or None, default=None
        Tree of classes, in any form that `Taxonomy.create` takes; None for flat classes.
    label_step : {"exact", "switching", "multi_switch", "single_switch", "simplex", "greedy"} or LabelStep, \
            default="exact"
        How the best labels are found. All but "greedy" and the switching ones find the optimum.
    annealing : {"auto", "soft", "paper"}, sequence of float or None, default="auto"
        "paper" increases the weight of the unlabelled rows in nine stages. "soft" also cools labels from distributions
        to hard ones, keeps the better result, and takes four to five times as long. "auto" is "soft" for sparse rows
        and "paper" for dense ones, where soft labels gain nothing. A sequence is the weights of your own stages, in
        place of `unlabeled_weight`; None is one stage. Of more than 20 000 unlabelled rows, or 200 for each class if
        that is more, a sample is annealed, and one stage at the final weight follows with all rows.
    partial_weight : {"unlabeled", "labeled"}, default="unlabeled"
        Whether rows with a partial label weigh as unlabelled or as labelled rows.
    price_shift : bool, default=True
        Whether `intercept_` includes the prices of the class sizes, so that new rows are labelled as the label step
        would label them. False uses the scores alone, as the paper does.
    outlier_fraction : float, tuple (low, high) or None, default=None
        Fraction of the unlabelled rows that fit no class and stay without a label in `transduction_`, where they are
        marked as in y: -1, "" or None: those with the lowest best scores by weights that they took no part in. With a
        range, as many within it as have uncertain labels, up to a mean confidence halfway between chance and
        certainty. `predict` leaves new rows below `outlier_score_` without a class, about the same fraction.
    estimate_accuracy : bool, default=False
        Whether to hide labels, in five more fits by the paper's annealing, also where no class size has to be
        estimated: with exact sizes of all classes, or "labeled". Labels and weights stay the same, but
        `accuracy_estimate_` is set, and probabilities are calibrated. With other priors this is done in any case.
    fit_intercept : bool, default=True
        Whether to add a constant feature, regularised like the others. The paper has none; it helps where classes are
        of uneven size. Its value is 1; with alpha="auto" it is the root of the mean squared length of the rows.
    tol : float, default=1e-3
        Relative accuracy of the last weight steps.
    early_tol : float, default=0.25
        Relative accuracy of all other weight steps. Small values are slow; they make the labels independent of the
        order of the rows and of the number of workers.
    max_iter : int, default=100
        Most rounds in a stage; a weight step may take 100 times as many sweeps.
    unlabeled : "auto", None or object, default="auto"
        What marks unlabelled rows in y. "auto": -1, None, NaN and blank strings. None: missing values only. Any other
        value: this value and missing values.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which rows are visited.
    n_jobs : int or None, default=None
        Number of threads; None or -1 for one per core. The result does not depend on it.
    verbose : bool, int or callable, default=0
        Whether to print a line after each round. A callable is called with each `HistoryRow` as it comes, including
        those of the fits that estimate class sizes, whose `restart` is negative.
    checkpoint : path-like or None, default=None
        Folder to save every completed stage in. A fit that was killed continues from there when it is called again with
        the same data and parameters, and gives the same result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Names of the classes, sorted.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the features.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts, with `price_shift_` included.
    alpha_ : float
        Weight of the regulariser that the fit used.
    annealing_ : str, sequence of float or None
        Annealing that the fit used: "soft" or "paper" if `annealing` is "auto".
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows; those of the unlabelled rows meet exact class sizes, and rough ones roughly.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Calibrated probabilities of the classes for all training rows. They meet exact sizes and ranges, and follow
        rough and estimated sizes as the labels do. Only for losses with probabilities, such as "hinge" and "maxent".
    class_counts_ : ndarray of shape (n_classes,)
        Number of rows without a full label that each class got.
    outlier_score_ : float or None
        New rows with a lower best score, for two classes a smaller decision function, get no class. As many of the
        unlabelled rows as were left without one would be below it if they were new, by weights that each of them took
        no part in; -inf if none was left without one, None without `outlier_fraction`.
    prices_ : ndarray of shape (n_classes,)
        Dual variables of the class sizes: what the label step pays for one more row of the class.
    price_shift_ : ndarray of shape (n_classes,)
        Part of the prices that is included in `intercept_`.
    bounds_ : Bounds
        Class sizes that the fit used: lower and upper bounds on the counts, and a belief within them.
    size_estimate_ : SizeEstimate
        Estimated class sizes, combined with those stated, as fractions of the rows to label: `mean`, `deviation`, and
        the ends `low` and `high` of 90 % intervals.
    accuracy_estimate_ : AccuracyEstimate or None
        Estimated accuracy and macro F of the new labels, with 90 % intervals; None if no labels were hidden (see
        `estimate_accuracy`).
    calibration_ : Calibration
        Fields `temperature` and `smoothing` at which hidden labels are most likely. Probabilities are
        (1 - smoothing) posterior(scores / temperature) + smoothing / n_classes; 1 and 0 if no label was hidden.
    suspicion_ : ndarray of shape (n_samples,)
        How clearly text and class sizes contradict each guess: the logarithm of how much likelier the label is than the
        guess, 0 where they are the same, there is no guess, or the row has a label. Only after `fit` with guesses;
        `np.argsort(-suspicion_)` lists the most suspicious rows first.
    prior_diagnostics_ : PriorDiagnostics
        Comparison of the class sizes with the labels and the predictions.
    objective_ : float
        Objective J at the end.
    history_, n_iter_ : list of HistoryRow and int
        One row for each round, and their number.
    termination_condition_ : str
        Why the fit ended, for example "Converged."
    taxonomy_ : Taxonomy
        Tree whose leaves are `classes_`.
    loss_ : Loss
        Loss object.
    n_features_in_, feature_names_in_ : int and ndarray of shape (n_features,)
        Number of features, and their names if X has any.

    See Also
    --------
    transduce.dask.TransductiveClassifier : The same over the workers of a Dask cluster.
    transduce.solve_labels : The label step alone.

    References
    ----------
    .. [1] S. S. Keerthi, S. Sundararajan and S. Shevade (2012). Extension of TSVM to multi-class and hierarchical text
       classification problems with general losses. COLING 2012.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> clf = TransductiveClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y)
    >>> clf.transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    >>> clf.predict([[0.0, 2.0]]).tolist()
    ['tea']
    """

    loss: str | Loss = field(default="hinge", kw_only=False)
    unlabeled_weight: float = 1.0
    label_step: str | LabelStep = "exact"
    annealing: Any = "auto"
    fit_intercept: bool = True
    partial_weight: str = "unlabeled"
    price_shift: bool = True
    outlier_fraction: Any = None
    estimate_accuracy: bool = False
    tol: float = 1e-3
    early_tol: float = EARLY_TOL
    checkpoint: Any = None

    _takes_device_rows = True
    _evidence = cast("tuple[Any, Any]", (None, None))  # scores and guesses while they are fitted

    def _loss(self) -> Loss:
        return LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive(self, "unlabeled_weight", "early_tol")
        stages(self.annealing, 1.0)
        if self.outlier_fraction is not None:
            check_fractions("outlier_fraction", self.outlier_fraction)
        if self.partial_weight not in ("unlabeled", "labeled"):
            raise ValueError(f"partial_weight must be 'unlabeled' or 'labeled', but is {self.partial_weight!r}.")
        named = isinstance(self.loss, str) and self.loss in LOSSES
        if not named and not has_methods(self.loss, "label_costs", "value", "gradient"):
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or a loss of your own, but is {self.loss!r}.")
        named = isinstance(self.label_step, str) and self.label_step in METHODS
        if not named and not is_label_step(self.label_step):
            raise ValueError(
                f"label_step must be one of {', '.join(METHODS)}, or your own with solve(problem, prices, start) that "
                f"gives every row one label, but is {self.label_step!r}."
            )

    def _prepare(self, data: TrainingData) -> tuple[Engine, ResolvedPrior, ProblemSettings]:
        engine, prior, settings = super()._prepare(data)
        self.annealing_ = resolve_annealing(self.annealing, engine.is_dense)
        if evidence_of(engine) is not None and not prior.is_known and not np.all(prior.labeled_rows > 0):
            prior = prior._replace(sampled=np.zeros_like(prior.sampled))  # evidence is there in place of some labels
        with one_blas_thread():
            return self._weigh_evidence(engine), prior, settings

    def _open_checkpoint(self, engine: Engine, prior: ResolvedPrior, seeds: list[int]) -> Checkpoint:
        if self.checkpoint is None:
            return Checkpoint()
        return engine.open_checkpoint(self.checkpoint, self._fingerprint(prior, seeds), seeds)

    def _fingerprint(self, prior: ResolvedPrior, seeds: list[int]) -> dict[str, Any]:
        """Return what the result depends on apart from the data."""
        stated = prior.statement
        parts = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_IN_FINGERPRINT}
        parts["taxonomy"], parts["annealing"] = self.taxonomy_.paths, self.annealing_
        parts["class_prior"] = (
            prior.is_estimated,
            *(stated.members, stated.low, stated.high, stated.is_rough, prior.sampled, prior.is_known),
        )
        drawn = self.random_state is None or self.random_state is np.random
        parts["random_state"] = None if drawn else seeds
        return parts

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sampled: Any = None, scores: Any = None, guesses: Any = None
    ) -> Self:
        """Learn from labelled and unlabelled rows together, and from evidence about their classes.

        Parameters
        ----------
        X, y, sample_weight, sampled
            As in `BaseTransductiveClassifier.fit`. With scores or guesses, y may be without a single label.
        scores : array-like or data frame of shape (n_samples, n_classes), default=None
            Scores of the classes from elsewhere, the higher the likelier: log-probabilities, cosines, or any others.
            NaN in rows without scores, or in classes without them. The columns of a data frame are the names of the
            classes; those of an array are in the order of `classes_`, or 0, 1, ... if nothing else names the classes.
        guesses : array-like of shape (n_samples,), default=None
            Labels of which some are wrong, such as those of a language model; missing ones as in y.

        Returns
        -------
        self : object

        Examples
        --------
        >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
        >>> scores = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9], [0.4, 0.6], [0.3, 0.7]]
        >>> clf = TransductiveClassifier(class_prior=[3, 3], random_state=0)
        >>> clf.fit(X, [-1] * 6, scores=scores).transduction_.tolist()
        [0, 0, 1, 1, 0, 1]
        """
        self._evidence = scores, guesses
        try:
            super().fit(X, y, sample_weight, sampled)
        finally:
            del self._evidence
        return self

    def _set_fitted(
        self, engine: Any, prior: ResolvedPrior, result: FitResult, bounds: Bounds, constant: float
    ) -> None:
        super()._set_fitted(engine, prior, result, bounds, constant)
        self.__dict__.pop("suspicion_", None)
        evidence = evidence_of(engine)
        if evidence is not None and evidence.is_judged:
            self.suspicion_ = engine.in_order_of_y(suspicion(evidence, result.labels, engine.problem.n_labeled))

    def _local_data(self, X: Any, y: Any, sample_weight: Any, sampled: Any) -> LocalData:
        data, (scores, guesses) = super()._local_data(X, y, sample_weight, sampled), self._evidence
        if isinstance(data, DeviceData) and not (scores is None and guesses is None):
            raise ValueError("scores and guesses are for rows in memory, but X is on a device. Pass a NumPy array.")
        data.scores, data.guesses = scores, guesses
        return data

    def _weigh_evidence(self, engine: Engine) -> Engine:
        """Calibrate scores by known labels, or judge guesses by the texts."""
        if not isinstance(engine, LocalEngine) or engine.problem.evidence is None:
            return engine
        if self._evidence[1] is None:
            return calibrate_by_labels(engine, float(self.unlabeled_weight))
        return judge_guesses(engine, float(self.unlabeled_weight))

    def _diagnose(self, engine: Engine, prior: ResolvedPrior, fitted: FittedLabels) -> None:
        super()._diagnose(engine, prior, fitted)
        evidence = evidence_of(engine)
        if evidence is not None and prior.is_stated and not np.all(prior.labeled_rows > 0):
            counts = evidence_counts(evidence, prior.labels.size)  # evidence replaces labels of some classes
            self.prior_diagnostics_ = self.prior_diagnostics_.with_evidence(counts)

    def _solve(self, engine: Engine, bounds: Bounds, context: FitContext) -> FitResult:
        unlabeled_weight = float(self.unlabeled_weight)
        settings = self._settings(self.annealing_, unlabeled_weight)
        if not engine.n_unlabeled:
            settings = replace(settings, weights=())
        step = METHODS[self.label_step] if isinstance(self.label_step, str) else self.label_step
        if bounds.groups is not None and not getattr(step, "takes_groups", True):
            raise ValueError(
                f"label_step {self.label_step!r} cannot bound branches of the taxonomy, but class_prior does. "
                "Use label_step='exact', or state sizes of classes only."
            )
        if not getattr(step, "takes_beliefs", False):
            bounds = bounds.without_belief(engine.n_unlabeled)
        steps = StepSettings(bounds, step, 100 * int(self.max_iter))
        schedules = cooling_schedules(unlabeled_weight) if n_restarts_of(self.annealing_) > 1 else ()
        return SoftAnnealing(
            engine, steps, settings, context.rng, context.on_round, schedules, context.checkpoint
        ).run()
