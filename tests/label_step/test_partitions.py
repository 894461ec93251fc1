"""Label steps over partitions, against the same steps on all rows in memory; messages are pickled and measured."""

import numpy as np
import pytest
from helpers.grouped_problems import grouped, large
from helpers.partitions import Remote, cut
from helpers.problems import FAMILIES, classifier_instance, instance, range_instance, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.class_prior.bounds import Bounds
from transduce.label_step import Exact, LabelProblem, Status, exact, sampling
from transduce.label_step._kernels.ties import random_unit
from transduce.label_step.infeasible import InfeasibleError
from transduce.label_step.partitions import Partition

TOLERANCE = 1e-13


def check_against_exact(costs, low, high, groups=None, prices=None, start=None, rng=None):
    """The same cost, status and verdict as `Exact`; labels that meet all bounds; inputs as they were."""
    problem = LabelProblem.create(costs, (low, high), groups)
    rng = np.random.default_rng(0) if rng is None else rng
    parts, given_costs = cut(costs, rng, start), costs.copy()
    try:
        local = Exact().solve(problem, prices, start)
    except InfeasibleError:
        with pytest.raises(InfeasibleError, match=r"^the counts cannot be met: .*\.$"):
            Exact().solve_partitions(parts, Bounds(low, high, groups), prices)
        assert not any(part.state for part in parts.here.partitions)
        return None, parts
    answer = Exact().solve_partitions(parts, Bounds(low, high, groups), prices)
    labels, present = parts.labels, np.concatenate([part.labels for part in parts.here.partitions])
    scale = max(np.abs(costs[costs < np.inf]).sum(dtype=np.float64), np.finfo(float).tiny)
    tally = np.bincount(labels, minlength=low.size)
    sizes = problem.tree.sums(tally)
    assert np.all((tally >= low) & (tally <= high))
    assert np.all((sizes >= problem.tree.low) & (sizes <= problem.tree.high))
    assert answer.cost == pytest.approx(local.cost, abs=TOLERANCE * scale)
    assert answer.cost == pytest.approx(
        costs[np.arange(labels.size), labels].sum(dtype=np.float64), abs=TOLERANCE * scale
    )
    assert answer.dual_value == answer.cost - answer.gap
    assert abs(answer.gap) <= 1e-12 * (scale + labels.size * np.ptp(answer.prices))
    assert answer.status is local.status or answer.status is Status.OPTIMAL
    assert answer.n_changed == np.count_nonzero(labels != present)
    assert answer.group_prices.shape == local.group_prices.shape
    assert np.array_equal(costs, given_costs)
    assert np.array_equal(present, np.full(len(costs), -1) if start is None else start)
    if start is not None and np.array_equal(local.labels, start):
        assert np.array_equal(labels, start)
    return answer, parts


def some_prices(rng: np.random.Generator, costs: np.ndarray) -> np.ndarray | None:
    """None, of the size of the costs, far off, or absurd."""
    n_classes = costs.shape[1]
    far = np.abs(costs[costs < np.inf]).sum(dtype=np.float64)
    kinds = (0.0, 1.0, far, 10.0 ** rng.integers(-300, 300))
    scale = kinds[rng.integers(4)]
    return scale * rng.normal(size=n_classes) if scale else None


def some_start(rng: np.random.Generator, costs, low, high, groups=None) -> np.ndarray | None:
    """Labels that meet the counts, near the best or not; or none."""
    if rng.random() < 0.5:
        return None
    noise = rng.normal(size=costs.shape) + rng.integers(2) * np.where(costs < np.inf, costs, 0.0)
    try:
        return Exact().solve(LabelProblem(np.where(costs < np.inf, noise, np.inf), low, high, groups)).labels
    except InfeasibleError:
        return None


@pytest.fixture(params=["default", "few", "fewest"])
def budget(request, monkeypatch):
    """Sizes of samples and gathered rows: the defaults, and so small that every step towards better prices is taken."""
    if request.param != "default":
        monkeypatch.setattr(sampling, "SAMPLE_ROWS", 8)
        monkeypatch.setattr(sampling, "SAMPLE_ROWS_PER_CLASS", 2 if request.param == "few" else 1)
        monkeypatch.setattr(exact, "GATHER_ROWS", 4 if request.param == "few" else 0)
        monkeypatch.setattr(exact, "REACH", 1)
        monkeypatch.setattr(sampling, "SAMPLE_REACH", 2)
    return request.param


# ---- the exact step


@pytest.mark.parametrize("family", FAMILIES)
@seeds(2, 10)
def test_labels_cost_as_much_as_those_in_memory(family, budget, seeds):
    rng = np.random.default_rng([seeds.start, *family.encode()])
    for seed in seeds:
        for make in (instance, range_instance):
            problem = make(family, seed)
            times = int(rng.choice([1, 1, 1, 9]))
            costs, low, high = np.repeat(problem.costs, times, axis=0), times * problem.low, times * problem.high
            costs = costs.astype(rng.choice([np.float64, np.float64, np.float32]))
            start = some_start(rng, costs, low, high)
            check_against_exact(costs, low, high, prices=some_prices(rng, costs), start=start, rng=rng)


@seeds(25, 80)
def test_labels_of_groups(budget, seeds):
    rng = np.random.default_rng(1)
    n_refused = 0
    for seed in seeds:
        made = grouped(seed)
        try:
            problem = made.problem
        except ValueError:
            continue
        if seed % 4 == 0:
            forbidden = rng.random(made.costs.shape) < 0.7
            forbidden[np.arange(len(forbidden)), np.argmin(made.costs, axis=1)] = False
            problem = LabelProblem(np.where(forbidden, np.inf, made.costs), problem.low, problem.high, problem.groups)
        bounds = problem.low, problem.high, problem.groups
        start = some_start(rng, problem.costs, *bounds)
        prices = some_prices(rng, problem.costs)
        answer, _ = check_against_exact(problem.costs, *bounds, prices=prices, start=start, rng=rng)
        n_refused += answer is None
    assert n_refused > 1


@seeds(12, 40)
def test_infeasible_counts_raise_the_same_error(budget, seeds):
    rng = np.random.default_rng(2)
    refused, same = 0, 0
    for seed in seeds:
        problem = (instance if seed % 2 else range_instance)("forbidden", seed)
        order = rng.permutation(problem.low.size)
        low, high = problem.low[order], problem.high[order]
        answer, parts = check_against_exact(problem.costs, low, high, rng=rng)
        if answer is None:
            with pytest.raises(InfeasibleError) as local:
                Exact().solve(LabelProblem(problem.costs, low, high))
            with pytest.raises(InfeasibleError, match=r"^the counts cannot be met: .*\.$") as spread:
                Exact().solve_partitions(parts, Bounds(low, high))
            refused, same = refused + 1, same + (str(local.value) == str(spread.value))
    assert refused > 2
    assert same > 0.7 * refused


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whole_number_costs_with_ties_give_the_same_total(data):
    n, n_classes = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    costs = rng.integers(0, data.draw(st.integers(1, 4)), size=(n, n_classes)).astype(float)
    counts = np.bincount(rng.integers(n_classes, size=n), minlength=n_classes)
    width = data.draw(st.integers(0, 3))
    low, high = np.maximum(counts - width, 0), np.minimum(counts + width, n)
    answer, _ = check_against_exact(costs, low, high, rng=rng)
    assert answer.cost == Exact().solve(LabelProblem(costs, low, high)).cost


def many_ties(kind: str, n: int, n_classes: int) -> np.ndarray:
    """Costs with many ties at any prices."""
    rng = np.random.default_rng([*kind.encode()])
    costs = classifier_instance(n, n_classes, 1).costs
    if kind == "half identical":
        costs[rng.random(n) < 0.5] = costs[0]
    elif kind == "few kinds":
        costs = costs[rng.integers(300, size=n)]
    elif kind == "0 to 2":
        costs = rng.integers(0, 3, size=costs.shape).astype(float)
    elif kind == "tenths":
        costs = (rng.integers(0, 30, size=costs.shape) / 10).astype(np.float32)
    else:
        costs[:] = 0.0
    return costs


@pytest.mark.parametrize("kind", ["half identical", "few kinds", "0 to 2", "tenths", "all equal"])
def test_many_ties_are_divided_among_classes(kind, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 1000)
    monkeypatch.setattr(exact, "GATHER_ROWS", 1000)
    n, n_classes = 6000, 12
    rng = np.random.default_rng(3)
    costs, counts = many_ties(kind, n, n_classes), np.asarray(classifier_instance(n, n_classes, 2).low)
    for low, high in ((counts, counts), ((0.9 * counts).astype(int), (1.1 * counts).astype(int))):
        check_against_exact(costs, low, high, rng=rng)
        best = Exact().solve(LabelProblem(costs, low, high))
        again, _ = check_against_exact(costs, low, high, prices=best.prices, start=best.labels, rng=rng)
        assert again.n_changed == 0
        changed = costs * (1.0 + 0.01 * rng.normal(size=n_classes)).astype(costs.dtype)
        check_against_exact(changed, low, high, prices=best.prices, start=best.labels, rng=rng)


@pytest.mark.parametrize(
    ("n", "n_classes"), [(8000, 3), pytest.param(20_000, 30, marks=pytest.mark.slow), (3000, 1), (2000, 100)]
)
def test_real_sizes_from_no_good_and_bad_prices(n, n_classes):
    problem = classifier_instance(n, n_classes, 4)
    low, rng = np.asarray(problem.low), np.random.default_rng(4)
    check_against_exact(problem.costs.astype(np.float32), low, low, rng=rng)
    cold, parts = check_against_exact(problem.costs, low, low, rng=rng)
    assert np.array_equal(parts.labels, Exact().solve(LabelProblem(problem.costs, low, low)).labels)
    start = parts.labels
    noisy = problem.costs * (1.0 + 0.01 * rng.normal(size=problem.costs.shape))
    _, warm = check_against_exact(noisy, low, low, prices=cold.prices, start=start, rng=rng)
    assert len(warm.calls) <= 5
    check_against_exact(noisy, low, low, prices=1e3 * np.arange(float(n_classes)), start=start, rng=rng)
    wide = (0.7 * low).astype(int), (1.3 * low).astype(int) + 1
    check_against_exact(np.asfortranarray(noisy), *wide, rng=rng)


@seeds(1, 3)
def test_groups_at_real_sizes(seeds):
    for seed in seeds:
        made = large(seed, 8000)
        check_against_exact(made.costs, made.low, made.high, made.groups, rng=np.random.default_rng(seed))
        ties = np.round(5 * made.costs) / 5
        check_against_exact(ties, made.low, made.high, made.groups, rng=np.random.default_rng(seed))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most"), [("classifier", 60_000), ("half identical", 150_000)])
def test_few_rows_are_gathered_from_many(kind, most):
    n, n_classes = 200_000, 20
    problem, rng = classifier_instance(n, n_classes, 5), np.random.default_rng(5)
    low, costs = np.asarray(problem.low), problem.costs if kind == "classifier" else many_ties(kind, n, n_classes)
    cold, far = check_against_exact(costs, low, low, rng=rng)
    assert cold.n_gathered < most
    assert far.largest_message < 8 * n_classes * 40_000
    assert len(far.calls) <= 10
    noisy = costs * (1.0 + 0.002 * rng.normal(size=n_classes))
    warm, far = check_against_exact(noisy, low, low, prices=cold.prices, start=far.labels, rng=rng)
    assert warm.n_gathered < most
    assert far.largest_message < 8 * n_classes * 40_000
    assert len(far.calls) <= 10


def test_a_warm_solve_takes_three_calls_and_few_rows():
    problem, rng = classifier_instance(60_000, 20, 5), np.random.default_rng(5)
    low, noise = np.asarray(problem.low), 1.0 + 0.01 * rng.normal(size=problem.costs.shape)
    prices = Exact().solve(LabelProblem(problem.costs, low, low)).prices
    warm, far = check_against_exact(problem.costs * noise, low, low, prices=prices, rng=rng)
    assert far.calls == ["price_rows", "near_rows", "evaluate"]
    assert warm.n_gathered < 5000
    assert far.largest_message < 8 * 20 * 5000


def test_the_optimum_is_a_fixed_point_in_two_calls():
    problem = classifier_instance(5000, 7)
    low, rng = np.asarray(problem.low), np.random.default_rng(6)
    cold, parts = check_against_exact(problem.costs, low, low, rng=rng)
    again, parts = check_against_exact(problem.costs, low, low, prices=cold.prices, start=parts.labels, rng=rng)
    assert parts.calls == ["price_rows", "evaluate"]
    assert (again.n_moves, again.n_changed, again.n_gathered) == (0, 0, 0)


def test_present_labels_are_kept_only_if_they_are_allowed_and_meet_the_counts():
    costs = np.array([[0.0, 0.0], [0.0, np.inf], [0.0, 0.0], [0.0, 0.0]])
    low, high = np.array([1, 1]), np.array([3, 3])
    for present, kept in (([1, 0, 1, 1], True), ([1, 0, -1, 1], False), ([0, 0, 0, 0], False), ([1, 1, 0, 0], False)):
        parts = Remote([Partition(costs[:2], np.array(present[:2])), Partition(costs[2:], np.array(present[2:]))])
        answer = Exact().solve_partitions(parts, Bounds(low, high))
        assert answer.cost == 0.0
        assert (answer.n_changed == 0) == kept
        assert np.bincount(parts.labels, minlength=2).min() >= 1
        assert np.count_nonzero(parts.labels != present) == answer.n_changed <= 1


def test_no_rows_no_partitions_and_one_class():
    no_rows = np.zeros(0, np.int64)
    empty, nothing = Partition(np.empty((0, 2)), no_rows), Bounds(np.zeros(2, int), np.zeros(2, int))
    for parts in (Remote([]), Remote([empty]), Remote([empty, Partition(np.empty((0, 2)), no_rows)])):
        for prices in (None, np.ones(2)):
            answer = Exact().solve_partitions(parts, nothing, prices)
            assert (answer.cost, answer.gap, answer.n_changed, answer.n_gathered) == (0.0, 0.0, 0, 0)
            assert answer.status is Status.OPTIMAL
    one = Remote([Partition(np.array([[3.0]]), np.array([-1])), Partition(np.array([[4.0]]), np.array([0]))])
    answer = Exact().solve_partitions(one, Bounds(np.array([2]), np.array([2])))
    assert (answer.cost, answer.gap, answer.n_changed, one.labels.tolist()) == (7.0, 0.0, 1, [0, 0])


def test_bad_counts_raise_one_sentence_and_leave_no_state():
    parts = Remote([Partition(np.zeros((3, 2)), np.full(3, -1))])
    low = np.array([2, 2])
    with pytest.raises(ValueError, match=r"3 rows cannot meet the counts: the low counts sum to .*\.$") as caught:
        Exact().solve_partitions(parts, Bounds(low, low))
    assert "\n" not in str(caught.value)
    assert not parts.here.partitions[0].state


def test_random_numbers_are_uniform_and_differ_between_rows_and_classes():
    drawn = np.array([[random_unit(row, k) for k in range(10)] for row in range(2000)])
    assert np.unique(drawn).size == drawn.size
    assert np.all((drawn >= 0.0) & (drawn < 1.0))
    assert np.abs(np.bincount((8 * drawn).astype(int).ravel()) - 2500).max() < 250
    assert np.abs(np.corrcoef(drawn.T) - np.eye(10)).max() < 0.1
