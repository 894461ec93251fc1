"""The classifiers that the paper compares itself with: maxent with the class sizes, by the direct methods."""

from abc import abstractmethod
from typing import Any

from transduce.base import BaseTransductiveClassifier
from transduce.class_prior.bounds import Bounds
from transduce.engines.local import LocalEngine
from transduce.history import FitResult
from transduce.labels.missing import AUTO
from transduce.solvers.direct import DirectMethod, PenalizedPosterior, PosteriorRegularization
from transduce.solvers.loop import FitContext, Loop
from transduce.validation import check_positive

__all__ = [
    "EntropyRegularizedClassifier",
    "ExpectationConstrainedClassifier",
    "ExpectationRegularizedClassifier",
    "PosteriorRegularizedClassifier",
]

_PARAMETERS = """alpha : float, default=1e-4
        Weight of the regulariser.
    class_prior : array-like, dict, "estimate" or "labeled", default="estimate"
        Class sizes among the unlabelled rows, as in `TransductiveClassifier`.
    taxonomy : Taxonomy, list of paths, dict or None, default=None
        Tree of classes, in any form that `Taxonomy.create` takes; None for flat classes.
    fit_intercept : bool, default=False
        Whether to add a constant feature, regularised like the others.
    tol : float, default=1e-4
        Relative accuracy at which the fit ends.
    max_iter : int, default={max_iter}
        Most rounds in a stage.
    unlabeled : "auto", None or object, default="auto"
        What marks unlabelled rows in y, as in `TransductiveClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which rows are visited.
    n_jobs : int or None, default=None
        Number of threads; None or -1 for one per core. The result does not depend on it.
    verbose : bool, int or callable, default=0
        Whether to print a line after each round. A callable is called with each `HistoryRow` as it comes."""

_ATTRIBUTES = """classes_ : ndarray of shape (n_classes,)
        Names of the classes, sorted.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the features.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts.
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows; those of the unlabelled rows meet the class sizes.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes for all training rows, which meet the class sizes too.
    class_counts_ : ndarray of shape (n_classes,)
        Number of unlabelled rows that each class got.
    prices_ : ndarray of shape (n_classes,)
        Dual variables of the class sizes in the last label step.
    bounds_ : Bounds
        Class sizes that the fit used, as lower and upper bounds on the counts.
    prior_diagnostics_ : PriorDiagnostics
        Comparison of the class sizes with the labels and the predictions.
    objective_ : float
        Objective at the end.
    history_ : list of HistoryRow
        One row for each round.
    n_iter_ : int
        Number of rounds.
    termination_condition_ : str
        Why the fit ended.
    taxonomy_ : Taxonomy
        Tree whose leaves are `classes_`.
    n_features_in_ : int
        Number of features."""


class _MaxEntClassifier(BaseTransductiveClassifier):
    """What the comparison methods share: the maxent loss, and the parameters that make sense for all of them."""

    _takes_partial_labels = False
    _max_iter = 200

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Fill the parameters and attributes that all methods share into the docstring."""
        super().__init_subclass__(**kwargs)
        parameters = _PARAMETERS.format(max_iter=cls._max_iter)
        cls.__doc__ = (cls.__doc__ or "").replace("{PARAMETERS}", parameters).replace("{ATTRIBUTES}", _ATTRIBUTES)

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        class_prior: object = "estimate",
        taxonomy: object = None,
        fit_intercept: bool = False,
        tol: float = 1e-4,
        max_iter: int = 200,
        unlabeled: object = AUTO,
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: object = 0,
    ) -> None:
        self.alpha = alpha
        self.class_prior = class_prior
        self.taxonomy = taxonomy
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _solve(self, engine: LocalEngine, bounds: Bounds, context: FitContext) -> FitResult:
        method = self._method(
            problem=engine.problem,
            labels=engine.labels,
            bounds=bounds,
            rng=context.rng,
            tol=float(self.tol),
            max_rounds=int(self.max_iter),
        )
        return Loop(context.on_round).run(method)

    @abstractmethod
    def _method(self, **parts: Any) -> DirectMethod:
        """Return the solver with these parts."""


class _WeightedMaxEntClassifier(_MaxEntClassifier):
    """Those with a term of the unlabelled rows that has a weight."""

    _default_weight: float
    _max_iter = 100

    def __init__(
        self,
        *,
        unlabeled_weight: float | None = None,
        alpha: float = 1e-4,
        class_prior: object = "estimate",
        taxonomy: object = None,
        fit_intercept: bool = False,
        tol: float = 1e-4,
        max_iter: int = 100,
        unlabeled: object = AUTO,
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: object = 0,
    ) -> None:
        super().__init__(
            alpha=alpha, class_prior=class_prior, taxonomy=taxonomy, fit_intercept=fit_intercept, tol=tol,
            max_iter=max_iter, unlabeled=unlabeled, random_state=random_state, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
        self.unlabeled_weight = unlabeled_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.unlabeled_weight is not None:
            check_positive(self, "unlabeled_weight")

    @property
    def _weight(self) -> float:
        return self._default_weight if self.unlabeled_weight is None else float(self.unlabeled_weight)


class ExpectationConstrainedClassifier(_MaxEntClassifier):
    """Maxent classifier whose predicted class sizes are constrained to the class prior [1]_.

    The predicted size of a class is the sum of its probabilities over the unlabelled rows. It is met to 0.1 %, or
    `termination_condition_` says that it is not.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}

    References
    ----------
    .. [1] G. S. Mann and A. McCallum (2010). Generalized expectation criteria for semi-supervised learning with weakly
       labeled data. Journal of Machine Learning Research 11.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> ExpectationConstrainedClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y).transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    """

    def _method(self, **parts: Any) -> DirectMethod:
        return PenalizedPosterior(**parts, enforced=True)


class ExpectationRegularizedClassifier(_WeightedMaxEntClassifier):
    """Maxent classifier with a penalty on the distance of its predicted class sizes from the class prior [1]_.

    Parameters
    ----------
    unlabeled_weight : float or None, default=None
        Weight of the squared distance of the class proportions; 100 if None.
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}

    References
    ----------
    .. [1] G. S. Mann and A. McCallum (2010). Generalized expectation criteria for semi-supervised learning with weakly
       labeled data. Journal of Machine Learning Research 11.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> ExpectationRegularizedClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y).predict([[0, 2]]).tolist()
    ['tea']
    """

    _default_weight = 100.0

    def _method(self, **parts: Any) -> DirectMethod:
        return PenalizedPosterior(**parts, mismatch=self._weight)


class EntropyRegularizedClassifier(_WeightedMaxEntClassifier):
    """Maxent classifier with low entropy on the unlabelled rows [1]_ and the class prior as a constraint.

    Parameters
    ----------
    unlabeled_weight : float or None, default=None
        Final weight of the mean entropy, which grows in stages; 1 if None.
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}

    References
    ----------
    .. [1] Y. Grandvalet and Y. Bengio (2004). Semi-supervised learning by entropy minimization. Advances in Neural
       Information Processing Systems 17.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> EntropyRegularizedClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y).predict([[0, 2]]).tolist()
    ['tea']
    """

    _default_weight = 1.0

    def _method(self, **parts: Any) -> DirectMethod:
        return PenalizedPosterior(**parts, enforced=True, entropy=self._weight)


class PosteriorRegularizedClassifier(_WeightedMaxEntClassifier):
    """Maxent classifier close to distributions over the labels that meet the class prior [1]_.

    Parameters
    ----------
    unlabeled_weight : float or None, default=None
        Weight of the divergence from these distributions, C^KL of the paper; 0.1 if None.
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}

    References
    ----------
    .. [1] K. Ganchev, J. Graca, J. Gillenwater and B. Taskar (2010). Posterior regularization for structured latent
       variable models. Journal of Machine Learning Research 11.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> PosteriorRegularizedClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y).predict([[0, 2]]).tolist()
    ['tea']
    """

    _default_weight = 0.1

    def _method(self, **parts: Any) -> DirectMethod:
        return PosteriorRegularization(**parts, weight=self._weight)
