"""The demo: a few labelled requests of the built-in corpus, the rest labelled by the known class sizes.

First ten domains from eighty labels, then all 150 intents in their tree from three labels each (with the paper's
annealing, which is quicker); each time the supervised classifier of the labelled requests stands beside the
transductive one.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from transduce.corpora import load_clinc150
from transduce.estimators import TransductiveClassifier

Array = NDArray[Any]

N_LABELED = 80
LABELS_AN_INTENT = 3
N_EXAMPLES = 10


def main() -> None:
    """Run both jobs and print what they gained."""
    texts, intents, _ = load_clinc150()
    domains = np.array([intent.split("/")[0] for intent in intents])
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    rng = np.random.default_rng(0)
    print(f"Built-in corpus: {len(texts)} requests to a voice assistant, 150 intents in ten domains.\n")

    labeled = _draw(rng, domains, N_LABELED)
    print(f"Ten domains, {N_LABELED} labelled requests:")
    model = _compare(X, domains, labeled)
    _print_counts(model, domains, ~labeled)
    _print_examples(model, texts, domains, ~labeled, rng)

    labeled = np.zeros(len(texts), bool)
    for intent in np.unique(intents):
        labeled[rng.choice(np.flatnonzero(intents == intent), LABELS_AN_INTENT, replace=False)] = True
    print(f"\nAll 150 intents in their tree, {LABELS_AN_INTENT} labelled requests each:")
    model = _compare(X, intents, labeled, taxonomy=np.unique(intents).tolist(), annealing="paper")
    guessed = np.array([path.split("/")[0] for path in model.transduction_[~labeled]])
    print(f"  domain right in {np.mean(guessed == domains[~labeled]):.1%} of the unlabelled requests")


def _draw(rng: np.random.Generator, classes: Array, n_labeled: int) -> Array:
    """Draw labelled rows at random, again until every class has one."""
    while True:
        labeled = np.zeros(len(classes), bool)
        labeled[rng.choice(len(classes), n_labeled, replace=False)] = True
        if np.unique(classes[labeled]).size == np.unique(classes).size:
            return labeled


def _compare(X: Any, truth: Array, labeled: Array, **parameters: Any) -> TransductiveClassifier:
    """Fit with and without the unlabelled rows; print macro F on them, and the time."""
    names, sizes = np.unique(truth[~labeled], return_counts=True)
    prior = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    supervised = TransductiveClassifier(random_state=0, **parameters).fit(X[labeled], truth[labeled])
    begin = time.perf_counter()
    model = TransductiveClassifier(class_prior=prior, random_state=0, **parameters)
    model.fit(X, np.where(labeled, truth, ""))
    seconds = time.perf_counter() - begin
    before = f1_score(truth[~labeled], supervised.predict(X[~labeled]), average="macro", zero_division=0)
    after = f1_score(truth[~labeled], model.transduction_[~labeled], average="macro")
    print(f"  supervised macro F {before:.3f}, transductive {after:.3f}: {after - before:+.3f}")
    print(
        f"  {seconds:.1f} s, {model.n_iter_} rounds, objective {model.objective_:.4f}. {model.termination_condition_}"
    )
    return model


def _print_counts(model: TransductiveClassifier, truth: Array, unlabeled: Array) -> None:
    given = model.transduction_[unlabeled]
    print(f"\n  {'domain':<20}{'unlabelled':>11}{'given':>8}{'right':>8}{'price':>9}")
    for name, price in zip(model.classes_, model.prices_, strict=True):
        mine = given == name
        right = np.mean(truth[unlabeled][mine] == name)
        print(f"  {name:<20}{np.sum(truth[unlabeled] == name):>11}{mine.sum():>8}{right:>8.0%}{price:>9.3f}")


def _print_examples(
    model: TransductiveClassifier, texts: Array, truth: Array, unlabeled: Array, rng: np.random.Generator
) -> None:
    print("\n  ten of them:")
    for i in rng.choice(np.flatnonzero(unlabeled), N_EXAMPLES, replace=False):
        label = model.transduction_[i]
        note = "" if label == truth[i] else f"   (was {truth[i]})"
        print(f"  {label:<20}{texts[i][:70]}{note}")


if __name__ == "__main__":
    main()
