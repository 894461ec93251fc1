"""TransductiveClassifierCV: alpha and the loss by cross-validation in which hidden rows stay, as unlabelled ones."""

import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce.estimators import TransductiveClassifier
from transduce.model_selection.hidden_labels import find_certain
from transduce.model_selection.scorers import labeled_scorer
from transduce.model_selection.splitters import rows_to_hide
from transduce.model_selection.trials import (
    Data,
    Params,
    Scorer,
    Trial,
    equal_to_best,
    fit_all,
    quiet,
    results_table,
    run_trials,
)

Array = NDArray[Any]
Self = TypeVar("Self", bound="TransductiveClassifierCV")


def _has_probabilities(search: Any) -> bool:
    return hasattr(getattr(search, "best_estimator_", None) or search._base(), "predict_proba")


class TransductiveClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """TransductiveClassifier with alpha, and if you like the loss, chosen by hiding some of the labels.

    Each fold hides the labels of some rows and fits on all rows, the hidden ones among the unlabelled; the score is on
    the hidden ones. The chosen candidate is fitted again with all labels. Candidates within one standard error of the
    best are taken as equal: then the loss named first wins, then the alpha of `estimator` (1e-3 if you set none), then
    the larger one.

    Counts in class_prior are for the unlabelled rows, of which a fold has more; there they are scaled in proportion,
    ranges rounded outwards. Fractions stay as they are, and "labeled" follows the labels left. The classes of hidden
    rows are not used for that.

    Parameters
    ----------
    alphas : weights of the regulariser to try

    losses : losses to try, as TransductiveClassifier takes them; None for the one of `estimator`

    estimator : a TransductiveClassifier whose other parameters (class_prior, taxonomy, annealing, ...) are used; None
        for one with the defaults. Any classifier of this package will do

    cv : number of folds, fewer where there are not so many labels that can be hidden; a splitter such as
        HiddenLabelSplit; or pairs (train, test), of which the labelled rows of test are hidden

    scoring : "f1_macro", "accuracy" or "f1_micro" of the hidden rows; or a scorer (estimator, X, y), called with them

    random_state : seed of the folds, and of the fits if `estimator` has none

    n_jobs : fits to run at the same time, one thread each; None for one after the other

    verbose : whether to print a line a fit; or a function, called with each Trial

    Attributes
    ----------
    alpha_, loss_name_ : what was chosen; best_estimator_ : the model fitted with all labels; best_params_, best_index_

    best_score_ : mean score of the chosen one on hidden rows; as the best of several it flatters a little

    cv_results_ : arrays, one entry a candidate: params, param_alpha, param_loss, split0_test_score, ...,
        mean_test_score, std_test_score, rank_test_score, mean_fit_time, std_fit_time, as in GridSearchCV

    classes_, transduction_, coef_, class_counts_, prices_, ... : all fitted attributes of best_estimator_

    >>> from transduce.testing import blobs
    >>> X, truth, y = blobs()  # twelve labels, 108 unlabelled rows
    >>> paper = TransductiveClassifier(class_prior=[0.5, 0.33, 0.17], annealing="paper")
    >>> search = TransductiveClassifierCV((1e-8, 1e-3, 10), estimator=paper, cv=4, random_state=0).fit(X, y)
    >>> search.alpha_, search.loss_name_
    (0.001, 'hinge')
    >>> search.cv_results_["mean_test_score"].shape, bool(np.mean(search.transduction_ == truth) > 0.9)
    ((3,), True)
    """

    def __init__(
        self,
        alphas: Iterable[float] = (1e-4, 3e-4, 1e-3, 3e-3),
        *,
        losses: Iterable[Any] | None = None,
        estimator: Any = None,
        cv: Any = 5,
        scoring: str | Scorer = "f1_macro",
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: object = 0,
    ) -> None:
        self.alphas = alphas
        self.losses = losses
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose by cross-validation, and learn from all labels; sample_weight goes to the fits, not to the scores."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Mark unlabelled rows by -1 or None.")
        candidates, base, test_seed = self._candidates(), *self._seeded()
        scorer = self._scorer(base)
        # First with all labels: what is wrong with the data is said in its own words, and ties mostly end here.
        favourite = self._first(candidates, base, range(len(candidates)))
        model, said = fit_all(base, candidates[favourite], Data(X, y, sample_weight))
        with quiet():
            values, certain = find_certain(y, base.unlabeled, base.taxonomy)
        tests = rows_to_hide(self.cv, X, values, certain, test_seed)
        data = Data(X, values, sample_weight)
        trials = self._told(run_trials(base, candidates, data, tests, scorer, self.n_jobs))
        losses = [_loss_name(params.get("loss", base)) for params in candidates]
        results = results_table(candidates, losses, trials)
        tied = equal_to_best(results["mean_test_score"], results["std_test_score"], len(tests))
        best = self._first(candidates, base, tied)
        if best != favourite:
            model, said = fit_all(base, candidates[best], Data(X, y, sample_weight))
        for category, message in {(warning.category, str(warning.message)): None for warning in said}:
            warnings.warn(message, category, stacklevel=2)
        return self._keep(model, results, best, len(tests))

    def predict(self, X: Any) -> Array:
        """The class of the best score for each row."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))

    def decision_function(self, X: Any) -> Array:
        """Scores (n, K) of the classes, or (n,) in favour of the second of two."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the classes."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))

    def score(self, X: Any, y: Any) -> float:
        """Score by `scoring`, macro F if you set nothing else; built-in ones look at labelled rows only."""
        check_is_fitted(self)
        return float(self._scorer(self.best_estimator_)(self.best_estimator_, X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _base(self) -> Any:
        base = TransductiveClassifier() if self.estimator is None else clone(self.estimator)
        if not isinstance(base, BaseEstimator) or not {"alpha", "class_prior"} <= base.get_params().keys():
            raise TypeError(
                f"estimator must be a TransductiveClassifier, or like one, but is {self.estimator!r}. "
                "For a pipeline use GridSearchCV with HiddenLabelSplit."
            )
        return base

    def _seeded(self) -> tuple[Any, int]:
        """The estimator to clone, with a seed, and the seed of the folds."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        base = self._base()
        if base.random_state is None:
            base.set_params(random_state=int(seeds[0]))
        return base, int(seeds[1])

    def _scorer(self, base: Any) -> Scorer:
        return self.scoring if callable(self.scoring) else labeled_scorer(self.scoring, base.unlabeled, base.taxonomy)

    def _candidates(self) -> list[Params]:
        """All pairs of a loss and an alpha, or the alphas alone."""
        alphas = list(dict.fromkeys(self.alphas)) if isinstance(self.alphas, Iterable) else []
        if not alphas or not all(isinstance(alpha, Real) and 0 < float(alpha) < np.inf for alpha in alphas):
            raise ValueError(f"alphas must be numbers above 0, at least one, but are {self.alphas!r}.")
        if self.losses is None:
            return [{"alpha": alpha} for alpha in alphas]
        losses = [] if isinstance(self.losses, str) else list(self.losses)
        if not losses:
            raise ValueError(f"losses must be a list of losses, at least one, or None, but are {self.losses!r}.")
        return [{"loss": loss, "alpha": alpha} for loss in losses for alpha in alphas]

    def _first(self, candidates: list[Params], base: Any, among: Iterable[int]) -> int:
        """Of candidates that count as equal: the loss named first, the alpha of the estimator, the largest alpha."""
        n_alphas = len({params["alpha"] for params in candidates})
        ranks = {c: (c // n_alphas, candidates[c]["alpha"] != base.alpha, -candidates[c]["alpha"]) for c in among}
        return min(ranks, key=lambda c: ranks[c])

    def _told(self, trials: Iterable[Trial]) -> list[Trial]:
        """The trials, after `verbose` has heard of each as it came."""
        tell = self.verbose if callable(self.verbose) else _print_trial if self.verbose else _say_nothing
        heard = []
        for trial in trials:
            tell(trial)
            heard.append(trial)
        return heard

    def _keep(self: Self, model: Any, results: dict[str, Any], best: int, n_splits: int) -> Self:
        """Fitted attributes: those of the model, and what was chosen."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name in [name for name in vars(model) if name.endswith("_")]:
            setattr(self, name, getattr(model, name))
        self.best_estimator_, self.cv_results_, self.best_index_, self.n_splits_ = model, results, best, n_splits
        self.best_params_ = results["params"][best]
        self.best_score_ = float(results["mean_test_score"][best])
        self.alpha_, self.loss_name_ = self.best_params_["alpha"], results["param_loss"][best]
        return self


def _loss_name(loss: Any) -> str:
    """The name of a loss, or of an estimator's."""
    loss = getattr(loss, "loss", "maxent") if isinstance(loss, BaseEstimator) else loss
    return loss if isinstance(loss, str) else type(loss).__name__


def _print_trial(trial: Trial) -> None:
    tried = "  ".join(f"{name} {value}" for name, value in trial.params.items())
    print(f"{tried}  split {trial.split}  score {trial.score:.4f}  {trial.seconds:.2f} s")  # noqa: T201 -- verbose


def _say_nothing(trial: Trial) -> None:
    """Fits pass in silence."""
