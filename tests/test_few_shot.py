"""Methods of few-shot learning do what their papers define."""

import sys
from pathlib import Path

import numpy as np
import ot
import pytest
from sklearn.semi_supervised import LabelSpreading

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments import few_shot
from experiments.few_shot import classifiers, information, laplacian, prototypes, task, transport
from experiments.few_shot.information import Objective, Setting
from experiments.few_shot.prototypes import softmax, unit
from experiments.few_shot.task import Task

SIZES = np.array([60, 30, 20, 10])
PROPORTIONS = SIZES / SIZES.sum()


def example(noise=0.35, each=4, seed=0, d=12):
    """Four classes around orthogonal means, of unequal sizes among the unlabelled rows, with their true classes."""
    rng = np.random.default_rng(seed)
    y, truth = np.repeat(np.arange(4), each), rng.permutation(np.repeat(np.arange(4), SIZES))
    X, Q = (unit(np.eye(4, d)[k] + noise * rng.standard_normal((k.size, d))) for k in (y, truth))
    return Task(X, y, Q), truth


def predictions(n=7, k=4, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), n)


@pytest.mark.parametrize("name", few_shot.METHODS)
@pytest.mark.parametrize("proportions", [pytest.param(None, marks=pytest.mark.slow), PROPORTIONS])
def test_methods_label_classes_that_are_apart(name, proportions):
    known, truth = example(noise=0.12)
    fitted, _ = few_shot.fit(name, known._replace(proportions=proportions))
    assert fitted.queries.shape == (len(truth), 4)
    least = 0.5 if name == "PT-MAP" and proportions is None else 0.97  # it takes classes as equally large
    assert np.mean(fitted.queries.argmax(axis=1) == truth) >= least
    rows = example(noise=0.12, seed=1)[0].Q
    assert np.allclose(fitted.score(rows)[3:5], fitted.score(rows[3:5]), atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "SelfTraining" else [])
        for name, method in few_shot.METHODS.items()
        if not method.uses_sizes
    ],
)
def test_transported_labels_have_the_given_sizes(name):
    known, _ = example(noise=0.6)
    fitted, _ = few_shot.fit(name, known._replace(proportions=PROPORTIONS))
    counts = np.bincount(fitted.queries.argmax(axis=1), minlength=4)
    assert np.abs(counts - SIZES).sum() <= 4  # rows at the border of two classes are tied


def test_transport_is_optimal():
    known, _ = example(noise=0.6)
    fitted = classifiers.logistic(10.0, known)
    moved = task.transported(fitted, PROPORTIONS)
    costs = -fitted.queries
    plan = ot.emd(np.full(len(costs), 1 / len(costs)), PROPORTIONS, costs)
    assert moved.queries.max(axis=1).sum() - (moved.queries - fitted.queries)[0] @ SIZES == pytest.approx(
        -np.sum(plan * costs) * len(costs)
    )


REGULARIZERS = [("TIM", 0.1), ("TIM", 1.0), ("alpha-TIM", 2.0), ("alpha-TIM", 1.3), ("Fisher-Rao", 1.0)]


@pytest.mark.parametrize(("name", "parameter"), REGULARIZERS)
@pytest.mark.parametrize("proportions", [None, PROPORTIONS])
def test_gradients_are_those_of_the_objective(name, parameter, proportions):
    known, _ = example()
    known = known._replace(proportions=proportions)
    objective = Objective(information.REGULARIZERS[name](parameter), Setting(5.0, 0.3, parameter), known)
    rng = np.random.default_rng(0)
    W, direction = rng.standard_normal((2, 4, 12)) / 3
    step = 1e-5
    slope = (objective(W + step * direction)[0] - objective(W - step * direction)[0]) / (2 * step)
    assert np.sum(objective(W)[1] * direction) == pytest.approx(slope, rel=1e-5)


def test_regularizers_are_the_published_ones_for_classes_of_one_size():
    P, uniform = predictions(), np.full(4, 0.25)
    mean = P.mean(axis=0)

    def entropy(p):
        return -np.sum(p * np.log(p))

    def tsallis(p, q):
        return (1 - np.sum(p**q)) / (q - 1)

    conditional = np.mean([entropy(p) for p in P])
    assert information.mutual_information(0.1)(P, uniform)[0] == pytest.approx(
        np.log(4) - entropy(mean) + 0.1 * conditional
    )
    for q in (2.0, 1.3, 7.0):
        minus = np.mean([tsallis(p, q) for p in P]) - tsallis(mean, q)
        assert information.tsallis_information(q)(P, uniform)[0] == pytest.approx(minus)
    distances = 2 * np.arccos(np.minimum(np.sqrt(P) @ np.sqrt(P).T, 1))
    expected = np.mean(np.log(np.cos(distances / 2).sum(axis=1)))
    assert information.fisher_rao(1.0)(P, uniform)[0] == pytest.approx(expected)


def test_tsallis_information_of_order_one_is_mutual_information():
    P = predictions()
    for proportions in (np.full(4, 0.25), PROPORTIONS):
        limit = information.tsallis_information(1 + 1e-6)(P, proportions)[0]
        assert limit + np.log(4) == pytest.approx(information.mutual_information(1.0)(P, proportions)[0], abs=1e-4)


@pytest.mark.parametrize(("name", "parameter"), REGULARIZERS)
def test_regularizers_prefer_sure_labels_of_the_given_sizes(name, parameter):
    regularizer = information.REGULARIZERS[name](parameter)
    labels = np.repeat(np.arange(4), SIZES)
    best = regularizer(np.eye(4)[labels], PROPORTIONS)[0]
    rng = np.random.default_rng(0)
    others = [np.eye(4)[rng.integers(4, size=len(labels))] for _ in range(5)]  # sure, of other sizes
    others += [np.tile(PROPORTIONS, (len(labels), 1)), 0.9 * np.eye(4)[labels] + 0.1 * PROPORTIONS]  # unsure
    assert all(best < regularizer(P, PROPORTIONS)[0] for P in others)


@pytest.mark.parametrize(("name", "parameter"), REGULARIZERS)
def test_the_objective_falls(name, parameter):
    known, _ = example()
    objective = Objective(information.REGULARIZERS[name](parameter), Setting(15.0, 0.1, parameter), known)
    W = prototypes.class_means(known)
    values = [objective(information.adam(objective, W, n, 1e-3))[0] for n in (0, 10, 30, 100)]
    assert np.all(np.diff(values) < 0)


def test_without_steps_and_without_neighbors_the_nearest_mean_wins():
    known, _ = example()
    means = prototypes.class_means(known)
    nearest = np.linalg.norm(known.Q[:, None] - means, axis=2).argmin(axis=1)
    learned = information.information_maximized("TIM", Setting(15.0, 0.1, 0.1), known, n_steps=0)
    alone = laplacian.laplacian_shot(0.0, known)
    for fitted in (learned, alone):
        assert np.array_equal(fitted.queries.argmax(axis=1), nearest)
        assert np.array_equal(fitted.score(known.Q).argmax(axis=1), nearest)


@pytest.mark.parametrize("strength", [0.3, 1.0, 3.0])
def test_bound_updates_lower_the_objective(strength):
    known, _ = example(noise=0.5)
    costs = np.square(known.Q[:, None] - prototypes.class_means(known)).sum(axis=2)
    W = laplacian.graph(known.Q)
    Y, values = laplacian.bound_updates(costs, W, strength)
    assert len(values) > 2
    assert np.all(np.diff(values) <= 1e-9)
    dense, y = W.toarray(), softmax(-costs)
    assert np.array_equal(dense, dense.T)
    pairs = sum(dense[i, j] * y[i] @ y[j] for i in range(len(y)) for j in range(len(y)))
    assert values[0] == pytest.approx(np.sum(y * costs + y * np.log(y)) - strength / 2 * pairs)
    assert Y.sum(axis=1) == pytest.approx(1)


def test_neighbors_are_the_most_similar_rows():
    known, _ = example()
    found = np.sort(laplacian.neighbors(known.X, known.Q, 5, block=3), axis=1)
    assert np.array_equal(found, np.sort(np.argsort(-known.X @ known.Q.T, axis=1)[:, :5], axis=1))


def test_sinkhorn_has_the_marginals_of_the_transport_plan():
    scores = 5 * np.random.default_rng(0).standard_normal((50, 4))
    shift = transport.sinkhorn(scores, PROPORTIONS)
    P = softmax(scores + shift)
    assert P.mean(axis=0) == pytest.approx(PROPORTIONS, abs=1e-5)
    plan = ot.sinkhorn(np.full(50, 1 / 50), PROPORTIONS, -scores, 1.0, numItermax=10_000, stopThr=1e-12)
    assert plan * 50 == pytest.approx(P, abs=1e-4)
    assert transport.sinkhorn(scores, PROPORTIONS, shift) == pytest.approx(shift - shift.max())


def test_pt_map_labels_have_the_given_sizes():
    known, _ = example(noise=0.5)
    fitted = transport.pt_map(transport.PowerSetting(), known._replace(proportions=PROPORTIONS))
    assert softmax(fitted.queries).mean(axis=0) == pytest.approx(PROPORTIONS, abs=1e-5)
    assert fitted.score(known.Q) == pytest.approx(fitted.queries)


def test_the_power_transform_keeps_signs():
    rows = np.array([[4.0, -9.0, 0.0]])
    assert transport.powered(rows, 0.5) == pytest.approx(np.array([[2, -3, 0]]) / np.sqrt(13))
    assert transport.powered(rows, 1.0) == pytest.approx(rows / np.sqrt(97))


def test_bd_cspn_takes_weighted_means_of_moved_rows():
    known, _ = example(noise=0.5)
    shift = known.X.mean(axis=0) - known.Q.mean(axis=0)
    first = unit(np.stack([known.X[known.y == k].mean(axis=0) for k in range(4)]))
    sums, total = np.zeros((4, 12)), np.zeros(4)
    for row, k in [*zip(known.X, known.y, strict=True), *((row + shift, None) for row in known.Q)]:
        cosines = first @ row / np.linalg.norm(row)
        k = int(np.argmax(cosines)) if k is None else k
        weight = np.exp(10 * cosines[k]) / np.exp(10 * cosines).sum()
        sums[k] += weight * row
        total[k] += weight
    expected = unit(known.Q + shift) @ unit(sums / total[:, None]).T
    assert prototypes.bd_cspn(1.0, known).queries == pytest.approx(expected)


def test_label_spreading_is_that_of_scikit_learn():
    known, _ = example(noise=0.5)
    X, y = np.concatenate((known.X, known.Q)), np.concatenate((known.y, np.full(len(known.Q), -1)))
    model = LabelSpreading(kernel="knn", n_neighbors=7, alpha=0.8, max_iter=100).fit(X, y)
    found = np.exp(classifiers.label_spreading((7, 0.8), known).queries)
    assert found == pytest.approx(np.maximum(model.label_distributions_[len(known.y) :], classifiers.FLOOR), abs=1e-3)


def test_shift_estimates_find_the_sizes_of_classes_that_are_apart():
    known, _ = example(noise=0.12, each=10)
    assert transport.shift_estimate(100.0, known) == pytest.approx(PROPORTIONS, abs=0.05)


def test_a_setting_is_chosen_on_hidden_labels():
    known, _ = example(noise=0.12)
    calls = []

    def fit(setting, part):
        calls.append((setting, len(part.y)))
        sign = -1 if setting == "worst" else 1
        return task.applied(lambda rows: sign * prototypes.nearest_mean(None, part).score(rows), part)

    assert task.chosen(["worst", "good", "as good"], fit, known, 10) == "good"
    assert len(calls) == 3 * task.N_FOLDS
    assert all(n < len(known.y) for _, n in calls)
    assert task.chosen(["worst"], fit, known, 10) == "worst"
    assert len(calls) == 3 * task.N_FOLDS


def test_the_only_label_of_a_class_is_never_hidden():
    y = np.array([0, 0, 0, 0, 1, 2, 2])
    found = list(task.folds(y))
    assert sorted(np.concatenate(found)) == [0, 1, 2, 3, 5, 6]
    known = Task(np.eye(7), y, np.zeros((3, 7)))
    part = task.hidden(known, found[0], 2)
    assert np.array_equal(part.Q[: len(found[0])], known.X[found[0]])
    assert len(part.Q) == len(found[0]) + 2
    assert len(part.y) == 7 - len(found[0])
    assert set(part.y) == {0, 1, 2}
