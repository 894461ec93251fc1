"""Checks of class sizes: names, sums, and disagreement with the labels."""

import numpy as np
import pytest
from helpers.checked_documents import check, clean, only
from scipy.stats import binomtest

from transduce.cli.validation.prior_checks import exact_interval, mistaken_percents


def test_sizes_of_branches():
    texts, labels = clean(classes=("rec/sport", "rec/music", "sci"))
    fine = {"rec": (0.6, 0.6), "rec/sport": (0.3, 0.3), "sci": (0.4, 0.4)}
    assert check(texts, labels, fine, tree=True) == []
    off = only(check(texts, labels, {"rec": (0.1, 0.1), "sci": (0.2, 0.9)}, tree=True))
    assert "'rec' (labels 66.7%" in off.message
    assert "sum to 1.2, not 1" in only(check(texts, labels, {"rec": (0.7, 0.7), "sci": (0.5, 0.5)}, tree=True)).message
    rest = only(check(texts, labels, {"rec": (0.7, 0.7)}, tree=True))
    assert "1 labelled class without a size: 'sci'; the sizes leave 30.0%" in rest.message


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
        ((0.3, 0.3, 0.3), "problem", "sum to 0.9, not 1."),
        ((0.33, 0.33, 0.33), "note", "sum to 0.99, not to 1."),
        ((0.4, 0.4, 0.4), "problem", "sum to 1.2, not 1."),
        ((25, 25, 25), "problem", "they count 75 rows, but there are 30 rows to label and 60"),
        (((0.1, 0.2), (0.1, 0.2), (0.1, 0.2)), "problem", "allow at most 18 of the 30 rows"),
    ],
)
def test_impossible_proportions(proportions, severity, words):
    texts, labels = clean()
    found = check(texts, labels, dict(zip(("tea", "coffee", "cocoa"), proportions, strict=True)))
    assert (found[0].severity, words in found[0].message) == (severity, True)


@pytest.mark.parametrize("proportions", [(0.33333, 0.33333, 0.33333), (0.3334, 0.3334, 0.3334)])
def test_proportions_whose_sum_rounds_to_1_are_fine(proportions):
    texts, labels = clean()
    assert (
        check(texts, labels, {name: (p, p) for name, p in zip(("tea", "coffee", "cocoa"), proportions, strict=True)})
        == []
    )


def test_proportions_far_from_the_labels():
    texts, labels = clean(n=230)
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


@pytest.mark.parametrize(
    ("stated", "severity"), [(0.6, "warning"), (0.02, "warning"), (0.34, "note"), (0.2, None), (0.3, None)]
)
def test_a_size_far_outside_the_interval_of_the_labels_is_a_warning(stated, severity):
    labels = ["tea"] * 10 + ["coffee"] * 22 + ["cocoa"] * 18 + [None] * 450  # tea: 10 % to 33.7 %
    found = check([f"text number {row}" for row in range(500)], labels, {"tea": (stated, stated)})
    assert [one.severity for one in found if "more than chance" in one.message] == [severity] * (severity is not None)


@pytest.mark.parametrize("n", [1, 7, 400])
def test_exact_interval_equals_scipy(n):
    counts = np.unique(np.linspace(0, n, 12).astype(int))
    oracle = [binomtest(int(k), n).proportion_ci(0.95, "exact") for k in counts]
    low, high = exact_interval(counts.astype(float), n)
    np.testing.assert_allclose(low, [one.low for one in oracle], atol=1e-9)
    np.testing.assert_allclose(high, [one.high for one in oracle], atol=1e-9)


def test_sizes_are_not_examined_while_a_path_has_an_empty_part():
    texts, labels = clean(classes=("a/x", "a/y", "b//z"))
    assert only(check(texts, labels, {"a/x": 0.98, "a/y": 0.01, "b//z": 0.01}, tree=True)).check == "class_tree"


def test_branches_without_labels_are_branches():
    texts, labels = clean(classes=("a/x", "a/y", "b"))
    found = check(texts, labels, {"a": 0.5, "b": 0.3, "c": 0.2, "c/z": 0.1}, tree=True)
    assert [one.check for one in found] == ["names_in_prior"]


LABELED = {"earn": 42, "ship": 28, "trade": 10}


@pytest.mark.parametrize(
    ("stated", "n_rows", "labeled", "names"),
    [
        ({"earn": 51.0}, 5000, LABELED, ["earn"]),
        ({"earn": 51.0, "trade": 12.0}, 5000, LABELED, ["earn", "trade"]),
        ({"earn": 2600.0}, 5000, LABELED, []),  # agrees with the labels
        ({"earn": 10.0}, 5000, LABELED, []),  # neither 10 rows nor 10 % agree
        ({"earn": 51.0}, 120, LABELED, []),  # 43 % is not far below
        ({"earn": 51.0}, 0, LABELED, []),
        ({"earn": 0.0}, 5000, LABELED, []),
        ({"earn": 51.0}, 5000, {"earn": 1, "ship": 1}, []),  # too few labels to say so
        ({"earn": 33.0}, 5000, dict.fromkeys(LABELED, 20), []),  # equal by design
        ({"rec": 60.0}, 5000, {"rec/a": 30, "rec/b": 22, "sci": 28}, ["rec"]),
        ({"earn": 51.0}, 5000, {}, []),
    ],
)
def test_numbers_of_rows_that_were_meant_as_per_cents(stated, n_rows, labeled, names):
    found = list(mistaken_percents(stated, labeled, n_rows))
    assert [sentence.split("=")[0] for sentence, _ in found] == [f"--prior {name}" for name in names]
    for name, (sentence, advice) in zip(names, found, strict=True):
        assert f"Did you mean {stated[name]:g}%?" in sentence
        assert f"{name}=={stated[name]:g} for exactly" in advice


def test_per_cents_that_were_stated_as_rows_are_a_problem():
    texts, labels = clean(n=2000)
    labels[3:7] = ["tea"] * 4  # so that numbers of labels are not equal by design
    found = check(texts, labels, {"tea": 0.02}, plain_rows={"tea": 40.0})
    assert (found[0].severity, found[0].check) == ("problem", "rows_or_percents")
    assert found[0].message.startswith("--prior tea=40 is 40 rows (2.03 %), but ")
