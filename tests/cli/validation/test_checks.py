"""Findings of all checks: none for clean documents, sorted, in work that is linear in the rows."""

import json
import random

import pytest
from helpers.checked_documents import WORDS, check, clean, only
from helpers.growth import QUADRATIC, growth

from transduce.cli.validation import Finding, as_json, render_findings
from transduce.cli.validation.findings import row_list


def test_clean_documents_have_no_findings():
    texts, labels = clean()
    assert check(texts, labels) == []
    assert check(texts, labels, {"tea": (0.3, 0.3), "coffee": (0.3, 0.4), "cocoa": (0.4, 0.4)}) == []
    assert check(texts, [label and f"drinks/{label}" for label in labels], tree=True) == []


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
    assert render_findings([]) == ""


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


def test_the_line_of_the_first_row_is_named_where_each_row_is_a_line():
    texts, labels = clean()
    texts[40], texts[41] = "", " "
    plain, with_lines = (only(check(texts, labels, row_is_line=lines)).message for lines in (False, True))
    assert plain == "2 of 60 texts are empty (rows 41 and 42)."
    assert with_lines == "2 of 60 texts are empty (rows 41 and 42; row 41 is line 42 of the file)."


def test_lists_of_rows_are_sorted_and_short():
    listed = [row_list([7]), row_list([7, 2]), row_list(range(1, 101))]
    assert listed == ["row 7", "rows 2 and 7", "rows 1, 2, 3, 4, 5 and 95 more"]
