"""Threads over blocks: results in order, a bounded number in flight, and one BLAS thread while fits overlap."""

import pickle
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from transduce import parallel
from transduce.parallel import BLOCKS_AHEAD, Threads, effective_n_jobs, one_blas_thread, row_blocks


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_blocks(n_threads):
    values = np.random.default_rng(0).normal(size=1000)
    blocks = row_blocks(1000, 7)
    with Threads(n_threads) as threads:
        sums = list(threads.map(lambda rows: values[rows].sum(), blocks))
    assert sums == [values[rows].sum() for rows in blocks]


def test_a_bounded_number_of_blocks_is_in_flight():
    started = []
    with Threads(2) as threads:
        for n_read, _ in enumerate(threads.map(started.append, range(100))):
            assert n_read < len(started) <= n_read + BLOCKS_AHEAD * 2
    assert sorted(started) == list(range(100))


@pytest.mark.parametrize("n_blocks", [4, 100])
def test_an_error_in_a_block_is_raised(n_blocks):
    blocks = [1, 2, 0, *range(3, n_blocks)]
    with Threads(2) as threads:
        for run in (threads.each, lambda *args: list(threads.map(*args))):
            with pytest.raises(ZeroDivisionError):
                run(lambda block: 1 // block, blocks)
            with pytest.raises(IndexError):
                run(lambda block: [][block], blocks)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_all_results_come_in_the_order_of_the_blocks(n_threads):
    with Threads(n_threads) as threads:
        assert threads.each(lambda block: block**2, range(200)) == [block**2 for block in range(200)]
        assert threads.each(str, []) == []


def test_the_threads_of_the_caller_and_of_the_pool_share_the_blocks():
    barrier = threading.Barrier(3, timeout=600)

    def meet(block):
        barrier.wait()
        return threading.get_ident()

    with Threads(3) as threads:
        found = threads.each(meet, range(3))
    assert len(set(found)) == 3
    assert threading.get_ident() in found


def test_blocks_that_are_running_end_before_an_error_is_raised():
    caller, both_run, failed, ended = threading.get_ident(), threading.Barrier(2, timeout=600), threading.Event(), []

    def run(block):
        both_run.wait()
        if threading.get_ident() == caller:
            failed.set()
            raise KeyboardInterrupt
        assert failed.wait(600)
        ended.append(block)

    with Threads(2) as threads:
        with pytest.raises(KeyboardInterrupt):
            threads.each(run, range(2))
        assert len(ended) == 1


@pytest.mark.parametrize("moment", ["while threads start", "while threads end"])
def test_ctrl_c_leaves_no_thread_at_work(moment, monkeypatch):
    caller, released, running, done = threading.get_ident(), threading.Event(), threading.Event(), []

    def run(block):
        if threading.get_ident() == caller:
            assert running.wait(600)
        else:
            running.set()
            assert released.wait(600)
            done.append(block)

    def interrupt(*_):
        assert running.wait(600)
        released.set()
        monkeypatch.undo()
        raise KeyboardInterrupt

    with Threads(3) as threads:
        if moment == "while threads end":
            monkeypatch.setattr(parallel, "wait", interrupt)
        else:
            executor, submit = threads._started(), threads._started().submit
            monkeypatch.setattr(
                executor, "submit", lambda work: interrupt() if running.is_set() else submit_and_see(work)
            )

            def submit_and_see(work):
                helper = submit(work)
                assert running.wait(600)
                return helper

        with pytest.raises(KeyboardInterrupt):
            threads.each(run, range(20))
        n_done = len(done)
        assert n_done >= 1
    assert len(done) == n_done


def test_threads_can_be_pickled():
    assert pickle.loads(pickle.dumps(Threads(3))).n_threads == 3


def test_blocks_that_share_out_blocks_of_their_own_do_not_wait_for_a_free_thread():
    with Threads(2) as threads:
        found = threads.each(lambda block: threads.each(lambda inner: (block, inner), range(3)), range(4))
    assert found == [[(block, inner) for inner in range(3)] for block in range(4)]


def test_one_thread_runs_in_the_thread_of_the_caller():
    for n_threads, blocks in ((1, [0, 1]), (2, [0])):
        with Threads(n_threads) as threads:
            assert set(threads.map(lambda _: threading.get_ident(), blocks)) == {threading.get_ident()}


def test_each_thread_has_scratch_arrays_of_its_own():
    threads, barrier = Threads(2), threading.Barrier(2)

    def scratch(block):
        barrier.wait()
        return [array.ctypes.data for array in threads.scratch(2, 10)], threads.scratch(2, 10)[0].size

    with threads:
        (one, size), (other, _) = threads.map(scratch, [0, 1])
    assert len({*one, *other}) == 4
    assert size == 10


def test_scratch_arrays_are_used_again_and_grow():
    threads = Threads()
    (first,) = threads.scratch(1, 10)
    assert threads.scratch(1, 5)[0] is first
    assert threads.scratch(2, 20)[1].size == 20


@pytest.mark.parametrize(("n_rows", "size", "start"), [(10, 3, 0), (10, 5, 0), (10, 20, 0), (10, 4, 3), (0, 4, 0)])
def test_row_blocks_cover_every_row_once(n_rows, size, start):
    blocks = row_blocks(n_rows, size, start)
    assert [row for rows in blocks for row in range(rows.start, rows.stop)] == list(range(start, n_rows))
    assert all(rows.stop - rows.start == size for rows in blocks[:-1])


def test_negative_numbers_of_jobs_count_from_the_number_of_cores():
    cores = effective_n_jobs(None)
    assert [effective_n_jobs(n) for n in (1, 7, -1, -cores, -cores - 5)] == [1, 7, cores, 1, 1]


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_blas_has_one_thread_until_the_last_fit_ends():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() <= {1}
        first.__exit__(None, None, None)
        assert blas_threads() <= {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
