"""Words of a text.

A word is two or more letters, digits or underscores of any script, with the accents and vowel signs they carry, in
lower case and canonically composed (NFC: é typed as one character or as two is the same). Scripts written without
spaces between words (Chinese, Japanese, Thai, Lao, Burmese, Khmer) give each character and each pair of neighbours.
With `ngrams=2`, pairs of adjacent words are added. For Latin text these are the words of scikit-learn.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import numpy as np

_ASCII_WORDS = bytes(c if c < 128 and (chr(c).isalnum() or c == ord("_")) else 32 for c in bytes(range(256)).lower())
"""Translation of ASCII bytes: word characters to lower case, everything else to a space."""
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Burmese, Khmer
    "\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")  # quicker to search for than a run
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")


def words_of(text: str, ngrams: int = 1) -> list[str]:
    """Return the words of a text; single ASCII letters may be among them, which `count_words` drops.

    >>> words_of("Grüne Tees: 2 Sorten", ngrams=2), words_of("喝茶 daily")
    (['grüne', 'tees', 'sorten', 'grüne tees', 'tees sorten'], ['daily', '喝', '茶', '喝茶'])
    """
    if text.isascii():
        words = text.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
        return words if ngrams == 1 else _with_pairs([word for word in words if len(word) > 1])
    text = unicodedata.normalize("NFC", text.lower())
    pieces = _UNSPACED_RUN.split(text) if _UNSPACED_CHARACTER.search(text) else [text]  # spaced and unspaced in turn
    words = []
    for spaced in map(_spaced_word().findall, pieces[::2]):
        words += spaced if ngrams == 1 else _with_pairs(spaced)  # pairs of words do not cross an unspaced run
    for run in pieces[1::2]:
        words += run
        words += map("".join, pairwise(run))
    return words


def _with_pairs(words: list[str]) -> list[str]:
    return words + list(map(" ".join, pairwise(words)))


@cache
def _spaced_word() -> re.Pattern[str]:
    """Return the pattern of two or more characters of scripts with spaces.

    Python matches a set of 16-bit characters by a table, three times as fast as `\\w`. Characters beyond 16 bits
    (historic scripts, styled letters) are one range that ends before the emoji.
    """
    characters = _UNSPACED_CHARACTER.sub("", "".join(map(chr, range(0x10000))))
    letters = {c for c in characters if c.isalnum() or c == "_"}
    signs = {c for c in characters if unicodedata.category(c) in ("Mn", "Mc") and not "\ufe00" <= c <= "\ufe0f"}
    beyond = "\U00010000-\U0001efff"
    return re.compile(f"[{_ranges(letters)}{beyond}][{_ranges(letters | signs | {chr(0x200D)})}{beyond}]+")


def _ranges(characters: Iterable[str]) -> str:
    """Write characters as ranges for a regular expression set; none of them is punctuation."""
    codes = np.sort(np.array([ord(c) for c in characters]))
    breaks = np.flatnonzero(np.diff(codes) > 1)
    starts, ends = codes[np.append(0, breaks + 1)], codes[np.append(breaks, codes.size - 1)]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))
