"""A file of sequences: tokens, the labels that are known, and a layout that writes all labels into the same file."""

from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol

from transduce.cli.errors import InputError
from transduce.cli.formats.decoding import COMPRESSIONS, decode, decompress, read_bytes
from transduce.cli.formats.errors import ContentError, errors_in, quoted
from transduce.cli.formats.write import open_output
from transduce.cli.output_paths import TABLES
from transduce.labels.partial import RuledOut

_CONLL = ("conll", "conllu", "conll2003", "iob", "iob2", "bio", "bioes", "col", "tsv", "txt")
FORMATS = {**dict.fromkeys(_CONLL, "conll"), "jsonl": "jsonl", "ndjson": "jsonl", "xml": "xml"}
"""The format of each suffix."""
SUFFIXES = tuple(f".{suffix}{more}" for suffix in FORMATS for more in ("", ".gz", ".zst"))
UNKNOWN = ("", "_", "?")
"""How files write a label that is not known."""
MAX_LETTERS = 10_000
"""A longer token is a sign of a file that is read in the wrong way."""


class Layout(Protocol):
    """What a file holds beside tokens and labels."""

    def filled(self, labels: Sequence[Sequence[str]]) -> Iterable[str]:
        """Parts of the file with the label of every token."""

    def check_names(self, labels: Iterable[str]) -> None:
        """Refuse labels that the format cannot hold."""


Parsed = tuple[list[list[str]], list[list[Any]], list[int], Layout]
"""What readers return: tokens, given, lines and layout of a corpus."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sequences of a file.

    name    of the file
    format  "conll", "jsonl" or "xml"
    tokens  of each sequence
    given   a label, a set of candidates, `RuledOut`, or None for each token
    lines   the line where each sequence starts
    layout  the rest of the file
    mark    the byte order mark of UTF-8 that it starts with, or nothing
    """

    name: str
    format: str
    tokens: list[list[str]]
    given: list[list[Any]]
    lines: list[int]
    layout: Layout
    mark: bytes = b""

    def merged(self, labels: Sequence[Sequence[str]]) -> list[list[str]]:
        """These labels, but the given ones where they are known in full."""
        pairs = zip(self.given, labels, strict=True)
        return [[a if isinstance(a, str) else str(b) for a, b in zip(*pair, strict=True)] for pair in pairs]

    def line_of(self, sequence: int, token: int) -> int:
        """The line of a token; outside of CoNLL the one where its sequence starts."""
        return self.lines[sequence] + (token if self.format == "conll" else 0)

    @property
    def is_labeled(self) -> list[bool]:
        """Whether each sequence has a label for every token."""
        return [all(isinstance(entry, str) for entry in entries) for entries in self.given]


def parse_label(text: str) -> Any:
    """Read a label: a name, candidates `a|b`, ruled-out labels `!a|b`, or `_` for one that is not known.

    >>> parse_label("title"), parse_label("_"), parse_label("!title") == RuledOut("title")
    ('title', None, True)
    >>> sorted(parse_label("author|editor"))
    ['author', 'editor']
    """
    if text in UNKNOWN:
        return None
    names = text.removeprefix("!").split("|")
    if not all(names) or any(name in UNKNOWN for name in names):
        raise ContentError(f"the label {quoted(text)} has an empty part. Write a, a|b, !a or _ (not known).")
    return RuledOut(names) if text.startswith("!") else names[0] if len(names) == 1 else frozenset(names)


def check_token(token: str) -> str:
    """Return the token if it can be one."""
    if len(token) > MAX_LETTERS:
        advice = "Check that tokens are separated as the format wants."
        raise ContentError(f"a token has {len(token)} characters, more than {MAX_LETTERS}. {advice}")
    if not token or any(sign in token for sign in "\t\n\r"):
        raise ContentError(
            f"the token {quoted(token)} is empty or has a line break or a tab. Remove it, or correct it."
        )
    return token


def read_entry(token: str, label: str, line: int) -> Any:
    """Check a token, and read its label; errors name the line."""
    try:
        check_token(token)
        return parse_label(label)
    except ContentError as error:
        raise ContentError(error.problem, line) from None


def split_name(name: str) -> tuple[str | None, str | None]:
    """Format and compression by the suffixes of a name; None where it has none that is known."""
    suffixes = [suffix[1:].lower() for suffix in PurePath(name).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else None
    return FORMATS.get(suffixes[-1]) if suffixes else None, compression


def choose_format(source: str, format: str | None = None) -> str:
    """The format of a file: the stated one, or that of its suffix."""
    chosen = format or split_name(source)[0]
    if chosen is not None:
        return chosen
    if not source:
        raise InputError("the name of the file is empty. Name a file.")
    table = " For a table with a text in each row, use transduce label." if source.lower().endswith(TABLES) else ""
    raise InputError(f"{source}: cannot tell the format from the file name. Pass --format conll, jsonl or xml.{table}")


def read_corpus(source: str, format: str | None = None, token: str | None = None, label: str | None = None) -> Corpus:
    """Read a file of sequences; `token` and `label` name columns (from 1) or keys."""
    from transduce.cli.tagging import conll, json_sequences, tagged_xml

    readers = {"conll": conll.read, "jsonl": json_sequences.read, "xml": tagged_xml.read}
    chosen = choose_format(source, format)
    with errors_in(source):
        data = decompress(read_bytes(source, source), split_name(source)[1])
        tokens, given, lines, layout = readers[chosen](decode(data), token, label)
        if not tokens:
            raise ContentError("there are no sequences in it. Check that it is the right file.")
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    return Corpus(source, chosen, tokens, given, lines, layout, mark)


def write_corpus(corpus: Corpus, labels: Sequence[Sequence[str]], target: str) -> None:
    """Write the file of a corpus with these labels, completely or not at all."""
    corpus.layout.check_names({name for names in labels for name in names})
    parts = corpus.layout.filled(labels)
    with open_output(target, split_name(target)[1]) as file:
        file.write(corpus.mark)
        for part in parts:
            file.write(part.encode())


def check_output(corpus: Corpus, target: str) -> None:
    """Refuse an output whose name says that it has another format."""
    if split_name(target)[0] != corpus.format:
        advice = "Give it a suffix of the same format."
        raise InputError(f"{corpus.name} is {corpus.format}, so {target} cannot be written as another format. {advice}")
