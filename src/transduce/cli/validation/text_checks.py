"""Checks of the texts: empty, duplicated, garbled, unusually long or short; all linear in the number of characters."""

import re
import statistics
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain

from transduce.cli.validation.findings import Documents, Finding, finding, row_list
from transduce.features.tokenize import words_of
from transduce.suggest import number_of

LENGTH_RATIO = 20
"""A text this many times longer or shorter than the median is unusual."""
_MIN_LONG, _MIN_MEDIAN_FOR_SHORT = 1000, 60

_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
_CONTINUATION = "[\x80-\xbfŒœŠšŸŽžƒˆ˜–—‘-‚“-„†-•…‰‹›€™]"
"""Continuation bytes of UTF-8, decoded as Windows-1252 or Latin-1."""
_MOJIBAKE = re.compile(
    f"(?<![A-ZÀ-Þ])Ã{_CONTINUATION}|Â[\x80-\xbf]|â€{_CONTINUATION}|â„¢|ðŸ{_CONTINUATION}|ï»¿|(?:[ÐÑ]{_CONTINUATION}){{2}}"
)
_MOJIBAKE_LEADS = "ÃÂâðïÐÑ"
_TWO_LETTERS = re.compile(r"\w\w")
_LOST = "Export the file again as UTF-8; the characters are lost in this copy."
_MISTAKEN = "UTF-8 was read in another encoding; export the file again as UTF-8."


def empty_texts(documents: Documents) -> Iterator[Finding]:
    """Texts of whitespace alone, and those of them with a label."""
    empty = [row for row, text in enumerate(documents.texts, 1) if not text.strip()]
    if not empty:
        return
    n = len(documents.texts)
    are = "is" if len(empty) == 1 else "are"
    message = f"{len(empty)} of {number_of(n, 'text')} {are} empty {documents.list_rows(empty)}."
    advice = "Check that this is the text column: labels of empty texts are guesses."
    yield finding("problem" if len(empty) == n else "warning", message, empty, advice)
    labeled = [row for row in empty if documents.labels[row - 1] is not None]
    if labeled:
        message = (
            f"{number_of(len(labeled), 'empty text has', 'empty texts have')} a label {documents.list_rows(labeled)}."
        )
        yield finding("warning", message, labeled, "Remove these labels, or fill in the texts: they teach nothing.")


def texts_without_words(documents: Documents) -> Iterator[Finding]:
    """Texts that are not empty, but have no word either."""
    rows = [row for row, text in enumerate(documents.texts, 1) if text.strip() and not _has_word(text)]
    if rows:
        texts = (
            f"{len(rows)} of {number_of(len(documents.texts), 'text')} {'has' if len(rows) == 1 else 'have'} no word"
        )
        advice = "Check whether these are documents: without a word, a label is a guess."
        yield finding("note", f"{texts} {documents.list_rows(rows)}.", rows, advice)


def _has_word(text: str) -> bool:
    """Whether a text has a word for tf-idf, of which single ASCII letters are none."""
    if _TWO_LETTERS.search(text):  # which is quick, and true of nearly all texts
        return True
    return any(len(word) > 1 or not word.isascii() for word in words_of(text))


def duplicate_texts(documents: Documents) -> Iterator[Finding]:
    """Texts that are equal except for case and whitespace, and those of them with different labels."""
    groups = _groups_of_equals(documents.texts)
    if not groups:
        return
    n_rows, largest = sum(map(len, groups)), max(groups, key=len)
    n_copies = n_rows - len(groups)
    occur = f"{number_of(len(groups), 'text occurs', 'texts occur')} more than once, in {n_rows} rows"
    message = f"{occur}; the most frequent one {len(largest)} times {documents.list_rows(largest)}."
    advice = "Remove accidental copies: each one counts, and copies in test data make results look too good."
    yield finding("warning" if 2 * n_copies >= len(documents.texts) else "note", message, largest, advice)
    yield from _conflicts(documents, groups)


def _groups_of_equals(texts: Sequence[str]) -> list[list[int]]:
    """Return the rows of equal texts, two or more each; texts are compared by hash to save memory."""
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
    labeled = ([row for row in group if labels[row - 1] in documents.rows_of] for group in groups)
    conflicts = [rows for rows in labeled if len({labels[row - 1] for row in rows}) > 1]
    if not conflicts:
        return
    one = conflicts[0][0]
    other = next(row for row in conflicts[0] if labels[row - 1] != labels[one - 1])
    example = f"{labels[one - 1]!r} in row {one} and {labels[other - 1]!r} in row {other}"
    message = f"{_texts_have(conflicts)} different labels in different rows, such as {example}."
    yield finding("warning", message, chain.from_iterable(conflicts), "Choose one label for each text.")


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
    yield from _texts_with(documents, lost, "the replacement character � for lost characters", _LOST)
    example = _MOJIBAKE.search(documents.texts[mistaken[0] - 1]) if mistaken else None
    yield from _texts_with(
        documents, mistaken, f"garbled characters such as {example.group() if example else ''!r}", _MISTAKEN
    )
    yield from _texts_with(
        documents, control, "control characters", "Remove them, or check that the file is plain text."
    )


def _texts_with(documents: Documents, rows: Sequence[int], what: str, advice: str) -> Iterator[Finding]:
    if rows:
        yield finding("warning", f"{_texts_have(rows)} {what} {documents.list_rows(rows)}.", rows, advice)


def unicode_forms(documents: Documents) -> Iterator[Finding]:
    """Accents as separate characters in some texts and as part of the letter in others."""
    accented = [(row, text) for row, text in enumerate(documents.texts, 1) if not text.isascii()]
    decomposed = [row for row, text in accented if not unicodedata.is_normalized("NFC", text)]
    if decomposed and any(not unicodedata.is_normalized("NFD", text) for _, text in accented):
        accents = f"{_texts_have(decomposed)} accents separate from their letters {documents.list_rows(decomposed)}"
        advice = "Convert all texts to one Unicode form (NFC): words must be equal."
        yield finding("warning", f"{accents}; others do not.", decomposed, advice)


def unusual_lengths(documents: Documents) -> Iterator[Finding]:
    """Texts far longer than the median, and texts far shorter that have a word."""
    lengths = [len(text) for text in documents.texts]
    filled = [row for row, text in enumerate(documents.texts, 1) if text and not text.isspace()]
    if not filled:
        return
    median = statistics.median(lengths[row - 1] for row in filled)
    long = [row for row in filled if lengths[row - 1] > max(LENGTH_RATIO * median, _MIN_LONG)]
    if long:
        longest = max(lengths[row - 1] for row in long)
        message = (
            f"{_texts_have(long)} up to {longest} characters; the median is {median:.0f} {documents.list_rows(long)}."
        )
        if len(long) == 1:
            message = f"The text of {row_list(long)} has {longest} characters; the median is {median:.0f}."
        advice = "Check whether several documents were merged into one, for example by a missing quotation mark."
        yield finding("note", message, long, advice)
    least = median / LENGTH_RATIO if median >= _MIN_MEDIAN_FOR_SHORT else 0
    short = [row for row in filled if lengths[row - 1] < least and _has_word(documents.texts[row - 1])]
    if short:
        are_empty = number_of(len(short), "text is nearly empty", "texts are nearly empty")
        message = f"{are_empty}; the median is {median:.0f} characters {documents.list_rows(short)}."
        yield finding("note", message, short, "Check whether these are documents; there is little to label them by.")


def _texts_have(found: Sequence[object]) -> str:
    return number_of(len(found), "text has", "texts have")


TEXT_CHECKS = (empty_texts, texts_without_words, duplicate_texts, garbled_texts, unicode_forms, unusual_lengths)
