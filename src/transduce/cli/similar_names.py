"""Names that a person may have meant to be the same: equal but for writing, or a slip away from each other."""

import difflib
import re
import unicodedata

CLOSE = 0.85
_LONG_ENOUGH = 4


def plain_name(name: str) -> str:
    """A label without what people write differently without meaning it; "C", "C++", "1" and "-1" stay apart.

    >>> plain_name("Sport_News ") == plain_name("sport-news"), plain_name("-1") == plain_name("1")
    (True, False)
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    parts = (part.strip(" \t\r\n.,;:!?'\"") for part in folded.split("/"))
    return "/".join(re.sub(r"(?<=\w)[\s_.\-]+(?=\w)|_+", " ", part) for part in parts)


def are_close(name: str, other: str) -> bool:
    """Close, but not told apart by a number ("week 1", "week 2"), by sign, or equal but for writing.

    >>> are_close("bankin", "banking"), are_close("week 1", "week 2"), are_close("Banking", "banking")
    (True, False, False)
    """
    one, two = plain_name(name), plain_name(other)
    if one == two or re.findall(r"\d+", one) != re.findall(r"\d+", two):
        return False
    differing = [(a, b) for a, b in zip(one.split("/"), two.split("/"), strict=False) if a != b]
    if one.count("/") != two.count("/") or len(differing) != 1:
        return False
    return min(map(len, differing[0])) >= _LONG_ENOUGH and _ratio(*differing[0]) >= CLOSE


def _ratio(one: str, two: str) -> float:
    matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= CLOSE else 0.0
