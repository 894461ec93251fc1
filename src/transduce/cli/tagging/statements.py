"""What users state about sequences on the command line: counts of labels, and the scheme of the labels."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from transduce.arrays import IntArray
from transduce.class_prior.spec import parse_size
from transduce.cli.errors import InputError
from transduce.cli.formats.errors import FileError
from transduce.cli.tagging.corpus import Corpus
from transduce.sequences import find_scheme
from transduce.sequences.automaton import fields_of
from transduce.sequences.constraints import ConstraintError
from transduce.sequences.scheme_check import SchemeError, check_known_labels
from transduce.sequences.schemes import SCHEMES
from transduce.sequences.size_errors import SizeError, size_errors
from transduce.suggest import did_you_mean, name_list

Counts = tuple[dict[str, Any], dict[str, Any]]
"""Stated numbers of tokens of labels, and of blocks."""


def read_counts(options: Sequence[str]) -> Counts:
    """Read `--count NAME=SIZE` options; sizes are in tokens, or in blocks if the word follows."""
    both: Counts = ({}, {})
    for option in options:
        name, equals, size = (part.strip() for part in option.rpartition("="))
        name, size = (name[:-1].rstrip(), f"={size}") if name.endswith("=") else (name, size)
        size, in_blocks = size.removesuffix("blocks").rstrip(), size.endswith("blocks")
        counts = both[in_blocks]
        if not equals or not name or not size or name in counts:
            problem = f"states {name!r} twice" if name in counts else f"must be NAME=SIZE, but is {option!r}"
            raise InputError(f"--count {problem}. Write each label once, such as author=20%:30%.")
        with statement_errors(), size_errors("--count", "blocks" if in_blocks else "tokens"):
            counts[name] = parse_size(size, f"--count {option}")
    return both


@contextmanager
def statement_errors() -> Iterator[None]:
    """Turn errors about counts and constraints into input errors."""
    try:
        yield
    except SizeError as error:
        raise InputError(error.describe("--count")) from None
    except ConstraintError as error:
        raise InputError(str(error)) from None


def choose_scheme(corpus: Corpus, known: Set[str], wanted: str) -> tuple[str | None, list[str]]:
    """The scheme of the labels, as wanted or found, and a note if labels look like one but are not valid in it."""
    found = find_scheme(known)
    if wanted in SCHEMES and found not in (wanted, "BIO"):
        example = name_list(sorted(known), 3)
        raise InputError(f"--scheme {wanted} needs labels such as B-title and I-title, but the labels are {example}.")
    scheme = found if wanted == "auto" else None if wanted == "none" else wanted
    try:
        check_known_labels(*_codes(corpus, sorted(known)), sorted(known), scheme)
    except SchemeError as error:
        line = corpus.line_of(error.sequence, error.token)
        if wanted != "auto":
            problem = f"{error.problem}. Convert the labels, or pass --scheme none."
            raise FileError(corpus.name, problem, line) from None
        return None, [f"Note: line {line}: {error.problem}, so labels are used as they are, without a scheme."]
    return scheme, []


def _codes(corpus: Corpus, names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Numbers of the labels that are given in full, −1 for the others, and offsets of the sequences."""
    number = {name: k for k, name in enumerate(names)}
    given = chain.from_iterable(corpus.given)
    codes = [number[entry] if isinstance(entry, str) else -1 for entry in given]
    return np.array(codes), np.cumsum([0, *map(len, corpus.given)])


def check_counts(counts: Counts, known: Set[str], scheme: str | None) -> None:
    """Refuse counts of labels that the file does not have; blocks are those of fields."""
    for stated, names in zip(counts, (sorted(known), fields_of(sorted(known), scheme)), strict=True):
        for name in stated.keys() - {*names}:
            labels = f"{did_you_mean(name, names)} The labels are {name_list(names)}."
            raise InputError(f"--count names {name!r}, which is not a label of the file.{labels}")
