"""The scikit-learn estimators: conventions, checks and names here, mathematics below.

X and y come as users have them and leave as problems of plain arrays; fitted attributes end in an underscore.
"""

import warnings
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.alternate import Alternation, Ending, Outcome, Settings
from transduce.anneal import SoftAnnealing
from transduce.counts import prior_counts
from transduce.design import Design
from transduce.history import HistoryRow
from transduce.label_step import METHODS, LabelStep
from transduce.losses import LargeMargin, Loss, MaxEnt, SquaredLargeMargin
from transduce.markers import AUTO, find_labeled
from transduce.problem import TrainingProblem
from transduce.schedule import coolings, stages
from transduce.taxonomy import Taxonomy
from transduce.weight_step import weight_step_for

Array = NDArray[Any]

LOSSES: Mapping[str, Callable[[], Loss]] = {
    "hinge": LargeMargin,
    "squared_hinge": SquaredLargeMargin,
    "maxent": MaxEnt,
}
EARLY_TOL = 0.25
"""Weight steps stop at this relative gap while labels still move: they will be looked at again."""


class TransductiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier from a few labels, many unlabelled rows and the class sizes.

    Parameters
    ----------
    loss : "hinge", "squared_hinge", "maxent", or an object with label_costs, value and gradient

    alpha : weight of the regulariser; for rows of length 1 between 1e-4 and 1e-3

    unlabeled_weight : weight of all unlabelled rows together, where the labelled ones weigh 1

    class_prior : shares of the unlabelled rows: fractions or counts in the order of `classes_`, or a mapping by name;
        "labeled" for the shares of the labelled rows

    taxonomy : the tree of classes, or anything that Taxonomy.create takes; None for flat classes

    label_step : "exact", "switching", "multi_switch", "single_switch", "simplex", "greedy", or a LabelStep

    annealing : "paper" lets the unlabelled rows gain weight in nine stages; None, or growing weights of your own, which
        then stand in the place of unlabeled_weight

    fit_intercept : whether to add a constant feature, regularised like the others; texts do better without

    tol : relative accuracy of the last weight steps

    max_iter : rounds a stage, and sweeps a weight step in hundreds

    unlabeled : "auto" reads -1, None, NaN and blanks in y as unlabelled; a value, that one and missing ones; None, only
        missing ones

    random_state : seed of the order in which rows are visited

    n_jobs : threads for large problems; None or -1 for one a core. Results do not depend on it

    verbose : whether to print a line a round

    Attributes
    ----------
    classes_ : names of the classes, sorted; coef_, intercept_ : weights; transduction_ : labels of all training rows

    class_counts_ : rows of each class among the unlabelled; prices_ : of the classes, where counts pull

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
        class_prior: object = "labeled",
        taxonomy: object = None,
        label_step: str | LabelStep = "exact",
        annealing: object = "paper",
        fit_intercept: bool = False,
        tol: float = 1e-3,
        max_iter: int = 100,
        unlabeled: object = AUTO,
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.unlabeled_weight = unlabeled_weight
        self.class_prior = class_prior
        self.taxonomy = taxonomy
        self.label_step = label_step
        self.annealing = annealing
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TransductiveClassifier":
        """Learn from labelled and unlabelled rows together."""
        self._check_parameters()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Mark unlabelled rows by -1 or None.")
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), accept_large_sparse=True)
        values, labeled = find_labeled(y, self.unlabeled)
        self._check_rows(X, values, labeled)
        sample_weight = _row_weights(sample_weight, X, labeled)
        prior = _read_prior(self.class_prior)
        self._set_classes(values, labeled, prior)
        order = np.concatenate((np.flatnonzero(labeled), np.flatnonzero(~labeled)))
        codes = np.zeros(values.size, np.int64)
        codes[: labeled.sum()] = self._encode(values[labeled])
        n_labeled = int(labeled.sum())
        counts = prior_counts(prior, self.classes_, codes[:n_labeled], codes.size - n_labeled)
        weights = None if sample_weight is None else sample_weight[order]
        outcome = self._alternate(X[order], codes, n_labeled, counts, weights)
        self._keep(outcome, order, n_labeled, X.shape[1])
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores (n, K) of the classes, or (n,) in favour of the second of two."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    @available_if(lambda self: isinstance(self._loss(), MaxEnt))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the classes; with the maxent loss only."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack((np.zeros_like(scores), scores))
        return MaxEnt().posterior(scores)

    def predict(self, X: Any) -> Array:
        """The class of the best score for each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the labelled rows; unlabelled ones have no truth to compare with."""
        values, labeled = find_labeled(y, self.unlabeled)
        guesses, truth = self.predict(X)[labeled].tolist(), _plain(values[labeled])
        right = np.array([guess == name for guess, name in zip(guesses, truth, strict=True)], dtype=np.float64)
        weights = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _loss(self) -> Loss:
        return LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss

    def _check_parameters(self) -> None:
        for name in ("alpha", "unlabeled_weight", "tol"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
                raise ValueError(f"{name} must be a number above 0, but is {value!r}.")
        if not isinstance(self.max_iter, Integral) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a whole number, 1 or more, but is {self.max_iter!r}.")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be a whole number other than 0, or None, but is {self.n_jobs!r}.")
        named = isinstance(self.loss, str) and self.loss in LOSSES
        if not named and not _can(self.loss, "label_costs", "value", "gradient"):
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or a loss of your own, but is {self.loss!r}.")
        named = isinstance(self.label_step, str) and self.label_step in METHODS
        if not named and not _can(self.label_step, "solve"):
            raise ValueError(
                f"label_step must be one of {', '.join(METHODS)}, or your own, but is {self.label_step!r}."
            )

    def _check_rows(self, X: Any, values: Array, labeled: Array) -> None:
        if values.size != X.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} rows and y {values.size}: inconsistent numbers of samples. Match them."
            )
        if not labeled.any():
            raise ValueError(
                "y must label at least one row, but every row is unlabelled. Label a few, each class if you can."
            )
        if values.dtype.kind == "f":
            kinds = values[labeled]
            if np.any(np.isinf(kinds)):
                raise ValueError("y contains inf or -inf, which is no label. Replace it.")
            if np.any(kinds != np.floor(kinds)):
                raise ValueError(
                    "Unknown label type: y is continuous. A classifier needs classes; pass names or whole numbers."
                )

    def _set_classes(self, values: Array, labeled: Array, prior: object) -> None:
        """Classes from the labels and the names of the prior, sorted, and the tree they are leaves of."""
        names = list(dict.fromkeys(_plain(values[labeled])))
        if isinstance(prior, Mapping):
            names += [name for name in prior if name not in names]
        if self.taxonomy is not None:
            tree = Taxonomy.create(self.taxonomy)
            leaves = [tree.leaf_of(name) for name in names]
            self.classes_ = _class_array(_sorted(names), values)
            self.taxonomy_ = tree.reorder([tree.labels[leaves[names.index(name)]] for name in self.classes_.tolist()])
        else:
            self.classes_ = _class_array(_sorted(names), values)
            self.taxonomy_ = Taxonomy.flat(self.classes_.tolist())

    def _encode(self, values: Array) -> Array:
        index = {name: k for k, name in enumerate(self.classes_.tolist())}
        return np.array([index[name] for name in _plain(values)], dtype=np.int64)

    def _alternate(self, X: Any, codes: Array, n_labeled: int, counts: Array, sample_weight: Array | None) -> Outcome:
        n_unlabeled = codes.size - n_labeled
        loss = self._loss()
        if self.fit_intercept:
            constant = np.ones((X.shape[0], 1), X.dtype)
            X = sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
        problem = TrainingProblem.create(
            Design.create(X, self.taxonomy_, self.n_jobs), loss, float(self.alpha), n_labeled, sample_weight
        )
        weights = stages(self.annealing, float(self.unlabeled_weight)) if n_unlabeled else ()  # type: ignore[arg-type]
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        alternation = Alternation(
            problem,
            counts,
            counts,
            weight_step_for(loss, 100 * int(self.max_iter)),
            METHODS[self.label_step] if isinstance(self.label_step, str) else self.label_step,
            Settings(weights, float(self.tol), max(float(self.tol), EARLY_TOL), int(self.max_iter)),
            np.random.default_rng(seed),
            _print_round if self.verbose else _say_nothing,
        )
        if isinstance(self.annealing, str) and self.annealing == "soft":
            return SoftAnnealing(alternation, coolings(float(self.unlabeled_weight))).run(codes)
        return alternation.run(codes)

    def _keep(self, outcome: Outcome, order: Array, n_labeled: int, n_features: int) -> None:
        """Fitted attributes from the outcome."""
        if outcome.ending is Ending.NOT_CONVERGED:
            warnings.warn(outcome.ending.value, ConvergenceWarning, stacklevel=3)
        leaf = outcome.W if self.taxonomy_.is_flat else outcome.W @ self.taxonomy_.paths.T.astype(outcome.W.dtype)
        if leaf.shape[1] == 2:
            leaf = leaf[:, 1:] - leaf[:, :1]
        self.coef_ = np.ascontiguousarray(leaf[:n_features].T)
        self.intercept_ = leaf[n_features].copy() if self.fit_intercept else np.zeros(leaf.shape[1], leaf.dtype)
        labels = np.empty(order.size, np.int64)
        labels[order] = outcome.labels
        self.transduction_ = self.classes_[labels]
        self.class_counts_ = np.bincount(outcome.labels[n_labeled:], minlength=len(self.classes_))
        self.prices_ = outcome.prices
        self.objective_ = outcome.objective
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.termination_condition_ = outcome.ending.value


def _can(thing: object, *verbs: str) -> bool:
    """Whether this is an object, not a class or a name, that has these methods."""
    return not isinstance(thing, (str, type)) and all(callable(getattr(thing, verb, None)) for verb in verbs)


def _read_prior(class_prior: object) -> object:
    """A pandas Series is a mapping by name, as its index says."""
    if hasattr(class_prior, "to_dict") and hasattr(class_prior, "index"):
        return class_prior.to_dict()
    return class_prior


def _sorted(names: list[Any]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError as error:
        kinds = ", ".join(sorted({type(name).__name__ for name in names}))
        raise ValueError(
            f"labels and names in class_prior must be of one kind that can be sorted, but are {kinds}. Convert them."
        ) from error


def _plain(values: Array) -> list[Any]:
    """Labels as hashable Python objects; lists become paths."""
    return [tuple(value) if isinstance(value, list) else value for value in values.tolist()]


def _class_array(names: list[Any], values: Array) -> Array:
    if any(isinstance(name, tuple) for name in names):
        classes = np.empty(len(names), dtype=object)
        classes[:] = names
        return classes
    if values.dtype.kind == "O":
        kinds = {type(name) for name in names}
        return np.array(names, dtype=object if kinds == {str} or len(kinds) > 1 else None)
    classes = np.array(names)
    same = classes.astype(values.dtype) if values.dtype.kind in "iufb" and classes.dtype.kind in "iufb" else classes
    return same if np.array_equal(same, classes) else classes


def _row_weights(sample_weight: Any, X: Any, labeled: Array) -> Array | None:
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("sample_weight must be numbers, one a row. Correct it, or leave it out.") from error
    if weights.ndim == 0:
        weights = np.full(X.shape[0], float(weights))
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight must have one number for each of the {X.shape[0]} rows, but has shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be finite and 0 or more. Correct it, or leave it out.")
    if not weights[labeled].any():
        raise ValueError(
            "sample_weight must be above 0 for a labelled row, but every weight is zero. Give one a weight."
        )
    return weights


def _say_nothing(row: HistoryRow) -> None:
    """Rounds pass in silence."""


def _print_round(row: HistoryRow) -> None:
    print(  # noqa: T201 -- verbose asks for it
        f"stage {row.stage}  unlabelled weight {row.unlabeled_weight:<8.4g} objective {row.objective:<12.6g} "
        f"moved {row.n_moved:<7} gap {row.gap:<9.2e} {row.seconds:.2f} s"
    )
