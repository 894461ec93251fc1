"""CoNLL columns: a token in each line, its label in one column, blank lines between sequences.

Columns are separated by tabs if a line with a token has one, else by spaces. Comments before a sequence, `-DOCSTART-`
lines, blank lines and all other columns are written back as they were read. A line that starts with # is a comment,
unless it has as many columns as the other lines, and one of their labels or `_`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from transduce.cli.errors import InputError
from transduce.cli.formats.errors import ContentError
from transduce.cli.tagging.corpus import UNKNOWN, Parsed, read_entry
from transduce.suggest import number_of

_SEPARATORS = {"\t": re.compile("(\t)"), " ": re.compile("(?<=[^ ])( +)(?=[^ ])")}
_COMMENTS = {"\t": re.compile(r"#[^\t]*$|-DOCSTART-"), " ": re.compile(r"#( |\r?$)|-DOCSTART-")}

_DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True, eq=False)
class ConllLayout:
    """Lines of a file, where each sequence begins and ends, the separator, and the column of the label from 0."""

    lines: Sequence[str]
    sequences: Sequence[tuple[int, int]]
    separator: str
    column: int

    def filled(self, labels: Sequence[Sequence[str]]) -> Iterator[str]:
        """See `Layout.filled`."""
        lines = list(self.lines)
        for (begin, end), names in zip(self.sequences, labels, strict=True):
            for i, name in zip(range(begin, end), names, strict=True):
                pieces, tail = _pieces(lines[i], self.separator)
                if 2 * self.column > len(pieces):
                    pieces += [self.separator, ""]
                pieces[2 * self.column] = name
                lines[i] = "".join(pieces) + tail
        yield "\n".join(lines)

    def check_names(self, labels: Iterable[str]) -> None:
        """See `Layout.check_names`."""
        for name in labels:
            if any(sign in name for sign in (self.separator, "\n", "\r")):
                raise InputError(f"the label {name!r} cannot stand in a column, which ends at white space. Rename it.")


def read(text: str, token: str | None, label: str | None) -> Parsed:
    """Read a file; columns are counted from 1, by default the token is in the first and the label in the last."""
    lines = text.split("\n")
    separator = _separator(lines)
    sequences = list(_sequences(lines, _comments(lines, separator, label)))
    width = _width(lines, sequences, separator)
    wanted = _number(token or "1", "--text") - 1
    column = max(width - 1, 1) if label is None else _number(label, "--label") - 1
    if sequences and (wanted >= width or column > width or wanted == column):
        found = f"a token in column {wanted + 1} and a label in column {column + 1}"
        raise ContentError(
            f"it has {number_of(width, 'column')}, not {found}. Name other columns with --text and --label."
        )
    tokens, given = [], []
    for begin, end in sequences:
        rows = [_cells(line, separator) for line in lines[begin:end]]
        tokens.append([cells[wanted] for cells in rows])
        labels = (cells[column] if column < len(cells) else "" for cells in rows)
        given.append([read_entry(*entry, i) for i, entry in enumerate(zip(tokens[-1], labels, strict=True), begin + 1)])
    return tokens, given, [begin + 1 for begin, _ in sequences], ConllLayout(lines, sequences, separator, column)


def _pieces(line: str, separator: str) -> tuple[list[str], str]:
    """Cells of a line with the separators between them, and what follows the last one."""
    content = line.rstrip(" \r") if separator == " " else line.removesuffix("\r")
    return _SEPARATORS[separator].split(content), line[len(content) :]


def _cells(line: str, separator: str) -> list[str]:
    cells = line.removesuffix("\r").split(separator)
    return cells if separator == "\t" else [cell for cell in cells if cell]


def _separator(lines: Sequence[str]) -> str:
    """The sign between columns; comments may have others."""
    sure = [line for line in lines if line.strip() and not line.startswith(("#", _DOCUMENT))]
    return "\t" if any("\t" in line for line in sure or lines) else " "


def _comments(lines: Sequence[str], separator: str, label: str | None) -> set[int]:
    """Lines that are comments if they come before the first token of a sequence."""
    doubtful = {i for i, line in enumerate(lines) if _COMMENTS[separator].match(line)}
    sure = [_cells(line, separator) for i, line in enumerate(lines) if i not in doubtful and line.strip()]
    width = max(map(len, sure), default=0)
    column = width - 1 if label is None else _number(label, "--label") - 1
    labels = {cells[column] for cells in sure if len(cells) == width > column} | {*UNKNOWN}

    def is_token(line: str) -> bool:
        cells = _cells(line, separator)
        return len(cells) == width > column > 0 and cells[column] in labels and not line.startswith(_DOCUMENT)

    return {i for i in doubtful if not is_token(lines[i])}


def _sequences(lines: Sequence[str], comments: Set[int]) -> Iterator[tuple[int, int]]:
    """Where sequences begin and end; there are comments before their first token only."""
    begin: int | None = None
    for i, line in enumerate(lines):
        if begin is None and line.strip() and i not in comments:
            begin = i
        elif begin is not None and not line.strip():
            yield begin, i
            begin = None
    if begin is not None:
        yield begin, len(lines)


def _width(lines: Sequence[str], sequences: Sequence[tuple[int, int]], separator: str) -> int:
    """Number of columns; whole sequences may leave out the last one, the label."""
    widths: set[int] = set()
    for begin, end in sequences:
        own = len(_cells(lines[begin], separator))
        for i in range(begin + 1, end):
            if (found := len(_cells(lines[i], separator))) != own:
                problem = f"expected {number_of(own, 'column')} as in the first line of this sequence, found {found}"
                raise ContentError(f"{problem}. Write _ for a label that is not known.", i + 1)
        widths.add(own)
        if max(widths) - min(widths) > 1:
            widths.discard(own)
            problem = f"expected {number_of(max(widths), 'column')} as in the sequences before, found {own}"
            raise ContentError(f"{problem}. Write equal columns, or leave out the label.", begin + 1)
    return max(widths, default=0)


def _number(column: str, option: str) -> int:
    if not column.isdecimal() or not 1 <= int(column) <= 1000:
        raise InputError(f"{option} must be the number of a column, counted from 1, but is {column!r}.")
    return int(column)
