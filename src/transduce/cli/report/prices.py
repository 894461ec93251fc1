"""The price of a class in plain words: whether the size asked for it agrees with what the texts suggest.

Two shares agree when they cannot be told apart as they are printed, so a sentence never says that 12 % is above 12 %.
"""

import math
from typing import TypeAlias

Share: TypeAlias = tuple[float, float]
"""Lowest and highest share of the unlabelled documents, between 0 and 1."""


def share_text(share: float) -> str:
    """A share in percent: whole from 10 on, two digits below.

    >>> [share_text(share) for share in (0.123, 0.084, 0.08, 0.003, 0.00067, 0.0)]
    ['12 %', '8.4 %', '8 %', '0.3 %', '0.067 %', '0 %']
    """
    return f"{_percent(share)} %"


def _percent(share: float) -> str:
    percent = 100 * share
    if 0 < percent < 0.001:
        return "under 0.001"
    if 99 < percent < 100:
        return f"{min(percent, 99.9):.1f}".removesuffix(".0")
    decimals = 0 if percent < 1e-9 or percent >= 9.95 else max(1, 1 - math.floor(math.log10(percent)))
    text = f"{percent:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def range_text(share: Share) -> str:
    """Both ends, or one where they print the same.

    >>> range_text((0.08, 0.1)), range_text((0.08, 0.08))
    ('8 to 10 %', '8 %')
    """
    low, high = (_percent(end) for end in share)
    return f"{low} %" if low == high else f"{low} to {high} %"


def judge(asked: Share, texts: Share) -> str:
    """Whether what was asked is "high", "low", or "right" beside the texts; "unknown" where they do not say.

    >>> judge((0.12, 0.12), (0.08, 0.10)), judge((0.05, 0.12), (0.08, 0.10))
    ('high', 'right')
    """
    if not all(math.isfinite(end) for end in (*asked, *texts)):
        return "unknown"
    if asked[0] > texts[1] and _percent(asked[0]) != _percent(texts[1]):
        return "high"
    if asked[1] < texts[0] and _percent(asked[1]) != _percent(texts[0]):
        return "low"
    return "right"


def price_sentence(asked: Share, texts: Share) -> str:
    """What the texts say to the share asked for.

    >>> price_sentence((0.12, 0.12), (0.08, 0.10))
    'your 12 % looks high: the texts suggest 8 to 10 %'
    >>> price_sentence((0.003, 0.003), (0.0031, 0.0031))
    'your 0.3 % looks low: the texts suggest about 0.31 %'
    """
    verdict = judge(asked, texts)
    if verdict == "unknown":
        return "the texts do not suggest a size"
    return f"your {range_text(asked)} looks {verdict}: the texts suggest {_suggested(texts)}"


def unstated_sentence(texts: Share) -> str:
    """What the texts say to a class whose size nobody stated.

    >>> unstated_sentence((0.08, 0.10))
    'you stated no size; the texts suggest 8 to 10 %'
    """
    known = all(math.isfinite(end) for end in texts)
    return f"you stated no size; the texts suggest {_suggested(texts) if known else 'none'}"


def _suggested(texts: Share) -> str:
    suggested = range_text(texts)
    about = "" if " to " in suggested or suggested.startswith("under") else "about "
    return f"{about}{suggested}"
