"""Sentences that compare stated class sizes with those that the texts suggest."""

import numpy as np
import pytest

from transduce.cli.report.size_sentences import compare_sizes, percent_text, size_sentence


@pytest.mark.parametrize(
    ("stated", "suggested", "sentence"),
    [
        ((0.12, 0.12), (0.08, 0.10), "your 12 % looks high: the texts suggest 8 to 10 %"),
        ((0.12, 0.12), (0.15, 0.20), "your 12 % looks low: the texts suggest 15 to 20 %"),
        ((0.09, 0.09), (0.08, 0.10), "your 9 % looks right: the texts suggest 8 to 10 %"),
        ((0.12, 0.12), (0.08, 0.08), "your 12 % looks high: the texts suggest about 8 %"),
        ((0.003, 0.003), (0.001, 0.002), "your 0.3 % looks high: the texts suggest 0.1 to 0.2 %"),
        ((0.11, 0.14), (0.08, 0.10), "your 11 to 14 % looks high: the texts suggest 8 to 10 %"),
        ((0.05, 0.14), (0.08, 0.10), "your 5 to 14 % looks right: the texts suggest 8 to 10 %"),
        ((0.1204, 0.1204), (0.08, 0.12), "your 12 % looks right: the texts suggest 8 to 12 %"),
        ((0.0, 0.0), (0.02, 0.03), "your 0 % looks low: the texts suggest 2 to 3 %"),
        ((0.01, 0.01), (1e-7, 1e-7), "your 1 % looks high: the texts suggest under 0.001 %"),
        ((0.01, 0.01), (float("nan"), 0.1), "the texts do not suggest a size"),
        (None, (0.08, 0.10), "you stated no size; the texts suggest 8 to 10 %"),
        (None, (float("nan"), 0.1), "you stated no size; the texts suggest none"),
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


def test_percent_has_two_digits():
    for proportion in np.geomspace(1e-5, 1.0, 400):
        shown = float(percent_text(proportion).split()[0])
        assert shown == pytest.approx(100 * proportion, rel=0.051)
    assert percent_text(0.9999) == "99.9 %"
    assert percent_text(1.0) == "100 %"
