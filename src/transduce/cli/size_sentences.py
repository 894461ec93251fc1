"""Stated class sizes beside those that the texts suggest, as sentences: which of them look high, low or right.

Two proportions are equal when they print the same, so a sentence never says that 12 % is above 12 %. All percentages
of a sentence have the same number of decimals.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from transduce.class_prior.statement import ROUGHNESS

Interval: TypeAlias = tuple[float, float]
"""Lowest and highest proportion of the unlabelled documents, between 0 and 1."""
ROUGH_SLACK = math.exp(2 * ROUGHNESS)
"""A rough size looks wrong if it is off by more than this factor."""


@dataclass(frozen=True)
class SizeComparison:
    """The stated size of a class beside the one that the texts suggest.

    verdict     "high", "low", "right", "unstated" or "unknown"
    suggestion  the size that the texts suggest
    distance    how far the two intervals are apart, as a proportion of the documents; negative if they overlap
    is_far      whether even a rough size looks high or low that far off
    """

    name: str
    verdict: str
    sentence: str
    suggestion: str
    distance: float
    is_far: bool


def compare_class(size: Mapping[str, Any], n_rows: int, *, is_stated: bool) -> SizeComparison:
    """Compare the size of a class, as a model file describes it, with the texts; `n_rows` have a class."""
    low, high = (size["rough"],) * 2 if "rough" in size else (size["asked_low"], size["asked_high"])
    stated: Interval = (low / max(n_rows, 1), high / max(n_rows, 1))
    suggested: Interval = (size["texts_low"], size["texts_high"])
    slack = ROUGH_SLACK if "rough" in size else 1.0
    verdict = compare_sizes(stated, suggested, slack) if is_stated else "unstated"
    sentence = size_sentence(stated, suggested, slack) if is_stated else ""
    suggestion = percent_text(*suggested) if all(map(math.isfinite, suggested)) else "unknown"
    is_far = is_stated and compare_sizes(stated, suggested, ROUGH_SLACK) in ("high", "low")
    distance = max(stated[0] - suggested[1], suggested[0] - stated[1])
    return SizeComparison(size["class"], verdict, sentence, suggestion, distance, is_far)


def percent_text(low: float, high: float | None = None) -> str:
    """Write a proportion or an interval in percent: whole from 10 on, two digits below.

    >>> percent_text(0.0724), percent_text(0.0724, 0.15), percent_text(0.076, 0.08)
    ('7.2 %', '7 to 15 %', '7.6 to 8.0 %')
    """
    if high is None:
        return f"{_percent(low)} %"
    return _interval_text((low, high), _common_decimals((), (low, high)))


def _interval_text(ends: Interval, decimals: int) -> str:
    return f"{' to '.join(dict.fromkeys(_rounded(end, decimals) for end in ends))} %"


def _rounded(proportion: float, decimals: int) -> str:
    percent = 100 * proportion
    if 0 < percent < 0.001:
        return "under 0.001"
    return f"{min(percent, 99.9) if percent < 100 else percent:.{decimals}f}"


def _percent(proportion: float) -> str:
    percent = 100 * proportion
    if 0 < percent < 0.001 or 99 < percent < 100:
        return _rounded(proportion, 1).removesuffix(".0")
    decimals = 0 if percent < 1e-9 or percent >= 9.95 else max(1, 1 - math.floor(math.log10(percent)))
    text = f"{percent:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def _common_decimals(stated: Sequence[float], suggested: Interval) -> int:
    """Decimals that show stated ends and the upper suggested one as `_percent` does, and a digit of the lower one.

    Ends that `_percent` shows as different stay different.
    """
    ends = (*stated, *suggested)
    low = 100 * suggested[0]
    found = [len(_percent(end).partition(".")[2]) for end in (*stated, suggested[1]) if 100 * end >= 0.001]
    decimals = max([*found, -math.floor(math.log10(low)) if 0.001 <= low < 1 else 0])
    n_different = len(set(map(_percent, ends)))
    while len({_rounded(end, decimals) for end in ends}) < n_different:
        decimals += 1
    return decimals


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


def size_sentence(stated: Interval, suggested: Interval, slack: float = 1.0) -> str:
    """Describe the stated size beside what the texts suggest."""
    verdict = compare_sizes(stated, suggested, slack)
    if verdict == "unknown":
        return "the texts do not suggest a size"
    decimals = _common_decimals(stated, suggested)
    text = _interval_text(suggested, decimals)
    about = "" if " to " in text or text.startswith("under") else "about "
    return f"your {_interval_text(stated, decimals)} looks {verdict}: the texts suggest {about}{text}"
