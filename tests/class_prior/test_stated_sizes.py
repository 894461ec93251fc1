"""Statements in rows: units, sums, counts that include labelled rows, and sizes of branches."""

import numpy as np
import pytest

from transduce.class_prior.resolve import ResolvedPrior
from transduce.class_prior.rounding import counts_from_fractions
from transduce.class_prior.stated_sizes import ROUNDING, read_statement
from transduce.errors import PriorError, PriorErrorKind
from transduce.taxonomy import Taxonomy

NAMES = np.array(["coffee", "milk", "tea"])
LABELS = np.array([0, 0, 0, 1, 1, 2])
TREE = Taxonomy.create(["hot/tea", "hot/coffee/black", "hot/coffee/white", "cold"])
DRINKS = np.array(TREE.labels, dtype=object)
NAN = np.nan


def state(prior, n_rows=1000):
    return read_statement(prior, NAMES, LABELS, n_rows)


def rough_sizes(found):
    return np.where(found.is_rough, found.low, NAN)


def assert_states(found, low, high, rough):
    bounds = found.hard_bounds
    assert (bounds.low.tolist(), bounds.high.tolist()) == (low, high)
    assert rough_sizes(found)[: len(low)] == pytest.approx(np.array(rough, float), nan_ok=True)
    assert (bounds.low.dtype, bounds.high.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize(
    ("prior", "low", "high", "rough"),
    [
        ({"coffee": 0.51}, [0, 0, 0], [1000] * 3, [510, NAN, NAN]),
        ({"coffee": "=51%", "milk": 40}, [510, 40, 0], [510, 40, 1000], [NAN] * 3),
        ({"coffee": "=0.0105"}, [10, 0, 0], [11, 1000, 1000], [NAN] * 3),
        ({"coffee": "~120", "milk": "1/8", "tea": None}, [0] * 3, [1000] * 3, [120, 125, NAN]),
        ({"coffee": (0.1, 0.2), "milk": "100-200", "tea": "?"}, [100, 100, 0], [200, 200, 1000], [NAN] * 3),
        ({"coffee": 300, "milk": 0.1}, [300, 0, 0], [300, 1000, 1000], [NAN, 100, NAN]),
        ([0.5, 0.3, 0.2], [0] * 3, [1000] * 3, [500, 300, 200]),
        ("equal", [0] * 3, [1000] * 3, [1000 / 3] * 3),
        ([0.5, 0.5, 0], [0, 0, 0], [1000, 1000, 0], [500, 500, NAN]),
        (["=50%", "=30%", "=20%"], [500, 300, 200], [500, 300, 200], [NAN] * 3),
        ([1.0, 0, 0], [0] * 3, [1000, 0, 0], [1000, NAN, NAN]),
        ({"coffee": 1}, [1, 0, 0], [1, 1000, 1000], [NAN] * 3),
        ([500, "30%", "20%"], [500, 0, 0], [500, 1000, 1000], [NAN, 300, 200]),
        ({}, [0] * 3, [1000] * 3, [NAN] * 3),
    ],
    ids=repr,
)
def test_exact_sizes_and_ranges_are_bounds_and_rough_sizes_are_not(prior, low, high, rough):
    found = state(prior)
    assert_states(found, low, high, rough)
    assert (found.groups, found.names, found.divided_by) == (None, NAMES.tolist(), None)


@pytest.mark.parametrize("kind", [list, np.array, lambda sizes: dict(zip(NAMES.tolist(), sizes, strict=True))])
def test_counts_are_those_of_the_rows_to_label_or_of_all_rows(kind):
    assert state(kind([500, 300, 200])).low.tolist() == [500, 300, 200]
    assert state(kind([503, 302, 201])).low.tolist() == [500, 300, 200]
    assert state(kind([503.0, 502.0, 1.0])).low.tolist() == [500, 500, 0]
    assert state(kind(["=503", "502", "=1"])).low.tolist() == [500, 500, 0]
    with pytest.raises(PriorError, match=r"counts 1001 rows, but there are 1000 rows to label and 1006 with the label"):
        state(kind([501, 300, 200]))
    with pytest.raises(PriorError, match="gives 'coffee' 2 of them, but 3 are labelled so already"):
        state(kind([2, 1003, 1]))


def test_counts_of_some_classes_are_rows_to_label():
    assert state({"coffee": 503, "milk": 302}).low.tolist() == [503, 302, 0]
    assert state({"coffee": 100}).low.tolist() == [100, 0, 0]


@pytest.mark.parametrize(
    "sizes", [[60, 39, 1], ["60", "39", "1"], [60.0, 39.5, 0.5], [60, 40, 0], [61, 39, 1], [59, 39, 1]]
)
def test_a_column_that_sums_to_100_is_per_cents(sizes):
    for prior in (sizes, dict(zip(NAMES.tolist(), sizes, strict=True))):
        numbers = np.array(sizes, float)
        found = state(prior)
        expected = np.where(numbers > 0, 1000 * numbers / numbers.sum(), NAN)
        assert rough_sizes(found) == pytest.approx(expected, nan_ok=True)
        assert not found.in_rows


def test_counts_win_over_per_cents():
    assert state([60, 39, 1], 100).low.tolist() == [60, 39, 1]
    assert state([60, 38, 2], 94).low.tolist() == [57, 36, 1]
    assert rough_sizes(state([60, 39, 1], 101)) == pytest.approx([60.6, 39.39, 1.01])
    for prior in (["60", "39", "=1"], [60, 38, 4], [50, 48, 0.5]):  # a sign, or another sum
        with pytest.raises(PriorError):
            state(prior)


@pytest.mark.parametrize("sizes", [[0.33, 0.33, 0.33], [0.5, 0.3, 0.22], ["33%", "33%", "33%"], ["=0.33"] * 3])
def test_rounded_fractions_are_divided_by_their_sum(sizes):
    found = state(sizes)
    total = sum(float(str(size).strip("=%")) for size in sizes) / (100 if "33%" in sizes else 1)
    assert found.divided_by == pytest.approx(total)
    if "=0.33" in sizes:
        assert found.low.tolist() == found.high.tolist()
        assert found.low.sum() == 1000
    else:
        assert rough_sizes(found).sum() == pytest.approx(1000)
    if sizes[0] == 0.5:
        assert rough_sizes(found) == pytest.approx(np.array(sizes) * 1000 / total)


def test_a_few_fractions_that_sum_to_slightly_more_than_1_are_divided_too():
    found = state({"coffee": 0.71, "milk": 0.3})
    assert rough_sizes(found)[:2].sum() == pytest.approx(1000)
    with pytest.raises(PriorError) as caught:
        state({"coffee": 0.71, "milk": 0.29 + ROUNDING + 0.001})
    assert caught.value.kind is PriorErrorKind.SUM_OF_SOME
    assert caught.value.fractions == pytest.approx([0.71, 0.29 + ROUNDING + 0.001])


def test_exact_fractions_of_all_classes_become_the_nearest_counts():
    rng = np.random.default_rng(0)
    for _ in range(100):
        k, n = int(rng.integers(1, 20)), int(rng.integers(1, 5000))
        names, fractions = np.arange(k), rng.dirichlet(np.full(k, 0.5))
        counts = counts_from_fractions(fractions, n).tolist()
        exact = [f"={x!r}" for x in fractions.tolist()]
        for prior in (exact, dict(enumerate(exact))):
            found = read_statement(prior, names, names, n)
            assert found.all_exact
            assert found.low.tolist() == counts
        assert read_statement(fractions, names, names, n).low == pytest.approx(n * fractions)


def test_exact_sizes_beside_rough_ones_are_the_nearest_whole_numbers():
    rng = np.random.default_rng(1)
    for _ in range(200):
        k, n = int(rng.integers(2, 9)), int(rng.integers(20, 400))
        fractions, is_exact = rng.dirichlet(np.ones(k)), rng.random(k) < 0.5
        texts = [f"={x!r}" if exact else f"{x!r}" for exact, x in zip(is_exact, fractions.tolist(), strict=True)]
        found = read_statement(texts, np.arange(k), np.arange(k), n)
        assert np.array_equal(found.low[is_exact], found.high[is_exact])
        assert np.all(np.abs(found.low - n * fractions)[is_exact] < 1)
        assert (~found.is_rough).tolist() == is_exact.tolist()
        assert found.hard_bounds.low.sum() <= n <= found.hard_bounds.high.sum()


def test_no_rows_to_label_need_no_sum():
    assert_states(state([0.1, 0.1, 0.1], 0), [0] * 3, [0] * 3, [NAN] * 3)
    with pytest.raises(PriorError):
        state([0.1, 0.1], 0)


def test_branches_are_hard_groups_or_rough():
    found = read_statement({"hot": "79%", "hot/coffee": (0.1, 0.3), "cold": 20}, DRINKS, np.arange(4), 100, TREE)
    assert_states(found, [0, 0, 0, 20], [100, 100, 100, 20], [NAN] * 4)
    assert (found.groups.names, found.groups.low.tolist(), found.groups.high.tolist()) == (("hot/coffee",), [10], [30])
    assert (found.names[4:], found.is_rough[4:].tolist()) == (["hot", "hot/coffee"], [True, False])
    assert (found.members[4].tolist(), found.low[4]) == ([True, True, True, False], pytest.approx(80))
    assert found.divided_by == pytest.approx(0.99)


@pytest.mark.parametrize("prior", [{"hot": 90, "hot/tea": 30, "cold": 10}, {"hot": 0.9, "hot/tea": 0.3, "cold": 0.1}])
def test_only_the_topmost_sizes_sum_to_all_rows(prior):
    found = read_statement(prior, DRINKS, np.arange(4), 1000, TREE)
    assert rough_sizes(found) == pytest.approx([300, NAN, NAN, 100, 900], nan_ok=True)


def test_counts_of_branches_may_include_labelled_rows():
    prior = {"hot": 93, "hot/tea": 31, "hot/coffee": (50, 80), "cold": 11}
    found = read_statement(prior, DRINKS, np.arange(4), 100, TREE)
    assert_states(found, [30, 0, 0, 10], [30, 100, 100, 10], [NAN] * 4)
    assert (found.groups.low.tolist(), found.groups.high.tolist()) == ([48, 90], [78, 90])


def test_a_branch_of_unknown_size_says_nothing():
    found = read_statement({"hot": None, "hot/tea": 0.3}, DRINKS, np.arange(4), 100, TREE)
    assert (found.groups, found.names, found.low[0]) == (None, list(TREE.labels), pytest.approx(30))


def test_a_branch_of_flat_classes_comes_with_its_classes():
    with pytest.raises(PriorError, match="'hot/coffee', which is not a class but a branch with 'hot/coffee/black' and"):
        read_statement({"hot/coffee": 0.5}, DRINKS, np.arange(4), 100)


@pytest.mark.parametrize(("name", "near"), [("hot/", "hot"), ("hot/te", "hot/tea"), (("hot", "cofee"), "hot/coffee")])
def test_an_unknown_class_comes_with_the_nearest_name(name, near):
    with pytest.raises(PriorError) as caught:
        read_statement({name: 0.5}, DRINKS, np.arange(4), 100, TREE)
    assert caught.value.kind is PriorErrorKind.UNKNOWN_CLASS
    assert caught.value.hint == f" Did you mean {near!r}?"


@pytest.mark.parametrize(
    ("prior", "in_rows"),
    [([500, 300, 200], True), ({"tea": "~120"}, True), ({"tea": "5:9"}, True), ([0.5, 0.5, 0], False), ("equal", False),
     ([60, 30, 10], False), ({"tea": 0}, False), ({"tea": (0, 1)}, False)],
)  # fmt: skip
def test_a_statement_says_whether_sizes_are_in_rows(prior, in_rows):
    assert state(prior).in_rows is in_rows


def test_a_resolved_prior_has_the_statement_and_its_bounds():
    resolved = ResolvedPrior.create({"tea": "=20%"}, NAMES, LABELS, 1000)
    bounds = resolved.bounds(resolved.from_labels())
    assert resolved.statement.hard_bounds.low.tolist() == bounds.low.tolist() == [0, 0, 200]
    assert bounds.belief.mean[2] == pytest.approx(200)
    for keyword in ("labeled", "estimate"):
        statement = ResolvedPrior.create(keyword, NAMES, LABELS, 1000).statement
        assert_states(statement, [0] * 3, [1000] * 3, [NAN] * 3)


def test_any_sizes_are_refused_or_give_bounds_that_can_be_met():
    rng, nodes, refused = np.random.default_rng(2), [*TREE.labels, "hot", "hot/coffee"], 0
    spellings = [0.3, "=30%", "1/77", "~12", 12, "5:9", (0.1, 0.4), None, 0, 1, 1.0, "~0", 60, 40, (1, np.inf), "=0.25"]
    for _ in range(3000):
        chosen = rng.choice(len(nodes), rng.integers(1, 7), replace=False)
        prior = {nodes[j]: spellings[rng.integers(len(spellings))] for j in chosen}
        n, labels = int(rng.choice([1, 12, 100, 1000])), rng.integers(0, 4, rng.integers(1, 8))
        try:
            low, high, groups, _ = read_statement(prior, DRINKS, labels, n, TREE).hard_bounds
        except PriorError:
            refused += 1
            continue
        assert np.all((low >= 0) & (low <= high) & (high <= n)), prior
        assert low.sum() <= n <= high.sum(), prior
        assert groups is None or groups.find_conflict(low, high, n) is None, prior
    assert 500 < refused < 2500
