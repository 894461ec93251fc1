"""Sentence vectors: transduce against methods of transductive few-shot learning, with class sizes and without.

Frozen all-MiniLM-L6-v2 vectors, centred by the mean of the training rows and scaled to length 1, the same for all
methods. Every class has the same number of labels, as in few-shot learning; half of the rows are unlabelled, and macro
F is that of test rows, which no method sees. Settings of the peers are chosen on hidden labels, ours has its defaults
but for annealing: "transduce" is with soft annealing; the paper's is the default for vectors.
With class sizes given, peers that have a place for sizes use them there, and the scores of the others are transported
to the sizes by OTTER. Seconds include the choice of settings.
"""

import gzip
import json
import os
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.decomposition import TruncatedSVD

from experiments import few_shot
from experiments.cells import DATA, read
from experiments.data import Source, Split
from experiments.few_shot.prototypes import unit
from experiments.few_shot.task import Task
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, summary, unique
from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150

KEYS, RESULTS = ("set", "each", "sizes", "seed", "method"), ("n_labeled", "macro_f", "accuracy", "setting", "seconds")
SETS = (
    ("clinc150 domains", 8), ("clinc150 intents", 3), ("r8_text", 10), ("20ng_raw", 5), ("20ng_raw", 50),
    ("dmoz4_raw", 10),
)  # fmt: skip
"""Sets and labels of each class."""
N_SEEDS = 5
GIVEN, NOT_GIVEN = "given", "not given"
OURS, PAPER = "transduce", "transduce (paper's annealing)"
ANNEALING = {OURS: "soft", PAPER: "paper"}
NEAR = 0.005
FOLDER = "TRANSDUCE_VECTORS"
HEADERS = "20ng_headers"
"""20 newsgroups as whole messages, with their headers, for the study "text_features"."""
TUNED = Path(__file__).parent / "results" / "fine_tuning.csv"


def methods(sizes: str) -> list[str]:
    """With sizes given, OTTER is what LogisticRegression becomes."""
    return [*ANNEALING, *(name for name in few_shot.METHODS if sizes == NOT_GIVEN or name != "OTTER")]


def grid(smoke: bool) -> list[Row]:
    sets, seeds = (SETS[:1], range(1)) if smoke else (SETS, range(N_SEEDS))
    return [
        {"set": name, "each": each, "sizes": sizes, "seed": seed, "method": method}
        for seed in seeds
        for name, each in sets
        for sizes in (GIVEN, NOT_GIVEN)
        for method in methods(sizes)
    ]


def peer_code(cell: Row) -> tuple[str, ...]:
    """Files behind the cell of a peer, none for ours (experiments.versions)."""
    return () if cell["method"] in ANNEALING else ("experiments/few_shot/*.py", "src/transduce/label_step/**/*.py")


def unready(source: Source, cells: Sequence[Row]) -> str | None:
    """Why cells cannot be run: the sets whose vectors are not there."""
    folder = os.environ.get(FOLDER)
    names = dict.fromkeys(file_of(cell["set"]) for cell in cells)
    lacking = [name for name in names if not folder or not (Path(folder) / f"{name}.npy").exists()]
    if source.folder is None or not lacking:
        return None
    return (
        f"This needs the vectors of {', '.join(lacking)}: pass --vectors DIR, or set {FOLDER} to their folder. "
        "python -m experiments.encode writes them."
    )


def file_of(name: str) -> str:
    """Name of the file of vectors, and of the folder of texts."""
    return name.partition(" ")[0]


def documents(folder: str, name: str) -> tuple[list[str], np.ndarray]:
    """Texts, bodies without headers for 20 newsgroups, and classes 0 to K - 1: labels, or the first names of paths."""
    if name.startswith("clinc150"):
        texts, paths, _ = load_clinc150()
        labels = paths if name.endswith("intents") else [path.split("/")[0] for path in paths]
        return list(texts), np.unique(labels, return_inverse=True)[1]
    place = Path(folder) / ("20ng_raw" if name == HEADERS else name)
    with gzip.open(place / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    labels = [d["label"][0] if isinstance(d["label"], list) else d["label"] for d in found]
    texts = [d["text"].split("\n\n", 1)[-1] if name == "20ng_raw" else d["text"] for d in found]
    return texts, np.unique(labels, return_inverse=True)[1]


@lru_cache(maxsize=2)
def load(source: Source, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (n, d) and classes; of the built-in corpus a truncated singular value decomposition of tf-idf."""
    if source.folder is None:
        X, y = source.load(name)
        return TruncatedSVD(50, random_state=0).fit_transform(X).astype(np.float32), y
    path = Path(os.environ[FOLDER]) / f"{file_of(name)}.npy"
    V, y = np.load(path), documents(source.folder, name)[1]
    if len(V) != len(y):
        raise ValueError(f"{path.name} has {len(V)} rows, but {name} has {len(y)} texts. Compute the vectors again.")
    return V, y


def run(source: Source, cell: Row) -> list[Row]:
    split = Split(*load(source, cell["set"]), cell["seed"], each=cell["each"])
    center = split.X.mean(axis=0)
    X, new = unit(split.X - center), unit(split.X_all[split.test] - center)
    begin = time.perf_counter()
    labels, guesses, setting = (ours if cell["method"] in ANNEALING else peer)(split, X, new, cell)
    seconds = time.perf_counter() - begin
    accuracy = float(np.mean(labels == split.truth[split.n_labeled :]))
    return [
        {
            "n_labeled": split.n_labeled,
            "macro_f": round(split.macro_f(guesses), 5),
            "accuracy": round(accuracy, 5),
            "setting": setting,
            "seconds": round(seconds, 3),
        }
    ]


def ours(split: Split, X: np.ndarray, new: np.ndarray, cell: Row) -> tuple[np.ndarray, np.ndarray, str]:
    """Labels of unlabelled and of new rows, and nothing that was chosen."""
    prior = split.sizes if cell["sizes"] == GIVEN else "estimate"
    model = TransductiveClassifier(
        annealing=ANNEALING[cell["method"]], class_prior=prior, random_state=cell["seed"], n_jobs=1
    ).fit(X, split.marked)
    return model.transduction_[split.n_labeled :], model.predict(new), ""


def peer(split: Split, X: np.ndarray, new: np.ndarray, cell: Row) -> tuple[np.ndarray, np.ndarray, str]:
    """The same of a peer, and its setting; it knows the classes that have a label."""
    known, y = np.unique(split.given, return_inverse=True)
    counts = split.counts[known]
    proportions = counts / counts.sum() if cell["sizes"] == GIVEN else None
    task = Task(X[: split.n_labeled], y, X[split.n_labeled :], proportions)
    fitted, setting = few_shot.fit(cell["method"], task)
    values = setting if isinstance(setting, tuple) else () if setting is None else (setting,)
    guesses = known[fitted.score(new).argmax(axis=1)]
    return known[fitted.queries.argmax(axis=1)], guesses, " ".join(map(str, values))


def columns(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Sets and labels of each class."""
    return list(dict.fromkeys((row["set"], row["each"]) for row in rows))


def complete(rows: Sequence[Row]) -> list[Row]:
    """Rows of the splits that all methods have run."""
    runs: dict[tuple, set[str]] = {}
    for row in rows:
        runs.setdefault((row["set"], row["each"], row["seed"]), set()).add(row["method"])
    every = set(unique(rows, "method"))
    return [row for row in rows if runs[row["set"], row["each"], row["seed"]] == every]


def means(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Mean macro F of each method in each column, over the splits that all methods of the table have run."""
    whole = complete(rows)
    return {
        method: np.array([summary(whole, set=name, each=each, method=method).mean for name, each in columns(whole)])
        for method in unique(whole, "method")
    }


def ranks(found: dict[str, np.ndarray], ours: str) -> dict[str, float]:
    """Mean rank of the peers and of one of ours, 1 the best."""
    left = [method for method in found if method == ours or method not in ANNEALING]
    ranked = rankdata(-np.array([found[method] for method in left]), axis=0)
    return dict(zip(left, ranked.mean(axis=1).tolist(), strict=True))


def lead(found: dict[str, np.ndarray], ours: str) -> np.ndarray:
    """Macro F of one of ours less that of the best peer, in each column."""
    return found[ours] - np.max([values for method, values in found.items() if method not in ANNEALING], axis=0)


def shown(method: str, sizes: str) -> str:
    is_moved = sizes == GIVEN and method in few_shot.METHODS and not few_shot.METHODS[method].uses_sizes
    return f"{method}, OTTER" if is_moved else method


def table(rows: list[Row]) -> str:
    """One table with class sizes and one without: macro F of each method, best first by mean rank."""
    parts = [f"At most {len(unique(rows, 'seed'))} splits. The numbers after the sets are labels of each class."]
    for sizes in (GIVEN, NOT_GIVEN):
        mine = complete(select(rows, sizes=sizes))
        found = means(mine)
        if not found:
            continue
        names = [f"{name}, {each}" for name, each in columns(mine)]
        order = {**ranks(found, PAPER), **ranks(found, OURS)}
        best = np.max(list(found.values()), axis=0)
        lines = [
            [
                shown(method, sizes),
                *(f"**{number(v)}**" if v == b else number(v) for v, b in zip(found[method], best, strict=True)),
                number(float(found[method].mean())),
                number(order[method], 2),
            ]
            for method in sorted(order, key=order.__getitem__)
        ]
        lines += [tuned for tuned in [fine_tuned(mine)] if sizes == NOT_GIVEN and tuned]
        for method in ANNEALING if found.keys() - ANNEALING.keys() else ():  # with --only there may be no peers
            gains = lead(found, method)
            lines.append([f"{method}, less the best peer", *map(number, gains), number(float(gains.mean())), ""])
        title = f"Macro F on test rows, class sizes {sizes}."
        parts += [title, markdown(["method", *names, "mean", "mean rank"], lines)]
    return "\n\n".join(parts)


def fine_tuned(rows: list[Row]) -> list[str]:
    """Stored results of experiments.fine_tuning on the same splits, which have no rank; nothing without any."""
    stored = {(row["set"], row["each"], row["seed"]): row["macro_f"] for row in read(TUNED)}
    runs = list(dict.fromkeys((row["set"], row["each"], row["seed"]) for row in rows if row["source"] == DATA))
    if not any(run in stored for run in runs):
        return []
    values = [[stored[run] for run in runs if run[:2] == column and run in stored] for column in columns(rows)]
    found = [float(np.mean(v)) if v else float("nan") for v in values]
    return ["contrastive fine-tuning, LogisticRegression", *map(number, found), number(float(np.mean(found))), ""]


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own targets; none without peers."""
    if set(unique(rows, "method")) <= ANNEALING.keys():
        return []
    found = {sizes: means(select(rows, sizes=sizes)) for sizes in (GIVEN, NOT_GIVEN)}
    parts = []
    if found[GIVEN]:
        gains = lead(found[GIVEN], OURS)
        n_near = int(np.sum(gains >= -NEAR))
        parts.append(
            Verdict(
                "our own target: on sentence vectors with class sizes, ours is first or within .005 on every set",
                "not in the paper",
                f"on {n_near} of {gains.size}; the smallest lead over the best peer is {number(float(gains.min()))}",
                AGREES if n_near == gains.size else PARTLY if 2 * n_near >= gains.size else DIFFERS,
            )
        )
    if found[NOT_GIVEN]:
        mean = ranks(found[NOT_GIVEN], OURS)
        peer = min((m for m in mean if m != OURS), key=mean.__getitem__)
        n_better = sum(mean[m] < mean[OURS] for m in mean)
        parts.append(
            Verdict(
                "our own target: on sentence vectors without class sizes, ours is first by mean rank",
                "not in the paper",
                f"mean rank {mean[OURS]:.2f} of {len(mean)} methods; the best peer, {peer}, {mean[peer]:.2f}",
                AGREES if not n_better else PARTLY if n_better == 1 else DIFFERS,
            )
        )
    return parts
