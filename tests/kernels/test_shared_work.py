"""Pieces of work inside a kernel: each is taken once, and a thread waits for pieces that others have not finished."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from transduce.kernels import kernel
from transduce.kernels.shared_work import LINE, new_counters, take_next, wait_until

N_PIECES, N_PHASES = 50, 40


@kernel
def add_up(counters, cells):
    """In each phase every cell becomes the sum of all cells of the phase before, and 1."""
    for phase in range(1, N_PHASES):
        while True:
            piece = take_next(counters, 2 * phase)
            if piece >= N_PIECES:
                break
            cells[phase, piece] = cells[phase - 1].sum() / N_PIECES + 1.0
            take_next(counters, 2 * phase + 1)
        wait_until(counters, 2 * phase + 1, N_PIECES)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_phase_sees_all_of_the_phase_before(n_threads):
    counters, cells = new_counters(2 * N_PHASES), np.zeros((N_PHASES, N_PIECES))
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda _: add_up(counters, cells), range(n_threads)))
    np.testing.assert_array_equal(cells, np.repeat(np.arange(N_PHASES)[:, None], N_PIECES, axis=1))
    assert np.all(counters[3 * LINE :: 2 * LINE] == N_PIECES)
