"""Vectors of texts and class names, for "vectors", "text_features", "zero_labels" and "noisy_guesses".

    python -m experiments.encode --data DIR --vectors DIR

Writes NAME.npy (n, d) for each set, rows in the order of its texts, and SET.names.npy (K, d) for class names; files
that are there are kept. Needs torch, sentence-transformers and an encoder.
"""

import argparse
import os
from pathlib import Path

import numpy as np

from benchmarks.data import data_folder
from experiments import class_names
from experiments.contrastive import encoder
from experiments.fine_tuning import ENCODER
from experiments.vectors import FOLDER, HEADERS, SETS, documents, file_of


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.encode", description=__doc__)
    parser.add_argument("--data", help="folder of the data sets; or the environment variable TRANSDUCE_DATA")
    parser.add_argument("--vectors", help=f"folder to write to; or the environment variable {FOLDER}")
    parser.add_argument("--encoder", default=ENCODER, help="name or folder of the encoder (default: %(default)s)")
    options = parser.parse_args()
    name_of_folder = options.vectors or os.environ.get(FOLDER)
    if not name_of_folder:
        raise SystemExit(f"Where should the vectors go? Pass --vectors DIR, or set {FOLDER}.")
    folder, data = Path(name_of_folder), str(data_folder(options.data))
    folder.mkdir(parents=True, exist_ok=True)
    model = encoder(options.encoder)
    for name in dict.fromkeys((*(name for name, _ in SETS), HEADERS)):
        path = folder / f"{file_of(name)}.npy"
        if not path.exists():
            print(f"{path.name}:", flush=True)
            write(path, model.encode(documents(data, name)[0], show_progress_bar=True))
    for name in class_names.SETS:
        path = folder / class_names.names_file(name)
        if not path.exists():
            write(path, model.encode(class_names.names_of(name)))


def write(path: Path, vectors: np.ndarray) -> None:
    """Write a file that is either whole or not there."""
    fresh = path.with_suffix(".new.npy")
    np.save(fresh, np.asarray(vectors, dtype=np.float32))
    fresh.replace(path)


if __name__ == "__main__":
    main()
