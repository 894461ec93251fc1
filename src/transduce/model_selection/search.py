"""TransductiveClassifierCV: alpha and the loss by cross-validation, with test rows unlabelled in training."""

import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce.arrays import Array
from transduce.estimators import TransductiveClassifier
from transduce.labels.encode import find_full_labels
from transduce.losses import default_alpha
from transduce.model_selection.scorers import labeled_scorer
from transduce.model_selection.splitters import rows_to_hide
from transduce.model_selection.trials import Params, Scorer, Trial, Trials, equal_to_best, results_table
from transduce.suggest import short_repr
from transduce.validation import check_iterations, is_positive, random_generator


def _has_probabilities(search: Any) -> bool:
    return hasattr(getattr(search, "best_estimator_", None) or search._base(), "predict_proba")


@dataclass(eq=False, repr=False)
class TransductiveClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """TransductiveClassifier with alpha, and optionally the loss, chosen by cross-validation.

    Each split hides the labels of its test rows, fits on all rows and scores the hidden ones. The best candidate is
    fitted again with all labels. Candidates within one standard error of the best count as equal: then the first loss
    wins, then the alpha of `estimator`, then the larger alpha. Where `estimator` has alpha="auto", that is the default
    of the loss for rows of length 1: 1e-3, or 1e-4 for maxent.

    Counts in class_prior are scaled to the larger number of unlabelled rows of a split, with ranges rounded outwards.

    Parameters
    ----------
    alphas : iterable of float, default=(1e-4, 3e-4, 1e-3, 3e-3)
        Values of alpha to try. The default suits rows of length 1.
    losses : iterable of losses or None, default=None
        Losses to try, as in TransductiveClassifier; None for the one of `estimator`.
    estimator : estimator or None, default=None
        Classifier of this package with the other parameters; None for TransductiveClassifier().
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds (fewer if there are fewer labels to hide), a splitter such as HiddenLabelSplit, or pairs, of
        which the labelled rows of test are hidden.
    scoring : {"f1_macro", "accuracy", "f1_micro"} or callable, default="f1_macro"
        Score of the hidden rows, or a scorer called as scorer(estimator, X, y).
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of the fits if `estimator` has none.
    n_jobs : int or None, default=None
        Number of fits to run in parallel, with one thread each; None for one after the other.
    verbose : int or callable, default=0
        Whether to print a line for each fit, or a function called with each Trial.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    loss_name_ : str
        Name of the chosen loss.
    best_estimator_ : estimator
        Model fitted with all labels; all its fitted attributes (`classes_`, `transduction_`, ...) are set here too.
    best_params_, best_index_, best_score_, cv_results_, n_splits_
        As in GridSearchCV. The best score is slightly optimistic because the candidate was chosen by it.

    Examples
    --------
    >>> from transduce.testing import blobs
    >>> X, truth, y = blobs()  # twelve labels, 108 unlabelled rows
    >>> paper = TransductiveClassifier(class_prior=["=50%", "=33%", "=17%"], annealing="paper")
    >>> search = TransductiveClassifierCV((1e-8, 1e-3, 10), estimator=paper, cv=4, random_state=0).fit(X, y)
    >>> search.alpha_, bool(np.mean(search.transduction_ == truth) > 0.9)
    (0.001, True)
    """

    alphas: Iterable[float] = (1e-4, 3e-4, 1e-3, 3e-3)
    _: KW_ONLY
    losses: Iterable[Any] | None = None
    estimator: Any = None
    cv: Any = 5
    scoring: str | Scorer = "f1_macro"
    random_state: object = None
    n_jobs: int | None = None
    verbose: object = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose by cross-validation, then fit with all labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or boolean matrix of shape (n_samples, n_classes)
            Labels, as in TransductiveClassifier.fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in fits; scores are unweighted.

        Returns
        -------
        self : object
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Mark unlabelled rows by -1 or None.")
        check_iterations(1, self.n_jobs)
        candidates, base, test_seed = self._candidates(), *self._seeded()
        trials = Trials(base, X, y, sample_weight, self._scorer(base))
        # The fit with all labels comes first: it reports problems of the data, and usually it is the one chosen.
        preferred = self._preferred(candidates, base, range(len(candidates)))
        model, caught = trials.fit_all(candidates[preferred])
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            values, full = find_full_labels(y, base.unlabeled, base.taxonomy)
        tests = rows_to_hide(self.cv, X, values, full, test_seed)
        done = self._report(replace(trials, y=values).run(candidates, tests, self.n_jobs))
        results = results_table(candidates, [_loss_name(params.get("loss", base)) for params in candidates], done)
        tied = equal_to_best(results["mean_test_score"], results["std_test_score"], len(tests))
        best = self._preferred(candidates, base, tied)
        if best != preferred:
            model, caught = trials.fit_all(candidates[best])
        for warning in {(warning.category, str(warning.message)): warning.message for warning in caught}.values():
            warnings.warn(warning, stacklevel=2)
        return self._set_fitted(model, results, best, len(tests))

    def fit_predict(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose, fit, and return the labels of all rows; see `TransductiveClassifier.fit_predict`."""
        return self.fit(X, y, sample_weight).transduction_

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, if the chosen loss has them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the score by `scoring`; the built-in scores ignore unlabelled rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        return float(self._scorer(self.best_estimator_)(self.best_estimator_, X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _base(self) -> Any:
        has_type = self.estimator is None or isinstance(self.estimator, BaseEstimator)
        base = clone(self.estimator) if self.estimator is not None and has_type else TransductiveClassifier()
        if not has_type or not {"alpha", "class_prior"} <= base.get_params().keys():
            advice = "For a pipeline use GridSearchCV with HiddenLabelSplit."
            raise TypeError(
                f"estimator must be a classifier of this package, but is {short_repr(self.estimator)}. {advice}"
            )
        return base

    def _seeded(self) -> tuple[Any, int]:
        """Return the estimator to clone, with a seed, and the seed of the folds."""
        seeds = random_generator(self.random_state).randint(2**31 - 1, size=2)
        base = self._base()
        if base.random_state is None:
            base.set_params(random_state=int(seeds[0]))
        return base, int(seeds[1])

    def _scorer(self, base: Any) -> Scorer:
        return self.scoring if callable(self.scoring) else labeled_scorer(self.scoring, base.unlabeled, base.taxonomy)

    def _candidates(self) -> list[Params]:
        """Return the parameters to try: all pairs of a loss and an alpha, or the alphas alone."""
        alphas = list(self.alphas) if isinstance(self.alphas, Iterable) else []
        if not alphas or not all(map(is_positive, alphas)):
            raise ValueError(f"alphas must be one or more numbers above 0, but are {short_repr(self.alphas)}.")
        alphas = list(dict.fromkeys(alphas))
        if self.losses is None:
            return [{"alpha": alpha} for alpha in alphas]
        losses = [] if isinstance(self.losses, str) or not np.iterable(self.losses) else list(self.losses)
        if not losses:
            raise ValueError(
                f"losses must be a list of one or more losses, or None, but are {short_repr(self.losses)}."
            )
        return [{"loss": loss, "alpha": alpha} for loss in losses for alpha in alphas]

    def _preferred(self, candidates: list[Params], base: Any, among: Iterable[int]) -> int:
        """Of candidates that count as equal, prefer the first loss, then the estimator's alpha, then a large alpha."""
        n_alphas = len({params["alpha"] for params in candidates})

        def rank(c: int) -> tuple[int, bool, float]:
            params = candidates[c]
            return c // n_alphas, params["alpha"] != _unit_alpha(base, params), -params["alpha"]

        return min(among, key=rank)

    def _report(self, trials: Iterable[Trial]) -> list[Trial]:
        """Run the trials, and report each to `verbose` when it is done."""
        done = []
        for trial in trials:
            done.append(trial)
            if callable(self.verbose):
                self.verbose(trial)
            elif self.verbose:
                _print_trial(trial)
        return done

    def _set_fitted(self, model: Any, results: dict[str, Any], best: int, n_splits: int) -> Self:
        """Set the fitted attributes of the model, and the result of the search."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
        self.best_estimator_, self.cv_results_, self.best_index_, self.n_splits_ = model, results, best, n_splits
        self._status = getattr(model, "_status", None)
        self.best_params_ = results["params"][best]
        self.best_score_ = float(results["mean_test_score"][best])
        self.alpha_, self.loss_name_ = self.best_params_["alpha"], results["param_loss"][best]
        return self


def _unit_alpha(base: Any, params: Params) -> float:
    """Return the alpha of an estimator with these parameters; "auto" stands for its value on rows of length 1."""
    model = clone(base).set_params(**params | {"alpha": base.alpha})
    model._check_parameters()
    return default_alpha(model._loss()) if isinstance(base.alpha, str) else float(base.alpha)


def _loss_name(loss: Any) -> str:
    """Return the name of a loss, or of the loss of an estimator."""
    loss = getattr(loss, "loss", "maxent") if isinstance(loss, BaseEstimator) else loss
    return loss if isinstance(loss, str) else type(loss).__name__


def _print_trial(trial: Trial) -> None:
    params = "  ".join(f"{name} {value}" for name, value in trial.params.items())
    print(f"{params}  split {trial.split}  score {trial.score:.4f}  {trial.seconds:.2f} s")  # noqa: T201 -- verbose
