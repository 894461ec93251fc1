"""Sentences that compare stated class sizes with those that the texts suggest."""

import re

import numpy as np
import pytest

from transduce.cli.size_sentences import compare_class, compare_sizes, percent_text, size_sentence


@pytest.mark.parametrize(
    ("stated", "suggested", "sentence"),
    [
        ((0.12, 0.12), (0.08, 0.10), "your 12 % looks high: the texts suggest 8 to 10 %"),
        ((0.12, 0.12), (0.15, 0.20), "your 12 % looks low: the texts suggest 15 to 20 %"),
        ((0.09, 0.09), (0.08, 0.10), "your 9 % looks right: the texts suggest 8 to 10 %"),
        ((0.12, 0.12), (0.08, 0.08), "your 12 % looks high: the texts suggest about 8 %"),
        ((0.6, 0.6), (0.0724, 0.15), "your 60 % looks high: the texts suggest 7 to 15 %"),
        ((0.025, 0.025), (0.0724, 0.15), "your 2.5 % looks low: the texts suggest 7.2 to 15.0 %"),
        ((0.2, 0.2), (0.004, 0.15), "your 20.0 % looks high: the texts suggest 0.4 to 15.0 %"),
        ((0.0704, 0.0704), (0.03, 0.068), "your 7.0 % looks high: the texts suggest 3.0 to 6.8 %"),
        ((0.003, 0.003), (0.001, 0.002), "your 0.3 % looks high: the texts suggest 0.1 to 0.2 %"),
        ((0.11, 0.14), (0.08, 0.10), "your 11 to 14 % looks high: the texts suggest 8 to 10 %"),
        ((0.05, 0.14), (0.08, 0.10), "your 5 to 14 % looks right: the texts suggest 8 to 10 %"),
        ((0.1204, 0.1204), (0.08, 0.12), "your 12 % looks right: the texts suggest 8 to 12 %"),
        ((0.0, 0.0), (0.02, 0.03), "your 0 % looks low: the texts suggest 2 to 3 %"),
        ((0.01, 0.01), (1e-7, 1e-7), "your 1 % looks high: the texts suggest under 0.001 %"),
        ((0.01, 0.01), (float("nan"), 0.1), "the texts do not suggest a size"),
    ],
)
def test_size_sentence(stated, suggested, sentence):
    assert size_sentence(stated, suggested) == sentence


def test_high_and_low_mirror_each_other():
    rng = np.random.default_rng(0)
    mirror = {"high": "low", "low": "high", "right": "right"}
    for _ in range(300):
        stated, suggested = (
            tuple(sorted(pair)) for pair in (rng.random((2, 2)) * 10.0 ** rng.integers(-5, 1)).tolist()
        )
        assert compare_sizes(stated, suggested) == mirror[compare_sizes(suggested, stated)]


def test_a_sentence_has_one_number_of_decimals_and_shows_what_it_says():
    rng = np.random.default_rng(1)
    for _ in range(500):
        stated, suggested = (
            tuple(sorted(pair))
            for pair in (rng.uniform(0.1, 1.0, (2, 2)) * 10.0 ** rng.integers(-4, 1, (2, 1))).tolist()
        )
        verdict, sentence = compare_sizes(stated, suggested), size_sentence(stated, suggested)
        assert len({len(number.partition(".")[2]) for number in re.findall(r"\d+\.?\d*", sentence)}) == 1
        before, after = ([float(n) for n in re.findall(r"\d+\.?\d*", part)] for part in sentence.split("looks"))
        assert f"looks {verdict}" in sentence
        assert verdict != "high" or before[0] > after[-1]
        assert verdict != "low" or before[-1] < after[0]


def size_of(**stated):
    return {"class": "tea", "asked_low": 0, "asked_high": 200, "texts_low": 0.06, "texts_high": 0.13, **stated}


@pytest.mark.parametrize(
    ("stated", "verdict", "is_far"),
    [
        ({"rough": 120.0}, "high", True),
        ({"rough": 2.0}, "low", True),
        ({"rough": 20.0}, "right", False),
        ({"rough": 30.0}, "right", False),  # a little outside
        ({"asked_low": 30, "asked_high": 30}, "high", False),  # an exact size that is a little outside
        ({"asked_low": 40, "asked_high": 50}, "high", True),
    ],
)
def test_only_sizes_that_are_clearly_outside_are_far(stated, verdict, is_far):
    found = compare_class(size_of(**stated), 200, is_stated=True)
    assert (found.verdict, found.is_far) == (verdict, is_far)
    assert found.suggestion == "6 to 13 %"
    without = compare_class(size_of(**stated), 200, is_stated=False)
    assert (without.verdict, without.is_far) == ("unstated", False)


def test_percent_has_two_digits():
    for proportion in np.geomspace(1e-5, 1.0, 400):
        shown = float(percent_text(proportion).split()[0])
        assert shown == pytest.approx(100 * proportion, rel=0.051)
    assert percent_text(0.9999) == "99.9 %"
    assert percent_text(1.0) == "100 %"
