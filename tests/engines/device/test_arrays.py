"""Work that a GPU replays, and cells of sparse rows."""

from contextlib import nullcontext

import numpy as np
import pytest
from helpers.device_arrays import torch_csr
from scipy import sparse

from transduce.engines.device import arrays
from transduce.engines.device.arrays import Arrays, Replay, csr_cells, in_blocks, sum_of_squares, to_host


class FakeGraph:
    """A CUDA graph that counts what is asked of it."""

    calls: list[str]

    def __getattr__(self, name):
        return lambda: FakeGraph.calls.append(name)


class FakeArray:
    """An array on a GPU."""

    is_cuda, device = True, None

    def numel(self):
        return 1


@pytest.fixture
def graphs(monkeypatch):
    torch = pytest.importorskip("torch")
    FakeGraph.calls = []
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(arrays, "_recording_stream", lambda device: None)
    return FakeGraph


def test_work_is_recorded_the_second_time_and_then_replayed(graphs):
    replay, done = Replay(), []
    for _ in range(4):
        replay(lambda: done.append(1), FakeArray())
    assert len(done) == 2
    assert graphs.calls == ["capture_begin", "capture_end", "replay", "replay", "replay"]


def test_a_recording_ends_where_work_fails(graphs):
    replay = Replay()
    replay(lambda: None, FakeArray())
    with pytest.raises(ZeroDivisionError):
        replay(lambda: 1 / 0, FakeArray())
    assert graphs.calls == ["capture_begin", "capture_end"]


def test_in_memory_work_is_done_each_time():
    replay, done = Replay(), []
    for _ in range(3):
        replay(lambda: done.append(1), np.zeros(2))
    assert len(done) == 3


def test_transpose_and_blocks(monkeypatch):
    """In blocks of a few cells, some of which begin within a row."""
    monkeypatch.setattr(arrays, "BLOCK_CELLS", 7)
    X = sparse.random(30, 11, 0.3, format="csr", random_state=0)
    rows = torch_csr(X)
    made = Arrays.of(rows)
    ends, columns, values = map(to_host, arrays.transposed_cells(made.xp, csr_cells(rows), 11))
    np.testing.assert_array_equal(sparse.csr_matrix((values, columns, ends), (11, 30)).toarray(), X.T.toarray())
    dense = rows.to_dense()
    assert sum_of_squares(made, dense) == pytest.approx(X.multiply(X).sum())
    np.testing.assert_array_equal(to_host(in_blocks(made, lambda some: 2.0 * some, dense)), 2.0 * X.toarray())
