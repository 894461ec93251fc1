"""Run studies and report the results: `python -m experiments NAME|all|page|check [--smoke] --data DIR`.

Existing cells are not run again, and Ctrl-C loses none of them. NAME prints the section of that study; `all` writes
docs/reproduction.md. `page` runs nothing: it writes the figures and docs/reproduction.md from existing results. `check`
runs a few cells of each study again, or of those that --studies names, and compares them with the stored results;
those of measured times are left out.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.data import data_folder
from experiments import STUDIES, page
from experiments.cells import DATA, SMOKE, WorkerError, collect, locked, missing, module, origin, read, shown, tidy
from experiments.check import check, record, run_again, table
from experiments.data import Source
from experiments.study import save

HERE = Path(__file__).parent
Grids = dict[str, list[dict]]
SEVERAL = ("all", "page", "check")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", choices=[*STUDIES, *SEVERAL], help="a study, all of them, the page alone, or a check")
    parser.add_argument("--data", help="folder of the paper's data sets; or the environment variable TRANSDUCE_DATA")
    parser.add_argument("--vectors", help="folder of sentence vectors; or the environment variable TRANSDUCE_VECTORS")
    parser.add_argument(
        "--smoke", action="store_true", help="a few cells on the built-in corpus, saved only with --results"
    )
    parser.add_argument("--results", type=Path, help="folder of the results (default: experiments/results)")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with one core")
    parser.add_argument(
        "--any-version", action="store_true", help="accept cells computed by earlier versions of the code"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY=VALUE,...",
        help="only cells with these values, such as set=r8,la1 or seed=0,1; may be repeated",
    )  # fmt: skip
    parser.add_argument("--cells", type=int, default=3, help="cells of each study for `check`")
    parser.add_argument("--studies", help="studies for `check`, such as leaderboard,priors (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="random seed for the cells of `check`")
    options = parser.parse_args()
    if options.vectors:
        os.environ["TRANSDUCE_VECTORS"] = str(Path(options.vectors).resolve())  # workers inherit it
    if options.only and options.name in SEVERAL:
        parser.error("--only needs the name of one study")
    if options.name == "page" and options.smoke and options.results is None:
        parser.error("page --smoke needs --results, the folder with the results of a smoke run")
    names = STUDIES if options.name in SEVERAL else (options.name,)
    if options.studies:
        names = tuple(options.studies.split(","))
        wrong = [name for name in names if name not in STUDIES]
        if options.name != "check" or wrong:
            parser.error(f"no study {wrong[0]!r}" if wrong else "--studies is for `check`")
    try:
        grids = {name: limited(name, module(name).grid(options.smoke), options.only) for name in names}
    except ValueError as error:
        parser.error(str(error))
    if options.name == "page":
        show(options, grids, options.results or HERE / "results")
        return 0
    source = Source(None if options.smoke else str(data_folder(options.data).resolve()))
    if options.name == "check":
        results = options.results or HERE / "results"
        found, n_failed = check(grids, source, results, options.cells, options.seed, options.jobs)
        record(found, results)
        print(table(found))
        unchecked = [name for name in names if name not in {one.study for one in found}]
        if unchecked:
            print(f"No cell was run again of {', '.join(unchecked)}: results or data are missing, or they are times.")
        return int(n_failed > 0 or not found or not all(one.agrees for one in found))
    if options.smoke and options.results is None:
        with tempfile.TemporaryDirectory() as folder:
            return run(options, grids, source, Path(folder))
    return run(options, grids, source, options.results or HERE / "results")


def limited(name: str, grid: list[dict], conditions: list[str]) -> list[dict]:
    """Cells that meet all conditions, each "KEY=VALUE,..."."""
    for condition in conditions:
        key, _, values = condition.partition("=")
        known = dict.fromkeys(str(cell[key]) for cell in grid) if key in module(name).KEYS else {}
        wanted = [values] if values in known else values.split(",")  # a value may have a comma
        wrong = [value for value in wanted if value not in known]
        if not known:
            raise ValueError(f"--only: {name} has no key {key!r}. Choose from {', '.join(module(name).KEYS)}.")
        if wrong:
            raise ValueError(f"--only: {key} has no value {wrong[0]!r}. Choose from {', '.join(known)}.")
        grid = [cell for cell in grid if str(cell[key]) in wanted]
    return grid


def run(options: argparse.Namespace, grids: Grids, source: Source, folder: Path) -> int:
    """Run missing cells and show all results; return 1 if some cells failed, 130 after Ctrl-C."""
    with locked(folder):
        try:
            n_failed = run_missing(options, grids, source, folder)
        except KeyboardInterrupt:
            print("\nStopped. Finished cells are saved; run the same command to continue.", file=sys.stderr)
            return 130
        except WorkerError:
            print(
                "A worker was killed, perhaps because memory ran out. Finished cells are saved; run the same command "
                "to continue, with fewer --jobs if it happens again.",
                file=sys.stderr,
            )
            return 1
        for name, grid in grids.items():
            tidy(name, folder, grid, origin(source))
        show(options, grids, folder)
    if n_failed:
        print(f"{n_failed} cells failed; run the same command to try them again.", file=sys.stderr)
    elif options.name == "all" and options.smoke:
        print("All studies ran.")
    return int(n_failed > 0)


def run_missing(options: argparse.Namespace, grids: Grids, source: Source, folder: Path) -> int:
    """Run timed studies one cell at a time, then all others; return the number of failed cells."""
    timed, others = [], []
    for name, grid in grids.items():
        left = missing(name, grid, read(folder / f"{name}.csv"), options.any_version, origin(source))
        reason = module(name).unready(source, left) if hasattr(module(name), "unready") else None
        if reason and options.name == name:
            raise SystemExit(reason)
        if reason:
            print(f"{name}: {len(left)} cells left out. {reason}", flush=True)
            continue
        tasks = [(name, source, cell) for cell in left]
        (timed if getattr(module(name), "ALONE", False) else others).extend(tasks)
        print(f"{name}: {len(left)} of {len(grid)} cells to run", flush=True)
    return sum(
        collect(tasks, folder, options.jobs if options.smoke else n_jobs)
        for tasks, n_jobs in ((timed, 1), (others, options.jobs))
        if tasks
    )


def show(options: argparse.Namespace, grids: Grids, folder: Path) -> None:
    """Write figures, and write the page or print the section of one study, from existing results."""
    source = SMOKE if options.smoke else DATA
    found = {name: shown(name, folder, grid, source) for name, grid in grids.items()}
    found = {name: rows for name, rows in found.items() if rows}
    for name, rows in found.items():
        if hasattr(module(name), "plot"):
            save(module(name).plot(rows), folder / f"{name}.svg")
    if options.name not in ("all", "page"):
        checked = run_again(folder, found)
        for name, rows in found.items():
            print(page.section(name, rows, len(grids[name]), None, checked.get(name, ())))
        return
    home = folder if options.smoke or options.results else HERE.parent / "docs"
    path = page.write(found, grids, home / "reproduction.md", folder)
    if options.results or not options.smoke:
        print(f"Wrote {path}.")


if __name__ == "__main__":
    sys.exit(main())
