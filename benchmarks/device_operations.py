"""Operations of a fit on a device, counted with torch on the processor: a small fit takes as long as their number.

    python -m benchmarks.device_operations --data DIR

Printed are those of the fit, and for each part of it (parts contain one another) how often it ran, its operations and
their mean. Views and the memory of new arrays are no operations. On a GPU an operation is a kernel, or a few: a sort
or a product with sparse rows. `--kinds` adds what the last iteration and the last round with soft labels consist of.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.device import fit, rows_of
from transduce.cli.device import on_device
from transduce.engines.device.label_rows import DeviceSoftmaxRows
from transduce.engines.device.restart import DeviceRestart, DeviceSoftLabels
from transduce.engines.device.weights import BatchDualStep

PARTS = (
    (BatchDualStep, "_iterate"),
    (BatchDualStep, "refresh"),
    (BatchDualStep, "_measure"),
    (BatchDualStep, "retarget"),
    (DeviceSoftmaxRows, "read"),
    (DeviceSoftmaxRows, "sums"),
    (DeviceSoftmaxRows, "write"),
    (DeviceSoftLabels, "round"),
    (DeviceRestart, "weights"),
    (DeviceRestart, "propose"),
)
FREE = ("empty", "empty_like", "new_empty", "empty_strided", "detach", "alias", "_unsafe_view", "lift_fresh")
"""Operations that make no kernel, beside views."""


class Counts(TorchDispatchMode):
    """Counts operations, by kind and by part of the fit, and those of the last run of each part by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.n_operations, self.kinds = 0, Counter[str]()
        self.calls, self.of_parts, self.kinds_of = Counter[str](), Counter[str](), dict[str, Counter[str]]()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._schema.name.removeprefix("aten::")
        if not function.is_view and name not in FREE and not name.endswith(("_indices", "values")):
            self.n_operations += 1
            self.kinds[name] += 1
        return function(*args, **(kwargs or {}))

    def counted(self, name: str, part: Callable[..., Any]) -> Callable[..., Any]:
        """A part of the fit whose operations are counted."""

        def run(*args: Any, **kwargs: Any) -> Any:
            begin, kinds = self.n_operations, self.kinds.copy()
            result = part(*args, **kwargs)
            self.calls[name] += 1
            self.of_parts[name] += self.n_operations - begin
            self.kinds_of[name] = self.kinds - kinds
            return result

        return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--annealing", default="soft", choices=["soft", "paper"])
    parser.add_argument("--kinds", action="store_true", help="print what an iteration and a round consist of")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y, labeled = rows_of("news", options)
    options.device, options.jobs = "cpu", 1
    rows, counts = on_device(X, "cpu"), Counts()
    for owner, name in PARTS:
        setattr(owner, name, counts.counted(f"{owner.__name__}.{name}", getattr(owner, name)))
    with counts:
        fit(rows, y, labeled, options)
    print(f"{counts.n_operations} operations of a fit")
    for part, n in counts.of_parts.most_common():
        print(f"{part:24} {counts.calls[part]:6} times {n:8} operations {n / counts.calls[part]:8.1f} each")
    if options.kinds:
        for part in ("BatchDualStep._iterate", "DeviceSoftLabels.round"):
            print(part, dict(counts.kinds_of[part].most_common()))


if __name__ == "__main__":
    main()
