"""Parts of messages: lists of names, counts, the known name that a misspelled one probably means, what to install.

Names are compared by difflib's ratio, after differences in case, spaces and punctuation are removed. Two neighbouring
letters that are swapped are a misspelling also in names that are too short for that ratio. A name that is part of
another ("bank" of "banking") or differs from it in one letter is suggested at a lower ratio than one that may well be
another word ("crude" and "trade").
"""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

_SUGGESTED, _OTHER_WORD, _MISSPELLED = 0.6, 0.75, 0.8
"""Ratio from which a slip is suggested in an error, from which any name is, and from which it is a misspelling."""
_SHORTEST = 4
"""Shorter names are too often similar by chance to be reported as misspellings."""


def install_advice(extra: str) -> str:
    """Say how to install an extra, from the checkout.

    >>> install_advice("app")
    "In the checkout of transduce, run: pip install '.[app]'"
    """
    return f"In the checkout of transduce, run: pip install '.[{extra}]'"


def name_list(names: Iterable[object], most: int = 10, *, quote: bool = True) -> str:
    """List at most so many names, in quotes.

    >>> name_list(["tea", "milk"]), name_list(["tea", "coffee", "milk", "juice"], most=2)
    ("'tea' and 'milk'", "'tea', 'coffee' and 2 more")
    >>> name_list([])
    ''
    """
    shown = [repr(name) if quote else str(name) for name in names]
    if len(shown) < 2:
        return "".join(shown)
    last = shown[-1] if len(shown) <= most else f"{len(shown) - most} more"
    return f"{', '.join(shown[: min(most, len(shown) - 1)])} and {last}"


def short_repr(value: object, width: int = 80) -> str:
    """How a message quotes a value that may be anything: on one line, and cut.

    >>> short_repr([1, 2]), short_repr("a long text", width=8)
    ('[1, 2]', "'a long…")
    """
    line = " ".join(repr(value).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def number_of(n: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun: 1 text, 2 classes."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"


def as_sentence(message: str) -> str:
    """Quote a message of another library: on one line, with a full stop where it has no end.

    >>> as_sentence("Invalid value (at line 1,\\n column 5)")
    'Invalid value (at line 1, column 5).'
    """
    line = " ".join(message.split())
    return line if line.endswith((".", "?", "?)")) else f"{line}."


def closest_name(name: object, known: Iterable[object]) -> str | None:
    """Return the known name most similar to this one, or None if none is similar; only strings are compared.

    >>> [closest_name(name, ["trade", "banking", "earn"]) for name in ("tarde", "bank", "crude", "travel")]
    ['trade', 'banking', None, None]
    """
    if not isinstance(name, str):
        return None
    one = normalize_name(name)
    names = {normalize_name(each): each for each in sorted({each for each in known if isinstance(each, str)})}
    ratios = [(_is_slip(one, two), SequenceMatcher(None, two, one).ratio(), two) for two in names]
    similar = [found for found in ratios if found[1] >= (_SUGGESTED if found[0] else _OTHER_WORD)]
    return names[max(similar)[2]] if similar else None


def _is_slip(one: str, two: str) -> bool:
    """Whether one name is part of the other, or differs from it in one letter or in two that are swapped."""
    return one in two or two in one or _differ_in_one_letter(one, two) or _are_swapped(one, two)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a question that names the most similar known name, to append to a sentence, or ""."""
    near = closest_name(name, known)
    return "" if near is None else f" Did you mean {near!r}?"


def find_misspelled(name: object, known: Iterable[object]) -> str | None:
    """Return the known name that this one is probably a misspelling or a variant of, or None.

    >>> known = ["travel", "valid", "class 1", "sport/baseball", "earn"]
    >>> [find_misspelled(name, known) for name in ("tarvel", "Travel", "eran")]
    ['travel', 'travel', 'earn']
    >>> [find_misspelled(name, known) for name in ("invalid", "class 2", "sport/basketball")]
    [None, None, None]
    """
    if not isinstance(name, str):
        return None
    ratios = [(_ratio(name, other), other) for other in known if isinstance(other, str)]
    ratio, nearest = max(ratios, default=(0.0, ""))
    return nearest if ratio >= _MISSPELLED else None


def have_same_numbers(name: object, other: object) -> bool:
    """Whether names hold the same numbers: "class 1" and "class 2" are two names, however similar."""
    return re.findall(r"\d+", str(name)) == re.findall(r"\d+", str(other))


def is_misspelling(name: str, other: str) -> bool:
    """Whether two names differ by a probable misspelling, and not only in case, spaces or punctuation."""
    return _MISSPELLED <= _ratio(name, other) < 1


def differ_in_one_letter(name: str, other: str) -> bool:
    """Whether two names that are not too short differ in one letter, such as "earm" and "earn"."""
    one, two = normalize_name(name), normalize_name(other)
    return len(one) >= _SHORTEST and _differ_in_one_letter(one, two)


def _differ_in_one_letter(one: str, two: str) -> bool:
    if len(one) != len(two):
        return False
    differing = [pair for pair in zip(one, two, strict=True) if pair[0] != pair[1]]
    return len(differing) == 1 and "".join(differing[0]).isalpha()


def normalize_name(name: str) -> str:
    """Remove differences in case, Unicode form, spaces and punctuation; "C", "C++", "1" and "-1" stay different."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    parts = (part.strip(" \t\r\n.,;:!?'\"") for part in folded.split("/"))
    return "/".join(re.sub(r"(?<=\w)[\s_.\-]+(?=\w)|_+", " ", part) for part in parts)


def _ratio(name: str, other: str) -> float:
    """Similarity of the one part in which two paths differ; 0 if lengths or numbers say that they are two names."""
    one, two = normalize_name(name), normalize_name(other)
    if one == two:
        return 1.0
    if abs(len(one) - len(two)) > 1 or one.count("/") != two.count("/"):
        return 0.0
    differing = [pair for pair in zip(one.split("/"), two.split("/"), strict=True) if pair[0] != pair[1]]
    if len(differing) != 1 or min(map(len, differing[0])) < _SHORTEST:
        return 0.0
    if not have_same_numbers(one, two):
        return 0.0
    ratio = SequenceMatcher(None, *differing[0], autojunk=False).ratio()
    return max(ratio, _MISSPELLED) if _are_swapped(*differing[0]) else ratio


def _are_swapped(one: str, two: str) -> bool:
    """Whether two different names differ in two neighbouring letters that are swapped."""
    if len(one) != len(two):
        return False
    k = next(k for k in range(len(one)) if one[k] != two[k])
    return one[k : k + 2] == two[k : k + 2][::-1] and one[k + 2 :] == two[k + 2 :]
