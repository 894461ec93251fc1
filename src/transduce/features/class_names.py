"""Class names and their descriptions as evidence: cosines of the vectors of texts and names."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.errors import InputError
from transduce.features.embeddings import Encoding
from transduce.features.encode import as_encoder, encode_texts


def read_class_names(stated: str) -> dict[str, str]:
    """Class names and what describes them, from a file or from names with commas between them.

    A file has one class a line: its name, or its name and a description with a comma or a tab between them. A name such
    as "sport/hockey" is a path in a tree.

    >>> read_class_names("billing, outage, sport/ice_hockey")
    {'billing': 'billing', 'outage': 'outage', 'sport/ice_hockey': 'sport: ice hockey'}
    """
    if not _is_file(stated):
        if Path(stated).suffix in (".txt", ".csv", ".tsv"):
            raise InputError(f"There is no file {stated}. Check the path, or write names with commas between them.")
        return describe_classes(stated.split(","))
    try:
        text = Path(stated).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{stated} is not UTF-8 text. Save it as UTF-8.") from None
    lines = [line for line in text.splitlines() if line.strip()]
    tabs = any("\t" in line for line in lines)
    rows = csv.reader(io.StringIO("\n".join(lines)), delimiter="\t" if tabs else ",", skipinitialspace=True)
    try:
        cells = list(rows)
    except csv.Error as error:
        raise InputError(f"line {rows.line_num} of {stated} cannot be read ({error}). Check the quotes.") from None
    return describe_classes([(row[0], ", ".join(row[1:])) for row in cells])


def describe_classes(classes: Any) -> dict[Any, str]:
    """Check class names, alone or with descriptions, and return what describes each; by default its own words.

    `classes` maps names to descriptions, or lists names or pairs of both.

    >>> describe_classes(["tea", ("coffee", "coffee, espresso and so on")])
    {'tea': 'tea', 'coffee': 'coffee, espresso and so on'}
    """
    if isinstance(classes, str) or not isinstance(classes, (Mapping, Iterable)):
        raise InputError(
            f"class names must be a list, or map names to descriptions, but are {classes!r}. Convert them."
        )
    pairs = [*classes.items()] if isinstance(classes, Mapping) else [_pair(entry) for entry in classes]
    found: dict[Any, str] = {}
    spelled: dict[str, Any] = {}
    for number, (given, description) in enumerate(pairs, start=1):
        name = given.strip() if isinstance(given, str) else given
        words = name_in_words(name)
        if not words:
            raise InputError(f"class name {number} is empty. Write a name, or remove it.")
        if words.casefold() in spelled:
            other = spelled[words.casefold()]
            raise InputError(f"class names {other!r} and {name!r} are the same. Keep one of them.")
        spelled[words.casefold()] = name
        if not isinstance(description, str | None):
            raise InputError(f"the description of class {name!r} must be text, but is {description!r}. Write words.")
        found[name] = (description or "").strip() or words
    if len(found) < 2:
        raise InputError(f"there must be two or more class names, but there is {len(found)}. Add the others.")
    described: dict[str, Any] = {}
    for name, text in found.items():
        if described.setdefault(text, name) != name:
            raise InputError(f"classes {described[text]!r} and {name!r} have the same description. Tell them apart.")
    return found


def name_in_words(name: Any) -> str:
    """What a class name says: underscores are blanks, and a path is "parent: child"."""
    parts = name if isinstance(name, tuple) else str(name).split("/")
    return ": ".join(" ".join(str(part).replace("_", " ").split()) for part in parts if str(part).strip())


def name_scores(texts: Sequence[str], descriptions: Mapping[Any, str], encoding: Encoding) -> Array:
    """Cosines (n, K) of the vectors of texts and descriptions; NaN for texts without a vector."""
    encoder = as_encoder(encoding.encoder)
    vectors, names = (
        encode_texts(
            each, encoder, cache=encoding.cache, n_jobs=encoding.n_jobs,
            progress=lambda status: encoding.report(encoder, status),
        )
        for each in (list(texts), list(descriptions.values()))
    )  # fmt: skip
    lengths = [np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, names)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((vectors / lengths[0]) @ (names / lengths[1]).T, dtype=np.float64)


def _is_file(stated: str) -> bool:
    try:
        return Path(stated).is_file()
    except (OSError, ValueError):  # too long for a path, as a list of many names is
        return False


def _pair(entry: Any) -> tuple[Any, str]:
    return entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, "")
