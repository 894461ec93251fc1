"""The solver loop: history, clock, interruption and checkpoints, with solvers that only count."""

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from helpers.solver_problems import stop_after

from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.io.checkpoint import CheckpointSlot
from transduce.solvers.loop import CatchInterrupt, Loop, Solver, Turns


@dataclass
class Counting(Solver):
    """Stages of so many rounds each; the objective falls by 1 in every round."""

    n_rounds: tuple[int, ...] = (1, 3, 2)
    n_done: int = 0
    saved: list[int] = field(default_factory=list)
    finished: bool = False

    def start(self):
        return FitResult(np.zeros(2))

    def stages(self, result):
        for stage in range(self.n_done, len(self.n_rounds)):
            yield self._rounds(result, stage)

    def _rounds(self, result, stage):
        for number in range(self.n_rounds[stage]):
            result.objective = -float(sum(self.n_rounds[:stage]) + number)
            yield HistoryRow(stage, 1.0, result.objective, 0, 0.0)
        self.n_done += 1

    def save(self, slot, result):
        self.saved.append(self.n_done)
        slot.save({}, {"n_done": self.n_done})

    def resume(self, slot, result):
        stage = slot.load()
        self.n_done = 0 if stage is None else stage.metadata["n_done"]

    def finish(self, result):
        self.finished = True


def test_rows_are_reported_and_kept_with_restart_and_time():
    reported = []
    result = Loop(reported.append).run(Counting(), restart=3)
    assert reported == result.history
    assert [row.stage for row in reported] == [0, 1, 1, 1, 2, 2]
    assert {row.restart for row in reported} == {3}
    assert np.all(np.diff([row.seconds for row in reported]) >= 0)
    assert result.status is FitStatus.CONVERGED


def test_each_complete_stage_is_saved_once():
    solver = Counting()
    Loop().run(solver)
    assert solver.saved == [1, 2, 3]


def test_an_interrupt_keeps_the_last_round_and_saves_no_half_stage():
    solver = Counting()
    result = Loop(stop_after(3)).run(solver)
    assert result.status is FitStatus.INTERRUPTED
    assert len(result.history) == 3
    assert solver.saved == [1]
    assert solver.finished


def test_an_interrupt_before_the_first_result_is_passed_on():
    solver = Counting()
    solver.resume = lambda slot, result: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        Loop().run(solver)
    assert not solver.finished


def test_an_error_at_the_end_of_an_interrupted_solver_is_an_interrupt():
    """A lost worker would start the fit again, which nobody wants after Ctrl-C."""

    class Lost(Counting):
        def finish(self, result):
            raise OSError("gone")

    with pytest.raises(KeyboardInterrupt) as caught:
        Loop(stop_after(2)).run(Lost())
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(OSError, match="gone"):
        Loop().run(Lost())


def test_a_saved_fit_continues_with_the_next_stage_and_ends_the_same(tmp_path):
    whole = Loop().run(Counting())
    Loop(stop_after(5)).run(Counting(), CheckpointSlot(tmp_path / "restart"))
    result = Loop().run(Counting(), CheckpointSlot(tmp_path / "restart"))
    assert [(row.stage, row.objective) for row in result.history] == [
        (row.stage, row.objective) for row in whole.history
    ]


def test_the_clock_continues_after_the_rows_of_a_checkpoint():
    slot = CheckpointSlot(reported=[HistoryRow(0, 1.0, 0.0, 0, 0.0, seconds=1e6)])
    history = Loop().run(Counting(), slot).history
    assert np.all(np.diff([row.seconds for row in history]) >= 0)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_interrupt_in_one_restart_stops_the_others(n_threads):
    loop, results = Loop(stop_after(4)), {}

    def run_one(k):
        results[k] = yield from loop.rounds(Counting((2, 10_000)), restart=k)

    assert loop.run_all(run_one, 3, n_threads)
    assert all(result.status is FitStatus.INTERRUPTED for result in results.values())


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_a_restart_is_raised(n_threads):
    def run_one(k):
        yield
        if k == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Loop().run_all(run_one, 3, n_threads)


def test_catch_interrupt_catches_nothing_else():
    with CatchInterrupt() as interruption:
        pass
    assert not interruption.happened
    with CatchInterrupt() as interruption:
        raise KeyboardInterrupt
    assert interruption.happened
    with pytest.raises(ValueError, match="other"), CatchInterrupt():
        raise ValueError("other")


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_first_restart_has_a_result_even_if_another_is_interrupted_before_it_starts(n_threads):
    loop, results = Loop(), {}
    loop.stopped.set()

    def run_one(k):
        results[k] = yield from loop.rounds(Counting((2, 3)), restart=k)

    assert loop.run_all(run_one, 3, n_threads)
    assert list(results) == [0]
    assert results[0].status is FitStatus.INTERRUPTED
    assert np.isfinite(results[0].objective)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_threads_take_turns_at_all_jobs_and_begin_no_more_than_they_need(n_threads):
    begun, ended, most = set(), set(), []

    def job(k):
        begun.add(k)
        for _ in range(3 * k + 1):
            most.append(len(begun - ended))
            yield
        ended.add(k)

    assert not Loop().run_all(job, 7, n_threads)
    assert ended == set(range(7))
    assert max(most) <= n_threads + (n_threads > 1)


def test_a_free_thread_goes_on_with_the_job_that_had_the_least_time():
    """One thread looks after two jobs by turns, so that neither waits for the end of the other."""
    order, turns = [], Turns([], 1, threading.Event())

    def job(k):
        for _ in range(3):
            order.append(k)
            turns.seconds[k] = len(order)  # as if each piece took one second
            yield

    turns.jobs, turns.n_at_once = [job(0), job(1)], 2
    turns.work()
    assert order == [0, 1, 0, 1, 0, 1]


def test_an_interrupt_ends_jobs_that_wait():
    """Also one that no thread works on; one that has not begun is left alone, unless it is the first."""
    interrupted = []

    def job(k):
        try:
            yield
            yield
        except KeyboardInterrupt:
            interrupted.append(k)

    turns = Turns([job(0), job(1), job(2)], 1, threading.Event())
    next(turns.jobs[1])
    turns.seconds[1] = 0.0
    turns.interrupt()
    assert interrupted == [1]
    assert turns.jobs[0].gi_frame.f_lasti > 0
