"""Inline SVG of matplotlib figures: text stays text, and colours are those of the page, light or dark.

Class names never pass through matplotlib: `Placeholders` draws a placeholder for each, and the name is inserted when
the SVG is written. A class may be called `$x_1$`, `</svg>` or 東京 and is measured, drawn and escaped like any other.
"""

import io
import re
import unicodedata
from collections.abc import Callable
from typing import Any, TypeAlias
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

INK, MUTED, LINE, ACCENT, PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
"""Colours to draw with; the style sheet of the page defines them as `.fill-ink`, `.stroke-ink` and so on."""
_COLOURS = {INK: "ink", MUTED: "muted", LINE: "line", ACCENT: "accent", PAPER: "paper"}

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "transduce",
    "font.size": 12,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "grid.color": LINE,
    "grid.linewidth": 1,
    "axes.axisbelow": True,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
}
_KEPT_PROPERTIES = ("fill", "stroke", "opacity", "text-anchor")
_NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")
_REFERENCE = re.compile(r"(?<![^(])#(\w+)")
_MAX_TITLE = 200

Draw: TypeAlias = "Callable[[float, Placeholders], Figure]"


class Placeholders:
    """Texts to insert into a figure: `put` returns the placeholder to draw.

    >>> texts = Placeholders()
    >>> texts.put("rec/sport/hockey", 8), texts.put("mathematics", 8)
    ('@0', '@1')
    >>> texts.shown
    [('…/hockey', 'rec/sport/hockey'), ('mathema…', 'mathematics')]
    """

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []
        self.widest = 0

    def put(self, text: str, width: int) -> str:
        """Store the text, truncated to a width in characters, and return its placeholder."""
        short = truncate_path(text, width) if "/" in text else truncate(text, width)
        self.shown.append((short, text[:_MAX_TITLE]))
        self.widest = max(self.widest, _width(short))
        return f"@{len(self.shown) - 1}"


def truncate(text: str, width: int) -> str:
    """Shorten text to one line of at most `width` characters; East Asian characters count twice.

    >>> truncate("one  two\\nthree", 8), truncate("東京都", 5)
    ('one two…', '東京…')
    """
    text = " ".join(text[: 8 * width + 80].split())
    if _width(text) <= width:
        return text
    while _width(text) > width - 1:
        text = text[:-1]
    return text + "…"


def truncate_path(text: str, width: int) -> str:
    """Shorten a path to as many of its last names as fit.

    >>> truncate_path("rec/sport/hockey", 14), truncate_path("rec/sport/hockey", 6)
    ('…/sport/hockey', '…ockey')
    """
    text = text[-8 * width :] if len(text) > 8 * width else text
    if _width(text) <= width:
        return truncate(text, width)
    names = text.split("/")
    ends = ("…/" + "/".join(names[k:]) for k in range(1, len(names)))
    return next((end for end in ends if _width(end) <= width), truncate(text[::-1], width)[::-1])


def _width(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def inline_svg(draw: Draw, width: int, name: str, title: str) -> Markup:
    """Draw at a width in pixels; `name` makes the ids unique within the page.

    >>> svg = inline_svg(lambda width, texts: Figure(figsize=(width, 1)), 144, "empty", "Nothing")
    >>> print(svg)
    <svg viewBox="0 0 144 72" role="img" aria-label="Nothing" width="144"><title>Nothing</title></svg>
    """
    texts = Placeholders()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the report does not depend on the matplotlibrc of the user
        matplotlib.rcParams.update(_STYLE)
        target = io.BytesIO()
        draw(width / 72, texts).savefig(target, format="svg", transparent=True)
    svg = ElementTree.fromstring(target.getvalue())
    box = svg.get("viewBox", "")
    _simplify(svg, texts, name)
    svg.attrib = {"viewBox": box, "role": "img", "aria-label": title, "width": str(width)}
    heading = ElementTree.Element("title")
    heading.text = title
    svg.insert(0, heading)
    return Markup(ElementTree.tostring(svg, encoding="unicode"))


def _simplify(svg: ElementTree.Element, texts: Placeholders, name: str) -> None:
    """Remove what the page does not need, and replace styles, which its policy forbids, by attributes and classes."""
    used = {found for element in svg.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)}
    for element in svg.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        element.attrib = _attributes(element, used, name)
        element.text = element.text if element.tag == "text" else None
    for element in list(svg.iter("text")):
        _insert_text(element, texts)
    _prune(svg)


def _insert_text(element: ElementTree.Element, texts: Placeholders) -> None:
    """Replace a placeholder by its text, with the full text as a tooltip if it was truncated."""
    if element.text and element.text.startswith("@"):
        element.text, whole = texts.shown[int(element.text[1:])]
        if element.text != whole:
            ElementTree.SubElement(element, "title").text = whole


def _prune(parent: ElementTree.Element) -> None:
    for element in list(parent):
        _prune(element)
        empty = element.tag in ("g", "defs") and len(element) == 0
        unseen = element.get("fill") == "none" and "class" not in element.attrib and "id" not in element.attrib
        if element.tag in ("metadata", "style") or empty or unseen:
            parent.remove(element)


def _attributes(element: ElementTree.Element, used: set[str], name: str) -> dict[str, str]:
    new, classes = {}, []
    for key, value in _declarations(element.attrib.pop("style", "")):
        if value in _COLOURS:
            classes.append(f"{key}-{_COLOURS[value]}")
        elif key.startswith("font") and (size := re.search(r"([\d.]+)px", value)):
            new["font-size"] = size[1]
        elif key.startswith(_KEPT_PROPERTIES):
            new[key] = value
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id" and value in used:
            new[key] = f"{name}-{value}"
        elif key != "id" and not value.startswith("rotate(-0 "):
            value = _REFERENCE.sub(rf"#{name}-\1", " ".join(value.split()))
            new[key] = value if "#" in value else _NUMBER.sub(_rounded, value)
    return new | ({"class": " ".join(classes)} if classes else {})


def _declarations(style: str) -> list[tuple[str, str]]:
    pairs = (declaration.partition(":") for declaration in style.split(";"))
    return [(key.strip(), value.strip()) for key, _, value in pairs if value]


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")
