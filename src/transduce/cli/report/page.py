"""The page of a report: a single HTML file without scripts that loads nothing and needs no network.

Texts, labels and column names cannot run as code: the template escapes them and never puts them into an attribute,
charts insert them as text, and the content security policy allows no script and no style sheet but its own.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import jinja2
import numpy as np
import polars as pl
from markupsafe import Markup

from transduce.cli.report import sections
from transduce.cli.report.data import ReportData
from transduce.cli.report.document_map import MAX_COLORS
from transduce.cli.report.plots import MAX_BARS, MAX_CELLS, NARROW, WIDE, thousands
from transduce.cli.results import ResultNames
from transduce.cli.size_sentences import percent_text
from transduce.io.atomic_write import atomic_write
from transduce.model_file import Model

_UNPRINTABLE = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0xD800, 0xE000)), "\ufffd")
_UNPRINTABLE |= {0xFFFE: "\ufffd", 0xFFFF: "\ufffd", 13: " "}


def build_report(
    model: Model,
    results: pl.DataFrame,
    names: ResultNames,
    *,
    truth: Sequence[str | None] | None = None,
    words: Sequence[Sequence[tuple[str, float]]] | None = None,
    file: str | None = None,
    X: Any = None,
) -> str:
    """Build the page from a model and the frame that `label` or `predict` made with it; the output is deterministic.

    truth  the true label of each row of `results`, None where unknown; adds the section on accuracy
    words  strongest words of each class; None for those of `strongest_words`
    file   name of the file whose rows were predicted; None if they are the rows that the model was trained on
    X      feature rows (n, d) of `results`, sparse or dense; adds the map of documents
    """
    strongest = strongest_words(model) if words is None else words
    data = ReportData(model, results, names, truth, strongest, file, X)
    contents = {section.__name__: section(data) for section in sections.SECTIONS}
    return load_template("report.html").render(
        **contents,
        contents=contents,
        about=model.about,
        file=file,
        text_column=", ".join(names.text) or "document",
        fold=sections.MAX_UNFOLDED,
        max_bars=MAX_BARS,
        max_colors=MAX_COLORS,
        max_cells={"wide": MAX_CELLS[WIDE], "narrow": MAX_CELLS[NARROW]},
    )


def write_report(html: str, target: str) -> None:
    """Write the page completely or not at all."""
    with atomic_write(target) as file:
        file.write(html.encode())


def strongest_words(model: Model, n: int = 12) -> list[list[tuple[str, float]]]:
    """Return the n words with the largest weights of each class beyond the mean; none without a vocabulary."""
    vocabulary = model.vectorizer.vocabulary
    if not vocabulary:
        return [[] for _ in model.classes]
    coef = model.coef[:, : len(vocabulary)]  # the other columns of a mix are vectors
    mean, found = coef.mean(axis=0, dtype=np.float64), []
    for row in coef:
        weights = row - mean
        some = np.argpartition(-weights, min(n, weights.size - 1))[:n]
        order = some[np.lexsort((some, -weights[some]))]
        found.append([(vocabulary[j], float(weights[j])) for j in order if weights[j] > 0])
    return found


def load_template(name: str) -> jinja2.Template:
    """Load a template that escapes all values, and knows the style sheet and its hash."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("transduce.cli.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"hash": _hash, "name": _breakable, "percent": percent_text}
    environment.filters |= {"thousands": thousands, "score": "{:.3f}".format}
    return environment.get_template(name)


def _printable(value: Any) -> Any:
    """Replace control characters, which are invisible and partly not allowed in HTML."""
    return type(value)(str(value).translate(_UNPRINTABLE)) if isinstance(value, str) else value


def _breakable(name: str) -> Markup:
    """Allow line breaks between the parts of a name."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.])(?=[^_/.])", name))


def _hash(style: str) -> str:
    """Return the hash of a style sheet for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
