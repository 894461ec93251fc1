"""The fits of a search: every candidate on every split, the table of scores, and the one-standard-error rule.

The score of a candidate is the mean over splits of its scores on the hidden rows. Candidates within one standard error
of the best, s / √n_splits with s the standard deviation of the best one's scores, count as equal to it.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from transduce.model_selection.hidden_labels import fit_hidden
from transduce.model_selection.scorers import take

Array = NDArray[Any]
Scorer = Callable[[Any, Any, Any], float]
Params = dict[str, Any]


class Data(NamedTuple):
    """Rows, labels and sample weights of a search."""

    X: Any
    y: Array
    sample_weight: Any = None


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


def fit_all(base: Any, params: Params, data: Data) -> tuple[Any, list[warnings.WarningMessage]]:
    """Fit a candidate with all labels; return the model and its warnings, which are raised if it is chosen."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit_candidate(base, params, data)
    return model, caught


def fit_candidate(base: Any, params: Params, data: Data, rows: Any = ()) -> Any:
    """Fit a candidate with these rows hidden."""
    return fit_hidden(clone(base).set_params(**params), data.X, data.y, rows, data.sample_weight)


def run_trial(base: Any, params: Params, data: Data, split: int, test: Array, scorer: Scorer) -> Trial:
    """Fit with the rows of `test` hidden, and score them."""
    start = time.perf_counter()
    with ignore_warnings():
        model = fit_candidate(base, params, data, test)
        seconds = time.perf_counter() - start
        score = float(scorer(model, take(data.X, test), data.y[test]))
    if not np.isfinite(score):
        raise ValueError(f"scoring must return a finite number, but returned {score} for {params}.")
    return Trial(params, split, score, seconds)


def run_trials(
    base: Any, candidates: Sequence[Params], data: Data, tests: Sequence[Array], scorer: Scorer, n_jobs: int | None
) -> Iterable[Trial]:
    """Run every candidate on every split, in this order; with n_jobs, in parallel with one thread each."""
    jobs = [(params, data, split, test, scorer) for params in candidates for split, test in enumerate(tests)]
    if n_jobs is None or n_jobs == 1:
        return (run_trial(base, *job) for job in jobs)
    single = clone(base).set_params(n_jobs=1)
    trials: list[Trial] = Parallel(n_jobs=n_jobs)(delayed(run_trial)(single, *job) for job in jobs)
    return trials


def results_table(candidates: Sequence[Params], losses: Sequence[str], trials: Sequence[Trial]) -> dict[str, Any]:
    """Return arrays with one entry for each candidate, in the form of GridSearchCV's `cv_results_`.

    >>> trials = [Trial({"alpha": 1.0}, 0, 0.5, 0.1), Trial({"alpha": 1.0}, 1, 0.7, 0.1)]
    >>> results_table([{"alpha": 1.0}], ["hinge"], trials)["mean_test_score"].round(2)
    array([0.6])
    """
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
    """Return the candidates within one standard error of the best; std is over the splits, with divisor n.

    >>> equal_to_best(np.array([0.5, 0.68, 0.7]), np.array([0.1, 0.1, 0.06]), 5)
    [1, 2]
    """
    best = int(np.argmax(mean))
    error = std[best] / np.sqrt(max(n_splits - 1, 1))
    return [int(index) for index in np.flatnonzero(mean >= mean[best] - error - 1e-12)]


@contextmanager
def ignore_warnings() -> Iterator[None]:
    """Ignore warnings of fits with hidden labels; the chosen candidate repeats them when fitted with all labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
