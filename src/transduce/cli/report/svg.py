"""SVG elements with escaped texts, axis ticks, and names shortened to a width.

Colours are classes that the style sheet of the page defines, such as `fill-ink` and `stroke-line`.
"""

import math
import unicodedata
from typing import Any

from markupsafe import Markup

LETTER_WIDTH = 7.4
_MAX_TITLE = 200


def element(tag: str, *children: str, **attributes: Any) -> Markup:
    """Build an element; texts are escaped, numbers rounded, and "_" in attribute names becomes "-"."""
    names = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    pairs = Markup("").join(Markup(' {}="{}"').format(name, _text(value)) for name, value in names.items())
    return Markup("<{0}{1}>{2}</{0}>").format(tag, pairs, Markup("").join(children))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{float(value):.1f}".removesuffix(".0")


def label(x: float, y: float, text: str, color: str = "ink", anchor: str = "start", size: float = 12) -> Markup:
    """Write text at a baseline."""
    return element("text", text, x=x, y=y, class_=f"fill-{color}", text_anchor=anchor, font_size=size)


def line(x1: float, y1: float, x2: float, y2: float, color: str = "line", width: float = 1) -> Markup:
    """Draw a straight line."""
    return element("path", d=f"M {x1:.1f} {y1:.1f} L {x2:.1f} {y2:.1f}", class_=f"stroke-{color}", stroke_width=width)


def shorten(name: str, width: int) -> tuple[Markup, int]:
    """Return a name of at most `width` characters, with the full name as a tooltip if it is shorter, and its width."""
    short = _truncate_path(name, width) if "/" in name else truncate(name, width)
    whole = name[:_MAX_TITLE]
    return Markup("").join([short, element("title", whole)] if short != whole else [short]), text_width(short)


def truncate(text: str, width: int) -> str:
    """Shorten text to one line of at most `width` characters; East Asian characters count twice."""
    text = " ".join(text[: 8 * width + 80].split())
    if text_width(text) <= width:
        return text
    while text_width(text) > width - 1:
        text = text[:-1]
    return text + "…"


def _truncate_path(text: str, width: int) -> str:
    """Shorten a path to as many of its last names as fit: …/sport/hockey."""
    text = text[-8 * width :]
    if text_width(text) <= width:
        return truncate(text, width)
    names = text.split("/")
    ends = ("…/" + "/".join(names[k:]) for k in range(1, len(names)))
    return next((end for end in ends if text_width(end) <= width), truncate(text[::-1], width)[::-1])


def text_width(text: str) -> int:
    """Return the width of a text in characters; East Asian characters count twice."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def ticks(low: float, high: float, at_most: int, least_step: float = 0.0) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten between two numbers."""
    power = 10.0 ** math.floor(math.log10((high - low) / at_most))
    steps = (max(factor * power, least_step) for factor in (1, 2, 5, 10))
    step = next((step for step in steps if (high - low) / step <= at_most), 10 * power)
    return [round(k * step, 12) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
