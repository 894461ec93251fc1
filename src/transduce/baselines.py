"""The classifiers that the paper compares itself with: maxent with the class sizes, by the direct methods."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from transduce.base import BaseTransductiveClassifier
from transduce.class_prior.bounds import Bounds
from transduce.engines.local import LocalEngine
from transduce.history import FitResult
from transduce.solvers.direct import DirectMethod, PenalizedPosterior, PosteriorRegularization
from transduce.solvers.loop import FitContext, Loop
from transduce.validation import check_positive

__all__ = [
    "EntropyRegularizedClassifier",
    "ExpectationConstrainedClassifier",
    "ExpectationRegularizedClassifier",
    "PosteriorRegularizedClassifier",
]


class _MaxEntClassifier(BaseTransductiveClassifier):
    """What the comparison methods share: the maxent loss and a direct method."""

    _takes_partial_labels = False

    def _solve(self, engine: LocalEngine, bounds: Bounds, context: FitContext) -> FitResult:
        method = self._method(
            problem=engine.problem,
            labels=engine.labels,
            bounds=bounds.without_belief(engine.n_unlabeled),
            rng=context.rng,
            tol=float(self.tol),
            max_rounds=int(self.max_iter),
        )
        return Loop(context.on_round).run(method)

    @abstractmethod
    def _method(self, **parts: Any) -> DirectMethod:
        """Return the solver with these parts."""


@dataclass(kw_only=True, eq=False, repr=False)
class _WeightedMaxEntClassifier(_MaxEntClassifier):
    """Those with a term of the unlabelled rows that has a weight."""

    unlabeled_weight: float | None = None

    _default_weight = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.unlabeled_weight is not None:
            check_positive(self, "unlabeled_weight")

    @property
    def _weight(self) -> float:
        return self._default_weight if self.unlabeled_weight is None else float(self.unlabeled_weight)


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectationConstrainedClassifier(_MaxEntClassifier):
    """Maxent classifier whose predicted class sizes are constrained to the class prior [1]_.

    The predicted size of a class is the sum of its probabilities over the unlabelled rows. It is met to 0.1 %, or
    `termination_condition_` says that it is not. Fitted attributes are those of `TransductiveClassifier`.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Weight of the regulariser. "auto" is 1e-4 times the mean squared length of the rows.
    tol : float, default=1e-4
        Relative accuracy at which the fit ends.
    max_iter : int, default=200
        Most rounds in a stage.
    class_prior, taxonomy, fit_intercept, unlabeled, random_state, n_jobs, verbose
        See `TransductiveClassifier`.

    References
    ----------
    .. [1] G. S. Mann and A. McCallum (2010). Generalized expectation criteria for semi-supervised learning with weakly
       labeled data. Journal of Machine Learning Research 11.

    Examples
    --------
    >>> from transduce.testing import blobs
    >>> X, truth, y = blobs()
    >>> ExpectationConstrainedClassifier(class_prior=[0.5, 0.3, 0.2]).fit(X, y).score(X, truth) > 0.9
    True
    """

    max_iter: int = 200

    def _method(self, **parts: Any) -> DirectMethod:
        return PenalizedPosterior(**parts, enforced=True)


class ExpectationRegularizedClassifier(_WeightedMaxEntClassifier):
    """Maxent classifier with a penalty on the distance of its predicted class sizes from the class prior [1]_.

    Parameters
    ----------
    unlabeled_weight : float or None, default=None
        Weight of the squared distance of the class proportions; 100 if None.
    alpha, class_prior, taxonomy, fit_intercept, tol, max_iter, unlabeled, random_state, n_jobs, verbose
        As in `ExpectationConstrainedClassifier`, with max_iter=100.

    References
    ----------
    .. [1] G. S. Mann and A. McCallum (2010), see `ExpectationConstrainedClassifier`.

    Examples
    --------
    >>> from transduce.testing import blobs
    >>> X, truth, y = blobs()
    >>> ExpectationRegularizedClassifier(class_prior=[0.5, 0.3, 0.2]).fit(X, y).score(X, truth) > 0.9
    True
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
    alpha, class_prior, taxonomy, fit_intercept, tol, max_iter, unlabeled, random_state, n_jobs, verbose
        As in `ExpectationConstrainedClassifier`, with max_iter=100.

    References
    ----------
    .. [1] Y. Grandvalet and Y. Bengio (2004). Semi-supervised learning by entropy minimization. Advances in Neural
       Information Processing Systems 17.

    Examples
    --------
    >>> from transduce.testing import blobs
    >>> X, truth, y = blobs()
    >>> EntropyRegularizedClassifier(class_prior=[0.5, 0.3, 0.2]).fit(X, y).score(X, truth) > 0.9
    True
    """

    def _method(self, **parts: Any) -> DirectMethod:
        return PenalizedPosterior(**parts, enforced=True, entropy=self._weight)


class PosteriorRegularizedClassifier(_WeightedMaxEntClassifier):
    """Maxent classifier close to distributions over the labels that meet the class prior [1]_.

    Parameters
    ----------
    unlabeled_weight : float or None, default=None
        Weight of the divergence from these distributions, C^KL of the paper; 0.1 if None.
    alpha, class_prior, taxonomy, fit_intercept, tol, max_iter, unlabeled, random_state, n_jobs, verbose
        As in `ExpectationConstrainedClassifier`, with max_iter=100.

    References
    ----------
    .. [1] K. Ganchev, J. Graca, J. Gillenwater and B. Taskar (2010). Posterior regularization for structured latent
       variable models. Journal of Machine Learning Research 11.

    Examples
    --------
    >>> from transduce.testing import blobs
    >>> X, truth, y = blobs()
    >>> PosteriorRegularizedClassifier(class_prior=[0.5, 0.3, 0.2]).fit(X, y).score(X, truth) > 0.9
    True
    """

    _default_weight = 0.1

    def _method(self, **parts: Any) -> DirectMethod:
        return PosteriorRegularization(**parts, weight=self._weight)
