"""Checks of documents: every planted problem is found in its row, clean documents have no findings, work is linear."""

import json
import random
import unicodedata

import numpy as np
import pytest
from helpers.growth import QUADRATIC, growth
from scipy.stats import binomtest

from transduce.cli.validation import Finding, as_json, check_documents, label_warnings, render_findings
from transduce.cli.validation.findings import row_list
from transduce.cli.validation.prior_checks import exact_interval

WORDS = ["river", "stone", "cloud", "amber", "field", "winter", "signal", "garden", "copper", "violin", "harbour"]


def clean(n=60, classes=("tea", "coffee", "cocoa"), n_labeled=30):
    """Documents without problems: distinct texts of similar length, ten labels per class, half of them unlabelled."""
    rng = random.Random(0)
    texts = [f"{' '.join(rng.choices(WORDS, k=12))} number {row}" for row in range(n)]
    labels = [classes[row % len(classes)] if row < n_labeled else None for row in range(n)]
    return texts, labels


def check(texts, labels, prior=None, tree=False):
    return check_documents(texts, labels, prior, tree=tree)


def only(findings):
    assert len(findings) == 1, render_findings(findings)
    return findings[0]


def test_clean_documents_have_no_findings():
    texts, labels = clean()
    assert check(texts, labels) == []
    assert check(texts, labels, {"tea": (0.3, 0.3), "coffee": (0.3, 0.4), "cocoa": (0.4, 0.4)}) == []
    assert check(texts, [label and f"drinks/{label}" for label in labels], tree=True) == []


@pytest.mark.parametrize(
    ("text", "severity", "words"),
    [
        ("", "warning", "1 of 60 texts is empty (row 41)"),
        (" \n\t", "warning", "is empty"),
        ("caf\ufffd number", "warning", "1 text has the replacement character"),
        ("cafÃ© number one", "warning", "garbled characters such as 'Ã©'"),
        ("it isnâ€™t so", "warning", "garbled characters such as 'â€™'"),
        ("20 Â°C today", "warning", "garbled"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "warning", "garbled"),
        ("nice ðŸ˜€", "warning", "garbled"),
        ("nul \x00 here", "warning", "control characters"),
        ("escape \x1b[31m", "warning", "control characters"),
        ("\ufeffmark at the start", "warning", "control characters"),
        ("word " * 1000, "note", "up to 5000 characters"),
        ("?!", "note", "is nearly empty"),
        ("ok", "note", "is nearly empty"),
    ],
)
def test_a_bad_text_is_found_in_its_row(text, severity, words):
    texts, labels = clean()
    texts[40] = text
    found = only(check(texts, labels))
    assert (found.severity, found.rows) == (severity, (41,))
    assert words in found.message
    assert "row 41" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "naïve café: 5 µm — “so”…",
        "SÃO, NÃO, IRMÃ” Â Ã",
        "привет, мир",
        "日本語です",
        "line one\r\n\tline two\f",
        "El Niño, AÑO",
    ],
)
def test_well_written_text_of_any_script_is_not_garbled(text):
    texts, labels = clean()
    texts[40] = text + " " + texts[40]
    assert check(texts, labels) == []


def test_empty_texts_with_and_without_labels():
    texts, labels = clean()
    assert check([""] * 60, labels)[0].severity == "problem"
    texts[2] = texts[50] = " "
    empty, labelled = check(texts, labels)
    assert (empty.rows, labelled.rows) == ((3, 51), (3,))
    assert "1 empty text has a label (row 3)" in labelled.message


def test_mixed_unicode_forms_are_found():
    texts, labels = clean()
    texts = [text + " café" for text in texts]
    apart = [unicodedata.normalize("NFD", text) for text in texts]
    assert check(texts, labels) == check(apart, labels) == []
    found = only(check(texts[:55] + apart[55:], labels))
    assert found.rows == (56, 57, 58, 59, 60)
    assert "5 texts have accents separate from their letters" in found.message


def test_duplicates_may_differ_in_case_and_spacing():
    texts, labels = clean()
    texts[50], texts[51] = texts[45].upper(), "  " + texts[45].replace(" ", "\n")
    texts[55] = texts[40]
    found = only(check(texts, labels))
    assert (found.severity, found.rows) == ("note", (46, 51, 52))
    assert "2 texts occur more than once, in 5 rows; the most frequent one 3 times" in found.message


def test_duplicates_with_conflicting_labels():
    texts, labels = clean()
    texts[3] = texts[0]  # both tea
    texts[10] = texts[9].upper()  # tea and coffee
    conflict, duplicates = check(texts, labels)
    assert (conflict.severity, conflict.rows) == ("warning", (10, 11))
    assert "1 text has different labels" in conflict.message
    assert "'tea' in row 10 and 'coffee' in row 11" in conflict.message
    assert "2 texts occur more than once" in duplicates.message


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


def test_short_names_with_swapped_letters():
    texts, labels = clean(classes=("earn", "grain", "wine"))
    labels[40], labels[41] = "eran", "wind"
    (found,) = (one for one in check(texts, labels) if "close to" in one.message)
    assert (found.rows, "'eran' (row 41) is rare and close to 'earn' (10 rows)" in found.message) == ((41,), True)
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


def test_sizes_of_branches():
    texts, labels = clean(classes=("rec/sport", "rec/music", "sci"))
    fine = {"rec": (0.6, 0.6), "rec/sport": (0.3, 0.3), "sci": (0.4, 0.4)}
    assert check(texts, labels, fine, tree=True) == []
    off = only(check(texts, labels, {"rec": (0.1, 0.1), "sci": (0.2, 0.9)}, tree=True))
    assert "'rec' (labels 66.7%" in off.message
    assert (
        "sum to at least 1.2" in only(check(texts, labels, {"rec": (0.7, 0.7), "sci": (0.5, 0.5)}, tree=True)).message
    )
    rest = only(check(texts, labels, {"rec": (0.7, 0.7)}, tree=True))
    assert "1 labelled class without a size: 'sci'; the sizes leave 30.0%" in rest.message


def test_paths_read_as_flat_classes():
    texts, labels = clean(classes=("rec/sport", "rec/music", "sci/space"))
    found = only(check(texts, labels, tree=False))
    assert (found.severity, "are paths" in found.message) == ("note", True)
    assert check(texts, labels, tree=True) == []


def test_names_in_the_prior_are_compared_with_the_labels():
    texts, labels = clean()
    prior = {"tea": (0.3, 0.3), "cofee": (0.3, 0.3), "cocoa": (0.4, 0.4)}
    misspelt, unsized = check(texts, labels, prior)
    assert misspelt.severity == unsized.severity == "problem"
    assert "'cofee', which no row has as its label; did you mean 'coffee'?" in misspelt.message
    assert misspelt.rows[:3] == (2, 5, 8)
    assert "'coffee'; the sizes leave 0.0%" in unsized.message
    alone = only(
        check(texts, labels, {"tea": (0.3, 0.3), "coffee": (0.3, 0.3), "cocoa": (0.3, 0.3), "zzz": (0.1, 0.1)})
    )
    assert (alone.severity, "without any label: 'zzz'" in alone.message) == ("warning", True)
    rest = only(check(texts, labels, {"tea": (0.3, 0.3), "cocoa": (0.4, 0.4)}))
    assert (rest.severity, "leave 30.0%" in rest.message) == ("note", True)
    assert "sizes will be estimated" in rest.advice


@pytest.mark.parametrize(
    ("proportions", "severity", "words"),
    [
        ((0.3, 0.3, 0.3), "problem", "sum to at most 0.9,"),
        ((0.33, 0.33, 0.33), "note", "sum to at most 0.99,"),
        ((0.4, 0.4, 0.4), "problem", "sum to at least 1.2,"),
        ((0.4, 0.4, -0.2), "problem", "cannot be"),
        ((0.4, 0.4, float("nan")), "problem", "cannot be"),
    ],
)
def test_impossible_proportions(proportions, severity, words):
    texts, labels = clean()
    found = check(
        texts, labels, dict(zip(("tea", "coffee", "cocoa"), ((each, each) for each in proportions), strict=True))
    )
    assert (found[0].severity, words in found[0].message) == (severity, True)


@pytest.mark.parametrize("proportions", [(0.33333, 0.33333, 0.33333), (0.3334, 0.3334, 0.3334)])
def test_proportions_whose_sum_rounds_to_1_are_fine(proportions):
    texts, labels = clean()
    assert (
        check(texts, labels, {name: (p, p) for name, p in zip(("tea", "coffee", "cocoa"), proportions, strict=True)})
        == []
    )


def test_proportions_far_from_the_labels():
    texts, labels = clean()
    found = only(check(texts, labels, {"tea": (0.05, 0.1), "coffee": (0.35, 0.5), "cocoa": (0.4, 0.5)}))
    assert (found.severity, found.rows) == ("note", ())
    assert "'tea' (labels 33.3%, 17.3% to 52.8%; stated 5.0% to 10.0%)" in found.message
    assert "coffee" not in found.message


def test_harmful_sizes_are_a_warning_unless_labels_are_balanced():
    texts, labels = clean(n=90, n_labeled=60)
    labels[:30] = ["tea"] * 26 + ["cocoa"] * 4
    found = check(texts, labels, {"cocoa": (0.9, 0.9)})
    assert [(one.severity, one.message[:21]) for one in found if "more than chance" in one.message] == [
        ("warning", "The size of 1 class d")
    ]
    mild = check(texts, labels, {"cocoa": (0.38, 0.38)})
    assert [one.severity for one in mild if "more than chance" in one.message] == ["note"]
    even = check(*clean(), {"tea": (0.9, 0.9)})
    assert [one.severity for one in even if "more than chance" in one.message] == ["note"]
    branch = check(texts, [label and f"drink/{label}" if label != "tea" else label for label in labels],
                   {"drink": (0.99, 0.99)}, tree=True)  # fmt: skip
    assert [one.severity for one in branch if "more than chance" in one.message] == ["warning"]


@pytest.mark.parametrize("n", [1, 7, 400])
def test_exact_interval_equals_scipy(n):
    counts = np.unique(np.linspace(0, n, 12).astype(int))
    oracle = [binomtest(int(k), n).proportion_ci(0.95, "exact") for k in counts]
    low, high = exact_interval(counts.astype(float), n)
    np.testing.assert_allclose(low, [one.low for one in oracle], atol=1e-9)
    np.testing.assert_allclose(high, [one.high for one in oracle], atol=1e-9)


def _everything():
    texts, labels = clean(n=200)
    texts[100:140] = [""] * 40
    texts[150] = "Ã©"
    texts[160] = texts[161]
    labels[170], labels[171] = "Tea", "milk"
    return texts, labels, {"tea": (0.9, 0.9), "cofee": (0.3, 0.3)}


def test_findings_are_sorted_and_deterministic():
    found = check(*_everything())
    order = ["problem", "warning", "note"]
    ranks = [order.index(one.severity) for one in found]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    for one in found:
        assert len(one.rows) <= 20
        assert list(one.rows) == sorted(set(one.rows))
        assert one.message.endswith((".", "?"))
        assert one.advice.endswith(".")
    assert found == check(*_everything())


def test_findings_as_text_and_as_json():
    found = check(*_everything())
    assert [Finding(**{**one, "rows": tuple(one["rows"])}) for one in json.loads(json.dumps(as_json(found)))] == found
    shown = render_findings(found)
    words = [word for one in found for word in (one.severity, *one.message.split(), *one.advice.split())]
    assert shown.split() == words
    assert max(map(len, shown.splitlines())) <= 100
    assert render_findings([]) == "No problems found."


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="2 texts and 1 labels"):
        check(["a", "b"], ["x"])


def test_every_finding_names_its_check():
    assert {one.check for one in check(*_everything())} >= {"empty_texts", "garbled_texts", "variant_labels"}


@pytest.mark.parametrize("labels", ["few classes", "all different", "many classes"])
def test_work_is_linear_in_the_rows(labels):
    def documents(n_rows):
        rng = random.Random(0)
        texts = [" ".join(rng.choices([*WORDS, "café"], k=30)) for _ in range(n_rows)]
        n_classes = {"few classes": 10, "all different": n_rows, "many classes": 400}[labels]
        names = [f"the class of {rng.choice(WORDS)} {rng.choice(WORDS)} {row}" for row in range(n_classes)]
        given = [rng.choice(names) if n_classes < n_rows else names[row] for row in range(n_rows)]
        return texts, given, {name + "x": (0.0, 1.0) for name in names[:20]}

    assert growth(lambda one: check(*one), documents(1_000), documents(4_000)) < 0.5 * QUADRATIC


def test_lists_of_rows_are_sorted_and_short():
    listed = [row_list([7]), row_list([7, 2]), row_list(range(1, 101))]
    assert listed == ["row 7", "rows 2 and 7", "rows 1, 2, 3, 4, 5 and 95 more"]


def test_a_path_with_an_empty_part_is_found_where_sizes_and_labels_disagree():
    texts, labels = clean(classes=("a/x", "a/y", "b//z"))
    found = check(texts, labels, {"a/x": (0.98, 0.98), "a/y": (0.01, 0.01), "b//z": (0.01, 0.01)}, tree=True)
    assert {"class_tree", "prior_against_labels"} <= {one.check for one in found}
