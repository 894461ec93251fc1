"""Top-level labels for most rows and full labels for few: macro F of the leaves, compared with ignoring the former.

rcv_mcat, dmoz4 and the built-in corpus in their trees. Every leaf has a few full labels; a fraction of the other rows
is labelled by its topmost node only. True class sizes; partial rows weigh as unlabelled or as labelled rows.
"""

import gzip
import json
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from experiments.data import Source
from experiments.study import AGREES, DIFFERS, Row, Verdict, markdown, number, summary, unique
from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150

KEYS, RESULTS = ("set", "seed"), ("method", "macro_f", "top_right")
SETS = ("rcv_mcat", "dmoz4_raw", "clinc150")
N_SEEDS = 3
FULL, PARTIAL, MOST_ROWS, FEWEST = 2, 0.8, 6000, 20
METHODS = ("supervised", "thrown away", "weighing as unlabelled", "weighing as labelled")


def grid(smoke: bool) -> list[Row]:
    sets, seeds = (SETS[:1], range(1)) if smoke else (SETS, range(N_SEEDS))
    return [{"set": name, "seed": seed} for seed in seeds for name in sets]


def documents(source: Source, name: str) -> tuple:
    """Rows and paths "top/.../leaf"; classes with few documents are left out."""
    if name == "rcv_mcat" or source.folder is None:
        X, y = source.load(name)
        return X, np.array([path.removeprefix("MCAT/") for path in source.tree(name)])[y]
    if name == "clinc150":
        texts, paths, _ = load_clinc150()
    else:
        with gzip.open(Path(source.folder) / name / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        texts = np.array([row["text"] for row in rows], dtype=object)
        paths = np.array(["/".join(row["label"]) for row in rows])
    counts = dict(zip(*np.unique(paths, return_counts=True), strict=True))
    kept = np.array([counts[path] >= FEWEST for path in paths])
    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts[kept]).tocsr(), paths[kept]


def run(source: Source, cell: Row) -> list[Row]:
    seed = cell["seed"]
    X, paths = documents(source, cell["set"])
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
        found.append({"method": method, "macro_f": round(f, 5), "top_right": round(float(top), 5)})
    return found


def table(rows: list[Row]) -> str:
    names = unique(rows, "set")
    lines = []
    for method in METHODS:
        pairs = [
            (summary(rows, set=name, method=method), summary(rows, "top_right", set=name, method=method))
            for name in names
        ]
        lines.append([method, *(f"{number(f.mean)} ({top.mean:.0%})" for f, top in pairs)])
    return markdown(["partial labels", *names], lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for name in unique(rows, "set"):
        without, used = (summary(rows, set=name, method=m).mean for m in ("thrown away", "weighing as unlabelled"))
        text = f"{number(without)} without them, {number(used)} with"
        claim = f"{name}: partial labels are handled by making unknown labels part of the label step"
        found.append(
            Verdict(claim, "said in the conclusion, not measured", text, AGREES if used > without else DIFFERS)
        )
    return found
