"""docs/reproduction.md, written from the results: each claim of the paper beside what we see."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.cells import module
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, unique

HEAD = """# The paper, regenerated

This page is written by `python -m experiments page` from the results in `experiments/results`; do not edit it.
`python -m experiments all --data DIR` runs every cell that is missing or older than the code, and then writes it.

Keerthi, Sundararajan and Shevade (2012) claim the following. "The paper's method" is their Algorithm 1: large margin,
switching, nine stages of annealing, no prices on new rows. It is not quite as they state it: until labels have settled
in the last stage, weight steps stop at a relative gap of a quarter; and a label step that does not lower the objective
is refused, while a weight step goes only as far as lowers it. "Default" is what `TransductiveClassifier()` does when
told the class sizes. It differs from the paper's method by soft annealing, by label steps that are solved exactly, and
by the prices of the class sizes on new rows. The paper's curves are pictures without numbers: where a claim is a curve,
its words are compared.
"""


def write(shown: Mapping[str, list[Row]], grids: Mapping[str, Sequence[Row]], path: Path, results: Path) -> Path:
    """The whole page."""
    verdicts = {name: module(name).verdicts(rows) for name, rows in shown.items()}
    parts = [HEAD, *_verdict_tables([(name, v) for name, found in verdicts.items() for v in found], "##")]
    parts += [
        section(name, rows, len(grids[name]), _link(results / f"{name}.svg", path)) for name, rows in shown.items()
    ]
    parts.append(_cost(shown))
    path.write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8", newline="\n")
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
        parts += _verdict_tables([(name, verdict) for verdict in study.verdicts(rows)], "###")
    return "\n".join(parts)


def _verdict_tables(verdicts: list[tuple[str, Verdict]], level: str) -> list[str]:
    """Claims of the paper, and apart from them our own targets and additions, each with their count."""
    parts = []
    for title, told, is_own in (
        ("Claims of the paper", "claims", False),
        ("Our own targets and additions", "targets and additions, which the paper does not speak of", True),
    ):
        mine = [(name, verdict) for name, verdict in verdicts if verdict.is_own == is_own]
        words = [verdict.word for _, verdict in mine]
        counts = ", ".join(f"{words.count(word)} {word}" for word in (AGREES, PARTLY, DIFFERS) if word in words)
        if mine:
            parts.append(f"{level} {title}, in a word\n\n{len(mine)} {told}: {counts}.\n")
            parts.append(_verdict_table(mine))
    return parts


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
        "Minutes are those of one core, summed over the cells; a run uses two unless told otherwise. "
        "Versions are digests of the code that a cell depends on."
    )
    return f"## What it costs\n\n{text}\n\n" + markdown(["study", "cells", "minutes", "versions"], lines) + "\n"


def _link(picture: Path, page: Path) -> str:
    return Path(os.path.relpath(picture, page.parent)).as_posix()
