"""Structured errors and warnings: sentences, fields, pickling."""

import pickle
import string

import pytest

from transduce.errors import (
    LabelError,
    LabelErrorKind,
    LabelWarningKind,
    PriorConflict,
    PriorError,
    PriorErrorKind,
    PriorTypeError,
    PriorWarning,
    PriorWarningKind,
)

KINDS = [*PriorErrorKind, *PriorWarningKind, *LabelErrorKind, *LabelWarningKind]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_is_a_sentence_with_named_fields(kind):
    fields = [name for _, name, _, _ in string.Formatter().parse(kind.value) if name is not None]
    assert all(name.isidentifier() for name in fields)
    assert kind.value.endswith((".", "{reason}", "{hint}"))
    assert "\n" not in kind.value


def test_the_sentence_and_the_fields_survive_pickling():
    error = PriorError(PriorErrorKind.SUM, total=1.2, n_rows=9)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.kind, copy.fields, str(copy)) == (error.kind, error.fields, str(error))
    assert copy.total == 1.2
    with pytest.raises(AttributeError, match="no field 'name'"):
        _ = error.name


def test_errors_are_value_or_type_errors():
    assert issubclass(PriorError, ValueError)
    assert issubclass(LabelError, ValueError)
    assert issubclass(PriorTypeError, (TypeError, PriorError))


def test_a_warning_lists_its_conflicts():
    tea = PriorConflict("tea", 0.95, 0.95, 0.5, 0.4, (0.4, 0.95), 60)
    milk = PriorConflict("milk", 0.05, 0.1, None, 0.6, (3, 60), 60)
    warning = PriorWarning(PriorWarningKind.AGAINST_LABELS, conflicts=(tea, milk), n_labeled=60)
    assert (
        "'tea' should get 95.0% of the rows, but it has 50.0% of the 60 labels and the supervised classifier gives it "
        "40.0%. A range of 40.0-95.0% would fit. 'milk' should get 5.0% to 10.0% of the rows, but the supervised "
        "classifier gives it 60.0%. A range of 3-60 rows would fit."
    ) in str(warning)
