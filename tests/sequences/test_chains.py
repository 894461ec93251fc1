"""Forward-backward and Viterbi against enumeration, finite differences, and chains that need logarithms."""

import numpy as np
import pytest
from helpers.chain_problems import LABELS, chains_of, enumerate_chain, random_rules, random_scores

from transduce.sequences.automaton import Rules, forbidden_transitions
from transduce.sequences.chains import Bias
from transduce.sequences.label_step import HARD_TEMPERATURES
from transduce.sequences.problem import given_labels
from transduce.sequences.weights import ChainLoss

NONE = Rules.create(list(LABELS[:3]), None)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_marginals_normalizers_and_transitions_are_those_of_all_labels(temperature):
    rng = np.random.default_rng(0)
    chains = chains_of([4, 1, 3], 3)
    (S, A), v, out = random_scores(rng, 8, 3), rng.normal(size=3), np.empty((8, 3))
    sums = chains.marginals(S, A, v, temperature, out=out)
    edges = np.zeros((5, 3))
    for s in range(3):
        every = enumerate_chain(chains, s, S, A, v, NONE)
        begin, end = chains.offsets[s : s + 2]
        assert sums.log_z[s] == pytest.approx(every.log_z(temperature))
        np.testing.assert_allclose(out[begin:end], every.marginals(3, temperature), atol=1e-12)
        for y, weight in zip(every.labels, np.exp(every.scores / temperature - sums.log_z[s]), strict=True):
            np.add.at(edges, (np.array(y[:-1], int), np.array(y[1:], int)), weight)
            edges[3, y[0]] += weight
            edges[4, y[-1]] += weight
    np.testing.assert_allclose(sums.edges, edges, atol=1e-12)
    np.testing.assert_allclose(sums.tokens, out.sum(axis=0))


def test_marginals_with_an_automaton_are_those_of_all_labels_less_their_costs():
    rng = np.random.default_rng(1)
    for _ in range(30):
        rules, length = random_rules(rng, 4), int(rng.integers(1, 5))
        chains = chains_of([length], 4)
        (S, A), v = random_scores(rng, length, 4), rng.normal(size=4)
        every = enumerate_chain(chains, 0, S, A, v, rules)
        if not np.isfinite(every.scores).any():
            continue
        watching = chains.with_groups([(rules.automaton(np.arange(4)), np.array([0]))])
        out = np.empty((length, 4))
        sums = watching.marginals(S, A, v, 0.7, out=out)
        assert sums.log_z[0] == pytest.approx(every.log_z(0.7))
        np.testing.assert_allclose(out, every.marginals(4, 0.7), atol=1e-12)
        labels, scores = watching.viterbi(S, A, v)
        assert scores[0] == pytest.approx(every.scores.max())
        assert every.scores[every.labels.index(tuple(labels))] == pytest.approx(every.scores.max())


def test_scores_beyond_the_range_of_exponentials_are_solved_with_logarithms():
    rng = np.random.default_rng(2)
    chains = chains_of([4], 3)
    S, A = random_scores(rng, 4, 3, scale=2000.0)
    A = 1000.0 * A
    S[1, :2] = -np.inf
    out = np.empty((4, 3))
    sums = chains.marginals(S, A, None, 1.0, out=out)
    every = enumerate_chain(chains, 0, S, A, np.zeros(3), NONE)
    assert sums.log_z[0] == pytest.approx(every.log_z())
    np.testing.assert_allclose(out, every.marginals(3), atol=1e-9)
    np.testing.assert_allclose(sums.edges[:3].sum(), 3.0)


@pytest.mark.parametrize("temperature", [*HARD_TEMPERATURES, 0.01])
def test_no_path_is_lost_at_low_temperatures(temperature):
    """A state that is far behind may win in the end; if it underflowed to 0, log Z would be below the best score."""
    rng = np.random.default_rng(0)
    chains = chains_of([12] * 100, 4)
    S, A = random_scores(rng, 1200, 4, 4.0)
    A[:4] += 3.0 * np.eye(4)
    S[:6], A[0, 1], A[1, 0] = [[0.0, -8.0, -9.0, -9.0], *[[0.0, 3.0, -9.0, -9.0]] * 5], -15.0, -15.0
    out = S.copy()
    log_z = chains.marginals(S, A, None, temperature, out=out).log_z
    best = chains.viterbi(S, A)[1]
    assert (temperature * log_z >= best - 1e-9).all()
    np.testing.assert_allclose(out.sum(axis=1), 1.0, atol=1e-9)


def test_labels_that_are_not_allowed_have_no_probability_and_are_never_best():
    rng = np.random.default_rng(3)
    chains = chains_of([5], 3)
    table = np.array([[0.0, 0.0, 0.0], [-np.inf, 0.0, -np.inf]])
    chains = type(chains).create(chains.design, chains.offsets, Bias(table, np.array([0, 1, 0, 0, 1], np.int32)))
    (S, A), out = random_scores(rng, 5, 3), np.empty((5, 3))
    chains.marginals(S, A, out=out)
    np.testing.assert_allclose(out[[1, 4]], [[0, 1, 0], [0, 1, 0]])
    assert chains.viterbi(S, A)[0][[1, 4]].tolist() == [1, 1]


@pytest.mark.parametrize("is_margin", [False, True])
def test_the_gradient_of_the_loss_is_that_of_finite_differences(is_margin):
    rng = np.random.default_rng(4)
    chains = chains_of([4, 1, 3], 3, n_features=5)
    kappa = rng.uniform(0.5, 1.5, 3)
    y = rng.integers(0, 3, 8)
    labeling = given_labels(y, chains.offsets, kappa, 3)
    posterior = np.eye(3)[y] if is_margin else None
    loss = ChainLoss(chains, kappa, chains.pullback(*labeling), posterior)
    theta = rng.normal(size=(5 + 5, 3))
    value, gradient = loss(theta)
    assert value >= 0.0
    for _ in range(10):
        direction = rng.normal(size=theta.shape)
        ahead, behind = (loss(theta + step * direction)[0] for step in (1e-5, -1e-5))
        assert (ahead - behind) / 2e-5 == pytest.approx(np.vdot(gradient, direction), rel=1e-6)


def test_the_margin_bounds_the_number_of_wrong_tokens():
    rng = np.random.default_rng(5)
    chains = chains_of([6], 3, n_features=4)
    y = rng.integers(0, 3, 6)
    loss = ChainLoss(chains, np.ones(1), chains.pullback(*given_labels(y, chains.offsets, np.ones(1), 3)), np.eye(3)[y])
    for _ in range(20):
        theta = rng.normal(size=(4 + 5, 3))
        best = chains.viterbi(chains.scores(theta), chains.transitions(theta))[0]
        assert loss(theta)[0] >= np.sum(best != y) - 1e-9


def test_results_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 40, 600).tolist()
    S, A = random_scores(rng, sum(lengths), 4)
    found = []
    for n_jobs in (1, 3):
        chains, out = chains_of(lengths, 4, n_jobs), np.empty_like(S)
        found.append((*chains.marginals(S, A, out=out)[:3], out, *chains.viterbi(S, A)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_valid_transitions_of_bioes():
    labels = ["B-x", "E-x", "I-x", "O", "S-x", "B-y"]
    forbidden = forbidden_transitions(labels, "BIOES")
    allowed_after = {one: [b for k, b in enumerate(labels) if not forbidden[j, k]] for j, one in enumerate(labels)}
    assert allowed_after["B-x"] == ["E-x", "I-x"]
    assert allowed_after["O"] == ["B-x", "O", "S-x", "B-y"]
    assert [b for k, b in enumerate(labels) if not forbidden[-1, k]] == ["E-x", "O", "S-x"]
