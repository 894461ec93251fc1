"""A million short rows by `transduce label`: the built-in corpus repeated with noise words; time, memory, progress.

The command runs in a separate process. Its output is shown with timestamps; then come the longest time between two
lines and the peak memory, which should stay below --gib.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.metrics import f1_score

from transduce.datasets import load_clinc150

NOISE_WORDS, VOCABULARY = 3, 20_000


def make(path: Path, n_rows: int, n_labeled: int, level: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Write a CSV with columns text and label; return the true classes and which rows are labelled."""
    texts, paths, _ = load_clinc150()
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(len(texts)) for _ in range(-(-n_rows // len(texts)))])[:n_rows]
    classes = np.array(["/".join(p.split("/")[:level]) for p in paths])
    noise = rng.zipf(1.3, (n_rows, NOISE_WORDS)) % VOCABULARY
    lines = [f"{texts[i]} {' '.join(f'w{w}' for w in words)}" for i, words in zip(rows, noise.tolist(), strict=True)]
    truth = classes[rows]
    labeled = np.zeros(n_rows, bool)
    for name in np.unique(classes):
        labeled[rng.choice(np.flatnonzero(truth == name), n_labeled, replace=False)] = True
    label = [name if known else None for name, known in zip(truth.tolist(), labeled.tolist(), strict=True)]
    pl.DataFrame({"text": lines, "label": label}).write_csv(path)
    return truth, labeled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=10, help="labelled rows per class")
    parser.add_argument("--level", type=int, default=1, help="1 for ten domains, 2 for 150 intents")
    parser.add_argument("--gib", type=float, default=12.0)
    parser.add_argument("options", nargs="*", help="more options of transduce label, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        source, out, model, page = (str(Path(name) / n) for n in ("rows.csv", "out.parquet", "m.safetensors", "r.html"))
        truth, labeled = make(Path(source), options.rows, options.labels, options.level, 0)
        print(f"{options.rows} rows, {labeled.sum()} labelled, {np.unique(truth).size} classes, "
              f"{Path(source).stat().st_size / 2**20:.0f} MiB of CSV", flush=True)  # fmt: skip
        command = [sys.executable, "-m", "transduce", "label", source, "-o", out, "--model", model, "--report", page]
        begin = last = time.perf_counter()
        silence = 0.0
        process = subprocess.Popen([*command, *options.options], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            now = time.perf_counter()
            silence, last = max(silence, now - last), now
            print(f"{now - begin:7.1f} s  {line}", end="", flush=True)
        status = process.wait()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        if status:
            raise SystemExit(f"exit code {status}")
        done = pl.read_parquet(out)["label"].to_numpy()
        f = f1_score(truth[~labeled], done[~labeled], average="macro")
        verdict = "within" if peak <= options.gib else "OVER"
        print(f"{time.perf_counter() - begin:.0f} s, at most {peak:.2f} GiB per process ({verdict} {options.gib:g}), "
              f"longest silence {silence:.0f} s, macro F {f:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
