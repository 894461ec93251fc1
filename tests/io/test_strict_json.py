"""Strict JSON: accepted values can be written back, and everything else is an error with advice."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.io.strict_json import MAX_DEPTH, JsonError, dumps, loads, parse, parse_object

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


@settings(max_examples=25, deadline=None)
@given(VALUES)
def test_what_is_written_is_read_back(value):
    assert loads(dumps(value)) == value
    assert loads(json.dumps(value).encode()) == value
    text = f"..{dumps(value)} ..."
    assert parse(text, 2)[0] == value


@pytest.mark.parametrize(
    ("text", "problem", "is_syntax"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" appears twice', False),
        ("[NaN]", "NaN is not a JSON number", False),
        ("-Infinity", "-Infinity is not a JSON number", False),
        ("1e999", "the number 1e999 is too large", False),
        ("9" * 5000, "too many digits", False),
        (r'"\ud800"', "half of a surrogate pair", False),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper", False),
        ("[" * 100_000 + "]" * 100_000, "nested deeper", False),
        (b"\xff", "not UTF-8", False),
        ("[1", "at character 3", True),
        ("", "at character 1", True),
        ("1 2", "more text follows", True),
    ],
)  # fmt: skip
def test_what_is_not_accepted_is_an_error_with_advice(text, problem, is_syntax):
    with pytest.raises(JsonError) as caught:
        loads(text)
    assert problem in caught.value.problem
    assert caught.value.is_syntax == is_syntax
    assert caught.value.advice.endswith(".")
    assert str(caught.value) == f"{caught.value.problem}. {caught.value.advice}"


def test_the_deepest_nesting_is_accepted():
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    ("text", "kind"), [("[]", "a list"), ('"a"', "a text"), ("true", "a boolean"), ("null", "null"), ("1", "a number")]
)
def test_other_values_than_an_object_are_named(text, kind):
    assert parse_object('{"a": 1}') == ({"a": 1}, 8)
    with pytest.raises(JsonError, match=f"the JSON value is {kind}"):
        parse_object(text)


def test_nan_is_not_written():
    with pytest.raises(ValueError, match="JSON compliant"):
        dumps([float("nan")])
