"""Errors and warnings of a fit in the words of the command line: its options in place of Python parameters."""

from collections.abc import Mapping
from warnings import WarningMessage

from sklearn.exceptions import ConvergenceWarning

from transduce.errors import (
    LabelError,
    LabelErrorKind,
    LabelWarning,
    PriorConflict,
    PriorError,
    PriorWarning,
    PriorWarningKind,
)
from transduce.errors import PriorErrorKind as Kind
from transduce.history import FitStatus
from transduce.label_step.infeasible import InfeasibleError

_PRIOR_ERRORS: Mapping[Kind, str] = {
    Kind.SUM: (
        "they sum to {total:.6g}, not 1. Divide them by their sum, state numbers of the {n_rows} rows to label, or "
        "leave out a class that you are not sure of."
    ),
    Kind.SUM_OF_SOME: "{fractions} are {total:.0%} together, more than all rows. Lower them.",
    Kind.COUNT_SUM: (
        "they count {total} rows, but there are {n_rows} rows to label{with_labeled}. Correct "
        "them, or leave out a class that you are not sure of."
    ),
    Kind.BELOW_LABELED: (
        "they count all {n_total} rows, and give {name!r} {value} of them, but {n_labeled} are labelled so already. "
        "Correct its number."
    ),
    Kind.LOW_SUM: "they ask for at least {total} rows, but {n_rows} are to be labelled ({fraction:.1%}). Lower some.",
    Kind.HIGH_SUM: "they allow at most {total} of the {n_rows} rows to label ({fraction:.1%}). Raise some.",
    Kind.TOO_MANY_ROWS: "{option} gives {name!r} {value:.6g} rows, but only {n_rows} need a label. Count those only.",
    Kind.NO_WHOLE_NUMBER: (
        "{option} gives {name!r} between {low:.6g} and {high:.6g} rows, a range without a whole number (rows to "
        "label: {n_rows}). Widen it."
    ),
    Kind.UNKNOWN_CLASS: (
        "no row is labelled {name!r}.{hint} Label a row of it, or leave it out. The labelled classes are {classes}."
    ),
    Kind.BRANCH_OF_FLAT_CLASSES: "{name!r} is not a class but holds {below}. State their sizes instead.",
    Kind.BRANCH_TOO_SMALL: (
        "{name!r} may get at most {high} of the {n_rows} rows to label, but its parts must get at least {needed}. "
        "Raise its size, or lower those of its parts."
    ),
    Kind.BRANCH_TOO_LARGE: (
        "{name!r} must get at least {low} of the {n_rows} rows to label, but its parts may get at most {allowed}. "
        "Lower its size, or raise those of its parts."
    ),
}
_LABEL_ERRORS: Mapping[LabelErrorKind, str] = {
    LabelErrorKind.NOTHING_LABELED: "there are none. Label a few rows of each class.",
    LabelErrorKind.NOTHING_LABELED_IN_FULL: "all of them are partial. Label a few rows of each class in full.",
}
_PRIOR_WARNINGS: Mapping[PriorWarningKind, str] = {
    PriorWarningKind.AGAINST_LABELS: (
        "--prior and the labels disagree: {conflicts} If the labelled rows are a random sample, expect worse labels "
        "than without --prior; leave it out to follow the labels."
    ),
    PriorWarningKind.AGAINST_ROWS: (
        "--prior and the texts disagree: {conflicts} The numbers of labels are so equal that they say nothing about "
        "class sizes. Unless you are sure of --prior, leave it out: class sizes are then estimated from all rows."
    ),
    PriorWarningKind.AGAINST_EVIDENCE: (
        "--prior and the class names or guesses disagree: {conflicts} Wrong sizes do harm. Unless you are sure of "
        "--prior, leave it out: class sizes are then estimated from all rows."
    ),
}
_STATUSES = {
    FitStatus.SUPERVISED: "All rows are labelled, so the model learnt from your labels alone.",
    FitStatus.OUT_OF_ROUNDS: "Stopped while labels were still changing.",
    FitStatus.NOT_CONVERGED: "The last weight step stopped before it reached its tolerance. Increase --alpha.",
}
_CONVERGED = (FitStatus.CONVERGED, FitStatus.CONSTRAINTS_MET, FitStatus.NEARBY, FitStatus.PENALIZED)
_INFEASIBLE = {
    "opening": "the class sizes of --prior and the partial labels cannot both be met",
    "allow": "Correct the labels",
    "sizes": "sizes of --prior",
}


def describe_prior_error(error: PriorError, option: str = "--prior") -> str:
    """Why class sizes that an option states cannot be used."""
    sentence = _PRIOR_ERRORS.get(error.kind, error.kind.value)
    fields = {name: "/".join(value) if type(value) is tuple else value for name, value in error.fields.items()}
    opening = "" if "source" in fields else f"the class sizes of {option} cannot be used: "
    return opening + sentence.format_map(fields | {"option": option})


def describe_error(error: ValueError, file: str) -> str:
    """Why a file cannot be labelled."""
    if isinstance(error, PriorError):
        return describe_prior_error(error)
    if isinstance(error, LabelError):
        sentence = _LABEL_ERRORS.get(error.kind, error.kind.value).format_map(error.fields)
        return f"the labels of {file} cannot be used: {sentence}"
    return f"{file} cannot be labelled: {error}"


def describe_infeasible(error: InfeasibleError) -> str:
    """Why stated class sizes and partial labels cannot both be met."""
    return str(InfeasibleError(error.kind, **(error.fields | _INFEASIBLE)))


def describe_status(status: FitStatus) -> str:
    """How a fit ended."""
    return _STATUSES.get(status, status.value)


def describe_unexpected(status: FitStatus) -> str:
    """How a fit ended, nothing if it converged, as it should."""
    return "" if status in _CONVERGED else describe_status(status)


def describe_warning(caught: WarningMessage) -> str | None:
    """A warning of a fit as a sentence; None for one that the command line reports by itself."""
    warning = caught.message
    if isinstance(warning, PriorWarning):
        conflicts = " ".join(map(_describe_conflict, warning.conflicts))
        return _PRIOR_WARNINGS.get(warning.kind, warning.kind.value).format(conflicts=conflicts)
    return None if isinstance(warning, LabelWarning | ConvergenceWarning) else str(warning)


def _describe_conflict(conflict: PriorConflict) -> str:
    """The stated size of a class beside what labels and texts say."""
    stated = " to ".join(dict.fromkeys(f"{end:.1%}" for end in (conflict.low, conflict.high)))
    labels = f"it has {conflict.labeled or 0:.1%} of the {conflict.n_labeled} labels and "
    low, high = conflict.suggestion
    return (
        f"--prior gives {conflict.name!r} {stated} of the rows, but {'' if conflict.labeled is None else labels}"
        f"{conflict.witness} it {conflict.predicted:.1%}; {low:g}:{high:g} would fit."
    )
