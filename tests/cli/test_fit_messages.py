"""Records of the library in the words of the command line."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from transduce.cli.fit_messages import describe_infeasible, describe_status, describe_unexpected, describe_warning
from transduce.errors import (
    LabelWarning,
    LabelWarningKind,
    PriorConflict,
    PriorWarning,
    PriorWarningKind,
)
from transduce.history import FitStatus
from transduce.label_step.infeasible import CLASS_PRIOR, InfeasibleError, InfeasibleKind, NodeNames

PYTHON_WORDS = ("class_prior", "max_iter", " in y", "tol,")


def caught(warning: Warning) -> warnings.WarningMessage:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn(warning, stacklevel=1)
    return found[0]


@pytest.mark.parametrize(
    "kind", [PriorWarningKind.AGAINST_LABELS, PriorWarningKind.AGAINST_ROWS, PriorWarningKind.AGAINST_EVIDENCE]
)
@pytest.mark.parametrize("labeled", [0.2, None])
def test_conflicts_of_class_sizes_suggest_a_range_as_an_option_takes_it(kind, labeled):
    conflict = PriorConflict("tea", 0.5, 0.6, labeled, 0.18, (0.18, 0.6), 24)
    sentence = describe_warning(caught(PriorWarning(kind, conflicts=(conflict,), n_labeled=24)))
    assert sentence is not None
    for part in ("--prior", "'tea'", "50.0% to 60.0%", "18.0%", "0.18:0.6"):
        assert part in sentence
    assert ("20.0% of the 24 labels" in sentence) == (labeled is not None)
    assert not any(word in sentence for word in PYTHON_WORDS)


def test_warnings_that_the_command_line_reports_itself_are_left_out():
    assert describe_warning(caught(LabelWarning(LabelWarningKind.INNER_NODE, name="hot", near="hot/tea"))) is None
    assert describe_warning(caught(ConvergenceWarning("stopped"))) is None
    assert describe_warning(caught(UserWarning("The disk is full."))) == "The disk is full."


@pytest.mark.parametrize("kind", InfeasibleKind)
def test_infeasible_sizes_are_described_by_options(kind):
    names = {"needing": NodeNames(("tea",), named=True), "holding": NodeNames(("milk",), named=True)}
    fields = {**names, "limiting": NodeNames((), ("hot",), named=True), "needed": 9, "held": 5, "limit": 3}
    sentence = describe_infeasible(InfeasibleError(kind, **fields, **CLASS_PRIOR))
    assert all(part in sentence for part in ("--prior", "'tea'", "'milk'", "9", "5", "3"))
    assert not any(word in sentence for word in PYTHON_WORDS)


def test_the_end_of_a_fit_names_no_python_parameter():
    fits = (FitStatus.CONVERGED, FitStatus.OUT_OF_ROUNDS, FitStatus.NOT_CONVERGED, FitStatus.INTERRUPTED)
    assert not any(word in describe_status(status) for status in fits for word in PYTHON_WORDS)
    assert describe_status(FitStatus.CONVERGED) == "Converged."


@pytest.mark.parametrize("status", FitStatus)
def test_only_the_end_of_a_fit_that_did_not_converge_is_said(status):
    expected = "" if "Converged" in status.value else describe_status(status)
    assert describe_unexpected(status) == expected
