"""Stated sizes combined with an estimate: precisions, classes without a size, branches, and hard bounds."""

import numpy as np
import pytest

from transduce.class_prior.estimation import SizeEstimate
from transduce.class_prior.stated_sizes import read_statement
from transduce.class_prior.statement import ROUGHNESS
from transduce.taxonomy import Taxonomy

NAMES = np.array(["cocoa", "coffee", "tea"])
TREE = Taxonomy.create(["hot/tea", "hot/coffee", "cold/milk", "cold/juice"])
DRINKS = np.array(TREE.labels, dtype=object)
N = 1000


def state(prior, names=NAMES, tree=None):
    return read_statement(prior, names, np.arange(names.size), N, tree)


def estimate(mean, deviation=0.05):
    return SizeEstimate(np.array(mean), np.full(len(mean), deviation))


def test_nothing_stated_changes_nothing():
    before = estimate([0.2, 0.3, 0.5])
    after = state({}).combine(before)
    np.testing.assert_allclose(after.mean, before.mean)
    np.testing.assert_allclose(after.deviation, before.deviation)


@pytest.mark.parametrize("deviation", [0.005, 0.03, 0.3])
def test_a_rough_size_and_the_estimate_count_by_their_precision(deviation):
    after = state({"tea": 0.6}).combine(estimate([0.2, 0.5, 0.3], deviation))
    of_estimate, of_size = (0.3 / deviation) ** 2, 1 / ROUGHNESS**2
    expected = np.exp((of_estimate * np.log(0.3) + of_size * np.log(0.6)) / (of_estimate + of_size))
    assert after.mean[2] == pytest.approx(expected)
    assert after.deviation[2] <= deviation


def test_a_precise_estimate_wins_over_a_rough_size_and_an_imprecise_one_yields():
    sizes = [state({"tea": 0.6}).combine(estimate([0.2, 0.5, 0.3], each)).mean[2] for each in (0.001, 0.03, 0.1, 1.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] == pytest.approx(0.3, abs=0.01)
    assert sizes[-1] == pytest.approx(0.6, abs=0.01)


def test_classes_without_a_size_keep_their_proportions():
    before = estimate([0.1, 0.2, 0.3, 0.4])
    names = np.array(["a", "b", "c", "d"])
    for prior in ({"d": 0.8}, {"d": "=80%"}, {"d": (0.7, 0.9)}, {"d": 0}):
        after = state(prior, names).combine(before).mean
        np.testing.assert_allclose(after[:3] / after[:3].sum(), before.mean[:3] / 0.6, rtol=1e-6)


def test_sizes_of_all_classes_are_pooled_and_sum_to_1():
    after = state([0.5, 0.3, 0.2]).combine(estimate([0.3, 0.3, 0.4], 0.2)).mean
    assert after.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(after, [0.5, 0.3, 0.2], atol=0.04)


def test_exact_sizes_are_certain():
    after = state({"tea": 300, "coffee": 0.5}).combine(estimate([0.3, 0.3, 0.4], 0.2))
    assert after.mean[2] == pytest.approx(0.3)
    assert after.deviation[2] == 0
    assert after.low[2] == pytest.approx(0.3, abs=1e-6)


def test_ranges_bind_only_where_the_estimate_is_outside():
    before = estimate([0.2, 0.3, 0.5])
    np.testing.assert_allclose(state({"tea": (0.4, 0.6)}).combine(before).mean, before.mean)
    assert state({"tea": (0.1, 0.4)}).combine(before).mean == pytest.approx([0.24, 0.36, 0.4])
    assert state({"tea": (0.75, 1.0)}).combine(before).mean == pytest.approx([0.1, 0.15, 0.75])


def test_ranges_win_over_rough_sizes_that_contradict_them():
    after = state({"cocoa": (0.1, 0.2), "coffee": (0.1, 0.2), "tea": 0.1}).combine(estimate([0.3, 0.3, 0.4])).mean
    assert after == pytest.approx([0.2, 0.2, 0.6])


def test_branches_are_met_and_their_classes_keep_their_proportions():
    before = estimate([0.1, 0.3, 0.2, 0.4], 1.0)
    for prior, size in (({"hot": 0.8}, 0.8), ({"hot": "=80%"}, 0.8), ({"hot": (0.6, 0.9)}, 0.6)):
        after = state(prior, DRINKS, TREE).combine(before).mean
        hot = np.array([str(name).startswith("hot") for name in DRINKS])
        assert after[hot].sum() == pytest.approx(size, abs=0.01)
        for branch in (hot, ~hot):
            own = before.mean[branch] / before.mean[branch].sum()
            np.testing.assert_allclose(after[branch] / after[branch].sum(), own, rtol=1e-6)


def test_a_class_inside_a_branch_may_have_a_size_too():
    after = state({"hot": (0.6, 0.6), "hot/tea": "=50%"}, DRINKS, TREE).combine(estimate([0.25] * 4)).mean
    sizes = dict(zip(DRINKS.tolist(), after.tolist(), strict=True))
    assert sizes == pytest.approx({"hot/tea": 0.5, "hot/coffee": 0.1, "cold/milk": 0.2, "cold/juice": 0.2})


def test_any_statement_gives_sizes_within_its_bounds():
    rng, nodes = np.random.default_rng(0), [*TREE.labels, "hot", "cold"]
    spellings = [0.2, "=20%", "1/7", 120, (0.1, 0.4), (0.05, 0.3), None, 0]
    n_read = 0
    for _ in range(300):
        chosen = rng.choice(len(nodes), rng.integers(1, 5), replace=False)
        try:
            found = state({nodes[j]: spellings[rng.integers(len(spellings))] for j in chosen}, DRINKS, TREE)
        except ValueError:
            continue
        n_read += 1
        rows = N * found.combine(estimate(rng.dirichlet(np.ones(4)), 0.05)).mean
        assert rows.sum() == pytest.approx(N)
        sums = found.members @ rows
        assert np.all(((sums >= found.low - 0.2) & (sums <= found.high + 0.2))[~found.is_rough])
    assert n_read > 100


def test_likely_bounds_allow_rough_sizes_two_deviations():
    found = state({"hot": 0.5, "hot/tea": 0.2, "cold": (0.4, 0.7)}, DRINKS, TREE).likely_bounds()
    tea = DRINKS.tolist().index("hot/tea")
    assert (found.low[tea], found.high[tea]) == (163, 245)
    assert dict(zip(found.groups.names, zip(found.groups.low, found.groups.high, strict=True), strict=True)) == {
        "hot": (409, 611),
        "cold": (400, 700),
    }
