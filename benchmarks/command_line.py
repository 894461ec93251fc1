"""The whole job from the command line on 20 newsgroups as one JSONL: label, evaluate, predict; time, memory, speed.

A hundred documents keep their label; half of the others are held out. Each command runs in its own process. Throughput
of predict is compared with scikit-learn's vectoriser and LinearSVC on the same texts, in one process each, from texts
in memory to labels; `whole` is the command itself, from file to file. Needs the paper's data: --data DIR.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from benchmarks.data import data_folder

N_LABELED = 100
RUN = """
import resource, sys, time
from transduce.cli.main import run
begin = time.perf_counter()
status = run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(time.perf_counter() - begin, sum(used) / 1024, file=sys.stderr)
sys.exit(status)
"""


def command(*arguments: str) -> tuple[float, float, str]:
    """Run a command in a new process: seconds with start-up, MiB at most, and what it printed."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.perf_counter() - begin, float(done.stderr.split()[-1]), done.stdout


def documents(folder: Path) -> tuple[list[str], list[str]]:
    with gzip.open(folder / "20ng_raw" / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    labels = [row["label"] if isinstance(row["label"], str) else "/".join(row["label"]) for row in rows]
    return [row["text"].split("\n\n", 1)[-1] for row in rows], labels


def write(path: Path, rows: list[dict[str, str | None]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def labels_in(path: Path) -> list[str]:
    return [json.loads(line)["label"] for line in path.read_text(encoding="utf-8").splitlines()]


def best(job, repeats: int) -> tuple[float, object]:
    seconds, value = np.inf, None
    for _ in range(repeats):
        begin = time.perf_counter()
        value = job()
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts, truth = documents(data_folder(options.data))
    rows = np.random.default_rng(0).permutation(len(texts))
    pile, held = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, out, model, test, again, page = (
            folder / n
            for n in ("pile.jsonl", "labelled.jsonl", "m.safetensors", "held.jsonl", "again.jsonl", "report.html")
        )
        write(source, [{"text": texts[i], "label": truth[i] if k < N_LABELED else None} for k, i in enumerate(pile)])
        write(test, [{"text": texts[i], "truth": truth[i]} for i in held])
        sizes = {c: sum(truth[i] == c for i in pile[N_LABELED:]) for c in sorted(set(truth))}
        (folder / "sizes.json").write_text(json.dumps(sizes))
        prior = ("--prior", str(folder / "sizes.json"))
        outputs = ("-o", str(out), "--model", str(model), "--report", str(page))
        options = ("--features", "tfidf", "--no-accuracy")
        seconds, memory, _ = command("label", str(source), *outputs, *prior, *options)
        done = labels_in(out)
        given = [truth[i] for i in pile]
        f = f1_score(given[N_LABELED:], done[N_LABELED:], average="macro")
        print(f"label     {len(pile)} rows, {N_LABELED} labelled: {seconds:.1f} s, {memory:.0f} MiB, macro F {f:.3f}")
        seconds, memory, printed = command("evaluate", str(model), str(test), "--label", "truth", "--json")
        f = json.loads(printed)["macro_f"]
        print(f"evaluate  {len(held)} held rows: {seconds:.1f} s, {memory:.0f} MiB, macro F {f:.3f}")
        whole, memory, _ = command("predict", str(model), str(test), "-o", str(again))
        print(f"predict   {len(held)} held rows: {whole:.1f} s, {memory:.0f} MiB")
        compare(texts, truth, pile, held, model, again, out, whole, options.repeats)


def compare(texts, truth, pile, held, model, again, out, whole, repeats) -> None:
    from transduce.model_file import load_model

    loaded = load_model(str(model))
    new = [texts[i] for i in held]
    ours, guesses = best(lambda: loaded.scores(loaded.vectorizer.transform(new)).argmax(axis=1), repeats)
    one, _ = best(lambda: loaded.scores(loaded.vectorizer.transform(new, 1)).argmax(axis=1), repeats)
    same = [loaded.classes[k] for k in guesses] == labels_in(again)
    print(f"labels of the new process equal to those in this one: {same}")
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit([texts[i] for i in pile])
    machine = LinearSVC().fit(vectorizer.transform([texts[i] for i in pile]), [truth[i] for i in pile])
    theirs, _ = best(lambda: machine.predict(vectorizer.transform(new)), repeats)
    n = len(new)
    print(f"throughput, documents a second: transduce {n / ours:.0f} (one core {n / one:.0f}), TfidfVectorizer and "
          f"LinearSVC {n / theirs:.0f}: {theirs / ours:.2f} times as fast (one core {theirs / one:.2f}); whole command "
          f"with start-up {n / whole:.0f}")  # fmt: skip
    trained = loaded.scores(loaded.vectorizer.transform([texts[i] for i in pile])).argmax(axis=1)
    agree = np.mean([loaded.classes[k] == name for k, name in zip(trained, labels_in(out), strict=True)])
    print(f"the model alone agrees with the labels that meet the class sizes in {agree:.1%}")


if __name__ == "__main__":
    main()
