"""Class sizes as users state them: equivalent forms, beliefs, ranges, inner nodes, errors."""

import re

import numpy as np
import pytest

from transduce.class_prior.estimation import SizeEstimate
from transduce.class_prior.resolve import LABELS_PER_STRENGTH, STRENGTHS, ResolvedPrior
from transduce.class_prior.rounding import counts_from_fractions
from transduce.errors import PriorError, PriorErrorKind
from transduce.taxonomy import Taxonomy

NAMES = np.array(["tea", "coffee", "milk"])
LABELS = np.array([0, 0, 0, 1, 1, 2])


def prior_bounds(prior, names, labels, n_rows, weights=None, taxonomy=None, forbidden=None):
    """Bounds and belief from a prior and the labels alone."""
    resolved = ResolvedPrior.create(prior, names, labels, n_rows, weights, taxonomy, forbidden)
    return resolved.bounds(resolved.from_labels())


def believed(prior, *data):
    """Believed counts, rounded."""
    return prior_bounds(prior, *data).belief.mean.round(6).tolist()


@pytest.mark.parametrize(
    ("prior", "counts"),
    [
        (["=25%", "=50%", "=25%"], [3, 6, 3]),
        ((3, 9, 0), [3, 9, 0]),
        (np.array([3.0, 9.0, 0.0]), [3, 9, 0]),
        ({"milk": "=0.25", "tea": "=0.75", "coffee": 0}, [9, 0, 3]),
        ({"milk": 1, "tea": 11, "coffee": 0}, [11, 0, 1]),
    ],
)
def test_equivalent_exact_sizes_have_the_same_bounds(prior, counts):
    low, high, groups, belief = prior_bounds(prior, NAMES, LABELS, 12)
    assert low.tolist() == high.tolist() == counts
    assert low.dtype == np.int64
    assert (groups, belief) == (None, None)


@pytest.mark.parametrize(
    "prior",
    [
        [0.25, 0.5, 0.25],
        np.array([0.25, 0.5, 0.25], dtype=np.float32),
        ["25%", "1/2", "~3"],
        {"milk": 0.25, "tea": 0.25, "coffee": 0.5},
    ],
    ids=repr,
)
def test_equivalent_rough_sizes_have_the_same_belief(prior):
    bounds = prior_bounds(prior, NAMES, LABELS, 12)
    assert (bounds.low.tolist(), bounds.high.tolist()) == ([0] * 3, [12] * 3)
    assert believed(prior, NAMES, LABELS, 12) == believed([0.25, 0.5, 0.25], NAMES, LABELS, 12)
    assert bounds.belief.mean.sum() == pytest.approx(12)
    assert np.all((bounds.belief.strength >= STRENGTHS[0]) & (bounds.belief.strength <= STRENGTHS[1]))


def test_a_belief_is_as_strong_as_the_labels_that_would_be_as_precise():
    prior = ResolvedPrior.create("estimate", NAMES, LABELS, 1000)
    mean = np.array([0.2, 0.3, 0.5])
    for n_labels in (1, 10 * LABELS_PER_STRENGTH, 1e6):
        estimate = SizeEstimate(mean, np.sqrt(mean * (1.0 - mean) / n_labels))
        expected = np.clip(n_labels / LABELS_PER_STRENGTH, *STRENGTHS)
        np.testing.assert_allclose(prior.bounds(estimate).belief.strength, expected, rtol=1e-6)


def test_exact_fractions_become_counts_that_sum_to_the_rows():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, k = int(rng.integers(0, 5000)), int(rng.integers(1, 20))
        fractions = rng.dirichlet(np.full(k, 0.5))
        names, labels = np.arange(k), np.minimum(rng.geometric(0.3, size=50) - 1, k - 1)
        found = prior_bounds([f"={x!r}" for x in fractions.tolist()], names, labels, n).low
        assert found.tolist() == counts_from_fractions(fractions, n).tolist()
        if n:
            assert prior_bounds(found, names, labels, n).low.tolist() == found.tolist()


def test_beliefs_sum_to_the_rows():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, k = int(rng.integers(100, 5000)), int(rng.integers(1, 20))
        names, labels = np.arange(k), np.minimum(rng.geometric(0.3, size=50) - 1, k - 1)
        for prior in (rng.dirichlet(np.full(k, 2.0)), "labeled", "estimate", {0: 0.5}):
            if k > 1:
                belief = prior_bounds(prior, names, labels, n).belief
                assert belief.mean.sum() == pytest.approx(n, abs=0.5 * k)


def test_one_row_is_both_a_count_and_a_fraction():
    assert prior_bounds([0, 1, 0], NAMES, LABELS, 1).low.tolist() == [0, 1, 0]


def test_no_unlabelled_rows_need_no_counts():
    for prior in ("labeled", [0.5, 0.25, 0.25]):
        assert prior_bounds(prior, NAMES, LABELS, 0).high.tolist() == [0, 0, 0]


def test_labels_are_believed_the_more_the_more_there_are():
    distances = []
    for times in (1, 10, 100):
        bounds = prior_bounds("labeled", NAMES, np.repeat(LABELS, times), 6000)
        assert (bounds.low.tolist(), bounds.high.tolist()) == ([0] * 3, [6000] * 3)
        distances.append(np.abs(bounds.belief.mean - [3000, 2000, 1000]).sum())
    assert distances[0] > distances[1] > 2 * distances[2]


def test_labels_that_were_not_drawn_at_random_say_nothing_about_sizes():
    labels = np.repeat(np.arange(3), [40, 15, 5])
    few, some = np.arange(60) < 5, np.arange(60) >= 30
    sizes = [
        ResolvedPrior.create("estimate", NAMES, labels, 600, sampled=sampled).from_labels()
        for sampled in (None, np.ones(60, bool), some, few)
    ]
    np.testing.assert_array_equal(sizes[0].mean, sizes[1].mean)
    assert sizes[0].mean[0] > 0.6
    assert sizes[2].mean[0] < 0.45  # of 30 labels drawn at random
    assert sizes[3] is None
    equal = np.repeat(np.arange(3), 20)  # equal by design
    assert not ResolvedPrior.create("estimate", NAMES, equal, 600).sampled.any()
    assert ResolvedPrior.create("estimate", NAMES, equal, 600, sampled=np.ones(60, bool)).sampled.all()


def test_weights_of_labels_count():
    heavy = believed("labeled", NAMES, LABELS, 600, np.array([9.0, 9.0, 9.0, 1.0, 1.0, 1.0]))
    plain = believed("labeled", NAMES, LABELS, 600)
    assert heavy[0] > plain[0]
    assert believed("labeled", NAMES, LABELS, 600, np.full(6, 7.0)) == pytest.approx(plain)


def test_beliefs_respect_partial_labels():
    forbidden = np.zeros((600, 3), bool)
    forbidden[:300, 0] = True
    restricted = prior_bounds("labeled", NAMES, LABELS, 600, forbidden=forbidden).belief.mean
    free = prior_bounds("labeled", NAMES, LABELS, 600).belief.mean
    assert restricted[0] == pytest.approx(free[0] / 2)
    assert restricted[1] / restricted[2] == pytest.approx(free[1] / free[2])


def test_names_may_be_numbers():
    assert prior_bounds({7: "=50%", 3: "=50%"}, np.array([3, 7]), np.array([0, 1]), 3).low.tolist() == [2, 1]


def test_a_prior_is_not_modified():
    prior = np.array([0.25, 0.5, 0.25])
    prior_bounds(prior, NAMES, LABELS, 7)
    assert prior.tolist() == [0.25, 0.5, 0.25]


@pytest.mark.parametrize(
    ("prior", "kind", "fields"),
    [
        ("same", "KEYWORD", {"value": "same"}),
        (None, "NONE", {}),
        ([0.5, 0.5], "SHAPE", {"n_classes": 3, "n_sizes": 2}),
        ([(0.1, 0.5)] * 2, "SHAPE", {"n_classes": 3, "n_sizes": 2}),
        (0.5, "NOT_SIZES", {"value": 0.5}),
        ([0.5, 0.5, 0.5], "SUM", {"total": 1.5, "n_rows": 12}),
        ({"tea": 0.5, "coffee": 0.2, "milk": 0.5}, "SUM", {"total": 1.2}),
        ({"tea": 0.5, "coffee": 0.7}, "SUM_OF_SOME", {"total": 1.2}),
        ({"tea": "=50%", "coffee": "=20%", "milk": 0}, "SUM", {"total": 0.7}),
        ({"tea": "~6", "coffee": "~6", "milk": "~6"}, "SUM", {"total": 1.5}),
        ({"tea": 0.5, "coffee": (8, 12), "milk": None}, "SUM_OF_SOME", {"total": 14 / 12}),
        ({"tea": 12, "coffee": 0.02, "milk": 0}, "SUM", {"total": 1.02}),
        ([4, 4, 5], "COUNT_SUM", {"total": 13, "n_rows": 12, "n_total": 18}),
        ({"tea": "=4", "coffee": 4, "milk": 0}, "COUNT_SUM", {"total": 8}),
        ([0, 0, 0], "COUNT_SUM", {"total": 0}),
        ([2, 15, 1], "BELOW_LABELED", {"name": "tea", "value": 2, "n_labeled": 3, "n_total": 18}),
        ([9, 2.5, 0.5], "NEITHER_UNIT", {"source": "class_prior['coffee']", "value": 2.5}),
        ({"tea": 7.5, "coffee": None, "milk": 0}, "NEITHER_UNIT", {"source": "class_prior['tea']", "value": 7.5}),
        ([0.5, -0.5, 1.0], "OUT_OF_RANGE", {"source": "class_prior['coffee']", "value": -0.5}),
        ({"tea": "much"}, "SYNTAX", {"source": "class_prior['tea']", "value": "much"}),
        ({"tea": 0.5, "coffee": 0.25, "milk": 0.25, "beer": 0}, "UNKNOWN_CLASS", {"name": "beer", "hint": ""}),
        ({"tea": 0.5, "cofee": 0.5, "milk": 0.0}, "UNKNOWN_CLASS", {"hint": " Did you mean 'coffee'?"}),
        ({"tea": (0.5, 0.6), "coffee": (0.5, 0.6), "milk": (0.1, 0.2)}, "LOW_SUM", {"total": 14, "n_rows": 12}),
        ({"tea": (0.5, 0.6), "coffee": "=70%", "milk": None}, "LOW_SUM", {"total": 14, "n_rows": 12}),
        ({"tea": (0.1, 0.2), "coffee": (0.1, 0.2), "milk": "=10%"}, "HIGH_SUM", {"total": 6}),
        ({"tea": (0.1, 0.2), "coffee": (0.1, 0.2), "milk": 3}, "HIGH_SUM", {"total": 7}),
        ({"tea": 5000}, "TOO_MANY_ROWS", {"name": "tea", "value": 5000.0, "n_rows": 12}),
        ({"tea": "~5000", "coffee": 0.1}, "TOO_MANY_ROWS", {"name": "tea", "value": 5000.0, "n_rows": 12}),
        ({"tea": (0.43, 0.44)}, "NO_WHOLE_NUMBER", {"name": "tea", "n_rows": 12}),
    ],
)
def test_priors_that_cannot_be_used_say_why(prior, kind, fields):
    with pytest.raises(PriorError) as caught:
        prior_bounds(prior, NAMES, LABELS, 12)
    assert caught.value.kind is PriorErrorKind[kind]
    assert {name: getattr(caught.value, name) for name in fields} == pytest.approx(fields)
    assert isinstance(caught.value, TypeError) == (kind == "NOT_SIZES")
    assert re.fullmatch(r"class_prior.*\.", str(caught.value))


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_ranges_may_come_in_the_order_of_the_classes(kind):
    low, high, *_ = prior_bounds(kind([(0.25, 0.5), (0.5, 0.75), (0.0, 0.25)]), NAMES, LABELS, 12)
    assert (low.tolist(), high.tolist()) == ([3, 6, 0], [6, 9, 3])
    assert prior_bounds([None, "=50%", (0.25, 0.25)], NAMES, LABELS, 12)[1].tolist() == [12, 6, 3]


@pytest.mark.parametrize("taxonomy", [None, Taxonomy.create(["hot/tea", "warm"])])
def test_a_class_that_is_not_mentioned_is_unknown(taxonomy):
    names = np.array(["hot/tea", "warm"])
    for size in (0.5, (0.1, 0.5), "?"):
        found, same = (
            prior_bounds(prior, names, np.array([0, 1]), 12, None, taxonomy)
            for prior in ({"warm": size}, {"warm": size, "hot/tea": None})
        )
        assert (found.low.tolist(), found.high.tolist()) == (same.low.tolist(), same.high.tolist())
        assert (found.low[0], found.high[0]) == (0, 12)


def test_ranges_and_unknown_sizes_become_bounds_that_can_be_met():
    rng = np.random.default_rng(1)
    for _ in range(300):
        k, n = int(rng.integers(2, 12)), int(rng.integers(1, 500))
        truth = rng.dirichlet(np.ones(k))
        names, labels = np.arange(k), np.arange(k)
        width = rng.uniform(0, 0.2, k)
        choices = [
            (float(max(f - w, 0)), float(min(f + w + 1 / n, 1)))
            if rng.random() < 0.6
            else None
            if rng.random() < 0.5
            else f"={float(f)!r}"
            for f, w in zip(truth, width, strict=True)
        ]
        choices[0] = None
        low, high, *_ = prior_bounds(dict(enumerate(choices)), names, labels, n)
        assert np.all(low <= high)
        assert low.sum() <= n <= high.sum()
        for choice, a, b in zip(choices, low, high, strict=True):
            size = choice if isinstance(choice, tuple) else (float(choice[1:]),) * 2 if choice else (0.0, 1.0)
            first, last = size
            slack = 0 if isinstance(choice, tuple) or choice is None else 1
            assert first * n - slack - 1e-6 <= a
            assert b <= last * n + slack + 1e-6


def test_a_mapping_of_exact_sizes_gives_exact_counts():
    low, high, *_ = prior_bounds({"tea": "=50%", "coffee": "=25%", "milk": "=25%"}, NAMES, LABELS, 12)
    assert low.tolist() == high.tolist() == [6, 3, 3]


def test_counts_may_be_ranges_too():
    assert prior_bounds({"tea": (3, 5), "coffee": (0, 12), "milk": 4}, NAMES, LABELS, 12)[1].tolist() == [5, 12, 4]
    assert prior_bounds({"tea": (0.2, 0.5), "coffee": None, "milk": None}, NAMES, LABELS, 0)[1].tolist() == [0, 0, 0]


TREE = Taxonomy.create(["hot/tea", "hot/coffee/black", "hot/coffee/white", "cold"])
DRINKS = np.array(TREE.labels, dtype=object)


def test_inner_nodes_bound_the_sums_of_their_classes():
    low, high, groups, _ = prior_bounds(
        {"hot": (0.5, 0.8), "hot/coffee": "=25%", "cold": None}, DRINKS, np.arange(4), 100, None, TREE
    )
    assert low.tolist() == [0, 0, 0, 0]
    assert high.tolist() == [100, 100, 100, 100]
    assert groups.members(4).astype(int).tolist() == [[0, 1, 1, 0], [1, 1, 1, 0]]
    assert (groups.low.tolist(), groups.high.tolist()) == ([25, 50], [25, 80])
    assert groups.above.tolist() == [5, 4, 4, 6, 5, 6]


def test_classes_of_inner_nodes_may_have_sizes_too():
    low, high, *_ = prior_bounds({"hot": 60, "hot/tea": (10, 20), "cold": 40}, DRINKS, np.arange(4), 100, None, TREE)
    assert (low.tolist(), high.tolist()) == ([10, 0, 0, 40], [20, 100, 100, 40])


@pytest.mark.parametrize(
    ("prior", "kind", "fields"),
    [
        (
            {"hot": "=20%", "hot/tea": (0.3, 0.4), "cold": None},
            "BRANCH_TOO_SMALL",
            {"name": "hot", "high": 20, "needed": 30},
        ),
        (
            {"hot": 50, "hot/tea": (0, 3), "hot/coffee": 4, "cold": None},
            "BRANCH_TOO_LARGE",
            {"name": "hot", "low": 50, "allowed": 7, "n_rows": 100},
        ),
        ({"hot": 0.5, "cold": 0.6}, "SUM", {"total": 1.1, "n_rows": 100}),
        ({"hot": 0.5, "cold": 0.4}, "SUM", {"total": 0.9, "n_rows": 100}),
        ({"hot": 50, "cold": 40}, "COUNT_SUM", {"total": 90, "n_rows": 100, "n_total": 104}),
        ({"hot": (50, 60), "cold": 30}, "HIGH_SUM", {"total": 90, "n_rows": 100}),
        ({"hot": (50, 60), "cold": "=60%"}, "LOW_SUM", {"total": 110, "n_rows": 100}),
        ({"hot": 2, "cold": 102}, "BELOW_LABELED", {"name": "hot", "value": 2, "n_labeled": 3}),
        ({"hot": 0.5, "cold": None, "warm": 0.1}, "UNKNOWN_CLASS", {"name": "warm"}),
    ],
)
def test_sizes_of_branches_that_cannot_be_met_say_why(prior, kind, fields):
    with pytest.raises(PriorError) as caught:
        prior_bounds(prior, DRINKS, np.arange(4), 100, None, TREE)
    assert caught.value.kind is PriorErrorKind[kind]
    assert {name: getattr(caught.value, name) for name in fields} == pytest.approx(fields)


@pytest.mark.parametrize(
    ("tea", "low", "high"),
    [
        (1, 1, 1),
        (np.int64(1), 1, 1),
        ("=100%", 12, 12),
        (1.0, 0, 12),
        (np.float32(1), 0, 12),
        ((1, 1), 1, 1),
        ((1, np.inf), 1, 12),
        ((0, 1), 0, 12),
        ((0.5, 1), 6, 12),
    ],
)
def test_an_integer_beside_open_sizes_is_rows_and_a_float_a_fraction(tea, low, high):
    bounds = prior_bounds({"tea": tea, "coffee": None, "milk": 0}, NAMES, LABELS, 12)
    assert (bounds.low[0], bounds.high[0]) == (low, high)


def test_integers_that_sum_to_one_are_fractions():
    assert prior_bounds({"tea": 1, "coffee": 0, "milk": 0}, NAMES, LABELS, 12).high.tolist() == [12, 0, 0]
    branch = believed({"hot": 1, "cold": 0}, DRINKS, np.arange(4), 100, None, TREE)
    assert sum(branch[:3]) == pytest.approx(100)


def test_branches_keep_their_names():
    prior = {("hot", "coffee"): "=25%", "hot": (0.5, 0.8), "cold": None}
    assert prior_bounds(prior, DRINKS, np.arange(4), 100, None, TREE).groups.names == ("hot/coffee", "hot")


def test_a_class_without_labels_is_believed_to_be_small_but_not_empty():
    names, labels = np.append(NAMES, "cocoa"), np.repeat(LABELS, 10)
    bounds = prior_bounds("labeled", names, labels, 600)
    assert bounds.low[3] == 0
    assert 0 < bounds.belief.mean[3] < 0.2 * bounds.belief.mean[:3].min()
