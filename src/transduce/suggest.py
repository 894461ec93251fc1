"""Names that are nearly those that are known: what an error asks back, and what a warning takes for a slip."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

ASKED, SLIP = 0.6, 0.8
"""How alike names are, by difflib's ratio, to be asked for, and to be warned of."""
SHORTEST = 4
"""Shorter names are too often alike to be warned of."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A question after the nearest of the known names, to stand behind a sentence; nothing, if none is near.

    >>> did_you_mean("tarvel", ["banking", "travel"]), did_you_mean("tea", ["banking", 3])
    (" Did you mean 'travel'?", '')
    """
    if not isinstance(name, str):
        return ""
    near = get_close_matches(name, sorted({each for each in known if isinstance(each, str)}), 1, ASKED)
    return f" Did you mean {near[0]!r}?" if near else ""


def slip_of(name: object, known: Iterable[object]) -> str | None:
    """The known name that this one is likely a misspelling of.

    Other digits make another name, as do two letters more; of paths just one part may differ.

    >>> known = ["travel", "valid", "class 1", "sport/baseball"]
    >>> [slip_of(name, known) for name in ("tarvel", "invalid", "class 2", "sport/basketball", "sprot/baseball")]
    ['travel', None, None, None, 'sport/baseball']
    """
    if not isinstance(name, str):
        return None
    likely = [(_likeness(name, each), each) for each in known if isinstance(each, str)]
    ratio, nearest = max(likely, default=(0.0, ""))
    return nearest if ratio >= SLIP else None


def _likeness(name: str, other: str) -> float:
    """difflib's ratio of the one part in which two paths differ; 0 where nobody would slip so."""
    if abs(len(name) - len(other)) > 1 or name.count("/") != other.count("/"):
        return 0.0
    pairs = [pair for pair in zip(name.split("/"), other.split("/"), strict=True) if pair[0] != pair[1]]
    if len(pairs) != 1 or min(map(len, pairs[0])) < SHORTEST:
        return 0.0
    if re.findall(r"\d+", pairs[0][0]) != re.findall(r"\d+", pairs[0][1]):
        return 0.0
    return SequenceMatcher(None, *pairs[0], autojunk=False).ratio()
