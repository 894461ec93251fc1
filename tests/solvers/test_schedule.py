"""Annealing schedules: weights of the stages, and cooling schedules from their first to their last stage."""

import numpy as np
import pytest

from transduce.solvers.schedule import COOLINGS, LAST_ENTROPY, N_STAGES, PAPER, cooling_schedules, stages


@pytest.mark.parametrize(
    ("annealing", "final", "weights"),
    [
        (None, 0.3, (0.3,)),
        ("paper", 1.0, PAPER),
        ("paper", 2.0, tuple(2.0 * weight for weight in PAPER)),
        ([1, 1, 2], 9.0, (1.0, 1.0, 2.0)),
        (np.array([0.5]), 1.0, (0.5,)),
        ((0.1, 1), 1.0, (0.1, 1.0)),
    ],
)
def test_stages_grow_to_the_final_weight(annealing, final, weights):
    assert stages(annealing, final) == weights
    assert all(isinstance(weight, float) for weight in stages(annealing, final))


@pytest.mark.parametrize("annealing", ["slow", [], [1.0, 0.5], [0.0, 1.0], [-1.0], [[1.0]], [0.1, np.nan]])
def test_bad_schedules_get_one_sentence(annealing):
    with pytest.raises(ValueError, match=r"annealing must be .* but is"):
        stages(annealing, 1.0)


@pytest.mark.parametrize("annealing", [3, ["a", "b"], [0.1, np.inf]])
def test_schedules_of_no_numbers_get_one_sentence(annealing):
    with pytest.raises(ValueError, match=r"annealing must be .* but is"):
        stages(annealing, 1.0)


@pytest.mark.parametrize("final", [1.0, 0.25, 3.0])
def test_coolings_go_evenly_from_their_first_weight_and_entropy_to_the_last(final):
    schedules = cooling_schedules(final)
    assert len(schedules) == len(COOLINGS)
    for schedule, (weight, entropy) in zip(schedules, COOLINGS, strict=True):
        assert len(schedule) == N_STAGES
        assert schedule[0].weight == pytest.approx(final * weight)
        assert schedule[0].entropy == entropy
        assert schedule[-1].weight == pytest.approx(final)
        assert schedule[-1].entropy == LAST_ENTROPY
        weights = np.log([stage.weight for stage in schedule])
        entropies = np.log([stage.entropy for stage in schedule])
        np.testing.assert_allclose(np.diff(weights), np.log(1.0 / weight) / (N_STAGES - 1), atol=1e-12)
        np.testing.assert_allclose(np.diff(entropies), np.log(LAST_ENTROPY / entropy) / (N_STAGES - 1), atol=0.08)
        assert np.all(np.diff(entropies) < 0)
