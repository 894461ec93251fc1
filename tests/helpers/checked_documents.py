"""Documents without problems, and the findings of checks."""

import random

from transduce.class_prior.spec import read_sizes
from transduce.cli.validation import check_documents, render_findings

WORDS = ["river", "stone", "cloud", "amber", "field", "winter", "signal", "garden", "copper", "violin", "harbour"]


def clean(n=60, classes=("tea", "coffee", "cocoa"), n_labeled=30):
    """Documents without problems: distinct texts of similar length, ten labels per class, half of them unlabelled."""
    rng = random.Random(0)
    texts = [f"{' '.join(rng.choices(WORDS, k=12))} number {row}" for row in range(n)]
    labels = [classes[row % len(classes)] if row < n_labeled else None for row in range(n)]
    return texts, labels


def check(texts, labels, prior=None, tree=False, **options):
    return check_documents(texts, labels, read_sizes(prior or {}, ()), tree=tree, **options)


def only(findings):
    assert len(findings) == 1, render_findings(findings)
    return findings[0]
