"""The estimators that the paper compares itself with: maxent and the class sizes, by the direct methods below."""

from abc import abstractmethod
from typing import Any

from transduce.base import BaseTransductiveClassifier, FitContext
from transduce.class_prior.bounds import Bounds
from transduce.engines.local import LocalEngine
from transduce.history import FitResult
from transduce.labels.encode import check_above_zero
from transduce.labels.missing import AUTO
from transduce.solvers.direct import DirectMethod, PenalizedPosterior, PosteriorRegularization
from transduce.solvers.loop import Loop

__all__ = [
    "EntropyRegularizedClassifier",
    "ExpectationConstrainedClassifier",
    "ExpectationRegularizedClassifier",
    "PosteriorRegularizedClassifier",
]


class _MaxEntClassifier(BaseTransductiveClassifier):
    """What the comparison methods share: the maxent loss, and the parameters that make sense for all of them."""

    _takes_partial_labels = False

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
    """Those with a term of the unlabelled rows that can be weighed."""

    _default_weight: float

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
            check_above_zero(self, "unlabeled_weight")

    @property
    def _weight(self) -> float:
        return self._default_weight if self.unlabeled_weight is None else float(self.unlabeled_weight)


class ExpectationConstrainedClassifier(_MaxEntClassifier):
    """Maxent whose own class sizes on the unlabelled rows are those asked for (Mann and McCallum, 2010).

    Parameters and attributes are those of TransductiveClassifier that make sense for maxent, with alpha and tol of
    1e-4; max_iter bounds the rounds of 60 iterations a stage. The class sizes are met to a thousandth of each, or
    `termination_condition_` says that they are not.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> ExpectationConstrainedClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y).transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    """

    def _method(self, **parts: Any) -> DirectMethod:
        return PenalizedPosterior(**parts, enforced=True)


class ExpectationRegularizedClassifier(_WeightedMaxEntClassifier):
    """Maxent with a penalty on the distance of its own class sizes from those asked for (Mann and McCallum, 2010).

    `unlabeled_weight` is the weight of the squared distance of the class shares, 100 if None; other parameters and
    attributes are those of ExpectationConstrainedClassifier.

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
    """Maxent that prefers to be sure of the unlabelled rows, with the class sizes as constraints.

    Grandvalet and Bengio (2004), with the constraints that the paper adds. `unlabeled_weight` is the weight of the mean
    entropy, 1 if None, which comes in by stages; other parameters and attributes are those of
    ExpectationConstrainedClassifier.

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
    """Maxent drawn towards distributions near its own that meet the class sizes (Ganchev and others, 2009).

    `unlabeled_weight` is the weight of their divergence, C^KL of the paper, 0.1 if None; other parameters and
    attributes are those of ExpectationConstrainedClassifier.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> PosteriorRegularizedClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y).predict([[0, 2]]).tolist()
    ['tea']
    """

    _default_weight = 0.1

    def _method(self, **parts: Any) -> DirectMethod:
        return PosteriorRegularization(**parts, weight=self._weight)
