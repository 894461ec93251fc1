"""Running studies, and rows of their results."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments, without=()):
    command = [sys.executable, "-m", "experiments", *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)


def cell_of(seed=0, n_unlabeled=60, method="paper"):
    return {"set": "la1", "n_unlabeled": n_unlabeled, "seed": seed, "method": method}


def row_of(version="0123456789", source="data", cell_rows=1, cell_seconds=1.0, macro_f=0.5, **cell):
    common = {"source": source, "cell_rows": cell_rows, "cell_seconds": cell_seconds, "version": version}
    return cell_of(**cell) | {"macro_f": macro_f, "seconds": 0.1} | common
