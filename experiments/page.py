"""docs/reproduction.md, written from the results: each claim of the paper beside what we see."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.cells import module
from experiments.study import Row, Verdict, markdown, unique

HEAD = """# The paper, regenerated

This page is written by `python -m experiments page` from the results in `experiments/results`; do not edit it.
`python -m experiments all --data DIR` runs every cell that is missing or older than the code, and then writes it.

Keerthi, Sundararajan and Shevade (2012) claim the following. "Paper's method" is their Algorithm 1 as they state it:
large margin, switching, nine stages of annealing, no prices on new rows. "Default" is what `TransductiveClassifier()`
does when told the class sizes. Their curves are pictures without numbers: where a claim is a curve, its words are
compared.
"""


def write(shown: Mapping[str, list[Row]], grids: Mapping[str, Sequence[Row]], path: Path, results: Path) -> Path:
    """The whole page."""
    verdicts = {name: module(name).verdicts(rows) for name, rows in shown.items()}
    words = [verdict.word for found in verdicts.values() for verdict in found]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    parts = [HEAD, f"## Every claim, in a word\n\n{len(words)} claims: {counts}.\n"]
    parts.append(_verdict_table([(name, v) for name, found in verdicts.items() for v in found]))
    parts += [
        section(name, rows, len(grids[name]), _link(results / f"{name}.svg", path)) for name, rows in shown.items()
    ]
    parts.append(_cost(shown))
    path.write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8")
    return path


def section(name: str, rows: list[Row], n_cells: int, picture: str | None) -> str:
    """What one study is, its figure and its table."""
    study = module(name)
    title, _, about = (study.__doc__ or "").partition("\n")
    n_found = len({tuple(str(row[key]) for key in study.KEYS) for row in rows})
    parts = [f"## {name}: {title.rstrip('.')}\n", about.strip() + "\n"]
    if n_found < n_cells:
        parts.append(f"{n_found} of {n_cells} cells are there.\n")
    if picture and hasattr(study, "plot"):
        parts.append(f"![{title}]({picture})\n")
    if hasattr(study, "table"):
        parts.append(study.table(rows) + "\n")
    if not picture:
        parts.append(_verdict_table([(name, verdict) for verdict in study.verdicts(rows)]))
    return "\n".join(parts)


def _verdict_table(verdicts: list[tuple[str, Verdict]]) -> str:
    lines = [[name, v.claim, v.paper, v.ours, f"**{v.word}**", v.reason] for name, v in verdicts]
    return markdown(["", "claim", "paper", "ours", "verdict", "why"], lines) + "\n"


def _cost(shown: Mapping[str, list[Row]]) -> str:
    lines, total = [], 0.0
    for name, rows in shown.items():
        cells = {tuple(str(row[key]) for key in module(name).KEYS): row["cell_seconds"] for row in rows}
        total += sum(cells.values())
        versions = ", ".join(str(version) for version in unique(rows, "version"))
        lines.append([name, str(len(cells)), f"{sum(cells.values()) / 60:.1f}", versions])
    lines.append(["all", "", f"{total / 60:.1f}", ""])
    text = (
        "Minutes are those of one core, summed over the cells; a run uses two. "
        "Versions are digests of the code that a cell depends on."
    )
    return f"## What it costs\n\n{text}\n\n" + markdown(["study", "cells", "minutes", "versions"], lines) + "\n"


def _link(picture: Path, page: Path) -> str:
    return Path(os.path.relpath(picture, page.parent)).as_posix()
