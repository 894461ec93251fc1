"""Evaluation of a tagger on a labelled file, by token and by block; sequences of the training are left out."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from transduce.cli.commands import evaluate
from transduce.cli.errors import InputError
from transduce.cli.tagging.corpus import Corpus
from transduce.cli.tagging.results import read_for
from transduce.features.training_rows import find_training_rows
from transduce.sequences import TransductiveTagger, block_scores
from transduce.suggest import number_of


def sequence_contents(corpus: Corpus) -> tuple[list[bytes], list[str | None]]:
    """What identifies each sequence, and its labels if all are known, for digests of the training."""
    contents = ["\t".join(tokens).encode("utf-8", "surrogatepass") for tokens in corpus.tokens]
    pairs = zip(corpus.given, corpus.is_labeled, strict=True)
    return contents, ["\t".join(entries) if is_labeled else None for entries, is_labeled in pairs]


def evaluate_tagger(
    tagger: TransductiveTagger, about: Mapping[str, Any], file: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Scores of tokens whose label is known, and of the blocks of sequences that are labelled in full."""
    corpus, stored = read_for(about, file, options), about.get("labelled_rows")
    is_trained = (
        find_training_rows(stored, *sequence_contents(corpus)) if stored else np.zeros(len(corpus.tokens), bool)
    )
    if is_trained.all():
        raise InputError(
            f"the model was trained with every sequence of {file}, so scores would mean nothing. Pass other sequences."
        )
    tagger.set_params(n_jobs=options["jobs"])
    guesses = tagger.predict(corpus.tokens)
    rows = zip(corpus.given, is_trained, strict=True)
    truth: list[list[Any]] = [
        [one if isinstance(one, str) and not trained else None for one in given] for given, trained in rows
    ]
    n_trained = sum(len(given) for given, trained in zip(corpus.given, is_trained, strict=True) if trained)
    tokens = list(chain.from_iterable(truth)), list(chain.from_iterable(guesses))
    full = [pair for pair in zip(truth, guesses, strict=True) if None not in pair[0]]
    scores = block_scores([true for true, _ in full], [guess for _, guess in full], tagger.scheme)
    labels = {name: score._asdict() for name, score in scores.labels.items()}
    blocks = {
        "sequences": len(full),
        "micro": scores.micro._asdict(),
        "macro": scores.macro._asdict(),
        "labels": labels,
    }
    return {"tokens": evaluate.score_labels(*tokens, corpus.name, n_trained=n_trained), "blocks": blocks}


def as_text(found: Mapping[str, Any]) -> str:
    """Format scores for a terminal."""
    tokens, blocks = evaluate.as_text(found["tokens"], "tokens"), found["blocks"]
    width = max(5, *map(len, [*blocks["labels"], ""]))
    row = f"{{name:<{width}}}  {{precision:9.3f}}  {{recall:6.3f}}  {{f:5.3f}}  {{support:6}}"
    title = f"\nblocks of {number_of(blocks['sequences'], 'sequence')}"
    head = f"{title}\n{'label':<{width}}  precision  recall      F  blocks"
    rows = {**blocks["labels"], "(all)": blocks["micro"], "(mean)": blocks["macro"]}
    return "\n".join([tokens, head, *(row.format(name=name, **score) for name, score in rows.items())])
