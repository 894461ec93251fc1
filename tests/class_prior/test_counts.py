"""Class counts as they are passed: exact ones, pairs and infinity are read, bad ones explained."""

import re

import numpy as np
import pytest

from transduce.class_prior.counts import count_bounds


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: count_bounds([1, 1], 3, 2), "counts must sum to the number of rows, 3, but sum to 2"),
        (lambda: count_bounds([1, 1, 1], 3, 2), "one number for each of the 2 columns of costs"),
        (lambda: count_bounds([0.5, 2.5], 3, 2), "class 0 has 0.5"),
        (lambda: count_bounds(([2, 0], [1, 3]), 3, 2), "class 0 has low 2 and high 1"),
        (lambda: count_bounds(([2, 2], [3, 3]), 3, 2), "3 rows cannot meet the counts: the low counts sum to 4"),
        (lambda: count_bounds(([0, 0], [1, 1]), 3, 2), "3 rows cannot meet the counts: the high counts sum to 2"),
    ],
)
def test_bad_counts_are_explained_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert re.search(r"\.$", str(caught.value))


def test_bounds_are_exact_counts_or_pairs_and_infinity_is_all_rows():
    for counts in ([2, 1], (2, 1), np.array([2.0, 1.0])):
        low, high = count_bounds(counts, 3, 2)
        assert low.tolist() == high.tolist() == [2, 1]
    low, high = count_bounds(([0, 1], [np.inf, 9]), 3, 2)
    assert (low.tolist(), high.tolist()) == ([0, 1], [3, 3])
    with pytest.raises(TypeError, match="counts must be whole numbers"):
        count_bounds(["a", "b"], 3, 2)
