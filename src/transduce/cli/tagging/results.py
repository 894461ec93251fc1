"""Labels of a file of sequences: how sure they are, which constraints they break, and new ones by a stored tagger."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from transduce.arrays import FloatArray, IntArray
from transduce.cli import messages, output_paths
from transduce.cli.formats.errors import FileError
from transduce.cli.progress import Progress
from transduce.cli.tagging.corpus import SUFFIXES, Corpus, check_output, read_corpus, split_name, write_corpus
from transduce.labels.partial import names_in
from transduce.sequences import TransductiveTagger
from transduce.sequences.automaton import Rules
from transduce.sequences.constraints import Constraint, Pattern
from transduce.sequences.tagger_file import load_tagger
from transduce.suggest import did_you_mean, name_list, number_of


@dataclass(frozen=True, eq=False)
class Tagging:
    """A corpus, the tagger, the labels of all tokens, and the probability of each; given labels are kept and sure."""

    corpus: Corpus
    tagger: TransductiveTagger
    labels: list[list[str]]
    confidence: list[FloatArray]

    @classmethod
    def create(
        cls, corpus: Corpus, tagger: TransductiveTagger, labels: Sequence[Sequence[str]], marginals: Sequence[Any]
    ) -> "Tagging":
        """Put given labels in the place of predicted ones, and look up probabilities in marginals (T, K)."""
        merged, column = corpus.merged(labels), {name: k for k, name in enumerate(tagger.classes_)}
        confidence = [
            np.array([1.0 if isinstance(g, str) else p[column[name]] for g, p, name in zip(*rows, strict=True)])
            for rows in zip(corpus.given, marginals, merged, strict=True)
        ]
        return cls(corpus, tagger, merged, confidence)

    @cached_property
    def expected_errors(self) -> FloatArray:
        """Expected number of wrong labels in each sequence (n,)."""
        return np.array([float(np.sum(1.0 - one)) for one in self.confidence])

    @cached_property
    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Tokens of each label that were given, and of those that were not."""
        pairs = zip(self.corpus.given, self.labels, strict=True)
        named = [(isinstance(g, str), name) for entries, names in pairs for g, name in zip(entries, names, strict=True)]
        given, new = (Counter(name for is_given, name in named if is_given == side) for side in (True, False))
        return given, new

    @cached_property
    def broken(self) -> list[tuple[int, str]]:
        """Sequences that break a constraint, with the constraint; given labels may."""
        code = {name: k for k, name in enumerate(self.tagger.classes_)}
        y = np.array([code[name] for labels in self.labels for name in labels])
        offsets = np.concatenate(([0], np.cumsum([len(labels) for labels in self.labels])))
        pairs = zip(self.tagger.constraints, self.tagger.constraints_, strict=True)
        return sorted((i, str(text)) for text, one in pairs for i in self._broken_by(one, y, offsets))

    def _broken_by(self, constraint: Constraint, y: IntArray, offsets: IntArray) -> list[int]:
        """Sequences whose labels y (N,) break a constraint."""
        rules = Rules.create(self.tagger.classes_.tolist(), self.tagger.scheme, [constraint])
        if not isinstance(constraint, Pattern):
            return list(map(int, np.flatnonzero(rules.check(y, offsets)[0])))
        matches = map(re.compile(constraint.pattern).search, chain.from_iterable(self.corpus.tokens))
        is_named = rules.field[y] == rules.names.index(constraint.label)
        wrong = np.flatnonzero([match is not None for match in matches] & (is_named == constraint.forbids))
        return list(map(int, np.unique(np.searchsorted(offsets, wrong, side="right") - 1)))

    def summary(self, where: str = "") -> list[str]:
        """Say how many sequences break a constraint, where to see them, and how many tokens each label has."""
        n_broken = len({i for i, _ in self.broken})
        verb = "breaks" if n_broken == 1 else "break"
        broken = [f"Note: {number_of(n_broken, 'sequence')} {verb} a constraint{where}."] if n_broken else []
        sizes = [{"class": k, "assigned": n} for k, n in self.counts[1].items()]
        return broken + messages.size_table(sizes, header=("label", "new tokens"))


def predict_sequences(model: str, file: str, out: str, options: Mapping[str, Any]) -> None:
    """Label the tokens of a file that have no label with a stored tagger, and write it."""
    output_paths.check([(out, SUFFIXES)], options, model, file)
    tagger, about = load_tagger(model)
    corpus = read_for(about, file, options)
    check_output(corpus, out)
    _check_labels(corpus, tagger.classes_.tolist())
    corpus.layout.check_names(tagger.classes_.tolist())
    tagger.set_params(n_jobs=options["jobs"])
    labels = tagger.predict(corpus.tokens, corpus.given)
    tagging = Tagging.create(corpus, tagger, labels, tagger.predict_marginals(corpus.tokens, corpus.given))
    write_corpus(corpus, tagging.labels, out)
    with Progress.from_options(options) as progress:
        n_new = number_of(tagging.counts[1].total(), "token")
        progress.say(f"Labelled {n_new}. {messages.wrote([out])}", *tagging.summary())
    if options["as_json"]:
        new = dict(tagging.counts[1].most_common())
        messages.print_json(
            {"sequences": len(labels), "labels": new, "n_broken": len(tagging.broken), "written": [out]}
        )


def read_for(about: Mapping[str, Any], file: str, options: Mapping[str, Any]) -> Corpus:
    """Read a file for a stored tagger; columns and keys are those of training, unless options name others."""
    format = options["format_"] or split_name(file)[0]
    trained = about.get("settings", {})
    stored = trained if trained.get("format") == format else {}
    token = options["text"][0] if options["text"] else stored.get("text")
    return read_corpus(file, format, token, options.get("label") or stored.get("label"))


def _check_labels(corpus: Corpus, classes: Sequence[str]) -> None:
    """Refuse labels that the tagger does not have: another column was probably taken for that of the labels."""
    known = set(classes)
    for line, entries in zip(corpus.lines, corpus.given, strict=True):
        wrong = (name for entry in entries if entry is not None for name in names_in(entry) if name not in known)
        name = next(wrong, None)
        if name is not None:
            known_names = f"{did_you_mean(name, known)} The labels are {name_list(classes)}."
            problem = f"{name!r} is not a label of the model.{known_names} Correct it, or leave out this column"
            raise FileError(corpus.name, f"{problem}.", line)
