"""One page that shows what a fit did: a single HTML file without scripts, which loads nothing and needs no network.

Nothing a document, label or column says can act in it. The template escapes all of them and puts none into an
attribute, charts take them in as text, and the page's policy allows no script and no style but its own.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import jinja2
import numpy as np
import polars as pl
from markupsafe import Markup

from transduce.cli.report import sections
from transduce.cli.report.plots import MOST_BARS, MOST_CELLS, NARROW, WIDE, thousands
from transduce.cli.report.prices import price_sentence, share_text
from transduce.io.atomic_write import atomic_write

if TYPE_CHECKING:
    from transduce.cli.model_file import Model
    from transduce.cli.results import ResultNames

__all__ = ["build_report", "price_sentence", "strongest_words", "write_report"]

_SECTIONS: dict[str, tuple[str, Callable[[sections.Material], sections.Section]]] = {
    "summary": ("Summary", sections.summary),
    "sizes": ("Class sizes", sections.sizes),
    "progress": ("Progress", sections.progress),
    "confidence": ("Confidence", sections.confidence),
    "overruled": ("Overruled", sections.overruled),
    "prices": ("Your class sizes", sections.prices),
    "words": ("Words", sections.words),
    "tree": ("Tree", sections.tree),
    "uncertain": ("Look at these", sections.uncertain),
    "confusion": ("Against the truth", sections.confusion),
}
_UNPRINTABLE = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0xD800, 0xE000)), "\ufffd")
_UNPRINTABLE |= {0xFFFE: "\ufffd", 0xFFFF: "\ufffd", 13: " "}

Text = TypeVar("Text")


def build_report(
    model: "Model",
    results: pl.DataFrame,
    names: "ResultNames",
    *,
    truth: Sequence[str | None] | None = None,
    words: Sequence[Sequence[tuple[str, float]]] | None = None,
    file: str | None = None,
) -> str:
    """The page, from a model and the frame that `label` or `predict` made with it; the same input gives the same page.

    truth : the right label of each row of `results`, None where it is not known; adds a section that compares
    words : strongest words of each class; None for those that `strongest_words` finds
    file : name of the file whose rows were predicted; None if they are those that the model was made from
    """
    found = strongest_words(model) if words is None else words
    material = sections.Material(model, results, names, truth, found, file)
    left_out = {"tree"} if not model.tree else set()
    left_out |= {"confusion"} if truth is None else set()
    shown = {key: title for key, (title, _) in _SECTIONS.items() if key not in left_out}
    return _template().render(
        titles=shown,
        about=model.about,
        file=file,
        text_column=", ".join(names.text) or "document",
        fold=sections.FOLD,
        most_bars=MOST_BARS,
        most_cells={"wide": MOST_CELLS[WIDE], "narrow": MOST_CELLS[NARROW]},
        **{key: _SECTIONS[key][1](material) for key in shown},
    )


def write_report(html: str, target: str) -> None:
    """Write the page beside its place, then put it there at once, so that no half of it is ever seen."""
    with atomic_write(target) as file:
        file.write(html.encode())


def strongest_words(model: "Model", n: int = 12) -> list[list[tuple[str, float]]]:
    """The words that speak most for each class, with their weights above the mean of all classes.

    A word that is strong for every class tells none of them apart, hence the mean. Without a vocabulary, as for hashed
    words and vectors, the lists are empty.

    >>> from types import SimpleNamespace as Some
    >>> words = Some(vocabulary=("bean", "leaf", "the"))
    >>> model = Some(classes=("coffee", "tea"), coef=np.array([[2.0, 0, 9], [0, 4, 9]]), vectorizer=words)
    >>> strongest_words(model)
    [[('bean', 1.0)], [('leaf', 2.0)]]
    """
    vocabulary = model.vectorizer.vocabulary
    if not vocabulary:
        return [[] for _ in model.classes]
    mean = model.coef.mean(axis=0, dtype=np.float64)
    return [_strongest(row - mean, vocabulary, n) for row in model.coef]


def _strongest(weights: Any, vocabulary: Sequence[str], n: int) -> list[tuple[str, float]]:
    some = np.argpartition(-weights, min(n, weights.size - 1))[:n]
    order = some[np.lexsort((some, -weights[some]))]
    return [(vocabulary[j], float(weights[j])) for j in order if weights[j] > 0]


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("transduce.cli.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"hash": _hash, "thousands": thousands, "score": "{:.3f}".format, "name": _breakable}
    environment.filters |= {"percent": lambda share: _tight(share_text(share)), "tight": _tight}
    return environment.get_template("report.html")


def _printable(value: Text) -> Text:
    """Control characters as a sign that one stood there: some have no place in HTML, and none can be seen."""
    return type(value)(str(value).translate(_UNPRINTABLE)) if isinstance(value, str) else value


def _breakable(name: str) -> Markup:
    """A name that may go on in the next line where its parts meet."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.])(?=[^_/.])", name))


def _tight(sentence: str) -> str:
    """Keep numbers and their per cent signs in one line."""
    return sentence.replace(" %", "\u00a0%")


def _hash(style: str) -> str:
    """What the page's policy calls this stylesheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
