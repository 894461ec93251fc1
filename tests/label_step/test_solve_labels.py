"""Edge cases, input forms and error messages of `solve_labels`."""

import re

import numpy as np
import pytest
from helpers.problems import ALL_STEPS, OPTIMAL_STEPS, classifier_instance, instance

from transduce import solve_labels
from transduce.label_step import METHODS, Simplex, Status, Switching


@pytest.mark.parametrize("method", ALL_STEPS)
def test_no_rows(method):
    answer = solve_labels(np.empty((0, 3)), [0, 0, 0], method)
    assert answer.labels.shape == (0,)
    assert (answer.cost, answer.gap, answer.n_moves) == (0.0, 0.0, 0)
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("method", ALL_STEPS)
def test_one_class(method):
    answer = solve_labels([[3.0], [4.0]], [2], method)
    assert answer.labels.tolist() == [0, 0]
    assert (answer.cost, answer.gap) == (7.0, 0.0)


@pytest.mark.parametrize("method", ALL_STEPS)
def test_all_costs_equal(method):
    answer = solve_labels(np.ones((50, 4)), [20, 0, 25, 5], method)
    assert np.bincount(answer.labels, minlength=4).tolist() == [20, 0, 25, 5]
    assert answer.status is Status.OPTIMAL


def test_many_ties_take_no_moves():
    answer = solve_labels(np.zeros((20_000, 10)), [2000] * 10)
    assert (answer.n_moves, answer.gap) == (0, 0.0)


def test_duplicated_rows_at_scale():
    distinct = classifier_instance(40, 8, seed=3)
    costs = np.repeat(distinct.costs, 500, axis=0)
    once = solve_labels(distinct.costs, distinct.counts)
    answer = solve_labels(costs, 500 * distinct.low)
    assert answer.cost == pytest.approx(500 * once.cost)
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("form", ["float32", "fortran", "strided", "read_only", "integer", "list", "reversed"])
@pytest.mark.parametrize("method", ALL_STEPS)
def test_forms_of_costs_give_the_same_answer(form, method):
    problem = classifier_instance(300, 5, integral=True)
    plain = solve_labels(problem.costs, problem.counts, method)
    costs = {
        "float32": lambda c: c.astype(np.float32),
        "fortran": np.asfortranarray,
        "strided": lambda c: np.repeat(c, 2, axis=0)[::2],
        "read_only": lambda c: np.broadcast_to(c, c.shape),
        "integer": lambda c: c.astype(int),
        "list": lambda c: c.tolist(),
        "reversed": lambda c: c[::-1].copy()[::-1],
    }[form](problem.costs)
    answer = solve_labels(costs, problem.counts, method)
    assert np.array_equal(answer.labels, plain.labels)
    assert answer.cost == plain.cost


@pytest.mark.parametrize("method", ALL_STEPS)
def test_inputs_stay_as_they_are(method):
    problem = instance("forbidden", 5)
    counts = problem.low.astype(float)
    start = solve_labels(problem.costs, counts, "greedy").labels
    prices = np.linspace(-1.0, 1.0, counts.size)
    inputs = [problem.costs, counts, start, prices]
    copies = [array.copy() for array in inputs]
    answer = solve_labels(problem.costs, counts, method, prices=prices, start=start)
    assert all(np.array_equal(now, then) for now, then in zip(inputs, copies, strict=True))
    assert not any(np.shares_memory(answer.labels, array) for array in inputs)
    assert not any(np.shares_memory(answer.prices, array) for array in inputs)


@pytest.mark.parametrize("method", ALL_STEPS)
def test_same_input_same_answer(method):
    problem = classifier_instance(2000, 6)
    one, two = (solve_labels(problem.costs, problem.counts, method) for _ in range(2))
    assert np.array_equal(one.labels, two.labels)
    assert np.array_equal(one.prices, two.prices)


def test_a_thousand_classes():
    problem = classifier_instance(3000, 1000)
    answer = solve_labels(problem.costs, problem.counts)
    assert np.array_equal(np.bincount(answer.labels, minlength=1000), problem.low)
    assert answer.status is Status.OPTIMAL


def test_warm_start_moves_fewer_rows_to_the_same_optimum():
    problem = classifier_instance(20_000, 12)
    before = solve_labels(problem.costs, problem.counts)
    noise = 1.0 + 0.01 * np.random.default_rng(0).normal(size=problem.costs.shape)
    cold = solve_labels(problem.costs * noise, problem.counts)
    warm = solve_labels(problem.costs * noise, problem.counts, prices=before.prices)
    assert warm.cost == pytest.approx(cold.cost, rel=1e-12)
    assert warm.n_moves < cold.n_moves / 3


def test_the_optimum_is_a_fixed_point_of_every_step():
    problem = classifier_instance(500, 7)
    best = solve_labels(problem.costs, problem.counts)
    for method in set(ALL_STEPS) - {"greedy"}:
        again = solve_labels(problem.costs, problem.counts, method, prices=best.prices, start=best.labels)
        assert np.array_equal(again.labels, best.labels)
        assert again.n_moves == 0
        assert again.status is Status.OPTIMAL


def test_exact_keeps_the_start_among_equally_good_labels():
    start = np.array([1, 0, 2, 1, 0, 2])
    assert solve_labels(np.zeros((6, 3)), [2, 2, 2], start=start).labels.tolist() == start.tolist()


@pytest.mark.parametrize("method", OPTIMAL_STEPS)
def test_adding_to_rows_or_classes_shifts_cost_and_prices_only(method):
    problem = instance("gaussian", 11)
    n, k = problem.costs.shape
    plain = solve_labels(problem.costs, problem.counts, method)
    to_rows, to_classes = np.linspace(-2, 3, n), np.linspace(1, -1, k)
    shifted = solve_labels(problem.costs + to_rows[:, None] + to_classes, problem.counts, method)
    assert np.array_equal(shifted.labels, plain.labels)
    assert shifted.cost == pytest.approx(plain.cost + to_rows.sum() + to_classes @ problem.low)


def test_prices_average_to_zero_over_the_rows():
    problem = classifier_instance(800, 5)
    answer = solve_labels(problem.costs, problem.counts)
    assert answer.prices @ problem.low == pytest.approx(0.0, abs=1e-9)


def test_wide_ranges_are_no_constraint():
    problem = classifier_instance(800, 5)
    answer = solve_labels(problem.costs, ([0] * 5, [800] * 5))
    assert np.array_equal(answer.labels, problem.costs.argmin(axis=1))
    assert not np.any(answer.prices)


def test_equal_bounds_are_exact_counts():
    problem = classifier_instance(800, 5)
    exact = solve_labels(problem.costs, problem.low)
    assert np.array_equal(solve_labels(problem.costs, (problem.low, problem.low)).labels, exact.labels)


def test_a_tuple_of_two_numbers_is_the_counts_of_two_classes():
    assert solve_labels([[0.0, 1.0], [0.0, 1.0]], (1, 1)).labels.tolist() in ([0, 1], [1, 0])


def test_simplex_at_its_time_limit_returns_feasible_labels():
    problem = classifier_instance(3000, 8)
    answer = solve_labels(problem.costs, problem.counts, Simplex(max_seconds=0.0))
    assert answer.status is Status.OUT_OF_TIME
    assert np.array_equal(np.bincount(answer.labels, minlength=8), problem.low)


def test_a_label_step_of_ones_own():
    class Mine:
        def solve(self, problem, prices=None, start=None):
            return METHODS["greedy"].solve(problem)

    problem = classifier_instance(100, 3)
    assert solve_labels(problem.costs, problem.counts, Mine()).status is Status.GREEDY
    one_round = solve_labels(problem.costs, problem.counts, Switching(max_rounds=1))
    assert np.array_equal(one_round.labels, solve_labels(problem.costs, problem.counts, "multi_switch").labels)


def test_prices_of_another_size_are_not_used():
    costs = [[0.0, 5, 1], [0.0, 1, 1], [0.0, 2, 1], [3, 2, 1]]
    cold = solve_labels(costs, [2, 1, 1])
    for prices in ([1e20, 0, -2e20], [-8e65, -8e65, -8e65], [1e300, 0, 0]):
        answer = solve_labels(costs, [2, 1, 1], prices=prices)
        assert (answer.cost, answer.gap) == (cold.cost, cold.gap)
    problem = classifier_instance(5000, 6)
    far = solve_labels(problem.costs, problem.counts, prices=1e3 * np.arange(6.0))
    assert far.cost == pytest.approx(solve_labels(problem.costs, problem.counts).cost, rel=1e-12)


@pytest.mark.parametrize("method", ["switching", "simplex"])
def test_one_large_cost_does_not_hide_small_ones(method):
    answer = solve_labels([[0.0, 0.3], [0.0, 0.9], [0, 1e12]], [2, 1], method, start=[0, 1, 0])
    assert answer.cost == 0.3


@pytest.mark.parametrize("method", ["switching", "greedy", "single_switch"])
def test_a_large_offset_does_not_make_labels_optimal(method):
    costs = np.array([[0.0, 5.0, 1.0], [0.0, 100.0, 2.0], [3.0, 1.0, 9.0]]) + 1e12
    answer = solve_labels(costs, [1, 1, 1], method)
    best = solve_labels(costs, [1, 1, 1])
    assert best.status is Status.OPTIMAL
    assert (answer.status is Status.OPTIMAL) == (answer.cost == best.cost)


def test_high_counts_beyond_the_rows_are_no_bound():
    costs = np.random.default_rng(0).random((10, 3))
    for high in ([10] * 3, [10**9] * 3, [10**19] * 3, [INF] * 3):
        answer = solve_labels(costs, ([0] * 3, high), prices=[-0.1, 0, 0.1])
        assert np.array_equal(answer.labels, costs.argmin(axis=1))


INF, NAN = np.inf, np.nan
MESSAGES = [
    (([[0.0, 1.0]], [1, 1]), ValueError, "counts must sum to the number of rows, 1, but sum to 2"),
    (([[0.0, 1.0]], [2, -1]), ValueError, "counts must be whole numbers, 0 or more, but class 1 has -1"),
    (([[0.0, 1.0]], [0.5, 0.5]), ValueError, "counts must be whole numbers, 0 or more, but class 0 has 0.5"),
    (([[0.0, 1.0]], [1, NAN]), ValueError, "counts must be whole numbers, 0 or more, but class 1 has nan"),
    (([[0.0, 1.0]], [1]), ValueError, "one number for each of the 2 columns"),
    (([[0.0, 1.0]], ["a", "b"]), TypeError, "counts must be whole numbers"),
    (([[0.0, 1.0]], ([1, 0], [0, 1])), ValueError, "class 0 has low 1 and high 0"),
    (
        ([[0.0, 1.0]], ([1, 1], [1, 1])),
        ValueError,
        "1 rows cannot meet the counts: the low counts sum to 2",
    ),
    (
        ([[0.0, 1.0]], ([0, 0], [0, 0])),
        ValueError,
        "1 rows cannot meet the counts: the high counts sum to 0",
    ),
    (([[0.0, 1.0]], ([1, 0], [1])), ValueError, "high counts must have one number for each of the 2 columns"),
    (([[0.0, NAN]], [1, 0]), ValueError, "row 0, class 1 is nan"),
    (([[0.0, 1.0], [-INF, 0.0]], [1, 1]), ValueError, "row 1, class 0 is -inf"),
    (([[0.0, 1.0], [INF, INF]], [1, 1]), ValueError, r"every cost of row 1 is \+inf"),
    (
        ([[0.0, INF], [1.0, INF], [0.0, 1.0]], [1, 2]),
        ValueError,
        "class 1 must get 2 rows, but only 1 row may take it, 1 too few",
    ),
    (
        ([[0.0, INF], [1.0, INF]], ([0, 0], [1, 2])),
        ValueError,
        "2 rows may take class 0 only, but class 0 may get at most 1, 1 too many",
    ),
    (
        ([[0.0, INF], [1.0, INF]], ([0, 1], [2, 2])),
        ValueError,
        "class 1 must get 1 row, but no row may take it, 1 too few",
    ),
    (([[1, 2], [3]], [1, 1]), TypeError, "rows of equal length"),
    (([[1e200, 0.0]], [1, 0]), ValueError, "costs must be below 1e150 in size"),
    (([[2**60, 0]], [1, 0]), ValueError, r"at most 2\*\*53 in size"),
    (([[0.0, 1.0]], [1e300, 0]), ValueError, r"counts must be at most 2\*\*53"),
    (([[0.0, 1.0]], [1, 0], 3), ValueError, "method must be one of exact"),
    (([[0.0, 1.0]], [1, 0], Simplex), ValueError, "method must be one of exact"),
    (([[0.0, 1.0]], [1, 0], Switching(max_rounds=0)), ValueError, "max_rounds must be 1 or more"),
    (([[0.0, 1.0]], [1, 0], "exact", ["a", "b"]), TypeError, "prices must be numbers"),
    (([0.0, 1.0], [1, 1]), ValueError, r"costs must be a matrix.*shape \(2,\)"),
    ((np.empty((2, 0)), []), ValueError, r"costs must be a matrix.*shape \(2, 0\)"),
    (([["a", "b"]], [1, 0]), TypeError, "costs must be real numbers"),
    (([[0.0, 1j]], [1, 0]), TypeError, "costs must be real numbers"),
    (([[None, "x"]], [1, 0]), TypeError, "costs must be numbers"),
    (([[0.0, 1.0]], [1, 0], "magic"), ValueError, "method must be one of exact, switching"),
    (([[0.0, 1.0]], [1, 0], "exact", [1.0]), ValueError, "prices must have one number for each of the 2 classes"),
    (([[0.0, 1.0]], [1, 0], "exact", [1.0, INF]), ValueError, "prices must be finite, but class 1 has inf"),
    (([[0.0, 1.0]], [1, 0], "exact", None, [1]), ValueError, "start must meet the counts, but gives class 0 0 rows"),
    (([[0.0, 1.0]], [1, 0], "exact", None, [2]), ValueError, "class indices from 0 to 1, but goes from 2 to 2"),
    (([[0.0, 1.0]], [1, 0], "exact", None, [0, 0]), ValueError, "one label for each of the 1 rows"),
    (([[0.0, 1.0]], [1, 0], "exact", None, [0.0]), TypeError, "start must hold class indices as integers"),
    (([[INF, 1.0]], ([0, 0], [1, 1]), "exact", None, [0]), ValueError, "row 0 has label 0 at cost"),
]


@pytest.mark.parametrize(("arguments", "kind", "sentence"), MESSAGES)
def test_bad_input_is_explained_in_one_sentence(arguments, kind, sentence):
    with pytest.raises(kind, match=sentence) as caught:
        solve_labels(*arguments)
    assert "\n" not in str(caught.value)
    assert re.search(r"\.$", str(caught.value))


@pytest.mark.parametrize("method", ALL_STEPS)
def test_every_step_names_the_classes_that_have_too_few_rows(method):
    costs = np.zeros((100, 12))
    costs[10:, 3:5] = INF
    with pytest.raises(ValueError, match="classes 3 and 4 must get 16 rows, but only 10 rows may take them, 6 too few"):
        solve_labels(costs, [8] * 11 + [12], method)


@pytest.mark.parametrize("forbidden", [False, True])
def test_a_cost_above_the_limit_is_refused_whatever_the_other_rows_are(forbidden):
    costs = np.zeros((4, 2))
    costs[1, 0] = 1e152
    costs[3, 1] = np.inf if forbidden else 0.0
    with pytest.raises(ValueError, match="costs must be below 1e150"):
        solve_labels(costs, [2, 2])
