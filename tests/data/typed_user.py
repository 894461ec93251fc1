"""What a user's program looks like to mypy --strict; tests/test_types.py checks it."""

from pathlib import Path

from transduce import (
    ClassSizeAdjuster,
    PriorWarning,
    Taxonomy,
    TextClassifier,
    TransductiveClassifier,
    match_class_sizes,
    select_rows,
    solve_labels,
)
from transduce.datasets import Corpus, load_clinc150
from transduce.model_selection import HiddenLabelSplit, TransductiveClassifierCV
from transduce.warm import warm


def label(texts: list[str], labels: list[str | None], path: Path) -> list[str]:
    clf = TextClassifier(features="tfidf", class_prior={"tea": 2, "coffee": (0.2, 0.6)}, random_state=0)
    clf.fit(texts, labels).save(path)
    again: TextClassifier = TextClassifier.load(path)
    return [str(name) for name in again.predict(texts)]


def rows(X: list[list[float]], y: list[int]) -> float:
    clf = TransductiveClassifier(loss="maxent", taxonomy=Taxonomy.create(["a/b", "a/c"])).fit(X, y)
    chosen = select_rows(clf, X, 3)
    proba = clf.predict_proba(X)
    matched = match_class_sizes(proba, [0.5, 0.5])
    solution = solve_labels(proba, [len(X) - 1, 1])
    search = TransductiveClassifierCV(cv=HiddenLabelSplit(3)).fit(X, y)
    adjusted = ClassSizeAdjuster(class_prior="estimate")
    return float(len(chosen) + len(matched.labels) + solution.gap + search.score(X, y)) + len(str(adjusted))


def corpus() -> int:
    found: Corpus = load_clinc150()
    seconds = [each.seconds for each in warm(every=False)]
    return len(found.texts) + len(seconds) + len(PriorWarning.__name__)
