"""Blocks and their scores: worked examples, properties, and seqeval where it is installed."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.sequences import block_scores, blocks, find_scheme
from transduce.sequences.scheme_check import SchemeError, check_known_labels

TAGS = {"BIO": ["O", "B-a", "I-a", "B-b", "I-b"], "BIOES": ["O", *(f"{tag}-{name}" for tag in "BIES" for name in "ab")]}


@pytest.mark.parametrize(
    ("labels", "scheme", "expected"),
    [
        ("", None, []),
        ("a", None, [("a", 0, 1)]),
        ("a a b a", None, [("a", 0, 2), ("b", 2, 3), ("a", 3, 4)]),
        ("O a O", None, [("a", 1, 2)]),
        ("B-a B-a I-a", "BIO", [("a", 0, 1), ("a", 1, 3)]),
        ("I-a I-b O I-b", "BIO", [("a", 0, 1), ("b", 1, 2), ("b", 3, 4)]),
        ("B-a O I-a", "BIO", [("a", 0, 1), ("a", 2, 3)]),
        ("S-a S-a B-a I-a E-a E-a", "BIOES", [("a", 0, 1), ("a", 1, 2), ("a", 2, 5), ("a", 5, 6)]),
        ("B-a-b I-a-b", "BIO", [("a-b", 0, 2)]),
    ],
)
def test_worked_examples(labels, scheme, expected):
    assert [tuple(block) for block in blocks(labels.split(), scheme)] == expected


@given(st.lists(st.sampled_from(["a", "b", "O"])))
def test_blocks_of_plain_labels_cover_all_tokens_but_those_outside(labels):
    found = blocks(labels)
    assert sorted(i for block in found for i in range(block.start, block.end)) == [
        i for i, label in enumerate(labels) if label != "O"
    ]
    assert all(set(labels[block.start : block.end]) == {block.label} for block in found)


@given(st.lists(st.sampled_from(["a", "b"])))
def test_equal_blocks_score_one_and_blocks_of_other_labels_nothing(labels):
    same = block_scores([labels], [labels])
    other = block_scores([labels], [[f"x{label}" for label in labels]])
    assert same.micro.f == same.macro.f == (1.0 if labels else 0.0)
    assert other.micro[:3] == (0.0, 0.0, 0.0)
    assert same.micro.support == other.micro.support == len(blocks(labels))


def test_scores_of_a_worked_example():
    true = [["author", "author", "title", "title"], ["title"]]
    guess = [["author", "author", "title", "year"], ["title"]]
    scores = block_scores(true, guess)
    assert scores.labels["author"] == (1.0, 1.0, 1.0, 1)
    assert scores.labels["title"] == (0.5, 0.5, 0.5, 2)
    assert scores.labels["year"] == (0.0, 0.0, 0.0, 0)
    assert scores.micro == pytest.approx((2 / 4, 2 / 3, 4 / 7, 3))
    assert scores.macro == pytest.approx((0.5, 0.5, 0.5, 3))


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="equal lengths"):
        block_scores([["a"]], [["a", "b"]])


@pytest.mark.parametrize("scheme", TAGS)
def test_blocks_and_scores_are_those_of_seqeval(scheme):
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling", reason="seqeval is not installed")
    pair = st.tuples(st.sampled_from(TAGS[scheme]), st.sampled_from(TAGS[scheme]))

    @given(st.lists(st.lists(pair, min_size=1, max_size=8), min_size=1, max_size=4))
    def check(pairs):
        true, guess = ([[one[side] for one in sequence] for sequence in pairs] for side in (0, 1))
        expected = [(name, start, end + 1) for name, start, end in labeling.get_entities(true[0])]
        assert [tuple(block) for block in blocks(true[0], scheme)] == expected
        scores = block_scores(true, guess, scheme)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about fractions of nothing
            if not scores.labels:
                return
            for average, score in (("micro", scores.micro), ("macro", scores.macro)):
                all_scores = labeling.precision_recall_fscore_support(true, guess, average=average)
                assert score == pytest.approx(tuple(all_scores))

    check()


def test_schemes_are_found_by_their_labels():
    assert find_scheme(TAGS["BIO"]) == "BIO"
    assert find_scheme(TAGS["BIOES"]) == "BIOES"
    assert find_scheme(["E-mail", "A-side"]) is None
    assert find_scheme(["I-a", "E-b"]) is None
    assert find_scheme(["O"]) is None
    assert find_scheme([]) is None


VALID = {
    "BIO": ["B-a I-a O", "B-a B-a I-a", "O B-b", "_ I-a", "B-a _ I-b", "O"],
    "BIOES": ["B-a I-a E-a O", "S-a B-b E-b", "_ E-a", "B-a _"],
}
INVALID = {
    ("BIO", "I-a O"): (0, "'I-a' starts"), ("BIO", "O I-a"): (1, "'I-a' starts"),
    ("BIO", "B-a I-b"): (1, "'I-b' starts"),
    ("BIOES", "O B-a"): (1, "'B-a' ends"), ("BIOES", "B-a O"): (0, "'B-a' ends"),
    ("BIOES", "B-a I-a B-b E-b"): (1, "'I-a' ends"), ("BIOES", "S-a E-a"): (1, "'E-a' starts"),
}  # fmt: skip


def check_labels(text, scheme):
    """Check the labels after a sequence of "O"."""
    given = ["O", *text.split()]
    names = sorted({*given} - {"_"})
    codes = np.array([names.index(label) if label != "_" else -1 for label in given])
    check_known_labels(codes, np.array([0, 1, len(given)]), names, scheme)


@pytest.mark.parametrize(("scheme", "text"), [(scheme, text) for scheme, texts in VALID.items() for text in texts])
def test_valid_labels_pass(scheme, text):
    check_labels(text, scheme)


@pytest.mark.parametrize(("scheme", "text"), INVALID)
def test_labels_that_a_scheme_does_not_allow_are_refused(scheme, text):
    with pytest.raises(SchemeError, match=f"a block, which {scheme} does not allow") as caught:
        check_labels(text, scheme)
    token, problem = INVALID[scheme, text]
    assert (caught.value.sequence, caught.value.token) == (1, token)
    assert caught.value.problem.startswith(problem)
    check_labels(text, None)
