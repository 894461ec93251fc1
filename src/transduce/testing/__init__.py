"""Checks that any semi-supervised classifier should pass, and the small problem that they use.

`SEMI_SUPERVISED_CHECKS` is the list of checks, and `ABUSE_CHECKS` that of checks with data that nobody expects. A check
is a function of an estimator that has not been fitted; it raises AssertionError if the estimator fails. The estimator
must read -1, None, NaN and blanks in y as unlabelled, have the parameters `class_prior`, `taxonomy` and
`random_state`, and set `transduction_` and `classes_` in fit.

Examples
--------
>>> from transduce import TransductiveClassifier
>>> for check in SEMI_SUPERVISED_CHECKS[:3]:
...     check(TransductiveClassifier(annealing="paper"))
"""

from transduce.testing import abuse, checks
from transduce.testing.problems import Check, as_check, blobs, fitted, labels_as, true_counts

SEMI_SUPERVISED_CHECKS: list[Check] = [
    as_check(function) for name, function in vars(checks).items() if name.startswith("check_")
]
"""All checks, each a function of an estimator that has not been fitted."""
ABUSE_CHECKS: list[Check] = [as_check(function) for name, function in vars(abuse).items() if name.startswith("check_")]
"""Checks with data that nobody expects."""

__all__ = ["ABUSE_CHECKS", "SEMI_SUPERVISED_CHECKS", "blobs", "fitted", "labels_as", "true_counts"]
