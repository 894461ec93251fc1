"""Sentences that compare the stated size of a class with the size that the texts suggest.

Two proportions are equal when they print the same, so a sentence never says that 12 % is above 12 %.
"""

import math
from typing import TypeAlias

Interval: TypeAlias = tuple[float, float]
"""Lowest and highest proportion of the unlabelled documents, between 0 and 1."""


def percent_text(low: float, high: float | None = None) -> str:
    """Write a proportion or an interval in percent: whole from 10 on, two digits below."""
    ends = dict.fromkeys(_percent(end) for end in (low, low if high is None else high))
    return f"{' to '.join(ends)} %"


def _percent(proportion: float) -> str:
    percent = 100 * proportion
    if 0 < percent < 0.001:
        return "under 0.001"
    if 99 < percent < 100:
        return f"{min(percent, 99.9):.1f}".removesuffix(".0")
    decimals = 0 if percent < 1e-9 or percent >= 9.95 else max(1, 1 - math.floor(math.log10(percent)))
    text = f"{percent:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def compare_sizes(stated: Interval, suggested: Interval, slack: float = 1.0) -> str:
    """Return "high", "low" or "right" for the stated size, "unknown" where the texts suggest none.

    A rough size may be wrong by a factor of `slack`.
    """
    if not all(math.isfinite(end) for end in (*stated, *suggested)):
        return "unknown"
    if stated[0] > slack * suggested[1] and _percent(stated[0]) != _percent(suggested[1]):
        return "high"
    if slack * stated[1] < suggested[0] and _percent(stated[1]) != _percent(suggested[0]):
        return "low"
    return "right"


def size_sentence(stated: Interval | None, suggested: Interval, slack: float = 1.0) -> str:
    """Describe the stated size (None if there is none) beside what the texts suggest."""
    verdict = compare_sizes(stated or suggested, suggested, slack)
    if verdict == "unknown":
        return "the texts do not suggest a size" if stated else "you stated no size; the texts suggest none"
    text = percent_text(*suggested)
    about = "" if " to " in text or text.startswith("under") else "about "
    start = f"your {percent_text(*stated)} looks {verdict}:" if stated else "you stated no size;"
    return f"{start} the texts suggest {about}{text}"
