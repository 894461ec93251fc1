"""Checks of labels: misspellings, variants, scarce classes, partial labels and trees."""

import pytest
from helpers.checked_documents import check, clean, only

from transduce.cli.validation import label_warnings, misspelled_labels


def test_labels_need_two_classes_and_unlabelled_rows():
    texts, labels = clean()
    none = only(check(texts, ["", " ", *[None] * 58]))
    assert (none.severity, none.message) == ("problem", "None of 60 rows has a label.")
    one = only(check(texts, [label and "tea" for label in labels]))
    assert one.severity == "problem"
    assert "30 labels are 'tea'" in one.message
    full = only(check(texts[:30], labels[:30]))
    assert full.severity == "warning"
    assert "nothing left to label" in full.message
    assert check([], [])[0].severity == "problem"


def test_classes_with_one_label_and_with_few():
    texts, labels = clean()
    labels[40], labels[41], labels[42] = "milk", "water", "water"
    one, few = check(texts, labels)
    assert (one.severity, one.rows, "'milk'" in one.message) == ("warning", (41,), True)
    assert (few.severity, few.rows, "'water' (2)" in few.message) == ("note", (42, 43), True)


def test_identifiers_and_measurements_as_labels():
    texts, labels = clean()
    found = only(check(texts, [label and f"doc-{row}" for row, label in enumerate(labels)]))
    assert "All 30 labels are different" in found.message
    assert len(found.rows) == 20
    found = only(check(texts, [label and f"{row % 3}.0" for row, label in enumerate(labels)]))
    assert "3 of 3 different labels" in found.message
    classes = [f"class {letter}" for letter in "abcdefghijkl"]
    known = check(texts, [*classes, *[None] * 48], dict.fromkeys(classes, (0.0, 1.0)))
    assert "only one label" in only(known).message


@pytest.mark.parametrize("other", ["Tea", "TEA ", " tea.", "ｔｅａ", "'tea'"])
def test_labels_that_differ_only_in_spelling_style(other):
    texts, labels = clean()
    labels[40:45] = [other] * 5
    found = only(check(texts, labels))
    assert (found.severity, found.rows) == ("problem", (41, 42, 43, 44, 45))
    assert f"{other!r} (5)" in found.message
    assert "'tea' (10)" in found.message


def test_many_findings_of_one_kind_are_summarised():
    texts, labels = clean(n=600, classes=tuple(f"class {letter}" for letter in "abcdefghijklmnopqrst"), n_labeled=200)
    labels[300:400] = [label.upper() for label in labels[:100]]
    problems = [one for one in check(texts, labels) if one.severity == "problem"]
    assert len(problems) == 6
    assert "15 more of this kind" in problems[-1].message
    assert set(problems[-1].rows) <= set(range(301, 401))


def test_rare_label_close_to_a_frequent_one():
    texts, labels = clean(classes=("football", "week 11", "rec/hockey"))
    labels[40] = "footbal"
    found = [one for one in check(texts, labels) if "close to" in one.message]
    assert (only(found).rows, "'football' (10 rows)" in found[0].message) == ((41,), True)
    for different in ("week 12", "rec/football", "handball", "rec", "rec/hokcye"):
        labels[40] = different
        assert not [one for one in check(texts, labels) if "close to" in one.message]


@pytest.mark.parametrize(("wrong", "n"), [("footbal", 1), ("footbal", 2), ("Football", 1)])
def test_misspelled_classes_come_first_and_need_no_more_labels(wrong, n):
    labels = [*["football"] * 20, *["hockey"] * 20, "chess", *[wrong] * n, *[None] * 20]
    first, second = label_warnings(labels)
    assert repr(wrong) in first
    assert second == "1 class has only one label: 'chess'. Label a few more rows of each."
    found = check([f"text number {row}" for row in range(len(labels))], labels)
    assert not [one for one in found if repr(wrong) in one.message and "label of" in one.advice]
    assert misspelled_labels(labels) == {wrong: "football"}
    assert misspelled_labels(["wine"] * 10 + ["wind"]) == {}  # may well be another word


def test_short_names_with_swapped_letters_or_another_one():
    texts, labels = clean(classes=("earn", "grain", "wine"))
    labels[40:44] = ["eran", "wind", "earm", "corn"]
    swapped, *others = (one for one in check(texts, labels) if "close to" in one.message)
    assert (swapped.severity, swapped.rows) == ("warning", (41,))
    assert "'eran' (row 41) is rare and close to 'earn' (10 rows)" in swapped.message
    assert {(one.severity, one.rows) for one in others} == {("note", (42,)), ("note", (43,))}
    assert not [one for one in label_warnings(labels) if "'wind'" in one and "close to" in one]
    misspelt, *_ = check(*clean(classes=("earn", "grain", "wine")), {"eran": (0.3, 0.3), "wine": (0.3, 0.3)})
    assert "'eran', which no row has as its label; did you mean 'earn'?" in misspelt.message


def test_tree_with_a_parent_class_or_an_empty_level():
    texts, labels = clean(classes=("rec/sport", "rec", "sci//space"))
    gaps, both = check(texts, labels, tree=True)
    assert (both.severity, gaps.severity) == ("note", "problem")
    assert "'rec' is above other classes, such as 'rec/sport', and therefore a partial label" in both.message
    assert both.rows[0] == 2
    assert "'sci//space'" in gaps.message
    assert check(texts, labels, tree=False) == []


def test_partial_labels_are_not_classes():
    texts, labels = clean(classes=("rec/sport", "rec/music", "sci"))
    labels[40], labels[41] = "rec", "sci|rec/music"
    found = only(check(texts, labels, tree=True))
    assert (found.severity, found.rows) == ("note", (41,))
    assert "'rec' is above other classes" in found.message
    labels[0:24:3] = [None] * 8
    scarce = [one.message for one in check(texts, labels, tree=True) if "full label" in one.message]
    assert scarce == ["1 class has fewer than 5 full labels: 'rec/sport' (2)."]
    assert label_warnings(["a", "a", "b", "b", "a|b"]) == []
    assert "'a|b'" in label_warnings(["a", "a", "b", "b", "a|b"], flat=True)[0]


def test_candidate_sets_are_not_misspellings_but_their_parts_may_be():
    texts, labels = clean(classes=("kitchen_and_dining", "home", "cocoa"))
    labels[40], labels[41] = "home|kitchen_and_dining", "kitchen_and_dining|home"
    assert check(texts, labels) == []
    assert label_warnings(labels) == []
    labels[42:44] = ["home|Cocoa", "home|Cocoa"]
    labels[44] = "Cocoa"
    assert "'Cocoa' (3), 'cocoa' (10)" in check(texts, labels)[0].message.replace(" and ", ", ")


def test_candidate_sets_with_unknown_parts():
    texts, labels = clean()
    labels[40], labels[41], labels[42:44] = "cofee|tea", "tea|", ["tea|milk", "cocoa|milk"]
    slip, gap, unseen = check(texts, labels)
    assert (slip.severity, gap.severity, unseen.severity) == ("problem", "problem", "note")
    assert slip.message == "The label of row 41 is 'cofee|tea', but no row is labelled 'cofee'. Did you mean 'coffee'?"
    assert (gap.rows, "empty part" in gap.message) == ((42,), True)
    assert (unseen.rows, unseen.message) == ((43, 44), "1 class has only partial labels: 'milk'.")
    known = check(texts, labels, {"milk": (0.1, 0.1)})
    assert not [one for one in known if "without any label" in one.message]
    plain = only(check(texts, [label and f"{label}|drink" for label in clean()[1]]))
    assert (plain.severity, "plain names, such as 'cocoa|drink'" in plain.message) == ("note", True)


def test_partial_labels_still_need_labelling_and_do_not_conflict():
    texts, labels = clean(n=30, classes=("rec/sport", "rec/music", "sci"))
    assert "nothing left to label" in only(check(texts, labels, tree=True)).message
    labels[0], texts[0] = "rec", texts[3]
    assert not [one for one in check(texts, labels, tree=True) if one.severity != "note"]


def test_paths_read_as_flat_classes():
    texts, labels = clean(classes=("rec/sport", "rec/music", "sci/space"))
    found = only(check(texts, labels, tree=False))
    assert (found.severity, "are paths" in found.message) == ("note", True)
    assert check(texts, labels, tree=True) == []
