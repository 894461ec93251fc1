"""The fits of a search: every candidate on every split, the table of scores, and the one-standard-error rule."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from transduce.arrays import Array
from transduce.model_selection.hidden_labels import fit_hidden
from transduce.model_selection.scorers import take

Scorer = Callable[[Any, Any, Any], float]
Params = dict[str, Any]


class Trial(NamedTuple):
    """One fit of a search.

    Attributes
    ----------
    params : dict
        Parameters of the candidate.
    split : int
        Number of the split.
    score : float
        Score on the hidden rows.
    seconds : float
        Time of the fit.
    """

    params: Params
    split: int
    score: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Trials:
    """Fits of candidates to rows X with labels y, and the scorer of hidden rows."""

    base: Any
    X: Any
    y: Any
    sample_weight: Any
    scorer: Scorer

    def fit_all(self, params: Params) -> tuple[Any, list[warnings.WarningMessage]]:
        """Fit with all labels; return the model and its warnings, which are raised if it is chosen."""
        with warnings.catch_warnings(record=True, action="always") as caught:
            return fit_hidden(self.base, self.X, self.y, (), self.sample_weight, **params), caught

    def run(self, candidates: list[Params], tests: list[Array], n_jobs: int | None) -> Iterable[Trial]:
        """Run every candidate on every split, in this order; with n_jobs, in parallel with one thread each."""
        jobs = [(params, split, test) for params in candidates for split, test in enumerate(tests)]
        if n_jobs is None or n_jobs == 1:
            return (self.run_one(*job) for job in jobs)
        single = replace(self, base=clone(self.base).set_params(n_jobs=1))
        trials: list[Trial] = Parallel(n_jobs=n_jobs)(delayed(single.run_one)(*job) for job in jobs)
        return trials

    def run_one(self, params: Params, split: int, test: Array) -> Trial:
        """Fit with the rows of `test` hidden, and score them; the fit with all labels repeats the warnings."""
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model = fit_hidden(self.base, self.X, self.y, test, self.sample_weight, **params)
            seconds = time.perf_counter() - start
            found = self.scorer(model, take(self.X, test), self.y[test])
        try:
            score = float(found)
        except (TypeError, ValueError):
            score = np.nan
        if not np.isfinite(score):
            raise ValueError(f"scoring must return a finite number, but returned {found} for {params}.")
        return Trial(params, split, score, seconds)


def results_table(candidates: Sequence[Params], losses: Sequence[str], trials: Sequence[Trial]) -> dict[str, Any]:
    """Return arrays with one entry for each candidate, in the form of GridSearchCV's `cv_results_`."""
    scores = np.array([trial.score for trial in trials]).reshape(len(candidates), -1)
    seconds = np.array([trial.seconds for trial in trials]).reshape(scores.shape)
    mean = scores.mean(axis=1)
    return {
        "params": list(candidates),
        "param_alpha": np.array([params["alpha"] for params in candidates]),
        "param_loss": np.array(losses, dtype=object),
        **{f"split{s}_test_score": scores[:, s] for s in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": np.array([1 + int(np.sum(mean > value)) for value in mean]),
        "mean_fit_time": seconds.mean(axis=1),
        "std_fit_time": seconds.std(axis=1),
    }


def equal_to_best(mean: Array, std: Array, n_splits: int) -> list[int]:
    """Return the candidates within one standard error of the best; std is over the splits, with divisor n."""
    best = int(np.argmax(mean))
    error = std[best] / np.sqrt(max(n_splits - 1, 1))
    return [int(index) for index in np.flatnonzero(mean >= mean[best] - error - 1e-12)]
