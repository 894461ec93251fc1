"""Fits over shards in this process whose workers are lost, or that are stopped and continued."""

import numpy as np
import pytest
from helpers.dask_blocks import assert_equal_fits, hide_most, make_rows, split
from helpers.inline_pool import InlinePool, fit_inline

from transduce.dask import ClusterError
from transduce.dask import TransductiveClassifier as OverDask

QUICK = {"alpha": 1e-2, "tol": 1e-2, "random_state": 3, "class_prior": "labeled"}


@pytest.mark.parametrize("annealing", ["paper", pytest.param("soft", marks=pytest.mark.slow)])
@pytest.mark.parametrize("stored", [False, True], ids=["from the start", "from the last stage"])
def test_a_fit_that_loses_its_workers_gives_the_same_result(annealing, stored, tmp_path):
    X, truth = make_rows()
    y, how = hide_most(truth), QUICK | {"annealing": annealing}
    blocks = split(X, (60, 99)), split(y, (60, 99))
    undisturbed = OverDask(**how)
    n_calls = fit_inline(undisturbed, *blocks).n_calls
    again = OverDask(**how)
    fit_inline(again, *blocks)
    assert_equal_fits(again, undisturbed)
    for number, lost_at in enumerate(([40, n_calls // 2], [n_calls - 9])):
        clf = OverDask(checkpoint=tmp_path / str(number) if stored else None, **how)
        assert fit_inline(clf, *blocks, lost_at=tuple(lost_at)).n_calls > lost_at[-1]
        assert_equal_fits(clf, undisturbed)


def test_workers_that_are_lost_at_the_same_point_again_and_again_end_the_fit():
    X, truth = make_rows()
    with pytest.raises(ClusterError, match=r"were lost 6 times at the same point"):
        fit_inline(OverDask(random_state=3), [X], [hide_most(truth)], n_workers=1, lost_at=tuple(range(3, 100)))


def test_a_checkpoint_continues_with_another_number_of_workers(tmp_path):
    X, truth = make_rows()
    ends = (60, 99, 170)
    blocks, how = (split(X, ends), split(hide_most(truth), ends)), QUICK | {"annealing": "paper"}
    undisturbed = OverDask(**how)
    fit_inline(undisturbed, *blocks, n_workers=2)
    clf = OverDask(checkpoint=tmp_path / "fit", **how)

    def stop(row):
        if row.stage == 4:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fit_inline(clf.set_params(verbose=stop), *blocks, n_workers=2)
    fit_inline(clf.set_params(verbose=0), *blocks, n_workers=3)
    assert_equal_fits(clf, undisturbed)


def test_a_fit_stopped_while_it_refines_continues_from_the_fit_of_the_sample(tmp_path):
    X, truth = make_rows()
    blocks = split(X, (99,)), split(hide_most(truth), (99,))
    undisturbed, reported = OverDask(annealing="paper", **QUICK), []
    fit_inline(undisturbed, *blocks)
    clf = OverDask(annealing="paper", checkpoint=tmp_path / "fit", **QUICK)

    def stop(row):
        if row.restart:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fit_inline(clf.set_params(verbose=stop), *blocks)
    fit_inline(clf.set_params(verbose=reported.append), *blocks)
    assert_equal_fits(clf, undisturbed)
    assert {row.restart for row in reported} == {1}


def test_ctrl_c_keeps_the_last_complete_round():
    X, truth = make_rows()

    def stop(row):
        if row.stage == 3:
            raise KeyboardInterrupt

    clf = OverDask(annealing="paper", verbose=stop, **QUICK)
    fit_inline(clf, split(X, (99,)), split(hide_most(truth), (99,)))
    assert "nterrupted" in clf.termination_condition_
    assert np.all(clf.class_counts_ <= clf.bounds_.high)
    assert clf.history_[-1].stage == 3


def fit_with_ctrl_c(press_at, annealing, lost=None):
    """Fit with Ctrl-C at a round, and lose all workers at call number `lost` after it; return the number of calls."""
    X, truth = make_rows()
    pool, pressed = InlinePool(2), []

    def press(row):
        if (row.restart, row.stage) == press_at and not pressed:
            pressed.append(pool.n_calls)
            pool.lost_at = () if lost is None else (pool.n_calls + lost,)
            raise KeyboardInterrupt

    clf = OverDask(annealing=annealing, verbose=press, **QUICK)
    clf._fit_blocks(pool, split(X, (99,)), split(hide_most(truth), (99,)), None)
    return pool.n_calls - pressed[0]


def test_workers_lost_after_ctrl_c_end_the_fit():
    """Wherever they are lost before the fit has ended, it is not run again from the start."""
    annealing, press_at = "paper", (0, 2)
    for lost in range(1, fit_with_ctrl_c(press_at, annealing) + 1):
        with pytest.raises(KeyboardInterrupt):
            fit_with_ctrl_c(press_at, annealing, lost)
