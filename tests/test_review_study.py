"""The study of the review: rules of other programs follow their definitions, and targets are judged by the results."""

import numpy as np
import pytest

from experiments import queue_rules, review
from experiments.study import AGREES, DIFFERS

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), 80)
Z = RNG.standard_normal((80, 6))
Z /= np.linalg.norm(Z, axis=1, keepdims=True)
IS_OPEN = RNG.permutation(80) < 60


@pytest.mark.parametrize("rule", queue_rules.RULES)
@pytest.mark.parametrize("n", [1, 10, 100])
def test_rules_choose_distinct_open_rows(rule, n):
    chosen = queue_rules.choose(rule, P, Z, IS_OPEN, n)
    assert len(set(chosen.tolist())) == len(chosen) == min(n, 60)
    assert IS_OPEN[chosen].all()


@pytest.mark.parametrize(
    ("rule", "certainty"),
    [
        (queue_rules.TIES, lambda p: np.diff(np.sort(p)[-2:])[0]),
        (queue_rules.LEAST, max),
        (queue_rules.ENTROPY, lambda p: sum(p * np.log(p))),
    ],
)
def test_the_most_uncertain_rows_come_first(rule, certainty):
    expected = sorted(np.flatnonzero(IS_OPEN), key=lambda row: certainty(P[row]))
    assert queue_rules.choose(rule, P, Z, IS_OPEN, 10).tolist() == expected[:10]


def test_contrast_is_the_mean_divergence_from_the_nearest_rows():
    for row in (0, 7, 33):
        near = np.argsort(-(Z @ Z[row]))[: queue_rules.N_NEAR]
        expected = np.mean([np.sum(P[other] * np.log(P[other] / P[row])) for other in near])
        assert queue_rules.contrast(P, Z)[row] == pytest.approx(expected)


def test_the_core_set_takes_the_row_that_is_farthest_from_all_others():
    known = np.flatnonzero(~IS_OPEN).tolist()
    for one in queue_rules.choose(queue_rules.CORE_SET, P, Z, IS_OPEN, 5).tolist():
        rest = [row for row in np.flatnonzero(IS_OPEN) if row not in known]
        assert one == min(rest, key=lambda row: (Z[known] @ Z[row]).max())
        known.append(one)


def rows(stop_at, lead, covered):
    """Sessions of one set: macro F rises by a tenth in 50 decisions, and stays from 400 on."""
    found = []
    for seed, is_covered in enumerate(covered):
        for method, extra, end in ((review.OURS, lead, 600), (review.RANDOM, 0.0, 200)):
            for n in range(0, end + 1, 50):
                value = min(n, 400) / 500 + extra * (n > 0)
                other = {"low": 0.5, "high": 0.6, "true": 0.55 if is_covered else 0.7, "gain": 0.1}
                stop = int(method == review.OURS and n >= stop_at)
                found.append(
                    {"set": "a", "seed": seed, "method": method, "n": n, "macro_f": value, "stop": stop} | other
                )
    return found


@pytest.mark.parametrize(
    ("stop_at", "lead", "n_covered", "expected"),
    [
        (400, 0.2, 9, [AGREES, AGREES, AGREES, AGREES]),
        (100, 0.2, 9, [AGREES, AGREES, AGREES, DIFFERS]),
        (400, -0.02, 5, [DIFFERS, DIFFERS, DIFFERS, AGREES]),
    ],
)
def test_targets_are_judged_by_the_sessions(stop_at, lead, n_covered, expected):
    found = review.verdicts(rows(stop_at, lead, [k < n_covered for k in range(10)]))
    assert [verdict.word for verdict in found] == expected


def test_a_session_that_is_never_advised_to_stop_counts_until_its_end():
    reached, times = review.stopped([row for row in rows(10**6, 0.0, [True]) if row["method"] == review.OURS])
    assert np.isnan(reached)
    assert times == pytest.approx(600 / 320)


def test_no_cell_is_there_twice_and_peers_have_splits_of_ours():
    cells = [tuple(cell.values()) for cell in review.grid(False)]
    assert len(set(cells)) == len(cells)
    assert set(review.PEER_SEEDS) <= set(review.SEEDS)
