"""A CUDA graph made of operations on the processor: it does again just what was recorded, on the same arrays.

So tests without a GPU show that recorded work asks nothing of the host and leaves its results where it found them.
"""

from contextlib import nullcontext

import pytest

from transduce.engines.device import arrays, engine, label_rows, restart, rows, weights

HOST_OPERATIONS = {
    "aten::_local_scalar_dense",  # a number that Python reads
    "aten::lift_fresh",  # an array made of numbers of Python or NumPy
    "aten::scalar_tensor",  # a number in a choice, which a GPU gets from the host
    "aten::nonzero",  # a result whose size depends on values
    "aten::masked_select",
    "aten::equal",
    "aten::repeat_interleave",
    "aten::_unique2",
}


def recorded_graphs(monkeypatch) -> list:
    """Let replays record work on the processor; returns the graphs that are made, each with the name of its work."""
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    made, recording, copy = [], [], arrays.to_host

    def to_host(x):
        """Copy an array to NumPy, which on the processor no operation of torch shows."""
        if recording:
            raise AssertionError("a copy to the host in recorded work")
        return copy(x)

    class Recorder(TorchDispatchMode):
        def __init__(self, operations):
            super().__init__()
            self.operations = operations

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function._schema.name
            is_mask = name == "aten::index" and any(x is not None and x.dtype == torch.bool for x in args[1])
            if name in HOST_OPERATIONS or is_mask:
                raise AssertionError(f"{name} in recorded work")
            result = function(*args, **(kwargs or {}))
            self.operations.append((function, args, kwargs or {}, result))
            return result

    class Graph:
        def __init__(self):
            self.operations, self.n_replayed = [], 0
            made.append(self)

        def capture_begin(self):
            self.recorder = Recorder(self.operations).__enter__()
            recording.append(self)

        def capture_end(self):
            recording.pop()
            self.recorder.__exit__(None, None, None)

        def replay(self):
            """Run every operation again, into the memory of its recorded result; recording ran them the first time."""
            for function, args, kwargs, result in self.operations if self.n_replayed else ():
                again = function(*args, **kwargs)
                for new, old in zip(tree_leaves(again), tree_leaves(result), strict=True):
                    if isinstance(old, torch.Tensor) and new.data_ptr() != old.data_ptr():
                        old.copy_(new)
            self.n_replayed += 1

    def recorded(work, device):
        graph = record(work, device)
        graph.name = work.__qualname__.split(".<")[0]
        return graph

    record = arrays._recorded
    monkeypatch.setattr(arrays, "_recorded", recorded)
    for module in (arrays, engine, label_rows, restart, rows, weights):
        if hasattr(module, "to_host"):
            monkeypatch.setattr(module, "to_host", to_host)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(arrays, "_recording_stream", lambda device: None)
    monkeypatch.setattr(arrays, "can_record", lambda like: True)
    return made
