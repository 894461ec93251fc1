"""Checks of the texts: empty, twice, garbled, far longer or shorter than the rest; all linear in the characters."""

import re
import statistics
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from transduce.cli.validation.findings import NOTE, PROBLEM, WARNING, Documents, Finding, finding, number_of, row_list

OUTLYING = 20
"""Texts so many times longer or shorter than the median are outliers."""
_LONG_AT_LEAST, _SHORT_IF_MEDIAN = 1000, 60

_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
_CONTINUATION = "[\x80-\xbfŒœŠšŸŽžƒˆ˜–—‘-‚“-„†-•…‰‹›€™]"
"""What the second byte of a UTF-8 character looks like when it is read as Windows-1252 or Latin-1."""
_MOJIBAKE = re.compile(
    f"(?<![A-ZÀ-Þ])Ã{_CONTINUATION}|Â[\x80-\xbf]|â€{_CONTINUATION}|â„¢|ðŸ{_CONTINUATION}|ï»¿|(?:[ÐÑ]{_CONTINUATION}){{2}}"
)

_MOJIBAKE_LEADS = "ÃÂâðïÐÑ"


def blank_texts(documents: Documents) -> Iterator[Finding]:
    """Texts without a character that is not space."""
    blank = [row for row, text in enumerate(documents.texts, 1) if not text.strip()]
    if not blank:
        return
    n = len(documents.texts)
    severity = PROBLEM if len(blank) == n else WARNING
    advice = "Check that the right text column is read; rows without a text can only be labelled by chance."
    yield finding(severity, f"Empty texts: {len(blank)} of {n} ({row_list(blank)}).", blank, advice)
    labelled = [row for row in blank if documents.labels[row - 1] is not None]
    if labelled:
        what = f"{_texts_have(len(labelled), 'empty text')} a label ({row_list(labelled)})."
        yield finding(
            WARNING, what, labelled, "Remove these labels, or fill in the texts: nothing is learnt from them."
        )


def duplicate_texts(documents: Documents) -> Iterator[Finding]:
    """Texts that are equal but for case and space, and those of them with different labels."""
    groups = _groups_of_equals(documents.texts)
    if not groups:
        return
    n_rows, biggest = sum(map(len, groups)), max(groups, key=len)
    copies = n_rows - len(groups)
    what = (
        f"{number_of(len(groups), 'text')} {'comes' if len(groups) == 1 else 'come'} more than once, in {n_rows} rows; "
        f"the most frequent one {len(biggest)} times ({row_list(biggest)})."
    )
    advice = "Remove the copies if they are accidental: each one counts, and a copy in test data flatters the result."
    yield finding(WARNING if 2 * copies >= len(documents.texts) else NOTE, what, biggest, advice)
    yield from _conflicts(documents, groups)


def _groups_of_equals(texts: Sequence[str]) -> list[list[int]]:
    """Rows of equal texts, two or more each. A text is known by its hash, which keeps a large file out of memory."""
    first: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for row, text in enumerate(texts, 1):
        folded = " ".join(text.split()).casefold()
        key = hash(folded)
        if folded and first.setdefault(key, row) != row:
            groups.setdefault(key, [first[key]]).append(row)
    return list(groups.values())


def _conflicts(documents: Documents, groups: list[list[int]]) -> Iterator[Finding]:
    labels = documents.labels
    labelled = ([row for row in group if labels[row - 1] in documents.rows_of] for group in groups)
    conflicts = [rows for rows in labelled if len({labels[row - 1] for row in rows}) > 1]
    if not conflicts:
        return
    one = conflicts[0][0]
    other = next(row for row in conflicts[0] if labels[row - 1] != labels[one - 1])
    what = (
        f"{_texts_have(len(conflicts))} different labels in different rows, such as "
        f"{labels[one - 1]!r} in row {one} and {labels[other - 1]!r} in row {other}."
    )
    rows = [row for group in conflicts for row in group]
    yield finding(WARNING, what, rows, "Decide for one label each: the same text cannot be both.")


def garbled_texts(documents: Documents) -> Iterator[Finding]:
    """Traces of a wrong encoding."""
    lost, mistaken, control = [], [], []
    for row, text in enumerate(documents.texts, 1):
        if not text.isprintable() and _CONTROL.search(text):
            control.append(row)
        if text.isascii():
            continue
        if "\ufffd" in text:
            lost.append(row)
        if any(lead in text for lead in _MOJIBAKE_LEADS) and _MOJIBAKE.search(text):  # the first test is a quick one
            mistaken.append(row)
    if lost:
        what = f"{_texts_have(len(lost))} the sign � for characters that were lost ({row_list(lost)})."
        yield finding(WARNING, what, lost, "Export the file again as UTF-8; what is lost here cannot be brought back.")
    if mistaken:
        example = _MOJIBAKE.search(documents.texts[mistaken[0] - 1])
        shown = example.group() if example else ""
        what = f"{_texts_have(len(mistaken))} garbled characters such as {shown!r} ({row_list(mistaken)})."
        yield finding(
            WARNING, what, mistaken, "UTF-8 was read as another encoding somewhere; export the file as UTF-8."
        )
    if control:
        what = f"{_texts_have(len(control))} control characters ({row_list(control)})."
        yield finding(WARNING, what, control, "Remove them, or check that the file is plain text.")


def normal_forms(documents: Documents) -> Iterator[Finding]:
    """Accents written as a character of their own in some texts and as part of the letter in others."""
    accented = [(row, text) for row, text in enumerate(documents.texts, 1) if not text.isascii()]
    apart = [row for row, text in accented if not unicodedata.is_normalized("NFC", text)]
    if apart and any(not unicodedata.is_normalized("NFD", text) for _, text in accented):
        what = f"{_texts_have(len(apart))} accents apart from their letters, others do not ({row_list(apart)})."
        yield finding(
            WARNING, what, apart, "Bring all texts to one Unicode form (NFC), or the same word counts as two."
        )


def outlying_lengths(documents: Documents) -> Iterator[Finding]:
    """Texts far longer than the median, and texts far shorter or without a word."""
    lengths = [len(text) for text in documents.texts]
    filled = [row for row, text in enumerate(documents.texts, 1) if text and not text.isspace()]
    if not filled:
        return
    median = statistics.median(lengths[row - 1] for row in filled)
    usual = f"the median is {median:.0f}"
    long = [row for row in filled if lengths[row - 1] > max(OUTLYING * median, _LONG_AT_LEAST)]
    if long:
        longest = max(lengths[row - 1] for row in long)
        what = f"{_texts_have(len(long))} up to {longest} characters; {usual} ({row_list(long)})."
        yield finding(
            NOTE, what, long, "Look whether several documents ran into one, for example by a missing quotation mark."
        )
    least = median / OUTLYING if median >= _SHORT_IF_MEDIAN else 0
    short = [row for row in filled if lengths[row - 1] < least or not _has_word(documents.texts[row - 1])]
    if short:
        what = f"{_texts_have(len(short))} hardly a word; {usual} characters ({row_list(short)})."
        yield finding(NOTE, what, short, "Look whether these are documents at all; there is little to label them by.")


def _has_word(text: str) -> bool:
    return text[0].isalnum() or any(character.isalnum() for character in text)


def _texts_have(n: int, noun: str = "text") -> str:
    return f"{number_of(n, noun)} {'has' if n == 1 else 'have'}"


TEXT_CHECKS: tuple[Callable[[Documents], Iterator[Finding]], ...] = (
    blank_texts,
    duplicate_texts,
    garbled_texts,
    normal_forms,
    outlying_lengths,
)
