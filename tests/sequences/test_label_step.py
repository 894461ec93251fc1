"""The label step against brute force: constraints, counts of tokens and blocks, and the certificate."""

from itertools import product

import numpy as np
import pytest
from helpers.chain_problems import chains_of, enumerate_chain, random_rules, random_scores

from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.errors import InputError
from transduce.label_step.count_tree import CountTree
from transduce.sequences import label_step
from transduce.sequences.automaton import Rules
from transduce.sequences.chains import Fields
from transduce.sequences.constraints import Once
from transduce.sequences.counts import Counts
from transduce.sequences.exchange import choose_labelings
from transduce.sequences.label_step import LabelStep


def step_of(chains, rules, tokens=None, blocks=None, stated=()):
    K = chains.n_labels
    fields = Fields(rules.field, rules.starts)
    counts = Counts(tokens, np.zeros(K), fields, blocks, np.array(stated, dtype=np.int64))
    return LabelStep(chains, rules, counts, np.zeros((K + 2, K), bool), np.arange(chains.n_sequences))


def test_the_best_labels_of_1000_generated_problems_with_constraints_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    n_binding = 0
    for _ in range(1000):
        n_labels, length = int(rng.integers(2, 5)), int(rng.integers(1, 6))
        chains, rules = chains_of([length], n_labels), random_rules(rng, n_labels)
        (S, A), v = random_scores(rng, length, n_labels), rng.normal(size=n_labels)
        every = enumerate_chain(chains, 0, S, A, v, rules)
        if not np.isfinite(every.scores).any():
            with pytest.raises(InputError, match="allow no labels for sequence 0"):
                step_of(chains, rules).best(S, A, v)
            continue
        y, scores, slack = step_of(chains, rules).best(S, A, v)
        cost = rules.check(y, chains.offsets)[0][0]
        assert slack[0] == 0.0
        assert scores[0] == pytest.approx(every.scores.max())
        assert every.scores[every.labels.index(tuple(y))] == pytest.approx(every.scores.max())
        n_binding += chains.viterbi(S, A, v)[1][0] > every.scores.max() + 1e-9
        assert np.isfinite(cost)
    assert n_binding > 300  # the constraints matter in these problems


def brute_force(chains, S, A, rules, cost_of_counts):
    """Least total cost over all labels of all chains."""
    every = [enumerate_chain(chains, s, S, A, np.zeros(A.shape[1]), rules) for s in range(chains.n_sequences)]
    best = np.inf
    for choice in product(*(range(len(each.labels)) for each in every)):
        y = np.concatenate([each.labels[i] for each, i in zip(every, choice, strict=True)])
        scores = sum(each.scores[i] for each, i in zip(every, choice, strict=True))
        best = min(best, cost_of_counts(y) - scores)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_counts_as_beliefs_are_solved_within_the_certificate(seed):
    rng = np.random.default_rng(seed)
    chains, rules = chains_of([3, 2, 3], 3), random_rules(rng, 3) if seed % 2 else Rules.create(list("abc"), None)
    S, A = random_scores(rng, 8, 3)
    belief = Belief.create(rng.uniform(0.5, 6.0, 3), rng.uniform(0.3, 3.0, 3))
    tree = CountTree.create(Bounds(np.zeros(3, int), np.full(3, 8), belief=belief), 8)
    step = step_of(chains, rules, tree)
    try:
        found = step.hard(S, A, step.counts.start())
    except InputError:
        pytest.skip("no labels are possible")
    found = step.improve(S, A, found) if seed % 3 else found

    def cost_of(y):
        return float(belief.cost(np.bincount(y, minlength=3)).sum())

    cost = cost_of(found.y) - float(found.scores.sum())
    best = brute_force(chains, S, A, rules, cost_of)
    assert cost >= best - 1e-9
    assert cost - found.gap <= best + 1e-9  # the certificate is a lower bound
    assert np.isfinite(rules.check(found.y, chains.offsets)[0]).all()


def test_exact_counts_are_met():
    rng = np.random.default_rng(1)
    lengths = rng.integers(3, 9, 40).tolist()
    n, chains = sum(lengths), chains_of(lengths, 3)
    (S, A), counts = random_scores(rng, n, 3, 1.0), np.array([n // 2, n // 3, n - n // 2 - n // 3])
    step = step_of(chains, Rules.create(list("abc"), None), CountTree.create(Bounds.exact(counts), n))
    found = step.improve(S, A, step.hard(S, A, step.counts.start()))
    assert np.bincount(found.y, minlength=3).tolist() == counts.tolist()
    log_z = chains.marginals(S, A).log_z
    assert found.gap <= 0.01 * float((log_z - found.scores).sum())


def test_sequences_exchange_labels_where_labels_come_in_blocks():
    """Where neighbours want the same label, a switch of one token costs much, and whole sequences have to change."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(6, 12, 60).tolist()
    n, chains = sum(lengths), chains_of(lengths, 4)
    S, A = random_scores(rng, n, 4, 0.5)
    A[:4] += 3.0 * np.eye(4)
    free = np.bincount(chains.viterbi(S, A)[0], minlength=4)
    counts = np.bincount(rng.choice(4, n, p=(free + 40) / (free + 40).sum()), minlength=4)
    step = step_of(chains, Rules.create(list("abcd"), None), CountTree.create(Bounds.exact(counts), n))
    alone = step.hard(S, A, step.counts.start())
    found = step.improve(S, A, alone)
    assert np.bincount(found.y, minlength=4).tolist() == counts.tolist()
    assert found.gap < 0.3 * alone.gap


@pytest.mark.parametrize("seed", range(30))
def test_the_choice_of_labellings_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    C, n, J = 4, 5, 3
    tallies = rng.multinomial(6, np.full(J, 1 / J), size=(C, n)).astype(float)
    scores = rng.normal(size=(C, n))
    wanted = tallies[rng.integers(0, C, n), np.arange(n)].sum(axis=0)
    low, high = wanted - rng.integers(0, 2, J), wanted + rng.integers(0, 2, J)
    belief = Belief.create(wanted + 1.0, rng.uniform(0.3, 2.0, J) * (rng.random(J) < 0.5))
    table = np.column_stack((tallies[0].sum(axis=0), belief.mean, belief.strength, low, high))
    chosen = choose_labelings(scores, tallies, table, rng.normal(size=J))

    def cost_of(choice):
        counts = tallies[list(choice), np.arange(n)].sum(axis=0)
        outside = np.maximum(low - counts, 0.0) + np.maximum(counts - high, 0.0)
        believed = belief.strength > 0
        costs = Belief.create(belief.mean[believed], belief.strength[believed]).cost(counts[believed])
        return 100.0 * outside.sum() + costs.sum() - scores[list(choice), np.arange(n)].sum()

    assert cost_of(chosen) == pytest.approx(min(map(cost_of, product(range(C), repeat=n))))


def test_counts_of_blocks_are_met():
    rng = np.random.default_rng(2)
    lengths = [8] * 50
    chains, rules = chains_of(lengths, 3), Rules.create(list("abc"), None)
    S, A = random_scores(rng, 400, 3, 1.0)
    before = rules.check(chains.viterbi(S, A)[0], chains.offsets)[2].sum(axis=0)
    wanted = int(before[1]) - 30
    blocks = CountTree.create(Bounds.exact(np.array([wanted])), 10**9)
    step = step_of(chains, rules, None, blocks, [1])
    out = S.copy()
    prices, sums = step.soft(out, A, 0.5, step.counts.start(), np.ones(50), tol=1e-5)
    assert sums.blocks.sum(axis=0)[1] == pytest.approx(wanted, abs=0.5)
    found = step.hard(S, A, prices)
    after = rules.check(found.y, chains.offsets)[2].sum(axis=0)[1]
    assert abs(after - wanted) <= 0.05 * before[1]


def test_soft_labels_meet_a_constraint_that_they_would_break():
    rng = np.random.default_rng(3)
    rules = Rules.create(list("abc"), None, [Once("a")])
    chains = chains_of([6] * 20, 3)
    S, A = random_scores(rng, 120, 3)
    step, ones = step_of(chains, rules), np.ones(20)
    first = step.soft(S.copy(), A, 1.0, step.counts.start(), ones)[1]
    assert (first.blocks - first.peaks)[:, 0].max() > 0.1
    out = S.copy()
    step.soft(out, A, 1.0, step.counts.start(), ones)
    for s in np.flatnonzero(step.watched[:, 0]):
        every = enumerate_chain(chains, s, S, A, np.zeros(3), rules)
        np.testing.assert_allclose(out[6 * s : 6 * s + 6], every.marginals(3), atol=1e-9)
    assert step.watched[:, 0].sum() > 5


def test_more_fields_than_can_be_watched_are_priced_and_the_slack_is_a_bound(monkeypatch):
    monkeypatch.setattr(label_step, "HARD_BITS", 1)
    rng = np.random.default_rng(4)
    rules = Rules.create(list("abcd"), None, [Once(name) for name in "abcd"])
    slacks = []
    for _ in range(50):
        chains = chains_of([6], 4)
        S, A = random_scores(rng, 6, 4)
        y, scores, slack = step_of(chains, rules).best(S, A)
        every = enumerate_chain(chains, 0, S, A, np.zeros(4), rules)
        assert np.isfinite(rules.check(y, chains.offsets)[0][0])
        assert every.scores[every.labels.index(tuple(y))] == pytest.approx(scores[0])
        assert scores[0] - 1e-9 <= every.scores.max() <= scores[0] + slack[0] + 1e-9
        slacks.append(slack[0])
    assert max(slacks) > 0


def test_the_slack_is_a_bound_where_some_constraints_have_a_cost(monkeypatch):
    monkeypatch.setattr(label_step, "HARD_BITS", 1)
    rng = np.random.default_rng(5)
    stated = [Once("a"), Once("b", cost=1.0), Once("c", cost=0.5), Once("d", cost=1.0)]
    rules = Rules.create(list("abcd"), None, stated)
    for _ in range(200):
        chains, v = chains_of([6], 4), rng.normal(size=4)
        S, A = random_scores(rng, 6, 4)
        y, scores, slack = step_of(chains, rules).best(S, A, v)
        every = enumerate_chain(chains, 0, S, A, v, rules)
        assert every.scores[every.labels.index(tuple(y))] == pytest.approx(scores[0])
        assert scores[0] - 1e-9 <= every.scores.max() <= scores[0] + slack[0] + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_exact_counts_and_ranges_are_certified_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    chains, rules = chains_of([3, 2, 3], 3), Rules.create(list("abc"), None, [Once("a", cost=0.7)] * (seed % 2))
    S, A = random_scores(rng, 8, 3)
    wanted = rng.multinomial(8, np.full(3, 1 / 3))
    low, high = np.maximum(wanted - rng.integers(0, 2, 3), 0), wanted + rng.integers(0, 2, 3)
    step = step_of(chains, rules, CountTree.create(Bounds(low, high), 8))
    found = step.improve(S, A, step.hard(S, A, step.counts.start()))

    def cost_of(y):
        counts = np.bincount(y, minlength=3)
        return 0.0 if ((low <= counts) & (counts <= high)).all() else np.inf

    best = brute_force(chains, S, A, rules, cost_of)
    assert not found.missed
    assert best - 1e-9 <= -found.scores.sum() <= best + found.gap + 1e-9


def test_bounds_that_constraints_forbid_are_reported_and_leave_other_labels_alone():
    rng = np.random.default_rng(6)
    chains = chains_of([5] * 20, 3)
    rules = Rules.create(list("abc"), None, [Once("a", at_most=True, at_least=True)])
    S, A = random_scores(rng, 100, 3)
    step = step_of(chains, rules, CountTree.create(Bounds(np.zeros(3, int), np.array([2, 100, 100])), 100))
    found = step.improve(S, A, step.hard(S, A, step.counts.start()))
    counts = np.bincount(found.y, minlength=3)
    assert found.missed == [(True, 0, counts[0], 0, 2)]
    assert counts[0] >= 20  # one block in each
    assert found.gap == np.inf
    assert np.abs(found.prices.tokens).max() < 40
    free = step_of(chains, rules).best(S, A)[0]
    assert np.mean(free[found.y != 0] == found.y[found.y != 0]) > 0.8
