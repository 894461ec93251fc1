"""Each spelling of a size, and what is no size."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from transduce.class_prior.spec import UNKNOWN, Size, parse_size, read_sizes
from transduce.errors import PriorError, PriorErrorKind


def rough(value, in_rows=False):
    return Size(value, value, True, in_rows)


def exact(value, in_rows=True):
    return Size(value, value, False, in_rows)


def limits(low, high, in_rows=False):
    return Size(low, high, False, in_rows)


SPELLINGS = [
    (0.3, rough(0.3)), ("0.3", rough(0.3)), (" 30% ", rough(0.3)), ("3.5 %", rough(0.035)), ("0,02", rough(0.02)),
    ("1/77", rough(1 / 77)), ("1 / 4", rough(0.25)), (".5", rough(0.5)), ("2e-3", rough(0.002)), ("~30%", rough(0.3)),
    ("~0.3", rough(0.3)), ("~120", rough(120.0, True)), ("~ 12.5", rough(12.5, True)), ("~0", rough(0.0, True)),
    (1.0, rough(1.0)), ("1.0", rough(1.0)), ("100%", rough(1.0)), (Fraction(1, 4), rough(0.25)),
    (Decimal("0.25"), rough(0.25)), (np.float32(0.25), rough(0.25)),
    (120, exact(120.0)), ("120", exact(120.0)), ("=120", exact(120.0)), (120.0, exact(120.0)), ("120.0", exact(120.0)),
    (1, exact(1.0)), ("1", exact(1.0)), (np.int64(1), exact(1.0)), ("=30%", exact(0.3, False)),
    ("= 0.3", exact(0.3, False)), ("=1", exact(1.0)), ("=1.0", exact(1.0, False)),
    (0, exact(0.0)), (0.0, exact(0.0)), ("0", exact(0.0)), ("0%", exact(0.0)), ("=0", exact(0.0)),
    ((0.1, 0.3), limits(0.1, 0.3)), ([0.1, 0.3], limits(0.1, 0.3)), (np.array([0.1, 0.3]), limits(0.1, 0.3)),
    ("10%:30%", limits(0.1, 0.3)), ("10%-30%", limits(0.1, 0.3)), ("10-30%", limits(0.1, 0.3)),
    ("10 % \N{EN DASH} 30 %", limits(0.1, 0.3)), ("0,1:0,3", limits(0.1, 0.3)), (("10%", "30%"), limits(0.1, 0.3)),
    ("1e-3-2e-3", limits(0.001, 0.002)), ((0.5, 1), limits(0.5, 1.0)), ((0, 1), limits(0.0, 1.0)),
    ("0:1", limits(0.0, 1.0)), ("0:1/4", limits(0.0, 0.25)),
    ((5, 9), limits(5.0, 9.0, True)), ("5:9", limits(5.0, 9.0, True)), ("100-200", limits(100.0, 200.0, True)),
    ((1, np.inf), limits(1.0, np.inf, True)), ("1:inf", limits(1.0, np.inf, True)), ((0, np.inf), limits(0.0, np.inf)),
    ((0.1, np.inf), limits(0.1, np.inf)), ((0, 2), limits(0.0, 2.0, True)),
    ((4, 4), exact(4.0)), ((0.25, 0.25), exact(0.25, False)), ((1, 1), exact(1.0)), ([3], exact(3.0)),
    (None, UNKNOWN), ("?", UNKNOWN), ("", UNKNOWN), (" ", UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("written", "size"), SPELLINGS, ids=repr)
def test_each_spelling_of_a_size(written, size):
    assert parse_size(written, "here") == size


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("a", "SYNTAX"), ("1:2:3", "SYNTAX"), ("%", "SYNTAX"), (":", "SYNTAX"), ("=", "SYNTAX"), ("~10%:30%", "SYNTAX"),
        ("=5:9", "SYNTAX"), ("==5", "SYNTAX"), ("12 000", "SYNTAX"), ("1_000", "SYNTAX"), ("1,200,000", "SYNTAX"),
        (("a", 2), "SYNTAX"), (True, "SYNTAX"), ({"a": 1}, "SYNTAX"), ([[1], 2], "SYNTAX"), ([1, 2, 3], "SYNTAX"),
        ((0.1, None), "SYNTAX"), ((), "SYNTAX"), (1j, "SYNTAX"),
        ("1,200", "THOUSANDS"), ("12,000:15,000", "THOUSANDS"),
        ("-1", "OUT_OF_RANGE"), (-0.5, "OUT_OF_RANGE"), ((-0.1, 0.5), "OUT_OF_RANGE"), ("inf", "OUT_OF_RANGE"),
        (np.inf, "OUT_OF_RANGE"), ((np.inf, np.inf), "OUT_OF_RANGE"), ("nan", "OUT_OF_RANGE"), (np.nan, "OUT_OF_RANGE"),
        ((np.nan, 0.5), "OUT_OF_RANGE"), ("1e400", "OUT_OF_RANGE"), (10**400, "OUT_OF_RANGE"), (1e16, "OUT_OF_RANGE"),
        ("1/0", "OUT_OF_RANGE"),
        ("150%", "MORE_THAN_ALL"), ("3/2", "MORE_THAN_ALL"), ("10%:130%", "MORE_THAN_ALL"),
        ("2:3.5", "NEITHER_UNIT"), ("=12.5", "NEITHER_UNIT"), ((2, 3.5), "NEITHER_UNIT"),
        ("0.1:9", "MIXED_UNITS"), ((0.1, 9), "MIXED_UNITS"), ("10%:30", "MIXED_UNITS"),
        ("0.3:0.1", "REVERSED"), ((9, 5), "REVERSED"), ((1, 0.5), "REVERSED"), ("30%-10%", "REVERSED"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_size_is_refused_at_its_place(written, kind):
    with pytest.raises(PriorError, match=r"^here ") as caught:
        parse_size(written, "here")
    assert caught.value.kind is PriorErrorKind[kind]
    assert isinstance(caught.value, TypeError) == (written in (True, 1j, (), {"a": 1}) or type(written) is list or (
        type(written) is tuple and None in written))  # fmt: skip


def test_numbers_and_their_text_agree():
    rng = np.random.default_rng(0)
    fractions, rows = rng.random(200).tolist(), rng.integers(0, 10**6, 200).tolist()
    for value in (*fractions, *rows, 0, 1, 0.0, 1.0, 2.0):
        assert parse_size(value, "") == parse_size(str(value), "") == parse_size(repr(value), "")
        assert parse_size(f"={value}", "") == parse_size(f"= {value}", "")
    for numbers in (fractions, rows):
        for low, high in zip(*np.sort([numbers[::2], numbers[1::2]], axis=0).tolist(), strict=True):
            ends = (low, high) if numbers is fractions else (int(low), int(high))
            assert (
                parse_size(ends, "")
                == parse_size(f"{ends[0]}:{ends[1]}", "")
                == parse_size("-".join(map(str, ends)), "")
            )
    for value in fractions:
        assert parse_size(f"{100 * value!r}%", "").low == pytest.approx(value)
        assert parse_size(str(value).replace(".", ","), "") == parse_size(value, "")


@pytest.mark.parametrize("kind", [list, tuple, np.array, dict])
def test_sizes_come_in_the_order_of_the_classes_or_by_name(kind):
    sizes = [0.25, 0.5, 0.25]
    prior = dict(zip("abc", sizes, strict=True)) if kind is dict else kind(sizes)
    assert list(read_sizes(prior, "abc").values()) == [rough(0.25), rough(0.5), rough(0.25)]
    assert read_sizes(np.array([(0.1, 0.2), (0.8, 0.9)]), "ab") == {"a": limits(0.1, 0.2), "b": limits(0.8, 0.9)}
    assert read_sizes(np.array(["20%", "?"]), "ab") == {"a": rough(0.2), "b": UNKNOWN}


def test_equal_is_a_rough_size_of_every_class():
    assert read_sizes("equal", "abcd") == dict.fromkeys("abcd", rough(0.25))


@pytest.mark.parametrize(
    ("prior", "kind"),
    [(None, "NONE"), ("same", "KEYWORD"), ("30%", "KEYWORD"), (0.5, "NOT_SIZES"), ({0.2, 0.8}, "NOT_SIZES"),
     (b"ab", "NOT_SIZES"), ([0.2] * 3, "SHAPE"), ([], "SHAPE")],
)  # fmt: skip
def test_what_is_no_prior_is_refused(prior, kind):
    with pytest.raises(PriorError, match=r"^class_prior") as caught:
        read_sizes(prior, "ab")
    assert caught.value.kind is PriorErrorKind[kind]
    assert isinstance(caught.value, TypeError) == (kind == "NOT_SIZES")
