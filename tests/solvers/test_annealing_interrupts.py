"""Soft annealing that is interrupted, in one thread or several: no round follows, and a complete restart is kept."""

import signal
import threading

import pytest
from helpers.solver_checks import check_labels, true_objective
from helpers.solver_problems import AnnealingRun, annealing, known_labels, stop_after

from transduce.history import FitStatus
from transduce.solvers.schedule import COOLINGS, N_STAGES, ROUNDS

one_and_two_threads = pytest.mark.parametrize("n_threads", [1, 2])


def check_interrupted(soft: AnnealingRun, result) -> None:
    """Labels meet the counts, and J is that of the weights at some stage."""
    assert result.status is FitStatus.INTERRUPTED
    check_labels(soft, result)
    weights = (0.0, *soft.alternation.settings.weights)
    assert any(result.objective == pytest.approx(true_objective(soft, result, w), rel=1e-9) for w in weights)


@one_and_two_threads
@pytest.mark.parametrize("n_rounds", [2, 7, 14, 24, 34])
def test_an_interrupt_after_any_round_leaves_a_usable_result(n_rounds, n_threads):
    soft = annealing(n_threads=n_threads, on_round=stop_after(n_rounds))
    check_interrupted(soft, soft.run(known_labels()))


@pytest.mark.parametrize("n_rounds", [15, 21, 30])
def test_an_interrupt_while_labels_are_soft_keeps_the_papers_schedule(n_rounds):
    soft = annealing(on_round=stop_after(n_rounds))
    result = soft.run(known_labels())
    assert len(result.history) == n_rounds
    paper = [row for row in result.history if row.restart == 0]
    assert result.objective <= paper[-1].objective
    check_interrupted(soft, result)


class Never:
    """A weight step that is interrupted before it has done anything."""

    def start(self, problem, targets):
        raise KeyboardInterrupt


@one_and_two_threads
def test_an_interrupt_before_anything_is_complete_is_passed_on(n_threads):
    soft = annealing(n_threads=n_threads, weight_step=Never())
    with pytest.raises(KeyboardInterrupt):
        soft.run(known_labels())


def test_control_c_stops_every_thread():
    """The signal reaches the main thread, which waits for the restarts."""
    reported, handled = [], threading.Event()

    def handle(*_):
        handled.set()
        raise KeyboardInterrupt

    def press(row):
        reported.append(row)
        if row.restart == 0 and row.stage == 2 and not handled.is_set():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            handled.wait()  # no other restart reports a round meanwhile

    soft = annealing(n_threads=2, on_round=press)
    previous = signal.signal(signal.SIGINT, handle)
    try:
        result = soft.run(known_labels())
    finally:
        signal.signal(signal.SIGINT, previous)
    check_interrupted(soft, result)
    assert len(reported) <= len(result.history) < N_STAGES * ROUNDS * len(COOLINGS)


@one_and_two_threads
@pytest.mark.parametrize("n_rounds", [1, 30])
def test_an_error_in_a_callback_surfaces(n_rounds, n_threads):
    def fail(row):
        reported.append(row)
        if len(reported) >= n_rounds:
            raise ZeroDivisionError("the user's own")

    reported = []
    with pytest.raises(ZeroDivisionError, match="the user's own"):
        annealing(n_threads=n_threads, on_round=fail).run(known_labels())


@pytest.mark.parametrize("n_rounds", [3, 8])
def test_no_round_follows_an_interrupt(n_rounds):
    reported = []

    def press(row):
        reported.append(row)
        if len(reported) == n_rounds:
            raise KeyboardInterrupt

    annealing(on_round=press).run(known_labels())
    assert len(reported) == n_rounds
