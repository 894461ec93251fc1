"""SVG of a matplotlib figure to stand in a page: text stays text, and colours are those of the page, light or dark.

A user's words never go through matplotlib: `Words` hands out a placeholder for each, and the words come in when the SVG
is written. So a class may be called `$x_1$`, `</svg>` or 東京, and is measured, drawn and escaped like any other.
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
"""Colours to draw with; the page's stylesheet says what they look like, as `.fill-ink`, `.stroke-ink` and so on."""
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
_KEPT = ("fill", "stroke", "opacity", "text-anchor")
_NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")
_REFERENCE = re.compile(r"(?<![^(])#(\w+)")
_LENGTH_LIMIT = 200

Draw: TypeAlias = "Callable[[float, Words], Figure]"


class Words:
    """A user's words on their way around matplotlib: `put` gives the placeholder to draw.

    >>> words = Words()
    >>> words.put("rec/sport/hockey", 8), words.put("mathematics", 8)
    ('@0', '@1')
    >>> words.shown
    [('…/hockey', 'rec/sport/hockey'), ('mathema…', 'mathematics')]
    """

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []
        self.widest = 0

    def put(self, text: str, columns: int) -> str:
        """Keep the text, cut to so many columns of a terminal, and give the placeholder; of a path the end is kept."""
        short = cut_path(text, columns) if "/" in text else cut(text, columns)
        self.shown.append((short, text[:_LENGTH_LIMIT]))
        self.widest = max(self.widest, _columns(short))
        return f"@{len(self.shown) - 1}"


def cut(text: str, columns: int) -> str:
    """One line of at most so many columns; an East Asian letter takes two.

    >>> cut("one  two\\nthree", 8), cut("東京都", 5)
    ('one two…', '東京…')
    """
    text = " ".join(text[: 8 * columns + 80].split())
    if _columns(text) <= columns:
        return text
    while _columns(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def cut_path(text: str, columns: int) -> str:
    """As many of the last names of a path as there is room for.

    >>> cut_path("rec/sport/hockey", 14), cut_path("rec/sport/hockey", 6)
    ('…/sport/hockey', '…ockey')
    """
    text = text[-8 * columns :] if len(text) > 8 * columns else text
    if _columns(text) <= columns:
        return cut(text, columns)
    names = text.split("/")
    ends = ("…/" + "/".join(names[k:]) for k in range(1, len(names)))
    return next((end for end in ends if _columns(end) <= columns), cut(text[::-1], columns)[::-1])


def _columns(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def inline_svg(draw: Draw, width: int, name: str, title: str) -> Markup:
    """Draw at a width in pixels; `name` keeps the ids of several figures in a page apart.

    >>> svg = inline_svg(lambda width, words: Figure(figsize=(width, 1)), 144, "empty", "Nothing")
    >>> print(svg)
    <svg viewBox="0 0 144 72" role="img" aria-label="Nothing" width="144"><title>Nothing</title></svg>
    """
    words = Words()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever a matplotlibrc says, the report looks the same
        matplotlib.rcParams.update(_STYLE)
        target = io.BytesIO()
        draw(width / 72, words).savefig(target, format="svg", transparent=True)
    svg = ElementTree.fromstring(target.getvalue())
    box = svg.get("viewBox", "")
    _simplify(svg, words, name)
    svg.attrib = {"viewBox": box, "role": "img", "aria-label": title, "width": str(width)}
    heading = ElementTree.Element("title")
    heading.text = title
    svg.insert(0, heading)
    return Markup(ElementTree.tostring(svg, encoding="unicode"))


def _simplify(svg: ElementTree.Element, words: Words, name: str) -> None:
    """Drop what a page does not need, and turn styles into attributes and classes, which its policy allows."""
    used = {found for element in svg.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)}
    for element in svg.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        element.attrib = _attributes(element, used, name)
        element.text = element.text if element.tag == "text" else None
    for element in list(svg.iter("text")):
        _fill_in(element, words)
    _prune(svg)


def _fill_in(element: ElementTree.Element, words: Words) -> None:
    """The word in the place of its placeholder, and the whole of it for those who point at a cut one."""
    if element.text and element.text.startswith("@"):
        element.text, whole = words.shown[int(element.text[1:])]
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
        elif key.startswith(_KEPT):
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
