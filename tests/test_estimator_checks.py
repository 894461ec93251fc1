"""All classifiers: scikit-learn's checks, and our own for semi-supervised classifiers."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.device_arrays import on_one_thread, strict, torch_csr
from helpers.estimators import COMMON, QUICK, SLOW
from helpers.inline_pool import fit_inline
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from transduce import TransductiveClassifier
from transduce.dask import TransductiveClassifier as OverDask
from transduce.engines.device.arrays import to_host
from transduce.testing import ABUSE_CHECKS, SEMI_SUPERVISED_CHECKS

WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SETTINGS = {
    "check_classifiers_classes": {"unlabeled": None},
    **{name: {"alpha": 0.01, "tol": 1e-12, "max_iter": 20_000} for name in WEIGHT_CHECKS},
}
"""Checks that no estimator can pass with its defaults. One has classes -1 and 1, and -1 means unlabelled by default, as
in sklearn.semi_supervised. The others ask for equality to seven digits, and the default alpha follows the mean length
of all rows, whatever these weigh."""
SMOOTH = (
    "asks for seven digits; scores of weighted and of repeated rows differ by 1e-6 at tol=1e-12 and by 1e-8 at 1e-15. "
    "check_repeated_row_equals_weight_two shows the equivalence to 5e-3"
)


OVERFLOWS = {
    (name, check)
    for name in ("EntropyRegularizedClassifier", "ExpectationConstrainedClassifier")
    for check in ("check_zero_rows", "check_extreme_scales")
}
"""No weights meet the counts where rows do not differ, so that the multipliers of these two methods grow until they
overflow."""


def expected_failures(estimator):
    """Return the checks that fail, with the reason; those of sample weights for smooth losses only."""
    has_margin = isinstance(estimator, TransductiveClassifier) and estimator.loss != "maxent"
    return {} if has_margin else dict.fromkeys(WEIGHT_CHECKS, SMOOTH)


def run_check(estimator, check):
    """Run a check of scikit-learn, with the settings that it needs."""
    check(clone(estimator).set_params(**SETTINGS.get(check.func.__name__, {})))


def few_rounds(test):
    """Ignore the warnings of fits that stop early: the checks set max_iter to 5."""
    for message in ("y holds only -1 and 1", "The last weight step stopped", "The predicted class sizes are still off"):
        test = pytest.mark.filterwarnings(f"ignore:{message}")(test)
    return test


@few_rounds
@parametrize_with_checks(COMMON[:1], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    run_check(estimator, check)


@pytest.mark.slow
@few_rounds
@parametrize_with_checks([*COMMON[1:], *QUICK, *SLOW], expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_the_other_estimators(estimator, check):
    run_check(estimator, check)


every_check = pytest.mark.parametrize("check", SEMI_SUPERVISED_CHECKS, ids=lambda check: check.__name__)


@pytest.mark.parametrize("estimator", COMMON, ids=str)
@every_check
def test_semi_supervised_checks(check, estimator):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [*QUICK, *SLOW], ids=str)
@every_check
def test_semi_supervised_checks_of_the_other_estimators(check, estimator):
    check(estimator)


abuse = pytest.mark.parametrize("check", ABUSE_CHECKS, ids=lambda check: check.__name__)


@abuse
def test_data_that_nobody_expects(check):
    check(TransductiveClassifier(annealing="paper"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [*COMMON, *QUICK, *SLOW], ids=str)
@abuse
def test_data_that_nobody_expects_of_the_other_estimators(check, estimator, request):
    if (type(estimator).__name__, check.__name__) in OVERFLOWS:
        request.applymarker(pytest.mark.xfail(raises=RuntimeWarning, strict=True, reason="multipliers overflow"))
    check(estimator)


class OverBlocks(OverDask):
    """Fits over two blocks of an inline pool, and gathers their labels."""

    def fit(self, X, y, sample_weight=None):
        ends = (0, (len(y) + 1) // 2, len(y))
        blocks = [slice(begin, end) for begin, end in pairwise(ends) if begin < end]
        weights = None if sample_weight is None else [sample_weight[block] for block in blocks]
        fit_inline(self, [X[block] for block in blocks], [y[block] for block in blocks], sample_weight=weights)
        self.transduction_ = np.concatenate(self.transduction_)
        return self


@pytest.mark.slow
@abuse
def test_data_that_nobody_expects_over_dask(check):
    check(OverBlocks(annealing="paper"))


class OnDevice(TransductiveClassifier):
    """Fits and predicts rows of another library: the strict array API for dense rows, torch for sparse ones."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(self._moved(X), y, sample_weight)

    def decision_function(self, X):
        return to_host(super().decision_function(self._moved(X)))

    def _moved(self, X):
        return torch_csr(X) if sparse.issparse(X) else strict(X)


@pytest.mark.slow
@abuse
def test_data_that_nobody_expects_on_a_device(check):
    pytest.importorskip("torch")
    on_one_thread()
    check(OnDevice(annealing="paper"))
