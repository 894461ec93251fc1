"""docs/reproduction.md, written from the results: each claim of the paper beside what we find."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.cells import module
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown, unique

WORDS = (AGREES, PARTLY, DIFFERS)
_PLURAL = {AGREES: "agree", PARTLY: "agree in part", DIFFERS: "differ"}

HEAD = """# The paper, reproduced

This page compares every figure, table and claim of Keerthi, Sundararajan and Shevade (2012) with what this package
gives on the same or similar data. It is written by `python -m experiments page` from `experiments/results`; do not
edit it. `python -m experiments all --data DIR` runs the missing or outdated cells first.

## Summary
"""

METHODS = """"The paper's method" is Algorithm 1: large margin, switching, nine stages of annealing, no price shift
for new rows, with two differences. Until labels have settled in the last stage, weight steps stop at a relative gap
of a quarter; and label steps that do not lower the objective are rejected, while weight steps are shortened until
they do. "Default" is `TransductiveClassifier()` with the true class sizes: soft annealing, exact label steps, and
the price shift. The paper's curves have no numbers, so where a claim is a curve its words are compared.
"""


def write(shown: Mapping[str, list[Row]], grids: Mapping[str, Sequence[Row]], path: Path, results: Path) -> Path:
    """Write the whole page."""
    verdicts = [(name, verdict) for name, rows in shown.items() for verdict in module(name).verdicts(rows)]
    parts = [HEAD, _summary(verdicts), METHODS, *_verdict_tables(verdicts, "##")]
    parts += [
        section(name, rows, len(grids[name]), _link(results / f"{name}.svg", path)) for name, rows in shown.items()
    ]
    parts.append(_cost(shown))
    path.write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8", newline="\n")
    return path


def _summary(verdicts: Sequence[tuple[str, Verdict]]) -> str:
    """How many claims of each study hold, and the ones that differ or hold in part, with the reason."""
    theirs = [(name, verdict) for name, verdict in verdicts if not verdict.is_own]
    lines = []
    for name in dict.fromkeys(name for name, _ in theirs):
        words = [verdict.word for study, verdict in theirs if study == name]
        title = (module(name).__doc__ or "").partition("\n")[0].rstrip(".")
        lines.append([f"[{name}](#{_anchor(name, title)})", title, *(str(words.count(w)) for w in WORDS)])
    open_ = [f"- *{v.claim}* ({name}, {v.word}): {v.reason or v.ours}" for name, v in theirs if v.word != AGREES]
    return "\n".join(
        [
            f"{_counted(theirs)}\n",
            markdown(["study", "subject", *WORDS], lines) + "\n",
            "Claims that differ or hold in part, and why:\n",
            *open_,
            "",
        ]
    )


def _counted(verdicts: Sequence[tuple[str, Verdict]]) -> str:
    words = [verdict.word for _, verdict in verdicts]
    counts = ", ".join(f"{words.count(word)} {_PLURAL[word]}" for word in WORDS if word in words)
    return f"{len(words)} claims: {counts}."


def _anchor(name: str, title: str) -> str:
    """The fragment that Markdown renderers give to the heading of a study."""
    kept = (c for c in f"{name}: {title}".lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def section(name: str, rows: list[Row], n_cells: int, picture: str | None) -> str:
    """Describe one study, with its figure and its table."""
    study = module(name)
    title, _, about = (study.__doc__ or "").partition("\n")
    n_found = len({tuple(str(row[key]) for key in study.KEYS) for row in rows})
    parts = [f"## {name}: {title.rstrip('.')}\n", about.strip() + "\n"]
    if n_found < n_cells:
        parts.append(f"{n_found} of {n_cells} cells have results.\n")
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
    for title, noun, is_own in (
        ("Claims of the paper", "claims", False),
        ("Our own targets and additions", "targets and additions that are not in the paper", True),
    ):
        mine = [(name, verdict) for name, verdict in verdicts if verdict.is_own == is_own]
        words = [verdict.word for _, verdict in mine]
        counts = ", ".join(f"{words.count(word)} {_PLURAL[word]}" for word in WORDS if word in words)
        if mine:
            parts.append(f"{level} {title}\n\n{len(mine)} {noun}: {counts}.\n")
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
        "Minutes are those of one core, summed over the cells; a run uses two by default. "
        "Versions are digests of the code that a cell depends on."
    )
    return f"## Cost\n\n{text}\n\n" + markdown(["study", "cells", "minutes", "versions"], lines) + "\n"


def _link(picture: Path, page: Path) -> str:
    return Path(os.path.relpath(picture, page.parent)).as_posix()
