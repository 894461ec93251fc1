"""Give mutated files to every reader and loader, each in a child process with limits on memory and time.

    python -m benchmarks.fuzz --minutes 30              as many as fit, and a summary
    python -m benchmarks.fuzz --inputs 2000             so many of each kind of file
    python -m benchmarks.fuzz --only csv --seed 17 --inputs 1     one input again; --save adds it to the corpus
    python -m benchmarks.fuzz --inputs 0                past findings only, which every run begins with

An input is accepted, with every cell as it was, or refused with a sentence. A crash, another error, more memory than
200 MB and four times its size, or more than 10 s of processor time is a finding, and the exit status is 1.
"""

import argparse
import time

from benchmarks.fuzz.corpus import save
from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.worker import Finding, Summary, fuzz, input_of, replay

BATCH = 2_000
"""Inputs of each kind in turn, where time decides how many there are."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--minutes", type=float, default=5.0, help="time for all of them (default: 5)")
    parser.add_argument("--inputs", type=int, help="inputs of each kind of file, whatever time that takes")
    parser.add_argument("--only", metavar="KIND,...", help=f"kinds of files: {', '.join(TARGETS)}")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    parser.add_argument("--save", action="store_true", help="add what is found to the corpus")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"--only: there is no kind {unknown[0]!r}. Choose from {', '.join(TARGETS)}.")
    totals = {name: replay(name) for name in names}
    for name in names:
        _print(totals[name].findings, is_saved=False)
    end, first = time.monotonic() + 60.0 * options.minutes, options.seed
    while first < options.seed + options.inputs if options.inputs is not None else time.monotonic() < end:
        n_inputs = BATCH if options.inputs is None else options.inputs
        for name in names:
            share = 1.0 if options.inputs == 1 else TARGETS[name].share
            part = fuzz(name, range(first, first + max(1, int(share * n_inputs))))
            totals[name] = _sum(totals[name], part)
            _print(part.findings, is_saved=options.save)
            print(f"{name}: {totals[name].n_accepted + totals[name].n_refused} inputs so far", flush=True)
        first += n_inputs
    return _show(totals)


def _print(findings: list[Finding], *, is_saved: bool) -> None:
    for finding in findings:
        print(f"{finding.target} {finding.number}: {finding.problem}\n", flush=True)
        if is_saved:
            save(finding.target, str(finding.number), input_of(finding.target, finding.number))


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
    print(f"{'file':<14}{'inputs':>9}{'accepted':>10}{'refused':>9}{'most MB':>9}{'most s':>8}{'findings':>10}")
    for name, total in totals.items():
        n_inputs = total.n_accepted + total.n_refused + len(total.findings)
        numbers = f"{n_inputs:>9}{total.n_accepted:>10}{total.n_refused:>9}"
        print(f"{name:<14}{numbers}{total.most_bytes / 1e6:>9.1f}{total.most_seconds:>8.2f}{len(total.findings):>10}")
    findings: list[Finding] = [finding for total in totals.values() for finding in total.findings]
    n_inputs = sum(total.n_accepted + total.n_refused for total in totals.values()) + len(findings)
    print(f"{n_inputs} inputs, {len(findings)} findings")
    return int(bool(findings))


if __name__ == "__main__":
    raise SystemExit(main())
