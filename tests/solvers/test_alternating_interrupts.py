"""Algorithm 1 that is interrupted: the last complete round is kept, or the interrupt is passed on."""

from dataclasses import dataclass, replace

import pytest
from helpers.solver_checks import check_result
from helpers.solver_problems import alternation, known_labels, stop_after

from transduce.history import FitStatus
from transduce.weight_step import DualLargeMargin


@dataclass
class Interrupted:
    """A weight step that is interrupted at its call number `at`, half-way through its work."""

    at: int
    calls: int = 0
    step = DualLargeMargin(2000)

    def start(self, problem, targets):
        return self.step.start(problem, targets)

    def retarget(self, problem, state, targets, kappa):
        self.step.retarget(problem, state, targets, kappa)

    def solve(self, problem, state, tol, rng):
        self.calls += 1
        if self.calls == self.at:
            replace(self.step, max_sweeps=1).solve(problem, state, tol, rng)
            raise KeyboardInterrupt
        return self.step.solve(problem, state, tol, rng)


def test_an_interrupt_before_the_first_round_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        alternation(weight_step=Interrupted(1)).run(known_labels())


@pytest.mark.parametrize("at", [2, 3, 5, 8])
def test_an_interrupt_in_a_weight_step_leaves_the_last_complete_round(at):
    run = alternation(weight_step=Interrupted(at))
    result = run.run(known_labels())
    assert result.status is FitStatus.INTERRUPTED
    assert len(result.history) == at - 1
    check_result(run, result)


@pytest.mark.parametrize("n_rounds", [2, 3, 6])
def test_an_interrupt_after_a_round_keeps_it(n_rounds):
    run = alternation(on_round=stop_after(n_rounds))
    result = run.run(known_labels())
    assert result.status is FitStatus.INTERRUPTED
    assert len(result.history) == n_rounds
    check_result(run, result)
    uninterrupted = alternation().run(known_labels())
    assert result.objective == uninterrupted.history[n_rounds - 1].objective


def test_an_interrupt_after_the_supervised_start_meets_the_counts_or_is_passed_on():
    run = alternation(on_round=stop_after(1))
    try:
        result = run.run(known_labels())
    except KeyboardInterrupt:
        return
    check_result(run, result)
