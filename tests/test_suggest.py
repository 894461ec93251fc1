"""Names in messages: a slip of the keys leads back to the name, and different names stay different."""

import unicodedata

import pytest

from transduce.suggest import (
    closest_name,
    did_you_mean,
    differ_in_one_letter,
    find_misspelled,
    is_misspelling,
    name_list,
    normalize_name,
)

KNOWN = ["banking", "travel", "small talk", "auto_and_commute", "sport/baseball", "sport/hockey"]


def slips(name):
    """Every name with one letter left out, or with two neighbours swapped."""
    left_out = [name[:k] + name[k + 1 :] for k in range(1, len(name))]
    swapped = [name[:k] + name[k + 1] + name[k] + name[k + 2 :] for k in range(len(name) - 1)]
    return [slip for slip in (*left_out, *swapped) if normalize_name(slip) != normalize_name(name) and "/" not in slip]


@pytest.mark.parametrize("name", KNOWN)
def test_a_slip_leads_to_the_known_name(name):
    for slip in slips(name):
        assert closest_name(slip, KNOWN) == name
        assert did_you_mean(slip, KNOWN) == f" Did you mean {name!r}?"
        assert find_misspelled(slip, KNOWN) in (name, None)


@pytest.mark.parametrize("name", [*KNOWN, "earn", "ship", "aa/bcde", "été1"])
def test_two_neighbours_that_are_swapped_are_a_misspelling(name):
    last = name.split("/")[-1]
    for k in range(len(last) - 1):
        swapped = name.removesuffix(last) + last[:k] + last[k + 1] + last[k] + last[k + 2 :]
        if last[k] != last[k + 1]:
            assert find_misspelled(swapped, [*KNOWN, name]) == name
            assert is_misspelling(swapped, name)


@pytest.mark.parametrize(
    ("one", "other"), [("tea", "tae"), ("earn", "near"), ("earn", "eann"), ("wine", "wind"), ("ab12", "ab21")]
)
def test_other_short_names_stay_different(one, other):
    assert not is_misspelling(one, other)


@pytest.mark.parametrize(
    ("name", "known"),
    [("tee", "tea"), ("tae", "tea"), ("earm", "earn"), ("bank", "banking"), ("commute", "auto_and_commute")],
)
def test_slips_in_short_names_and_parts_of_names_are_suggested(name, known):
    assert closest_name(name, [known, "trade", "interest"]) == known


@pytest.mark.parametrize("name", ["crude", "travel", "grade school", "read"])
def test_another_word_is_no_suggestion(name):
    assert did_you_mean(name, ["trade", "earn", "ship", "interest"]) == ""


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [("earm", "earn", True), ("wine", "wind", True), ("Rec/Earm", "rec/earn", True), ("tea", "ten", False),
     ("ab12", "ab13", False), ("earn", "earn", False), ("earn", "eran", False), ("earn", "earns", False)],
)  # fmt: skip
def test_names_that_differ_in_one_letter(one, other, differ):
    assert differ_in_one_letter(one, other) == differ_in_one_letter(other, one) == differ


@pytest.mark.parametrize("name", KNOWN)
def test_differences_in_case_and_separators_are_variants_and_not_misspellings(name):
    variant = f" {name.upper().replace('_', '-')}."
    assert closest_name(variant, KNOWN) == find_misspelled(variant, KNOWN) == name
    assert not is_misspelling(variant, name)


def test_only_similar_strings_are_suggested():
    assert closest_name("zzz", KNOWN) is None
    assert did_you_mean(3, [3, 4]) == ""
    assert find_misspelled("banking", []) is None
    assert not is_misspelling("tea", "ten")  # too short
    assert not is_misspelling("class 1", "class 2")
    assert not is_misspelling("sport/hockey", "spart/hokey")  # two parts differ


@pytest.mark.parametrize("n_names", range(1, 8))
def test_a_list_shows_or_counts_every_name(n_names):
    names = [f"n{k}" for k in range(n_names)]
    shown = name_list(names, most=3)
    assert sum(repr(name) in shown for name in names) == min(n_names, 3)
    assert shown.endswith(f"{n_names - 3} more") == (n_names > 3)
    assert name_list(names, most=3, quote=False) == shown.replace("'", "")


def test_normalized_names_ignore_unicode_form_and_separators_but_not_signs():
    assert normalize_name("Café au lait") == normalize_name(unicodedata.normalize("NFD", "café_au-lait "))
    assert normalize_name("rec/Sport") == normalize_name("rec/sport") != normalize_name("rec sport")
    different = ["C", "C++", "C#", "1", "-1", "+1", "+", "-", "15", "1.5", "week 1", "week 2", "a/bc", "ab/c"]
    assert len(set(map(normalize_name, different))) == len(different)
    assert all(normalize_name(normalize_name(name)) == normalize_name(name) for name in (*different, *KNOWN))
