"""Sequences: references and posts tagged from 5, 20 or 100 labelled ones, compared with other uses of unlabelled ones.

cora_citations and anystyle_core have plain labels, hotel_posts has BIO labels. A third of the rest, at most 500, is
test, and at most 500 others are unlabelled. Features are those of `token_features` for all methods. Self-training
labels by Viterbi and fits again until no label changes; constraint-driven learning does so under the constraints
(Chang, Ratinov and Roth, 2007); entropy regularisation adds the entropy of the unlabelled sequences (Jiao et al.,
2006); posterior regularisation has soft labels that meet the counts from labels, at temperature 1 (Ganchev et al.,
2010). Constraints are "at most once as a block" for every field, and "author before title" for references, with a cost
each. "Also on tokens" adds what is known of single ones, as Chang, Ratinov and Roth stated it for citations: years are
dates, "pp." is pages, "editors" is editor, quotes begin titles, and so on. Accuracy is that of test tokens, macro F the
mean over all labels of the set.
"""

import gzip
import json
import time
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score

from experiments.data import Source
from experiments.study import AGREES, DIFFERS, Row, Verdict, markdown, number, summary, unique
from transduce.sequences import TransductiveTagger, block_scores, find_scheme, token_features
from transduce.sequences.automaton import fields_of
from transduce.sequences.problem import given_labels
from transduce.sequences.training import Stage
from transduce.sequences.weights import ChainLoss

KEYS, RESULTS = ("set", "n_labeled", "seed", "method"), ("accuracy", "macro_f", "block_f", "gap", "seconds")
MORE_CODE = ("src/transduce/sequences/**/*.py",)
SETS, N_LABELED, N_SEEDS, MOST_TEST, MOST_UNLABELED = (
    ("cora_citations", "anystyle_core", "hotel_posts"),
    (5, 20, 100),
    10,
    500,
    500,
)
CRFSUITE, SUPERVISED, COUNTS, CONSTRAINED, PATTERNS = (
    "sklearn-crfsuite",
    "supervised",
    "counts from labels",
    "counts and constraints",
    "constraints also on tokens",
)
METHODS = (
    CRFSUITE, SUPERVISED, "self-training", "entropy regularisation", "posterior regularisation",
    "constraint-driven learning", "no counts", COUNTS, "true counts", CONSTRAINED, PATTERNS,
)  # fmt: skip
COST = 2.0
"""Cost of a violation: four of a hundred references have a field in two blocks."""
TOKENS = {
    "date": r"^[(\"]*(19|20)\d\d[a-z]?[).,;:]*$",
    "pages": r"(?i)^(pp|pages?)[.:]?$",
    "note": r"(?i)^(note|submitted|appear)[.,]?$",
    "tech": r"(?i)^tech(nical)?[.,]?$",
    "editor": r"(?i)^[(]?(eds?|editors?)[.),:]*$",
    "location": r"^(CA|NY|Australia)[.,;]*$",
    "title": r"^[\"“]",
    "starrating": r"^\d(\.5)?[*]$",
}
"""Tokens that have a label, as far as constraints on single tokens say so; the last one is of the hotel posts."""
NO_TITLE = r"(?i)^(proc|proceedings|journal|acm)[.,]?$"
"""Tokens of a journal or booktitle, and so of no title or author."""
ENTROPY_WEIGHT, STEP = 0.3, 1e-3
OWN = "not in the paper; our target"


def grid(smoke: bool) -> list[Row]:
    sets, sizes, n_seeds = (SETS[:1], (5,), 1) if smoke else (SETS, N_LABELED, N_SEEDS)
    return [
        {"set": name, "n_labeled": n, "seed": seed, "method": method}
        for seed in range(n_seeds)
        for name in sets
        for n in sizes
        for method in METHODS
        if not smoke or method != CRFSUITE or find_spec("sklearn_crfsuite")
    ]


def peer_code(cell: Row) -> tuple[str, ...]:
    """Files behind the cell of a peer, none for ours (experiments.versions)."""
    return ("src/transduce/sequences/features.py",) if cell["method"] == CRFSUITE else ()


def unready(source: Source, cells: Sequence[Row]) -> str | None:
    lacking = [name for name in unique(cells, "set") if source.folder and not _path(source, name).exists()]
    if lacking:
        return f"There is no {lacking[0]}/sequences.jsonl.gz in the data folder."
    if any(cell["method"] == CRFSUITE for cell in cells) and not find_spec("sklearn_crfsuite"):
        return "A peer is missing. Run: pip install sklearn-crfsuite"
    return None


def _path(source: Source, name: str) -> Path:
    return Path(str(source.folder)) / name / "sequences.jsonl.gz"


def load(source: Source, name: str) -> tuple[list[list[str]], list[list[str]]]:
    """Tokens and labels; made-up references if there is no data folder."""
    if source.folder is None:
        return _made_up()
    with gzip.open(_path(source, name), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row["tokens"] for row in rows], [row["labels"] for row in rows]


def _made_up() -> tuple[list[list[str]], list[list[str]]]:
    rng, words = (
        np.random.default_rng(0),
        {"author": ["smith,", "jones,"], "title": ["trees", "lakes"], "date": ["1994"]},
    )
    y = [[name for name in words for _ in range(rng.integers(1, 4))] for _ in range(60)]
    return [[str(rng.choice(words[label])) for label in one] for one in y], y


def run(source: Source, cell: Row) -> list[Row]:
    tokens, labels = load(source, cell["set"])
    order, n = np.random.default_rng(cell["seed"]).permutation(len(tokens)).tolist(), cell["n_labeled"]
    n_test = min(MOST_TEST, (len(order) - n) // 3)
    given, test, others = order[:n], order[n : n + n_test], order[n + n_test :][:MOST_UNLABELED]
    X = [tokens[i] for i in [*given, *others]]
    y = [*(labels[i] for i in given), *[None] * len(others)]
    hidden = [label for i in others for label in labels[i]]
    begin = time.process_time()
    if cell["method"] == CRFSUITE:
        guesses, gap = _crfsuite(X[:n], y[:n], [tokens[i] for i in test]), 0.0
    else:
        model = _model(cell, y[:n], hidden).fit(X, y)
        guesses, gap = model.predict([tokens[i] for i in test]), model.relative_gap_
    seconds = time.process_time() - begin
    truth, scheme = [labels[i] for i in test], find_scheme({label for one in labels for label in one})
    flat, guessed = list(chain.from_iterable(truth)), list(chain.from_iterable(guesses))
    names = sorted({label for one in labels for label in one})
    macro = f1_score(flat, guessed, labels=names, average="macro", zero_division=0)
    right = float(np.mean([a == b for a, b in zip(flat, guessed, strict=True)]))
    block_f = block_scores(truth, guesses, scheme).micro.f
    found = {"accuracy": right, "macro_f": float(macro), "block_f": block_f, "gap": gap, "seconds": seconds}
    return [cell | found]


def _crfsuite(X: list, y: list, X_test: list) -> list[list[str]]:
    from sklearn_crfsuite import CRF

    def featured(sequences: list) -> list:
        return [[token_features(one, i) for i in range(len(one))] for one in sequences]

    return [list(one) for one in CRF(c2=0.1).fit(featured(X), y).predict(featured(X_test))]


def _model(cell: Row, given: list[list[str]], hidden: list[str]) -> TransductiveTagger:
    names = sorted({label for one in given for label in one})
    scheme = find_scheme(names)
    fields, method = fields_of(names, scheme), cell["method"]
    rules = [f"{field}: once (cost {COST})" for field in fields]
    if {"author", "title"} <= set(fields):
        rules.append(f"author before title (cost {COST})")
    patterns = [f"{field}: /{TOKENS[field]}/ (cost {COST})" for field in fields if field in TOKENS]
    patterns += [f"{field}: not /{NO_TITLE}/ (cost {COST})" for field in fields if field in ("author", "title")]
    counts = {name: hidden.count(name) for name in {*names, *hidden}}
    kind, parameters = {
        SUPERVISED: (TransductiveTagger, {"annealing": None}),
        "self-training": (TransductiveTagger, {"annealing": [1.0], "label_prior": None}),
        "entropy regularisation": (EntropyRegularized, {"annealing": None}),
        "posterior regularisation": (PosteriorRegularized, {}),
        "constraint-driven learning": (
            TransductiveTagger, {"annealing": [1.0], "label_prior": None, "constraints": rules, "scheme": scheme}
        ),
        "no counts": (TransductiveTagger, {"label_prior": None}),
        COUNTS: (TransductiveTagger, {}),
        "true counts": (TransductiveTagger, {"label_prior": counts}),
        CONSTRAINED: (TransductiveTagger, {"constraints": rules, "scheme": scheme}),
        PATTERNS: (TransductiveTagger, {"constraints": [*rules, *patterns], "scheme": scheme}),
    }[method]  # fmt: skip
    return kind(n_jobs=1, **parameters)


class PosteriorRegularized(TransductiveTagger):
    """Soft labels at temperature 1 that follow the counts, ten rounds at the final weight."""

    def _stages(self) -> list[Stage]:
        return [Stage(self.unlabeled_weight, 1.0)] * 10


class EntropyRegularized(TransductiveTagger):
    """The supervised loss and the mean entropy of the unlabelled sequences, from the supervised weights."""

    def fit(self, X: list, y: list) -> "EntropyRegularized":
        super().fit(X, y)
        chains = self._scored(X)[0].chains
        known = np.array([one is not None for one in y])
        super_theta = np.vstack((self.coef_, self._transitions()))
        codes = np.searchsorted(self.classes_, np.concatenate([one for one in y if one is not None]))
        part = chains.select(np.flatnonzero(known))
        kappa = np.full(known.sum(), 1.0 / codes.size)
        labeled = ChainLoss(part, kappa, part.pullback(*given_labels(codes, part.offsets, kappa, len(self.classes_))))
        loss = EntropyLoss(labeled, chains.select(np.flatnonzero(~known)))
        theta = loss.minimize(super_theta, self.alpha_, self.tol, 100).W
        d, K = self.coef_.shape
        self.coef_, self.transitions_ = theta[:d], theta[d : d + K]
        self.start_, self.end_ = theta[d + K], theta[d + K + 1]
        return self


class EntropyLoss(ChainLoss):
    """Adds C/n Σ_s H_s. Its gradient is minus the derivative of the expected features in a factor of the scores."""

    def __init__(self, labeled: ChainLoss, chains) -> None:
        weights = np.full(chains.n_sequences, ENTROPY_WEIGHT / chains.offsets[-1])
        super().__init__(chains, weights, labeled.features * 0.0)
        object.__setattr__(self, "labeled", labeled)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.labeled(theta)
        log_z, expected = self.model(theta)
        entropy = float(self.weights @ log_z) - float(np.vdot(expected, theta))
        ahead, behind = (self.model(factor * theta)[1] for factor in (1.0 + STEP, 1.0 - STEP))
        return value + entropy, gradient - (ahead - behind) / (2.0 * STEP)


def table(rows: list[Row]) -> str:
    """Accuracy and macro F, mean over the splits."""
    lines = []
    for name in unique(rows, "set"):
        for method in unique(rows, "method"):
            cells = []
            for n in N_LABELED:
                where = {"set": name, "method": method, "n_labeled": n}
                cells.append(
                    "; ".join(number(summary(rows, each, **where).mean) for each in ("accuracy", "macro_f", "block_f"))
                )
            lines.append([name, method, *cells])
    return markdown(["set", "method", *(f"{n} labelled: accuracy; macro F; block F" for n in N_LABELED)], lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Our targets."""
    found = []

    def lift(method: str, n: int, name: str, result: str = "accuracy", base: str = SUPERVISED) -> float:
        means = [summary(rows, result, set=name, n_labeled=n, method=each).mean for each in (method, base)]
        return means[0] - means[1]

    def verdict(claim: str, ours: str, is_met: bool) -> None:
        found.append(Verdict(claim, OWN, ours, AGREES if is_met else DIFFERS))

    sets = unique(rows, "set")
    for base in (CRFSUITE, SUPERVISED):
        a, f = (lift(COUNTS, 20, SETS[0], each, base) for each in ("accuracy", "macro_f"))
        verdict(
            f"20 labelled citations, counts from labels: +.03 accuracy, +.10 macro F over {base}",
            f"{a:+.3f}, {f:+.3f}",
            a >= 0.03 and f >= 0.1,
        )
        for method in (CONSTRAINED, PATTERNS):
            a = lift(method, 20, SETS[0], base=base)
            verdict(f"20 labelled citations, {method}: +.06 accuracy over {base}", f"{a:+.3f}", a >= 0.06)
        for n, least in ((5, 0.0), (20, 0.0), (100, -0.002)):
            lifts = [lift(COUNTS, n, name, base=base) for name in sets]
            claim = f"{n} labelled, counts from labels: above {base} on every set"
            claim += " (100: below by .002 at most)" if n == 100 else ""
            verdict(claim, ", ".join(f"{x:+.3f}" for x in lifts), min(lifts) > least)
    lifts = [lift(SUPERVISED, n, name, base=CRFSUITE) for name in sets for n in N_LABELED]
    verdict("supervised: at most .003 below sklearn-crfsuite", f"{min(lifts):+.3f} at worst", min(lifts) >= -0.003)
    for methods, kind in (((COUNTS, CONSTRAINED, PATTERNS), "beliefs"), (("true counts",), "exact")):
        gaps = [row["gap"] for row in rows if row["method"] in methods] or [0.0]
        met = f"{np.median(gaps):.2%} in the median, {np.mean(gaps):.2%} on the mean, {max(gaps):.2%} at most"
        verdict(f"counts as {kind}: gap below 1 % of the cost", met, max(gaps) < 0.01)
    return found
