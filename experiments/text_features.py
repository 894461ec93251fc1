"""Words, sentence vectors, or the mix of both that `--features auto` chooses, with the same labels and class sizes.

tf-idf of the words, frozen all-MiniLM-L6-v2 vectors, centred, and the chosen mix. Labels are drawn at random, half of
the rows are unlabelled, settings are the defaults, and macro F is that of test rows. Texts of 20 newsgroups have their
headers, of which an encoder reads the first few hundred words. Class sizes are given as counts, or not at all.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Source, Split
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, number, select, summary, unique
from experiments.vectors import GIVEN, HEADERS, NOT_GIVEN, documents, load, unready
from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150
from transduce.features.centering import center_and_scale
from transduce.features.embeddings import fit_vectors
from transduce.features.text_rows import mix_rows
from transduce.features.tfidf import Features, fit_vectorizer
from transduce.words_share import choose_share

__all__ = ["KEYS", "RESULTS", "grid", "run", "table", "unready", "verdicts"]

MORE_CODE = ("src/transduce/features/*.py",)
KEYS, RESULTS = ("set", "n_labeled", "sizes", "seed", "features"), ("macro_f", "words_share", "seconds")
SETS = (
    ("clinc150 domains", 80), ("clinc150 intents", 450), ("r8_text", 80), (HEADERS, 100), (HEADERS, 1000),
    ("dmoz4_raw", 40),
)  # fmt: skip
"""Sets and numbers of labels."""
N_SEEDS, N_SMALL = 5, 600
WORDS, VECTORS, AUTO = "words", "vectors", "auto"
NEAR, LONG_TEXTS = 0.01, 0.8
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    sets, seeds = (SETS[:1], range(1)) if smoke else (SETS, range(N_SEEDS))
    return [
        {"set": name, "n_labeled": n_labeled, "sizes": sizes, "seed": seed, "features": features}
        for seed in seeds
        for name, n_labeled in sets
        for sizes in (GIVEN, NOT_GIVEN)
        for features in (WORDS, VECTORS, AUTO)
    ]


class Rows(NamedTuple):
    """Rows of the training texts and of test texts, and the share of words."""

    train: Any
    test: Any
    words_share: float


def run(source: Source, cell: Row) -> list[Row]:
    X, y = load(source, cell["set"])
    texts = list(load_clinc150()[0][: len(y)]) if source.folder is None else documents(source.folder, cell["set"])[0]
    split = Split(X, y, cell["seed"], cell["n_labeled"])
    begin = time.perf_counter()
    clf = TransductiveClassifier(random_state=cell["seed"], n_jobs=1)
    rows = make_rows(texts, split, cell["features"], clf)
    clf.set_params(class_prior=split.sizes if cell["sizes"] == GIVEN else "estimate").fit(rows.train, split.marked)
    seconds = round(time.perf_counter() - begin, 3)
    f = round(split.macro_f(clf.predict(rows.test)), 5)
    return [{"macro_f": f, "words_share": rows.words_share, "seconds": seconds}]


def make_rows(texts: list[str], split: Split, features: str, clf: TransductiveClassifier) -> Rows:
    """Rows as `transduce label --features` makes them; vectors are those of the split."""
    train, test = ([texts[i] for i in rows] for rows in (split.rows, split.test))
    vectors, new = split.X.copy(), split.X_all[split.test].copy()
    for V in (vectors, new):
        center_and_scale(V, np.zeros(V.shape[1], V.dtype))
    fitted, vectors = fit_vectors(vectors)
    center_and_scale(new, fitted.center)
    if features == VECTORS:
        return Rows(vectors, new, 0.0)
    vectorizer, words = fit_vectorizer(train, Features("tfidf"))
    share = 1.0 if features == WORDS else choose_share(words, vectors, split.marked, clf).share
    new_words = vectorizer.transform(test)
    if share == 1.0:
        return Rows(words, new_words, 1.0)
    return Rows(mix_rows(words, vectors, share), mix_rows(new_words, new, share), share)


def table(rows: list[Row]) -> str:
    """One table with class sizes and one without: macro F by features and set, and the shares that were chosen."""
    parts = [f"Splits: {len(unique(rows, 'seed'))}. The numbers after the sets are labels."]
    for sizes in (GIVEN, NOT_GIVEN):
        mine = select(rows, sizes=sizes)
        columns = list(dict.fromkeys((row["set"], row["n_labeled"]) for row in mine))
        if not columns:
            continue
        lines = [
            [features, *(number(mean(mine, *column, features)) for column in columns)]
            for features in unique(mine, "features")
        ]
        lines.append(["share of words in auto", *(number(_share(mine, *column)) for column in columns)])
        head = ["features", *(f"{name}, {n_labeled}" for name, n_labeled in columns)]
        parts += [f"Macro F on test rows, class sizes {sizes}.", markdown(head, lines)]
    return "\n\n".join(parts)


def mean(rows: list[Row], name: str, n_labeled: int, features: str) -> float:
    found = select(rows, set=name, n_labeled=n_labeled, features=features)
    return summary(found).mean if found else float("nan")


def _share(rows: list[Row], name: str, n_labeled: int) -> float:
    return float(np.mean([row["words_share"] for row in select(rows, set=name, n_labeled=n_labeled, features=AUTO)]))


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our own targets, with class sizes given."""
    mine = select(rows, sizes=GIVEN)
    columns = list(dict.fromkeys((row["set"], row["n_labeled"]) for row in mine))
    gains = np.array([mean(mine, *c, AUTO) - np.fmax(mean(mine, *c, WORDS), mean(mine, *c, VECTORS)) for c in columns])
    found = []
    if gains.size and np.isfinite(gains).all():
        near, above = int(np.sum(gains >= -NEAR)), int(np.sum(gains > 0))
        claim = "auto is within .01 of the better of words and vectors on every set, and above both on two or more"
        is_met, is_near = near == gains.size and above >= min(2, gains.size), 2 * near >= gains.size
        shown = f"within on {near} of {gains.size}, above both on {above}; least {number(float(gains.min()))}"
        found.append(Verdict(claim, OWN, shown, AGREES if is_met else PARTLY if is_near else DIFFERS))
    if (HEADERS, 100) in columns:
        f = mean(mine, HEADERS, 100, AUTO)
        word = AGREES if f >= LONG_TEXTS else PARTLY if f >= LONG_TEXTS - 0.02 else DIFFERS
        found.append(Verdict("auto reaches .80 on 20 newsgroups with headers, 100 labels", OWN, number(f), word))
    return found
