"""Sizes as text, partial priors and units."""

import pytest

from transduce.class_prior.spec import complete_prior, fraction_ranges, is_in_rows, parse_size
from transduce.errors import PriorError, PriorErrorKind


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("0.2", 0.2), (" 20% ", 0.2), ("20 %", 0.2), ("120", 120.0), ("0", 0.0), ("0.1:0.3", (0.1, 0.3)),
        ("10%:30%", (0.1, 0.3)), ("5:9", (5.0, 9.0)), ("?", None), ("", None), ("1", 1.0), ("100%", 1.0),
        (0.25, 0.25), (3, 3.0), ([1], 1.0), ([1, 2], (1.0, 2.0)),
    ],
)  # fmt: skip
def test_sizes_as_text(written, size):
    assert parse_size(written, "here") == size


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("a", "SYNTAX"), ("1:2:3", "SYNTAX"), ("-1", "OUT_OF_RANGE"), ("0.3:0.1", "REVERSED_TEXT"),
        ("inf", "OUT_OF_RANGE"), ("nan", "OUT_OF_RANGE"), ("1e400", "OUT_OF_RANGE"), (True, "SYNTAX"),
        ({"a": 1}, "SYNTAX"), ([[1], 2], "SYNTAX"), ("%", "SYNTAX"), (":", "SYNTAX"), (10**400, "SYNTAX"),
        ("1.5", "NEITHER_UNIT"), ("2:3.5", "NEITHER_UNIT"), ("150%", "NEITHER_UNIT"), ("200%", "NEITHER_UNIT"),
    ],
)  # fmt: skip
def test_text_that_is_no_size_names_the_place(written, kind):
    with pytest.raises(PriorError, match=r"^here ") as caught:
        parse_size(written, "here")
    assert caught.value.kind is PriorErrorKind[kind]


def test_rounded_fractions_are_divided_by_their_sum():
    sizes, unstated, total = complete_prior({"a": 0.33, "b": 0.33, "c": 0.33}, ["a", "b", "c"])
    assert sum(sizes.values()) == pytest.approx(1)
    assert (unstated, total) == ([], pytest.approx(0.99))
    assert complete_prior({"a": 0.5, "b": 0.4}, ["a", "b"]) == ({"a": 0.5, "b": 0.4}, [], None)


def test_classes_in_a_stated_branch_have_a_size():
    found = complete_prior({"rec": 0.3, "sci": None}, ["rec/chess", "rec/hockey", "sci", "talk"], tree=True)
    assert found.sizes == {"rec/chess": None, "rec/hockey": None, "sci": None, "talk": None, "rec": 0.3}
    assert found.unstated == ["talk"]


@pytest.mark.parametrize(
    ("name", "classes", "tree", "near"),
    [
        ("sprot", ["sport", "science"], False, "sport"),
        ("rec/", ["rec/chess", "rec/hockey", "sci"], True, "rec"),
        ("sport/", ["sport", "sports"], False, "sport"),
    ],
)
def test_an_unknown_class_comes_with_the_nearest_name(name, classes, tree, near):
    with pytest.raises(PriorError) as caught:
        complete_prior({name: 0.5}, classes, tree=tree)
    assert caught.value.kind is PriorErrorKind.UNKNOWN_CLASS
    assert caught.value.hint == f" Did you mean {near!r}?"


def test_a_branch_of_flat_classes_comes_with_its_classes():
    with pytest.raises(PriorError, match="'rec', which is not a class but a branch with 'rec/chess' and 'rec/hockey'"):
        complete_prior({"rec": 0.5}, ["rec/chess", "rec/hockey"])


def test_fractions_and_numbers_of_rows_do_not_mix():
    for read in (lambda prior: fraction_ranges(prior, 100), lambda prior: complete_prior(prior, ["a", "b"])):
        with pytest.raises(PriorError) as caught:
            read({"a": 0.2, "b": (3.0, 9.0)})
        assert (caught.value.fraction_name, caught.value.count_name) == ("a", "b")


def test_single_integers_that_sum_to_one_are_fractions():
    assert is_in_rows([1, 1, 0])
    assert not is_in_rows([1, 0, 0])
    assert not is_in_rows("labeled")
    assert not is_in_rows(0.5)
