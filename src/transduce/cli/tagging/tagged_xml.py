"""Tagged XML: sequences are the children of the root, labels the elements in them; untagged text has no label yet.

    <dataset><sequence><author>J. Smith,</author> A title. <date>1994.</date></sequence></dataset>

Tokens are separated by white space. Labels are written by adding tags around untagged text; everything else in the file
stays as it is, byte for byte. Document types are refused, and with them all entities of a file's own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from xml.parsers import expat

from transduce.cli.errors import InputError
from transduce.cli.formats.errors import ContentError, quoted
from transduce.cli.tagging.corpus import UNKNOWN, Parsed, read_entry

_TOKEN, _REFERENCE = re.compile(rb"[^ \t\r\n]+"), re.compile(r"&(#x?)?(\w+);")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_NAME = re.compile(r"[^\W\d][\w.:-]*")
_SHAPE = "<dataset><sequence><label>text</label></sequence></dataset>"
_ROOT, _SEQUENCE, _LABEL = 1, 2, 3
"""Depths of elements."""


@dataclass
class _Events:
    """Runs of text as expat finds them: label, first byte and the byte after the last, by sequence."""

    parser: Any
    path: list[str] = field(default_factory=list)
    runs: list[list[tuple[str | None, int, int]]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    begin: int | None = None

    def start(self, name: str, _: Any) -> None:
        self.markup()
        self.path.append(name)
        if len(self.path) > _LABEL:
            raise ContentError(f"<{name}> is nested deeper than {_SHAPE}. Flatten it.", self.line)
        if len(self.path) == _LABEL and name in UNKNOWN:
            raise ContentError(f"<{name}> is no label. Remove this tag: text without one has no label yet.", self.line)
        if len(self.path) == _SEQUENCE:
            self.runs.append([])
            self.lines.append(self.line)

    def end(self, name: str) -> None:
        self.markup()
        self.path.pop()

    def text(self, content: str) -> None:
        if self.begin is None:
            self.begin = self.parser.CurrentByteIndex
        if len(self.path) == _ROOT and content.strip():
            raise ContentError(f"the text {quoted(content.strip())} is in no sequence. Write {_SHAPE}.", self.line)

    def markup(self, *_: Any) -> None:
        """End a run of text."""
        if self.begin is not None and len(self.path) >= _SEQUENCE:
            label = self.path[-1] if len(self.path) == _LABEL else None
            self.runs[-1].append((label, self.begin, self.parser.CurrentByteIndex))
        self.begin = None

    def refuse(self, *_: Any) -> None:
        problem = "document types, entities and CDATA sections are not read, because they can hide other text"
        raise ContentError(f"{problem}. Remove them, and write &lt; and &amp; for < and &.", self.line)

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
            raise ContentError(
                f"expected UTF-8, but the file declares {quoted(encoding)}. Save it as UTF-8.", self.line
            )

    @property
    def line(self) -> int:
        return int(self.parser.CurrentLineNumber)


@dataclass(frozen=True, eq=False)
class XmlLayout:
    """Bytes of a file, and the runs of text of each sequence: label, first byte and the byte after the last."""

    data: bytes
    sequences: Sequence[Sequence[tuple[str | None, int, int]]]

    def filled(self, labels: Sequence[Sequence[str]]) -> Iterator[str]:
        """See `Layout.filled`."""
        at = 0
        for runs, names in zip(self.sequences, labels, strict=True):
            rest = iter(names)
            for label, *span in runs:
                named = [(one, next(rest)) for one in _TOKEN.finditer(self.data, *span)]
                for name, group in groupby(named if label is None else (), lambda pair: pair[1]):
                    found = [one for one, _ in group]
                    first, last = found[0].start(), found[-1].end()
                    yield f"{self.data[at:first].decode()}<{name}>{self.data[first:last].decode()}</{name}>"
                    at = last
        yield self.data[at:].decode()

    def check_names(self, labels: Iterable[str]) -> None:
        """See `Layout.check_names`."""
        read = {label for runs in self.sequences for label, *_ in runs}
        for name in labels:
            if name not in read and not _NAME.fullmatch(name):
                raise InputError(f"the label {name!r} cannot be the name of an XML element. Rename it.")


def read(text: str, token: str | None, label: str | None) -> Parsed:
    """Read a file."""
    if token is not None or label is not None:
        raise InputError("--text and --label name columns and keys, but labels of XML are elements. Leave them out.")
    data = text.encode()
    events = _parse(data)
    tokens, given = [], []
    for runs, line in zip(events.runs, events.lines, strict=True):
        found = [(one, name or "") for name, *span in runs for one in _TOKEN.findall(data, *span)]
        if not found:
            raise ContentError("the sequence has no text. Remove it.", line)
        tokens.append([_unescaped(one.decode()) for one, _ in found])
        given.append([read_entry(one, name, line) for one, (_, name) in zip(tokens[-1], found, strict=True)])
    return tokens, given, events.lines, XmlLayout(data, events.runs)


def _parse(data: bytes) -> _Events:
    parser = expat.ParserCreate("utf-8")
    events = _Events(parser)
    parser.StartElementHandler, parser.EndElementHandler = events.start, events.end
    parser.CharacterDataHandler = events.text
    parser.CommentHandler = parser.ProcessingInstructionHandler = events.markup
    parser.StartDoctypeDeclHandler = parser.StartCdataSectionHandler = events.refuse
    parser.XmlDeclHandler = events.declaration
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        problem = f"the XML is not valid ({expat.errors.messages[error.code]}). Correct it there."
        raise ContentError(problem, error.lineno) from None
    return events


def _unescaped(text: str) -> str:
    """Replace references to characters; expat has checked that there are no others."""
    bases = {"#": 10, "#x": 16}
    return _REFERENCE.sub(lambda one: chr(int(one[2], bases[one[1]])) if one[1] else _NAMED[one[2]], text)
