"""Errors and warnings about the class prior."""

from enum import Enum
from typing import NamedTuple

from transduce.errors.record import Record


class PriorErrorKind(Enum):
    """Why a class prior cannot be used; the value is the sentence for Python users.

    Fields: `name` a class or branch, `value`, `low`, `high` what is stated for it, `total` a sum, `n_rows` the rows to
    label, `n_total` those and the labelled ones, `with_labeled` a clause about these that may be empty, `n_labeled` the
    labelled ones of a class, `classes` the known classes, `hint` a clause that may be empty, `near` a similar name,
    `fractions` stated sizes, `source` an entry of class_prior, an option, or a file and a line.
    """

    # the class prior as a whole
    NONE = "class_prior is None. Leave it out to estimate class sizes; None is for single classes in a mapping."
    KEYWORD = (
        "class_prior must be 'estimate', 'labeled', 'equal', sizes in the order of the classes or a mapping to sizes, "
        "but is {value!r}. Pass one of these."
    )
    NOT_SIZES = (
        "class_prior must be a list with one size for each class or a mapping to sizes, but is {value!r}. "
        "Pass one of these."
    )
    SHAPE = (
        "class_prior must have one size for each of the {n_classes} classes {classes}, but has {n_sizes}. Pass a "
        "mapping to state some sizes only."
    )
    SUM = (
        "class_prior sums to {total:.6g}, not 1. Divide it by its sum, pass counts of the {n_rows} rows to label, or "
        "leave out a class that you are not sure of."
    )
    SUM_OF_SOME = (
        "class_prior states {fractions} of the rows for some classes, {total:.0%} together, more than all. Lower them."
    )
    COUNT_SUM = (
        "class_prior counts {total} rows, but there are {n_rows} rows to label{with_labeled}. Correct the counts, or "
        "leave out a class that you are not sure of."
    )
    LOW_SUM = (
        "class_prior asks for at least {total} rows, but there are {n_rows} to label ({fraction:.1%}). "
        "Lower some low bounds."
    )
    HIGH_SUM = (
        "class_prior allows at most {total} of the {n_rows} rows to label ({fraction:.1%}). Raise some high bounds."
    )

    # one class or branch
    UNKNOWN_CLASS = "class_prior names {name!r}, which is not a class.{hint} The classes are {classes}."
    UNKNOWN_NODE = "class_prior names {name!r}, which is neither a class nor a branch: {reason}"
    MISSPELLED_CLASS = (
        "class_prior names {name!r}, which no row is labelled with, but not {near!r}. Did you mean {near!r}? Correct "
        "it; if both are classes, state {near!r} too (None if you do not know its size)."
    )
    BRANCH_OF_FLAT_CLASSES = (
        "class_prior names {name!r}, which is not a class but a branch with {below}. State their sizes instead."
    )
    BELOW_LABELED = (
        "class_prior counts all {n_total} rows, and gives {name!r} {value} of them, but {n_labeled} are labelled so "
        "already. Correct its count."
    )
    TOO_MANY_ROWS = "class_prior gives {name!r} {value:.6g} rows, but only {n_rows} are to be labelled. Count those."
    NO_WHOLE_NUMBER = "class_prior gives {name!r} {low:.6g} to {high:.6g} of {n_rows} rows: no whole number. Widen it."
    BRANCH_TOO_SMALL = (
        "class_prior contradicts itself: {name!r} may get at most {high} of the {n_rows} rows to label, but its parts "
        "must get at least {needed}. Raise its high bound, or lower the low bounds of its parts."
    )
    BRANCH_TOO_LARGE = (
        "class_prior contradicts itself: {name!r} must get at least {low} of the {n_rows} rows to label, but its parts "
        "may get at most {allowed}. Lower its low bound, or raise the high bounds of its parts."
    )

    # one size as it is written, in Python, in options and in files
    SYNTAX = (
        "{source} must be a fraction (0.2, 20% or 1/5), rows (120, or ~120 for about 120), an exact size (=20%), a "
        "range such as 10%:30%, or ?, but is {value!r}. Write one of these."
    )
    THOUSANDS = (
        "{source} is {value!r}, which may be a fraction or thousands of rows. Write rows without a comma, fractions "
        "with a point."
    )
    OUT_OF_RANGE = '{source} must be from 0 to 1e15, but is {value!r}. Correct it, or write "?" if it is unknown.'
    MORE_THAN_ALL = "{source} is {value!r}, more than all rows. Write 100% or less."
    NEITHER_UNIT = (
        "{source} has {value}, which is neither a fraction nor a whole number of rows: numbers up to 1 are fractions, "
        "larger ones are rows, or per cents where all of them sum to 100. Write one or the other."
    )
    MIXED_UNITS = "{source} is {value!r}, a range from a fraction to rows. Use one unit."
    REVERSED = "{source} is {value!r}: the low end is above the high end. Swap them."

    # files of sizes
    BAD_FILE = "{source} is not valid {format}: {reason} Correct it."
    NOT_A_MAPPING = "{source} must map each class to its size, such as {{sport = 0.2}}. Correct it."
    CSV_LINE = "{source} must be class, size or class, low, high, but is {value!r}. Correct it."
    TWICE = "{source} names class {name!r} a second time. Remove one of them."
    EMPTY_FILE = "{source} is empty. Write one line for each class: class,size."


class PriorError(Record, ValueError):
    """A class prior that cannot be used; see PriorErrorKind for the kinds and their fields."""

    kind: PriorErrorKind


class PriorTypeError(PriorError, TypeError):
    """A class prior of the wrong type."""


class PriorWarningKind(Enum):
    """Why a class prior may do harm; the value is the sentence for Python users.

    Fields: `conflicts` a tuple of PriorConflict, the worst first; `n_labeled` the number of labelled rows.
    """

    AGAINST_LABELS = (
        "class_prior and the labels disagree: {conflicts} If the labelled rows were drawn at random, expect worse "
        "labels than without class_prior; class_prior='labeled' follows the labels."
    )
    AGAINST_ROWS = (
        "class_prior and the data disagree: {conflicts} The numbers of labels are so equal that they say nothing about "
        "class sizes. Unless you are sure of class_prior, leave it out: class sizes are then estimated from all rows."
    )
    AGAINST_EVIDENCE = (
        "class_prior and the scores or guesses disagree: {conflicts} Wrong sizes do harm. Unless you are sure of "
        "class_prior, leave it out: class sizes are then estimated from all rows."
    )
    BALANCED_LABELS = (
        "class_prior='labeled' treats the labels as a random sample, but the numbers of labels are so equal that they "
        "say nothing about class sizes. Use class_prior='estimate', or state the sizes you know."
    )


class PriorConflict(NamedTuple):
    """A class or branch whose stated size disagrees with the data; sizes are fractions of the rows to label.

    Attributes
    ----------
    name : object
        Class or branch.
    low, high : float
        Stated size.
    labeled : float or None
        Its fraction of the labels; None where the numbers of labels say nothing about class sizes.
    predicted : float
        Its fraction of the predictions of the supervised classifier.
    suggestion : tuple of two numbers
        Range that would fit: in rows, as integers, where sizes were stated in rows.
    n_labeled : int
        Number of labels.
    witness : str
        What makes the predictions, with its verb.
    """

    name: object
    low: float
    high: float
    labeled: float | None
    predicted: float
    suggestion: tuple[float, float]
    n_labeled: int
    witness: str = "the supervised classifier gives"

    def __str__(self) -> str:
        stated = " to ".join(dict.fromkeys(f"{end:.1%}" for end in (self.low, self.high)))
        low, high = self.suggestion
        fits = f"{low}-{high} rows" if isinstance(high, int) else f"{100 * low:.1f}-{high:.1%}"
        labels = "" if self.labeled is None else f"it has {self.labeled:.1%} of the {self.n_labeled} labels and "
        return (
            f"{self.name!r} should get {stated} of the rows, but {labels}{self.witness} it "
            f"{self.predicted:.1%}. A range of {fits} would fit."
        )


class PriorWarning(Record, UserWarning):
    """A class prior that disagrees with the data so much that labels are likely to be worse than without it.

    `conflicts` are the PriorConflicts, the worst first; there are none if `kind` is BALANCED_LABELS.
    """

    kind: PriorWarningKind

    def __str__(self) -> str:
        return self.kind.value.format_map({**self.fields, "conflicts": " ".join(map(str, self.fields["conflicts"]))})
