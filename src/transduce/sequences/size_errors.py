"""Errors about stated sizes in the words of sequences: labels for classes, tokens or blocks for rows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from transduce.errors import PriorError
from transduce.errors import PriorErrorKind as Kind

_SENTENCES: Mapping[Kind, str] = {
    Kind.KEYWORD: (
        "{parameter} must be 'labeled', 'equal', None, sizes in the order of the labels or a mapping to sizes, but is "
        "{value!r}. Pass one of these."
    ),
    Kind.NOT_SIZES: "{parameter} must be a list with one size for each label or a mapping to sizes, but is {value!r}.",
    Kind.SHAPE: (
        "{parameter} must have one size for each of the {n_classes} labels {classes}, but has {n_sizes}. Pass a "
        "mapping to state some sizes only."
    ),
    Kind.SUM: (
        "{parameter} sums to {total:.6g}, not 1. Divide by the sum, state numbers of the {n_rows} {unit} to label, or "
        "leave out a label that you are not sure of."
    ),
    Kind.SUM_OF_SOME: "{parameter} states {fractions} of the {unit}, {total:.0%} together, more than all. Lower them.",
    Kind.COUNT_SUM: (
        "{parameter} counts {total} {unit}, but there are {n_rows} to label{with_labeled}. "
        "Correct the numbers, or leave out a label that you are not sure of."
    ),
    Kind.LOW_SUM: (
        "{parameter} asks for at least {total} {unit}, but there are {n_rows} to label ({fraction:.1%}). "
        "Lower some low bounds."
    ),
    Kind.HIGH_SUM: (
        "{parameter} allows at most {total} of the {n_rows} {unit} to label ({fraction:.1%}). Raise some high bounds."
    ),
    Kind.UNKNOWN_CLASS: "{parameter} names {name!r}, which is not a label.{hint} The labels are {classes}.",
    Kind.BRANCH_OF_FLAT_CLASSES: "{parameter} names {name!r}, which is not a label. State the sizes of {below}.",
    Kind.BELOW_LABELED: (
        "{parameter} counts all {n_total} {unit}, and gives {name!r} {value} of them, but {n_labeled} are labelled so "
        "already. Correct its number."
    ),
    Kind.TOO_MANY_ROWS: (
        "{parameter} gives {name!r} {value:.6g} {unit}, but only {n_rows} are to be labelled. Count those."
    ),
    Kind.NO_WHOLE_NUMBER: (
        "{parameter} gives {name!r} {low:.6g} to {high:.6g} {unit}, a range without a whole number. Widen it."
    ),
    Kind.SYNTAX: (
        "{source} must be a fraction (0.2, 20% or 1/5), a number of {unit} (120, or ~120 for about 120), an exact size "
        "(=20%), a range such as 10%:30%, or ?, but is {value!r}. Write one of these."
    ),
    Kind.THOUSANDS: (
        "{source} is {value!r}, which may be a fraction or thousands of {unit}. Write numbers of {unit} without a "
        "comma, fractions with a point."
    ),
    Kind.MORE_THAN_ALL: "{source} is {value!r}, more than all {unit}. Write 100% or less.",
    Kind.NEITHER_UNIT: (
        "{source} has {value}, which is neither a fraction nor a whole number of {unit}. Write one or the other."
    ),
    Kind.MIXED_UNITS: "{source} is {value!r}, a range from a fraction to a number of {unit}. Use one unit.",
}


class SizeError(PriorError):
    """Stated sizes of labels that cannot be used.

    Fields are those of PriorErrorKind, `parameter` that states them, and `unit`, "tokens" or "blocks".
    """

    def __str__(self) -> str:
        return self.describe(self.fields["parameter"])

    def describe(self, parameter: str) -> str:
        """The sentence for a front end that has another name for the parameter."""
        sentence = _SENTENCES.get(self.kind, self.kind.value)
        return sentence.format_map(self.fields | {"parameter": parameter})


@contextmanager
def size_errors(parameter: str, unit: str) -> Iterator[None]:
    """Turn errors about a class prior into errors about sizes of labels."""
    try:
        yield
    except PriorError as error:
        raise SizeError(error.kind, **error.fields, parameter=parameter, unit=unit) from None
