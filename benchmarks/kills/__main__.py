"""Kill and interrupt every command at random moments, and let its disk fail; then look at what is left.

    python -m benchmarks.kills --kills 500            so many kills and interrupts over all commands, and a summary
    python -m benchmarks.kills --kills 40 --only pack
    python -m benchmarks.kills --kills 1 --only label --seed 17      one of them again

After each, every file is as it was before or complete, the command can be run again, and ends with the result of an
undisturbed run. Every tenth is no signal but a full disk, a read-only folder, a network share that is lost, or a clock
that goes backwards. What is found is printed, and the exit status is 1.
"""

import argparse
import tempfile
from collections import Counter
from itertools import cycle, islice
from pathlib import Path

from benchmarks.kills.faults import FAULTS, SIGNALS
from benchmarks.kills.harness import Whole, disturb, undisturbed, warm_up
from benchmarks.kills.operations import OPERATIONS

OFTEN = {"label": 3, "checkpoint": 2, "review": 2}
"""How often an operation comes round; others once."""
IMPOSSIBLE = ("dask", "clock backwards")
"""Dask's scheduler and workers live by that clock: they lose each other, and the fit ends with a ClusterError."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--kills", type=int, default=500, help="kills and interrupts (default: 500)")
    parser.add_argument("--faults", type=int, help="other faults (default: a tenth as many)")
    parser.add_argument("--only", metavar="NAME,...", help=f"of these: {', '.join(OPERATIONS)}")
    parser.add_argument("--seed", type=int, default=0, help="number of the first")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(OPERATIONS)
    unknown = [name for name in names if name not in OPERATIONS]
    if unknown:
        parser.error(f"--only: there is no {unknown[0]!r}. Choose from {', '.join(OPERATIONS)}.")
    n_faults = options.kills // 10 if options.faults is None else options.faults
    findings = run(names, options.kills, n_faults, options.seed)
    return int(bool(findings))


def run(names: list[str], n_kills: int, n_faults: int, seed: int = 0) -> list[str]:
    """Run so many kills and other faults, print a table, and return what was found."""
    warm_up()
    counts: Counter[tuple[str, str]] = Counter()
    findings: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        wholes: dict[str, Whole] = {}
        for number, (name, fault) in enumerate(plan(names, n_kills, n_faults), seed):
            if name not in wholes:
                wholes[name] = undisturbed(name, Path(folder, name.replace(" ", "-")))
            problem = disturb(name, fault, wholes[name], number)
            counts[name, fault] += 1
            if sum(counts.values()) % 50 == 0:
                print(f"{sum(counts.values())} so far", flush=True)
            if problem:
                findings.append(f"{name}, {fault}, number {number}: {problem}")
                print(findings[-1], "\n", flush=True)
    _show(names, counts)
    print(f"{n_kills} kills and interrupts, {n_faults} other faults, {len(findings)} findings")
    return findings


def plan(names: list[str], n_kills: int, n_faults: int) -> list[tuple[str, str]]:
    """Which operation suffers what, one after another."""
    often = [name for name in names for _ in range(OFTEN.get(name, 1))]
    kills = [(name, fault) for fault in SIGNALS for name in often]
    faults = [(name, fault) for fault in FAULTS for name in names if (name, fault) != IMPOSSIBLE]
    return [*islice(cycle(kills), n_kills), *islice(cycle(faults), n_faults)]


def _show(names: list[str], counts: Counter[tuple[str, str]]) -> None:
    faults = [*SIGNALS, *FAULTS]
    print(f"{'':<12}" + "".join(f"{fault:>21}" for fault in faults))
    for name in names:
        print(f"{name:<12}" + "".join(f"{counts[name, fault]:>21}" for fault in faults))


if __name__ == "__main__":
    raise SystemExit(main())
