"""Errors and warnings that carry data: which kind it is, and the fields that describe it.

`str(error)` is the sentence for Python users: the value of `error.kind`, filled with `error.fields`. Another front
end, such as the command line, fills sentences of its own: `SENTENCES[error.kind].format_map(error.fields)`. Fields are
also attributes: `error.name` is `error.fields["name"]`.
"""

from transduce.errors.class_prior import (
    PriorConflict,
    PriorError,
    PriorErrorKind,
    PriorTypeError,
    PriorWarning,
    PriorWarningKind,
)
from transduce.errors.labels import LabelError, LabelErrorKind, LabelWarning, LabelWarningKind
from transduce.errors.record import InputError, Names, Percents, Record, user_stacklevel
from transduce.errors.sequences import CountWarning, CountWarningKind, MissedCount

__all__ = [
    "CountWarning",
    "CountWarningKind",
    "InputError",
    "LabelError",
    "LabelErrorKind",
    "LabelWarning",
    "LabelWarningKind",
    "MissedCount",
    "Names",
    "Percents",
    "PriorConflict",
    "PriorError",
    "PriorErrorKind",
    "PriorTypeError",
    "PriorWarning",
    "PriorWarningKind",
    "Record",
    "user_stacklevel",
]

for _name in __all__:  # tracebacks, pickles and the reference name the public module
    globals()[_name].__module__ = __name__
