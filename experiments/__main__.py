"""Run studies and write down what they show: `python -m experiments NAME|all|page [--smoke] --data DIR`.

Cells that are there already are not run again; Ctrl-C loses none of them. `page` runs nothing, and writes the figures
and docs/reproduction.md from the results as they are.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.data import data_folder
from experiments import STUDIES, page
from experiments.cells import collect, missing, module, read, tidy
from experiments.data import Source
from experiments.study import save

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", choices=[*STUDIES, "all", "page"], help="a study, all of them, or the page alone")
    parser.add_argument("--data", help="folder of the paper's data sets; or the environment variable TRANSDUCE_DATA")
    parser.add_argument("--smoke", action="store_true", help="a few cells on the built-in corpus, kept nowhere")
    parser.add_argument("--results", type=Path, help="folder of the results, experiments/results if left out")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with one core")
    parser.add_argument("--any-version", action="store_true", help="take cells of earlier code as they are")
    options = parser.parse_args()
    names = STUDIES if options.name in ("all", "page") else (options.name,)
    if options.smoke and options.results is None:
        with tempfile.TemporaryDirectory() as folder:
            return go(options, names, Path(folder))
    return go(options, names, options.results or HERE / "results")


def go(options: argparse.Namespace, names: tuple[str, ...], folder: Path) -> int:
    grids = {name: module(name).grid(options.smoke) for name in names}
    if options.name != "page":
        source = Source(None if options.smoke else str(data_folder(options.data).resolve()))
        try:
            run_missing(options, grids, source, folder)
        except KeyboardInterrupt:
            print("\nStopped. The cells that were done are kept: run the same command to go on.", file=sys.stderr)
            return 130
    shown = {}
    for name, grid in grids.items():
        rows = tidy(name, folder, grid)
        if rows:
            shown[name] = rows
            if hasattr(module(name), "plot"):
                save(module(name).plot(rows), folder / f"{name}.svg")
    if options.name in ("all", "page"):
        home = folder if options.smoke or options.results else HERE.parent / "docs"
        path = page.write(shown, grids, home / "reproduction.md", folder)
        print(f"Wrote {path}.")
    else:
        for name, rows in shown.items():
            print(page.section(name, rows, len(grids[name]), None))
    return 0


def run_missing(options: argparse.Namespace, grids: dict, source: Source, folder: Path) -> None:
    """Studies that measure time have the machine to themselves; cells of all others share it."""
    timed, others = [], []
    for name, grid in grids.items():
        left = missing(name, grid, read(folder / f"{name}.csv"), options.any_version)
        tasks = [(name, source, cell) for cell in left]
        (timed if getattr(module(name), "ALONE", False) else others).extend(tasks)
        print(f"{name}: {len(left)} of {len(grid)} cells to run", flush=True)
    for tasks, n_jobs in ((timed, 1), (others, options.jobs)):
        if tasks:
            collect(tasks, folder, options.jobs if options.smoke else n_jobs)


if __name__ == "__main__":
    sys.exit(main())
