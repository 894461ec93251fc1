"""Give mutated files to every reader and loader, each in a child process with limits on memory and time.

    python -m benchmarks.fuzz --minutes 30              as many as fit, and a summary
    python -m benchmarks.fuzz --inputs 2000             so many of each kind of file
    python -m benchmarks.fuzz --only csv --seed 17 --inputs 1     one input again

An input is accepted, with every cell as it was, or refused with a sentence. A crash, another error, more memory than
200 MB and four times its size, or more than 10 s of processor time is a finding, and the exit status is 1.
"""

import argparse
import time

from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.worker import Finding, Summary, fuzz

BATCH = 2_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--minutes", type=float, default=5.0, help="time for all of them (default: 5)")
    parser.add_argument("--inputs", type=int, help="inputs of each kind of file, whatever time that takes")
    parser.add_argument("--only", metavar="KIND,...", help=f"kinds of files: {', '.join(TARGETS)}")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"--only: there is no kind {unknown[0]!r}. Choose from {', '.join(TARGETS)}.")
    totals = {name: Summary(0, 0, 0, 0.0, []) for name in names}
    end, first = time.monotonic() + 60.0 * options.minutes, options.seed
    while True:
        n_inputs = min(BATCH, options.seed + options.inputs - first) if options.inputs else BATCH
        for name in names:
            share = 1.0 if options.inputs == 1 else TARGETS[name].share
            part = fuzz(name, range(first, first + max(1, int(share * n_inputs))))
            totals[name] = _sum(totals[name], part)
            for finding in part.findings:
                print(f"{finding.target} {finding.number}: {finding.problem}\n", flush=True)
        first += n_inputs
        if first >= options.seed + options.inputs if options.inputs else time.monotonic() >= end:
            break
    return _show(totals)


def _sum(one: Summary, other: Summary) -> Summary:
    return Summary(
        one.n_accepted + other.n_accepted,
        one.n_refused + other.n_refused,
        max(one.most_bytes, other.most_bytes),
        max(one.most_seconds, other.most_seconds),
        one.findings + other.findings,
    )


def _show(totals: dict[str, Summary]) -> int:
    """Print the table; return the exit status."""
    print(f"{'file':<10}{'inputs':>9}{'accepted':>10}{'refused':>9}{'most MB':>9}{'most s':>8}{'findings':>10}")
    for name, total in totals.items():
        n_inputs = total.n_accepted + total.n_refused + len(total.findings)
        numbers = f"{n_inputs:>9}{total.n_accepted:>10}{total.n_refused:>9}"
        print(f"{name:<10}{numbers}{total.most_bytes / 1e6:>9.1f}{total.most_seconds:>8.2f}{len(total.findings):>10}")
    findings: list[Finding] = [finding for total in totals.values() for finding in total.findings]
    n_inputs = sum(total.n_accepted + total.n_refused for total in totals.values()) + len(findings)
    print(f"{n_inputs} inputs, {len(findings)} findings")
    return int(bool(findings))


if __name__ == "__main__":
    raise SystemExit(main())
