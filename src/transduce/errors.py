"""Errors and warnings that carry data: which kind it is, and the fields that describe it.

`str(error)` is the sentence for Python users: the value of `error.kind`, filled with `error.fields`. Another front
end, such as the command line, fills sentences of its own: `SENTENCES[error.kind].format_map(error.fields)`. Fields are
also attributes: `error.name` is `error.fields["name"]`.
"""

import string
import sys
from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from transduce.suggest import name_list, short_repr


class Names(tuple[Any, ...]):
    """Names of classes that a sentence lists: the first ten, in quotes.

    >>> f"The classes are {Names(['tea', 'milk'])}."
    "The classes are 'tea' and 'milk'."
    """

    def __format__(self, spec: str) -> str:
        return name_list(self)


class Percents(tuple[float, ...]):
    """Fractions that a sentence lists as per cents.

    >>> f"{Percents([0.5, 0.125])} of the rows"
    '50% and 12.5% of the rows'
    """

    def __format__(self, spec: str) -> str:
        return name_list((f"{100 * fraction:.4g}%" for fraction in self), quote=False)


class _Filler(string.Formatter):
    def convert_field(self, value: Any, conversion: Any) -> Any:
        is_any = conversion == "r" and not isinstance(value, str)
        return short_repr(value) if is_any else super().convert_field(value, conversion)


def _fill(sentence: str, fields: Mapping[str, Any]) -> str:
    """Fill a sentence with fields; a quoted one that is not a string is cut to one short line.

    >>> _fill("it is {value!r}. Correct it.", {"value": list(range(1000))})[-18:]
    '21, …. Correct it.'
    """
    return _Filler().vformat(sentence, (), fields)


class InputError(ValueError):
    """Texts, vectors, an encoder or a model file that cannot be used; the command line prints it and exits with 2."""


class Record(Exception):  # noqa: N818 -- the base of errors and of warnings
    """A kind of problem and its fields; a subclass is an error or a warning.

    Parameters
    ----------
    kind : Enum
        Kind of problem; its value is the sentence.
    **fields : object
        What fills the sentence.
    """

    def __init__(self, kind: Enum, **fields: Any) -> None:
        super().__init__(kind, fields)
        self.kind = kind
        self.fields = fields

    def __str__(self) -> str:
        return _fill(self.kind.value, self.fields)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}.") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.kind, **self.fields), ()


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


class LabelErrorKind(Enum):
    """Why y cannot be used; the value is the sentence for Python users.

    Fields: `row` the position in y, `entry` what stands there, `name` a label in it, `classes` the known classes,
    `hint` a question that may be empty.
    """

    NOT_A_LIST = "y must be a list or array with one label for each row, but is of type {type}. Convert it."
    SHAPE = "y should be a 1d array with one label for each row, but has shape {shape}. Pass one column."
    LENGTH = "X has {n_rows} rows and y has {n_labels}: inconsistent numbers of samples. Match them."
    NOTHING_LABELED = "y has no label: every row is unlabelled. Label a few rows, of each class if you can."
    NOTHING_LABELED_IN_FULL = "y has partial labels only. Label at least one row with a single class."
    INFINITE = "y contains inf or -inf, which is not a label. Replace it."
    CONTINUOUS = "Unknown label type: y is continuous. A classifier needs classes: pass names or whole numbers."
    MIXED_TYPES = "class names must have one type that can be sorted, but are {types}. Convert y or class_prior."
    ARRAY_ENTRY = "row {row} of y is an array, which is not a label. Use a set such as {example} for a partial label."
    MISSING_IN_SET = (
        "row {row} of y has {name!r} in {entry!r}, but it marks unlabelled rows and is not a class. Remove it, or use "
        "None for an unlabelled row."
    )
    PATH_WITHOUT_TAXONOMY = (
        "row {row} of y is {entry!r}. Use a set, {example}, for a partial label, or taxonomy= for paths."
    )
    UNKNOWN_RULED_OUT = "row {row} of y rules out {name!r}, which is not a class of y or class_prior.{hint} Correct it."
    UNKNOWN_CLASS = "row {row} of y names {name!r}, which is not a class. Correct it, or pass taxonomy=."
    EMPTY_BRANCH = (
        "row {row} of y names {name!r}, but no class under it is labelled or in class_prior. Label one, or change this."
    )
    EMPTY_SET = "row {row} of y is an empty set, which allows no class. Use None for an unlabelled row."
    ALL_RULED_OUT = "row {row} of y rules out all {n_classes} classes. Rule out fewer, or use None if it is unlabelled."
    TWO_NAMES = (
        "a class must have one name in y and class_prior, but {name!r} and {other!r} are the same class. Keep one."
    )
    NO_CLASS_ALLOWED = "row {row} of y allows no class. Allow at least one; allow all for an unlabelled row."
    ONE_COLUMN = "y is a boolean matrix with one column. Pass one column for each class, or one label for each row."
    SPARSE_NUMBERS = "y is a sparse matrix of {dtype}. Pass y.astype(bool) if it holds partial labels."
    MATRIX_OF_NUMBERS = (
        "y is a matrix of 0 and 1 with shape {shape}, but one label for each row was expected. Pass "
        "np.asarray(y).astype(bool) if it holds partial labels, with one column for each class."
    )
    PARTIAL_LABELS = "{estimator} takes no partial labels. Use TransductiveClassifier, or label those rows in full."


class LabelError(Record, ValueError):
    """Labels y that cannot be used; see LabelErrorKind for the kinds and their fields."""

    kind: LabelErrorKind


class LabelWarningKind(Enum):
    """What may be wrong with y; the value is the sentence for Python users. Fields as in LabelErrorKind."""

    SIGNS = "y holds only -1 and 1, and -1 means unlabelled. If -1 is a class, rename it or pass unlabeled=None."
    SIMILAR_IN_Y = "{name!r} is in partial labels of y, but never the only label. If you mean {near!r}, correct it."
    SIMILAR_IN_PRIOR = "{name!r} is in class_prior, but no row is labelled with it. If you mean {near!r}, correct it."
    SIMILAR_IN_EVIDENCE = (
        "{name!r} is in scores or guesses, but no row is labelled with it. If you mean {near!r}, correct it."
    )
    INNER_NODE = (
        "{name!r} in y is treated as a class of its own beside {near!r}. Pass taxonomy= to make it a partial label "
        "that allows all classes under it."
    )


class LabelWarning(Record, UserWarning):
    """Labels that may contain a mistake; see LabelWarningKind."""

    kind: LabelWarningKind


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


class MissedCount(NamedTuple):
    """A stated count of tokens or blocks that the labels of sequences do not meet.

    Attributes
    ----------
    name : object
        Label, or field of blocks.
    unit : str
        "tokens" or "blocks".
    assigned : int
        What the labels have.
    low, high : int
        What was stated.
    """

    name: object
    unit: str
    assigned: int
    low: int
    high: int

    def __str__(self) -> str:
        stated = f"at least {self.low}" if self.assigned < self.low else f"at most {self.high}"
        return f"{self.name!r} has {self.assigned} {self.unit}, but {stated} are stated."


class CountWarningKind(Enum):
    """What is wrong with stated counts; the value is the sentence. Field: `missed`, a tuple of MissedCounts."""

    MISSED = (
        "the labels do not meet all counts: {missed} The constraints or the known labels may forbid it. Change the "
        "counts or the constraints."
    )


class CountWarning(Record, UserWarning):
    """Stated counts that the labels of sequences do not meet; see CountWarningKind."""

    kind: CountWarningKind

    def __str__(self) -> str:
        return self.kind.value.format_map({"missed": " ".join(map(str, self.fields["missed"]))})


def user_stacklevel() -> int:
    """Return the stack level of the user's code, for a warning issued in a function that the caller calls.

    The first frame outside this package is the user's; subtract 1 for a warning that the caller issues itself.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "transduce":
        frame, level = frame.f_back, level + 1
    return level
