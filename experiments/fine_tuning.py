"""Contrastive fine-tuning on the splits of the study "vectors": python -m experiments.fine_tuning --data DIR.

Results are stored in results/fine_tuning.csv and appear as one row of that study's table. Splits that are there are
not run again. Needs torch, sentence-transformers and an encoder; a GPU shortens hours to minutes.
"""

import argparse
import csv
import time
from pathlib import Path

from benchmarks.data import data_folder
from experiments.cells import read
from experiments.contrastive import encoder, predictions
from experiments.data import Split
from experiments.vectors import N_SEEDS, SETS, TUNED, documents

COLUMNS = ("set", "each", "seed", "macro_f", "seconds")
ENCODER = "sentence-transformers/all-MiniLM-L6-v2"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.fine_tuning", description=__doc__)
    parser.add_argument("--data", help="folder of the data sets; or the environment variable TRANSDUCE_DATA")
    parser.add_argument("--encoder", default=ENCODER, help="name or folder of the encoder (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=TUNED, help="file of the results (default: %(default)s)")
    options = parser.parse_args()
    folder = str(data_folder(options.data))
    encoder(options.encoder)  # what is missing is said before anything runs
    done = {(row["set"], row["each"], row["seed"]) for row in read(options.results)}
    for seed in range(N_SEEDS):
        for name, each in SETS:
            if (name, each, seed) not in done:
                append(options.results, run(folder, options.encoder, name, each, seed))


def run(folder: str, name_of_encoder: str, name: str, each: int, seed: int) -> dict[str, object]:
    """Macro F on the test rows of one split."""
    texts, y = documents(folder, name)
    split = Split(y[:, None], y, seed, each=each)  # rows play no part in how they are split
    begin = time.perf_counter()
    given, new = [texts[i] for i in split.labeled], [texts[i] for i in split.test]
    guesses = predictions(name_of_encoder, given, split.given, new, seed)
    seconds = round(time.perf_counter() - begin, 1)
    row = {"set": name, "each": each, "seed": seed, "macro_f": round(split.macro_f(guesses), 5), "seconds": seconds}
    print(*row.values(), flush=True)
    return row


def append(path: Path, row: dict[str, object]) -> None:
    """Add a row, after a header if the file is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
