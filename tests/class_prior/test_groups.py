"""Nested groups of classes: conflicts against enumeration, levels, centres and error messages."""

import re
from itertools import product

import numpy as np
import pytest

from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups

TWO = Groups([2, 2, 3], [0], [1])


def possible_counts(groups, low, high, n_rows):
    """All counts of the classes that meet every bound, by enumeration."""
    members = groups.members(low.size)
    for counts in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
        sums = members @ np.array(counts)
        if sum(counts) == n_rows and np.all((groups.low <= sums) & (sums <= groups.high)):
            yield counts


def random_bounds(rng):
    """Three classes and two groups, one within the other or beside it."""
    above = [[3, 3, 4, 4, 5], [3, 3, 4, 5, 5], [5, 3, 3, 4, 5]][rng.integers(3)]
    group_low, low = rng.integers(0, 4, 2), rng.integers(0, 3, 3)
    groups = Groups(above, group_low, group_low + rng.integers(0, 3, 2))
    return groups, low, low + rng.integers(0, 3, 3), int(rng.integers(0, 9))


def test_a_conflict_is_found_exactly_where_no_counts_are_possible():
    rng, n_conflicts = np.random.default_rng(0), 0
    for _ in range(300):
        groups, low, high, n_rows = random_bounds(rng)
        conflict = groups.find_conflict(low, high, n_rows)
        assert (conflict is None) == any(possible_counts(groups, low, high, n_rows))
        if conflict is not None:
            n_conflicts += 1
            assert conflict.needed > conflict.high or conflict.allowed < conflict.low
            assert conflict.is_too_small == (conflict.needed > conflict.high)
            with pytest.raises(ValueError, match="Change some of these counts"):
                groups.check(low, high, n_rows)
    assert 0 < n_conflicts < 300


def test_levels_are_partitions_of_the_classes():
    groups = Groups([5, 5, 6, 7, 7, 6, 8, 8], [0] * 3, [9] * 3)
    members = np.vstack((np.eye(5, dtype=bool), groups.members(5)))
    levels = list(groups.levels())
    assert all(np.all(members[nodes].sum(axis=0) == 1) for nodes in levels)
    assert levels[-1].tolist() == [0, 1, 2, 3, 4]
    assert levels[0].tolist() == [6, 7]


def test_the_center_follows_the_groups():
    groups = Groups([3, 3, 4, 4], [30], [30])
    proportions = Bounds(np.zeros(3, int), np.full(3, 90), groups).center(90)
    np.testing.assert_allclose(proportions, [1 / 6, 1 / 6, 2 / 3])


def test_the_center_of_a_belief_meets_all_bounds():
    rng, n_possible = np.random.default_rng(1), 0
    for _ in range(300):
        groups, low, high, n_rows = random_bounds(rng)
        if groups.find_conflict(low, high, n_rows) is None:
            belief = Belief.create(rng.gamma(1.0, size=3) + 0.01, 1.0)
            counts = n_rows * Bounds(low, high, groups, belief).center(n_rows)
            nodes = np.concatenate((counts, groups.members(3) @ counts, [counts.sum()]))
            assert np.all(nodes >= np.concatenate((low, groups.low, [n_rows])) - 1e-6)
            assert np.all(nodes <= np.concatenate((high, groups.high, [n_rows])) + 1e-6)
            n_possible += 1
    assert n_possible > 20


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Groups([2, 2, 3], [2], [1]), "group 0 has low 2 and high 1"),
        (
            lambda: Groups([2, 2, 3], [-1], [1]),
            "low counts of groups must be whole numbers, 0 or more, but group 0 has -1",
        ),
        (
            lambda: Groups([2, 2, 3], [0.5], [1]),
            "low counts of groups must be whole numbers, 0 or more, but group 0 has 0.5",
        ),
        (lambda: Groups([2, 2, 3], [0], [1, 2]), "one number for each of the 1 groups"),
        (lambda: Groups([2, 2, 2], [0], [1]), "node 2 is part of 2"),
        (lambda: Groups([1, 2, 3], [0], [1]), "node 0 is part of 1"),
        (lambda: Groups([2, 5, 3], [0], [1]), "node 1 is part of 5"),
        (lambda: Groups([1], [0], [1]), "above must be whole numbers"),
        (
            lambda: Groups([4, 4, 4, 4], [1], [1]),
            "group 0 must get at least 1 rows, but no class is part of it. Name node 3",
        ),
        (lambda: Groups([2, 2, 3], [0], [1], ("hot", "cold")), "names must be one for each of the 1 groups"),
        (lambda: Groups([2.0, 2.0, 3.0], [0], [1]), "above must be whole numbers"),
        (lambda: TWO.members(3), "groups must be those of the 3 classes there are, but are of 2"),
    ],
)
def test_bad_groups_are_explained_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert re.search(r"\.$", str(caught.value))
