"""The label step against its peers, its growth, its memory and its warm start: run by `make bench`.

Every table prints both sides from this one run, with ratios. Times are the best of a few repeats, compilation left out.
"""

import argparse
import ctypes
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.instances import Instance, corpus, synthetic
from benchmarks.peers import PEERS
from transduce import solve_labels
from transduce.class_prior.belief import Belief
from transduce.class_prior.groups import Groups
from transduce.label_step import METHODS, LabelSolution

PAPER_METHODS = ("exact", "switching", "simplex")
RESET_PEAK = Path("/proc/self/clear_refs")


def timed(run: Callable[[], LabelSolution], repeats: int = 5) -> tuple[float, LabelSolution]:
    """Best time of a few repeats, and the last answer."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = run()
        best = min(best, time.perf_counter() - begin)
    return best, answer


def exact(instance: Instance, repeats: int = 5, **arguments) -> tuple[float, LabelSolution]:
    return timed(lambda: solve_labels(instance.costs, instance.counts, **arguments), repeats)


def equal(one: float, other: float) -> str:
    if abs(one - other) > 1e-9 * max(abs(one), abs(other), 1.0):
        raise SystemExit(f"The optimal costs differ: {one:.9f} and {other:.9f}.")
    return "yes"


def off(instance: Instance) -> float:
    """Fraction by which the counts differ from the histogram of the cheapest labels."""
    histogram = np.bincount(instance.costs.argmin(axis=1), minlength=instance.counts.size)
    return float(np.abs(histogram - instance.counts).sum() / len(instance.costs))


def against_peers(instances: dict[str, Instance], peers: dict[str, Callable]) -> None:
    print("\nCold start against peers: seconds to solve, and how many times as long as ours.")
    header = "".join(f"{name:>12}{'ratio':>8}{'equal':>7}" for name in peers)
    print(f"{'costs':<22}{'rows x classes':<17}{'counts off':>10}{'exact':>10}{header}")
    for name, instance in instances.items():
        seconds, answer = exact(instance)
        line = f"{name:<22}{instance.shape:<17}{off(instance):>10.0%}{seconds:>10.4f}"
        for peer in peers.values():
            peer_seconds, cost = min(peer(instance) for _ in range(2))
            line += f"{peer_seconds:>12.3f}{peer_seconds / seconds:>8.1f}{equal(cost, answer.cost):>7}"
        print(line, flush=True)


def paper_sizes(instances: dict[str, Instance]) -> None:
    print("\nThe paper's sizes: seconds, and excess of the cost over the optimum.")
    header = "".join(f"{m:>10}{'excess':>10}" for m in PAPER_METHODS)
    print(f"{'costs':<22}{'rows x classes':<17}{'counts off':>10}{header}")
    for name, instance in instances.items():
        line, optimum = f"{name:<22}{instance.shape:<17}{off(instance):>10.0%}", None
        for method in PAPER_METHODS:
            seconds, answer = exact(instance, repeats=1 if method == "simplex" else 5, method=method)
            optimum = answer.cost if optimum is None else optimum
            line += f"{seconds:>10.4f}{answer.cost / optimum - 1:>10.1e}"
        print(line, flush=True)


def switching_quality(instances: dict[str, Instance]) -> None:
    print("\nSwitching (the paper: about 3 rounds, close to the optimum): excess of the cost over the optimum of the")
    print("greedy start, after one pass and at the end; and rounds from labels optimal before a change of 1 %.")
    print(
        f"{'costs':<22}{'rows x classes':<17}{'greedy':>10}{'one pass':>10}{'end':>10}{'gap/cost':>10}{'rounds':>8}"
        f"{'warm rounds':>13}{'end':>10}"
    )
    for name, instance in instances.items():
        best = solve_labels(instance.costs, instance.counts).cost
        greedy, one, full = (
            solve_labels(instance.costs, instance.counts, method) for method in ("greedy", "multi_switch", "switching")
        )
        earlier = solve_labels(perturbed(instance).costs, instance.counts).labels
        warm = solve_labels(instance.costs, instance.counts, "switching", start=earlier)
        print(
            f"{name:<22}{instance.shape:<17}{greedy.cost / best - 1:>10.1e}{one.cost / best - 1:>10.1e}"
            f"{full.cost / best - 1:>10.1e}{full.gap / full.cost:>10.1e}{full.n_rounds:>8}"
            f"{warm.n_rounds:>13}{warm.cost / best - 1:>10.1e}",
            flush=True,
        )


def growth(label: str, instances: list[Instance], size: Callable[[Instance], int]) -> None:
    print(f"\nGrowth in {label}: seconds, passes of a plain costs.min(axis=1), and the exponent since the line before.")
    print(f"{'rows x classes':<17}{'exact':>10}{'row minimum':>13}{'passes':>8}{'exponent':>10}{'rounds':>8}")
    before = None
    for instance in instances:
        seconds, answer = exact(instance, repeats=3)
        plain = min(_row_minimum(instance.costs) for _ in range(3))
        here = (np.log(size(instance)), np.log(seconds))
        exponent = "" if before is None else f"{(here[1] - before[1]) / (here[0] - before[0]):.2f}"
        passes = seconds / plain
        print(
            f"{instance.shape:<17}{seconds:>10.4f}{plain:>13.4f}{passes:>8.1f}{exponent:>10}{answer.n_rounds:>8}",
            flush=True,
        )
        before = here


def _row_minimum(costs: np.ndarray) -> float:
    begin = time.perf_counter()
    costs.min(axis=1)
    return time.perf_counter() - begin


def memory(n: int, n_classes: int, seed: int) -> None:
    if not RESET_PEAK.exists():
        print(f"\nPeak memory: not measured, this system has no {RESET_PEAK}.")
        return
    with multiprocessing.get_context("spawn").Pool(1) as fresh_process:
        extra, size = fresh_process.apply(_peak_of_one_call, (n, n_classes, seed))
    print(
        f"\nPeak extra memory at {n:,} x {n_classes}, in a process of its own: {extra / 2**20:.0f} MiB, "
        f"{extra / size:.2f} of the cost matrix ({size / 2**20:.0f} MiB)."
    )


def _peak_of_one_call(n: int, n_classes: int, seed: int) -> tuple[int, int]:
    """Resident bytes that one call adds at its peak, and the bytes of the costs; compiled code is loaded before."""
    small = synthetic(2000, n_classes)
    solve_labels(small.costs, small.counts)
    instance = synthetic(n, n_classes, seed)
    trim()
    before = _status_bytes("VmRSS")
    RESET_PEAK.write_text("5")
    solve_labels(instance.costs, instance.counts)
    return _status_bytes("VmHWM") - before, instance.costs.nbytes


def trim() -> None:
    """Give freed memory back, so that it cannot serve a measured call unseen."""
    ctypes.CDLL(None).malloc_trim(0)


def _status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def perturbed(instance: Instance) -> Instance:
    """The same counts at costs changed by 1 %."""
    noise = 1.0 + 0.01 * np.random.default_rng(1).normal(size=instance.costs.shape)
    return Instance(instance.costs * noise, instance.counts)


def ranges_and_groups(instance: Instance) -> None:
    """Ranges a tenth around the counts; and groups of five classes at their exact sizes, half the classes unbounded."""
    n, n_classes = instance.costs.shape
    low, high = np.floor(0.9 * instance.counts).astype(int), np.ceil(1.1 * instance.counts).astype(int)
    group = np.arange(n_classes) // 5
    sizes = np.bincount(group, weights=instance.counts).astype(int)
    groups = Groups(np.append(n_classes + group, np.full(sizes.size, n_classes + sizes.size)), sizes, sizes)
    unknown = np.arange(n_classes) % 2 == 0
    some = (np.where(unknown, 0, low), np.where(unknown, n, high))
    kinds: dict[str, tuple] = {"exact counts": (instance.counts, None), "ranges": ((low, high), None)}
    kinds |= {"groups": (some, groups), "ranges, groups": ((low, high), groups)}
    kinds |= {f"belief, strength {s:g}": (None, None, Belief.create(instance.counts, s)) for s in (0.3, 1.0, 4.0)}
    kinds["belief, other sizes"] = (None, None, Belief.create(np.roll(instance.counts, 3), 4.0))
    print(f"\nRanges, groups and beliefs at {instance.shape.strip()}: seconds, and times as long as exact counts.")
    print(f"{'counts':<22}{'exact':>10}{'ratio':>8}{'moves':>8}{'rounds':>8}{'warm':>10}{'ratio':>8}")
    first, later = None, perturbed(instance)
    for name, (counts, of, *belief) in kinds.items():
        solve = partial(solve_labels, counts=counts, groups=of, belief=belief[0] if belief else None)
        cold, answer = timed(partial(solve, instance.costs), 10)
        warm, _ = timed(partial(solve, later.costs, prices=answer.prices), 10)
        first = first or (cold, warm)
        print(
            f"{name:<22}{cold:>10.4f}{cold / first[0]:>8.2f}{answer.n_moves:>8}{answer.n_rounds:>8}"
            f"{warm:>10.4f}{warm / first[1]:>8.2f}",
            flush=True,
        )


def warm_start(instance: Instance) -> None:
    prices = solve_labels(instance.costs, instance.counts).prices
    later = perturbed(instance)
    cold, cold_answer = exact(later, repeats=10)
    warm, warm_answer = exact(later, repeats=10, prices=prices)
    print(
        f"\nWarm start at {instance.shape.strip()}, costs perturbed by 1 %: cold {cold:.4f} s, warm {warm:.4f} s, "
        f"{cold / warm:.1f} times as fast; moves {cold_answer.n_moves} and {warm_answer.n_moves}; "
        f"equal optimum: {equal(cold_answer.cost, warm_answer.cost)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args()
    shrink = 20 if options.quick else 1

    def made(n: int, n_classes: int) -> Instance:
        return synthetic(n // shrink, n_classes, options.seed)

    for method in METHODS:  # compiled, or loaded from the cache, before any clock starts
        solve_labels(synthetic(2000, 5).costs, synthetic(2000, 5).counts, method)
    domains, intents = corpus(1, 80, options.seed), corpus(2, 600, options.seed)
    large = made(100_000, 20)
    against_peers({"synthetic": large, "corpus, domains": domains, "corpus, intents": intents}, PEERS)
    against_peers({"synthetic, many": made(20_000, 105)}, PEERS)
    paper_sizes({"as aut-avn": made(35_888, 2), "as ohscal": made(5_581, 10)})
    switching_quality(
        {
            "two classes": made(35_888, 2),
            "ten": made(5_581, 10),
            "corpus, domains": domains,
            "twenty": large,
            "many": made(20_000, 105),
            "corpus, intents": intents,
        }
    )
    ranges_and_groups(large)
    warm_start(large)
    growth("classes", [made(20_000, k) for k in (2, 5, 10, 20, 50, 100, 200, 500, 1000)], lambda i: i.costs.shape[1])
    rows = [made(n, 20) for n in (10_000, 100_000, 1_000_000)]
    growth("rows", rows, lambda i: i.costs.shape[0])
    memory(1_000_000 // shrink, 20, options.seed)


if __name__ == "__main__":
    main()
