"""JSONL sequences: an object in each line, with a list of tokens and a list of labels; other keys are kept."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transduce.cli.formats.errors import ContentError
from transduce.cli.tagging.corpus import Parsed, read_entry
from transduce.io.strict_json import JsonError, dumps, loads
from transduce.suggest import number_of


@dataclass(frozen=True, eq=False)
class JsonLayout:
    """Lines of a file, the object of each sequence by its line, and the key of the labels."""

    lines: Sequence[str]
    objects: dict[int, dict[str, Any]]
    key: str

    def filled(self, labels: Sequence[Sequence[str]]) -> Iterator[str]:
        """See `Layout.filled`; lines whose labels do not change stay as they are."""
        lines = list(self.lines)
        for (i, content), names in zip(self.objects.items(), labels, strict=True):
            if content.get(self.key) != list(names):
                ending = "\r" if lines[i].endswith("\r") else ""
                lines[i] = dumps({**content, self.key: list(names)}) + ending
        yield "\n".join(lines)

    def check_names(self, labels: Iterable[str]) -> None:
        """See `Layout.check_names`; JSON holds any."""


def read(text: str, token: str | None, label: str | None) -> Parsed:
    """Read a file; tokens are under the key "tokens" and labels under "labels", unless others are named."""
    token, label = token or "tokens", label or "labels"
    lines, tokens, given = text.split("\n"), [], []
    objects = {i: _object(line, i + 1) for i, line in enumerate(lines) if line.strip()}
    for i, content in objects.items():
        words = content.get(token)
        labels = content.get(label)
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise ContentError(f"expected a list of texts under the key {token!r}, with one at least.", i + 1)
        entries = [None] * len(words) if labels is None else labels
        if not isinstance(entries, list) or len(entries) != len(words):
            found = f"{len(entries)} of them" if isinstance(entries, list) else "something else"
            raise ContentError(
                f"expected {number_of(len(words), 'label')} under the key {label!r}, found {found}.", i + 1
            )
        tokens.append(words)
        given.append([read_entry(word, _text(entry, i + 1), i + 1) for word, entry in zip(words, entries, strict=True)])
    return tokens, given, [i + 1 for i in objects], JsonLayout(lines, objects, label)


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        content = loads(line)
    except JsonError as error:
        raise ContentError(f"expected a JSON object, but {error.problem}. {error.advice}", number) from None
    if not isinstance(content, dict):
        raise ContentError('expected a JSON object such as {"tokens": [...], "labels": [...]}.', number)
    return content


def _text(entry: Any, line: int) -> str:
    """A label as text; a list of names is a set of candidates."""
    names = entry if isinstance(entry, list) else ["" if entry is None else entry]
    if not names or not all(isinstance(name, str) for name in names):
        raise ContentError("a label must be a text, a list of candidates, or null.", line)
    return "|".join(names)
