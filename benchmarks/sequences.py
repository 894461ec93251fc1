"""Time and memory of the tagger: against sklearn-crfsuite, and at many sequences: `python -m benchmarks.sequences`.

`peers --data DIR` trains and tags with the same features and settings (c2 = .1) on all cores; CRFsuite uses one.
Feature strings are computed before, except in the last column, which goes from tokens to labels. `scale` fits and tags
made-up sequences of 30 tokens with 20 labels and ten features a token, a hundred of them labelled; memory is the peak
above that before the features, relative to the features in CSR.
"""

import argparse
import gzip
import json
import resource
import time
from pathlib import Path

import numpy as np

from benchmarks.data import data_folder
from transduce.sequences import TransductiveTagger, token_features

SETS, N_LABELED, N_TEST = ("cora_citations", "anystyle_core", "hotel_posts"), (20, 100, 400), 500
LENGTH, LABELS, N_GIVEN, N_WORDS = 30, 20, 100, 20_000


def cpu(work) -> tuple[float, object]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def best_of(work, n: int = 3) -> tuple[float, object]:
    """Least wall time of a few runs, and the result."""
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - begin)
    return min(times), found


def featured(sequences: list[list[str]]) -> list[list]:
    return [[token_features(tokens, i) for i in range(len(tokens))] for tokens in sequences]


def compare(tokens: list, y: list, given: list[int], test: list[int]) -> tuple[str, ...]:
    """Accuracy, and ratios of CRFsuite's times to ours: training, tagging of features, tagging of tokens."""
    from sklearn_crfsuite import CRF

    of = dict(enumerate(featured(tokens)))
    labels, texts = [y[i] for i in given], [tokens[i] for i in test]
    X, X_test = [of[i] for i in given], [of[i] for i in test]
    found = []
    for make in (lambda: CRF(c2=0.1), lambda: TransductiveTagger(annealing=None)):
        fit, model = best_of(lambda: make().fit(X, labels))  # noqa: B023
        tag, guess = best_of(lambda: model.predict(X_test), 10)  # noqa: B023
        right = [a == b for i, one in zip(test, guess, strict=True) for a, b in zip(y[i], one, strict=True)]
        found.append((fit, tag, np.mean(right)))
    peer, ours = found
    crf, plain = CRF(c2=0.1).fit(X, labels), TransductiveTagger(annealing=None).fit([tokens[i] for i in given], labels)
    whole, own = best_of(lambda: crf.predict(featured(texts)))[0], best_of(lambda: plain.predict(texts))[0]

    def pair(a: float, b: float, unit: float) -> str:
        return f"{unit * a:.3g}, {unit * b:.3g}: {a / b:.1f}"

    return (
        f"{peer[2]:.4f}, {ours[2]:.4f}",
        pair(peer[0], ours[0], 1.0),
        pair(peer[1], ours[1], 1e3),
        pair(whole, own, 1e3),
    )


def peers(folder: Path, seed: int = 0) -> None:
    print("CRFsuite, ours: ratio\n")
    print("| set | labelled | accuracy | training, s | tagging of features, ms | tagging of tokens, ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in SETS:
        with gzip.open(folder / name / "sequences.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        tokens, y = [row["tokens"] for row in rows], [row["labels"] for row in rows]
        compare(tokens, y, list(range(5)), list(range(5, 10)))  # compiles
        for n in N_LABELED:
            order = np.random.default_rng(seed).permutation(len(tokens)).tolist()
            cells = compare(tokens, y, order[:n], order[n : n + N_TEST])
            print(f"| {name} | {n} | " + " | ".join(cells) + " |", flush=True)


def made_up(n: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Runs of labels, each with words of its own and words of all."""
    rng = np.random.default_rng(seed)
    y = np.repeat(rng.integers(0, LABELS, (n, LENGTH // 3)), 3, axis=1)
    own = rng.zipf(1.3, (n, LENGTH)) % (N_WORDS // LABELS) * LABELS + y
    words = np.where(rng.random((n, LENGTH)) < 0.7, own, rng.integers(0, N_WORDS, (n, LENGTH)))
    names = np.array([f"w{j}" for j in range(N_WORDS)], dtype=object)
    return names[words].tolist(), np.array([f"l{k:02}" for k in range(LABELS)], dtype=object)[y].tolist()


def peak() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scale(n: int) -> None:
    X, y = made_up(n)
    given = [*y[:N_GIVEN], *[None] * (n - N_GIVEN)]
    before = peak()
    wall, (used, model) = time.perf_counter(), cpu(lambda: TransductiveTagger().fit(X, given))
    wall = time.perf_counter() - wall
    features = n * LENGTH * 10 * 12 / 2**20
    right = np.mean(np.array(model.transduction_[N_GIVEN:]) == np.array(y[N_GIVEN:]))
    print(
        f"{n} sequences: {wall:.0f} s, {used:.0f} s CPU; peak {peak() - before:.0f} MB, features {features:.0f} MB, "
        f"ratio {(peak() - before) / features:.1f}; accuracy {right:.3f}, gap {model.relative_gap_:.2%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sequences", description=__doc__)
    parser.add_argument("what", choices=("peers", "scale"))
    parser.add_argument("--data", help="folder of the data sets; or the environment variable TRANSDUCE_DATA")
    parser.add_argument("--sequences", type=int, default=100_000)
    options = parser.parse_args()
    if options.what == "peers":
        peers(data_folder(options.data))
    else:
        scale(options.sequences)


if __name__ == "__main__":
    main()
