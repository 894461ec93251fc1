"""Labels at the top level for most rows, in full for few: macro F of the leaves, against throwing the first away.

rcv_mcat, dmoz4 and the built-in corpus in their trees. Every leaf has a few full labels, a share of the other rows is
labelled by its topmost node alone. True class sizes; partial rows weigh as unlabelled ones, or as labelled ones.
"""

import gzip
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from benchmarks.data import load
from experiments.cells import study
from transduce import TransductiveClassifier
from transduce.corpora import load_clinc150

SETS = ("rcv_mcat", "dmoz4_raw", "clinc150")
FULL, PARTIAL, MOST_ROWS, FEWEST = 2, 0.8, 6000, 20
METHODS = ("supervised", "thrown away", "weighing as unlabelled", "weighing as labelled")


def documents(folder: Path, name: str) -> tuple:
    """Rows and paths "top/.../leaf"; classes with few documents are left out."""
    if name == "clinc150":
        texts, paths, _ = load_clinc150()
    elif name == "rcv_mcat":
        X, y = load(folder, name)
        names = (folder / name / "classes.txt").read_text().split()
        paths = json.loads((folder / name / "hierarchy.json").read_text())["paths"]
        return X, np.array(["/".join(paths[names[k]][1:]) for k in y])
    else:
        with gzip.open(folder / name / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        texts = np.array([row["text"] for row in rows], dtype=object)
        paths = np.array(["/".join(row["label"]) for row in rows])
    counts = dict(zip(*np.unique(paths, return_counts=True), strict=True))
    kept = np.array([counts[path] >= FEWEST for path in paths])
    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts[kept]).tocsr(), paths[kept]


def cell(task: tuple) -> list[tuple]:
    name, seed, folder = task
    warnings.simplefilter("ignore")
    X, paths = documents(Path(folder), name)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(paths))
    train, test = rows[: min(MOST_ROWS, len(rows) // 2)], rows[len(rows) // 2 :]
    leaves = np.unique(paths[train])
    full = np.zeros(train.size, bool)
    for leaf in leaves:
        mine = np.flatnonzero(paths[train] == leaf)
        full[rng.choice(mine, min(FULL, mine.size), replace=False)] = True
    tops = np.array([path.split("/")[0] for path in paths[train]])
    bare = np.where(full, paths[train], "").astype(object)
    is_inner = ~np.isin(tops, leaves)  # a topmost node that is a leaf would be a full label
    partial = np.where(~full & is_inner & (rng.random(train.size) < PARTIAL), tops, bare)
    sizes = dict(zip(*np.unique(paths[train][~full], return_counts=True), strict=True))
    prior = {str(leaf): float(sizes.get(leaf, 0)) for leaf in leaves}
    test = test[np.isin(paths[test], leaves)]
    found = []
    for method, labels, more in (
        ("supervised", None, {}),
        ("thrown away", bare, {}),
        ("weighing as unlabelled", partial, {}),
        ("weighing as labelled", partial, {"partial_weight": "labeled"}),
    ):
        model = TransductiveClassifier(taxonomy=leaves.tolist(), annealing="paper", random_state=seed, n_jobs=1, **more)
        if labels is None:
            model.fit(X[train][full], paths[train][full])
        else:
            model.set_params(class_prior=prior).fit(X[train], labels)
        guesses = model.predict(X[test])
        f = f1_score(paths[test], guesses, average="macro", labels=leaves, zero_division=0)
        top = np.mean([a.split("/")[0] == b.split("/")[0] for a, b in zip(guesses, paths[test], strict=True)])
        found.append((name, seed, method, round(f, 5), round(float(top), 5)))
    return found


def main() -> None:
    rows = study(__doc__, "partial_labels", SETS, ["method", "macro_f", "top_right"], cell)
    print(f"\n{FULL} full labels a leaf, {PARTIAL:.0%} of the other rows by topmost node; paper's annealing; test rows")
    print(f"{'':26}" + "".join(f"{name:>24}" for name in SETS) + "     (macro F of leaves, topmost node right)")
    for method in METHODS:
        line = f"{method:26}"
        for name in SETS:
            mine = [row for row in rows if row["set"] == name and row["method"] == method]
            f, top = (np.mean([float(row[key]) for row in mine]) for key in ("macro_f", "top_right"))
            line += f"{f:17.3f}{top:7.3f}"
        print(line)


if __name__ == "__main__":
    main()
