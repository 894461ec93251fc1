"""Studies of more answers and of rows that fit no class: their measures and verdicts."""

import numpy as np
import pytest

from experiments import more_answers, none_of_these, study
from experiments.data import Source


def answer_rows(values, name="r8", first="random"):
    return [
        {"set": name, "seed": seed, "first": first, "annealing": "paper", "more": more, "macro_f": f}
        for more, found in values.items()
        for seed, f in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("after", "word"), [((0.5, 0.72), study.AGREES), ((0.5, 0.692), study.PARTLY), ((0.4, 0.7), study.DIFFERS)]
)
def test_more_labels_must_not_lower_the_mean_of_any_set(after, word):
    rows = answer_rows({"none": (0.5, 0.7), "random": (0.6, 0.8), "queue": after})
    rows += answer_rows({"none": (0.5, 0.7), "random": (0.6, 0.8), "queue": (0.9, 0.9)}, "la1")
    assert more_answers.gains(rows, "random", set="r8") == pytest.approx([0.1, 0.1])
    random, queue = more_answers.verdicts(rows)
    assert (random.word, queue.word) == (study.AGREES, word)
    assert ("r8" in queue.reason) == (word != study.AGREES)
    assert "| random | la1 | .600 | +0.100 ± .000 | +0.300 ± .100 |" in more_answers.table(rows)


def test_labels_are_added_to_those_that_were_there():
    rows = more_answers.run(Source(None), {"set": "r8", "seed": 0, "first": "by class", "annealing": None})
    assert [row["more"] for row in rows] == ["none", "random", "queue"]
    assert [row["n_labeled"] for row in rows] == [60, 110, 110]
    assert all(0 < row["macro_f"] <= 1 for row in rows)


@pytest.mark.parametrize("seed", range(5))
def test_the_tuned_threshold_has_the_best_f(seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(60) < 0.3
    values = rng.random(60) + 0.5 * ~positive
    best = none_of_these.best_threshold(values, positive)
    thresholds = [*values, np.inf]
    scores = [none_of_these.f1_score(positive, values < one, zero_division=0) for one in thresholds]
    assert none_of_these.f1_score(positive, values < best) == pytest.approx(max(scores))


def test_neighbours_are_those_of_the_definition():
    X = none_of_these.load(None)[0][:1100]
    cosines = (X @ X.T).toarray()
    np.fill_diagonal(cosines, -1)
    expected = np.sort(cosines, axis=1)[:, -none_of_these.N_NEAREST :].mean(axis=1)
    assert np.allclose(none_of_these.nearness(X), expected)


def test_leads_over_tuned_thresholds_are_paired_by_seed():
    logistic, margin = (f"{peer}{none_of_these.TUNED}" for peer in none_of_these.PEERS)
    leads = {none_of_these.OURS: (0.5, 0.6), logistic: (0.3, 0.4), margin: (0.39, 0.49)}
    rows = [
        {"n_labeled": 80, "seed": seed, "method": method, "none_f": f, "macro_f": f, "n_none": 9, "fraction": 0.1}
        for method, found in leads.items()
        for seed, f in enumerate(found)
    ]
    found = none_of_these.verdicts(rows)
    assert [(verdict.ours, verdict.word) for verdict in found] == [
        ("+0.200", study.AGREES),
        ("+0.110", study.PARTLY),
        ("+0.200", study.AGREES),
    ]
    assert "| transduce | .550 ± .071 | .550 ± .071 | 9 |" in none_of_these.table(rows)
