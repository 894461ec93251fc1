"""All classifiers: scikit-learn's checks, and our own for semi-supervised classifiers."""

import pytest
from helpers.estimators import COMMON, QUICK, SLOW
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from transduce import TransductiveClassifier
from transduce.testing import SEMI_SUPERVISED_CHECKS

WEIGHTS = (
    "stops at a duality gap, with rows visited in random order, so equal problems give equal models only up to tol; "
    "check_repeated_row_equals_weight_two shows the equivalence at a small tol"
)
EXPECTED_FAILURES = {
    "check_classifiers_classes": "its labels are -1 and 1, and -1 means unlabelled here, as in sklearn.semi_supervised",
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


def expected_failures(estimator):
    return EXPECTED_FAILURES


def few_rounds(test):
    """Ignore the warnings of fits that stop early: the checks set max_iter to 5."""
    for message in ("y holds only -1 and 1", "The last weight step stopped", "The predicted class sizes are still off"):
        test = pytest.mark.filterwarnings(f"ignore:{message}")(test)
    return test


@few_rounds
@parametrize_with_checks(COMMON[:1], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@few_rounds
@parametrize_with_checks([*COMMON[1:], *QUICK, *SLOW], expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_the_other_estimators(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:y holds only -1 and 1")
def test_signs_as_classes_pass_the_check_that_minus_one_fails():
    check_classifiers_classes("TransductiveClassifier", TransductiveClassifier(unlabeled=None))


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
