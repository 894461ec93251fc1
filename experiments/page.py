"""docs/reproduction.md, written from the results: each claim of the paper beside what we find."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from experiments import OF_VECTORS, side_by_side
from experiments.cells import module
from experiments.check import Checked, run_again
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown
from experiments.versions import Stamp, stamps

WORDS = (AGREES, PARTLY, DIFFERS)
_PLURAL = {AGREES: "agree", PARTLY: "agree in part", DIFFERS: "differ"}
_UNKNOWN = ("", "earlier")
"""Versions of results from before there were versions."""
Found = Sequence[tuple[str, Verdict]]
"""Verdicts, each with the name of its study."""

HEAD = """# The paper, reproduced

This page compares every figure, table and claim of Keerthi, Sundararajan and Shevade (2012) with what this package
gives on the same or similar data. It is written by `python -m experiments page` from `experiments/results`; do not
edit it. Each section shows the command that prints it; the command first runs cells that are missing or outdated
(`--any-version` accepts outdated ones).
"""

VERSIONS = (
    "Each section also has the version of its stored results, a digest of the code and the libraries that they may "
    "depend on: when this page was written, {}. Any change of that code gives a new version, whether or not it changes "
    "a result. So `python -m experiments check` runs cells again that it draws at random, and compares their results; "
    "each section says what it found."
)

FIGURES = """## The figures, side by side

Our picture is on the left. On the right is what the paper shows, what it claims (in italics, in a few words), and
whether our results agree. In figures 3 to 5 lines have the colours of the paper.

"The paper's method" is Algorithm 1: large margin, switching, nine stages of annealing, no price shift
for new rows, with two differences. Until labels have settled in the last stage, weight steps stop at a relative gap
of a quarter; and label steps that do not lower the objective are rejected, while weight steps are shortened until
they do. "Default" is `TransductiveClassifier()` with the true class sizes: soft annealing, exact label steps, and
the price shift. The paper's curves have no numbers, so where a claim is a curve its words are compared.
"""


def write(shown: Mapping[str, list[Row]], grids: Mapping[str, Sequence[Row]], path: Path, results: Path) -> Path:
    """Write the whole page."""
    verdicts = [(name, verdict) for name, rows in shown.items() for verdict in module(name).verdicts(rows)]
    versions = {name: stamps(module(name), rows) for name, rows in shown.items()}
    checked = run_again(results, shown)
    pictures = {name: Path(os.path.relpath(results / f"{name}.svg", path.parent)).as_posix() for name in shown}
    parts = [HEAD, fill(VERSIONS.format(_computed_by(versions, checked)), 116), _summary(verdicts), FIGURES]
    for name in filter(side_by_side.is_figure, shown):
        mine = [verdict for study, verdict in verdicts if study == name]
        parts.append(side_by_side.block(name, _subject(name), mine, pictures[name], _link_to(name)))
    parts += _verdict_tables(verdicts, "##")
    for name, rows in shown.items():
        parts.append(section(name, rows, len(grids[name]), pictures[name], checked.get(name, ())))
    parts.append(_cost(shown, versions))
    path.write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8", newline="\n")
    return path


def _summary(verdicts: Found) -> str:
    """How many claims of each study hold, then those that differ, and those that hold in part by their reason."""
    theirs, own = ([pair for pair in verdicts if pair[1].is_own == is_own] for is_own in (False, True))
    lines = []
    for name in dict.fromkeys(name for name, _ in theirs):
        words = [verdict.word for study, verdict in theirs if study == name]
        lines.append([_link_to(name), _subject(name), *(str(words.count(w)) for w in WORDS)])
    parts = [f"## Summary\n\n{_counted([v for _, v in theirs], 'claims of the paper')}.\n"]
    parts.append(markdown(["study", "subject", *WORDS], lines) + "\n")
    for word in (DIFFERS, PARTLY):
        mine = [pair for pair in theirs if pair[1].word == word]
        if mine:
            parts.append(f"Claims that {_PLURAL[word]}:\n\n{_by_cause(mine, word == PARTLY)}\n")
    if own:
        counted = _counted([v for _, v in own], "targets and additions of our own")
        parts.append(f"Beyond the paper there are {counted}, [below](#our-own-targets-and-additions).\n")
    return "\n".join(parts)


def _by_cause(verdicts: Found, is_grouped: bool) -> str:
    """A line for each claim with its reason; one for all claims of the same cause if `is_grouped`."""
    groups: dict[str, list[str]] = {}
    for name, verdict in verdicts:
        if is_grouped and verdict.cause:
            groups.setdefault(verdict.cause, []).append(name)
        else:
            groups[f"- *{verdict.claim}* ({_link_to(name)}): {verdict.reason or verdict.ours}"] = []
    lines = []
    for line, names in groups.items():
        where = ", ".join(f"{names.count(name)} of {_link_to(name)}" for name in dict.fromkeys(names))
        lines.append(f"- {line}: {where}." if names else line)
    return "\n".join(lines)


def _counted(verdicts: Sequence[Verdict], noun: str) -> str:
    words = [verdict.word for verdict in verdicts]
    counts = ", ".join(f"{words.count(word)} {_PLURAL[word]}" for word in WORDS if word in words)
    return f"{len(words)} {noun}: {counts}"


def _first_line(name: str) -> str:
    return (module(name).__doc__ or "").partition("\n")[0].rstrip(".")


def _subject(name: str) -> str:
    """What a study is about, in short."""
    return _first_line(name).partition(":")[0]


def _link_to(name: str) -> str:
    """A link to the section of a study, by the fragment that Markdown renderers give to its heading."""
    kept = (c for c in f"{name}: {_subject(name)}".lower() if c.isalnum() or c in " -_")
    return f"[{name}](#{''.join(kept).replace(' ', '-')})"


def section(name: str, rows: list[Row], n_cells: int, picture: str | None, checked: Sequence[Checked] = ()) -> str:
    """Describe one study, with its figure and its table; without a picture also with its claims."""
    study = module(name)
    about = f"{_first_line(name)}.\n" + (study.__doc__ or "").partition("\n")[2]
    n_found = len({tuple(str(row[key]) for key in study.KEYS) for row in rows})
    parts = [f"## {name}: {_subject(name)}\n", about.strip() + "\n", _origin(name, stamps(study, rows), checked)]
    if n_found < n_cells:
        parts.append(f"{n_found} of {n_cells} cells have results.\n")
    if picture and side_by_side.is_figure(name):
        heading = side_by_side.title(name)
        parts.append(f"The picture is [above](#{heading.lower().replace(' ', '-')}).\n")
    elif picture and hasattr(study, "plot"):
        parts.append(f"![{_first_line(name)}.]({picture})\n")
    if hasattr(study, "table"):
        parts.append(study.table(rows) + "\n")
    if not picture:
        parts += _verdict_tables([(name, verdict) for verdict in study.verdicts(rows)], "###")
    return "\n".join(parts)


def _origin(name: str, versions: Sequence[Stamp], checked: Sequence[Checked]) -> str:
    """The command that prints the section of a study, the versions of its results, and what a check of them found."""
    command = f"`python -m experiments {name} --data DIR{' --vectors DIR' * (name in OF_VECTORS)}`"
    each = [
        ("not recorded" if stamp.version in _UNKNOWN else f"`{stamp.version}`")
        + f" ({'present' if stamp.is_present else 'earlier'} code, {stamp.n_cells} cells)"
        for stamp in versions
    ]
    found = f" Cells run again by the present code: {_agreement(checked)}." if checked else ""
    return f"Command: {command}. Version of the results: {', '.join(each)}.{found}\n"


def _agreement(checked: Sequence[Checked]) -> str:
    """How many of the cells that were run again agree, and the largest difference if some do not."""
    n_agree = sum(one.agrees for one in checked)
    worst = max(checked, key=lambda one: one.difference)
    difference = f", largest difference {worst.difference:.2g} in {worst.column}" if n_agree < len(checked) else ""
    return f"{n_agree} of {len(checked)} agree{difference}"


def _computed_by(versions: Mapping[str, Sequence[Stamp]], checked: Mapping[str, Sequence[Checked]]) -> str:
    """Which studies the present code computed, wholly or in part, and which were computed by earlier code."""
    whole, partly, earlier = [], [], []
    for name, found in versions.items():
        n_present = sum(stamp.n_cells for stamp in found if stamp.is_present)
        n_cells = sum(stamp.n_cells for stamp in found)
        if n_present == n_cells:
            whole.append(name)
        else:
            notes = [f"{n_present} of {n_cells} cells"] if n_present else []
            notes += [f"{_agreement(checked[name])} when run again"] if name in checked else []
            (partly if n_present else earlier).append(f"{name} ({'; '.join(notes)})" if notes else name)
    groups = (
        ("the present code had computed", whole),
        ("the present code had computed a part of", partly),
        ("earlier code had computed", earlier),
    )
    return "; ".join(f"{text} {', '.join(names)}" for text, names in groups if names)


def _verdict_tables(verdicts: Found, level: str) -> list[str]:
    """Claims of the paper, and apart from them our own targets and additions, each with their count."""
    parts = []
    for title, noun, is_own in (
        ("Claims of the paper", "claims", False),
        ("Our own targets and additions", "targets and additions that are not in the paper", True),
    ):
        mine = [(name, verdict) for name, verdict in verdicts if verdict.is_own == is_own]
        if mine:
            parts.append(f"{level} {title}\n\n{_counted([v for _, v in mine], noun)}.\n")
            parts.append(_verdict_table(mine))
    return parts


def _verdict_table(verdicts: Found) -> str:
    lines = [[name, v.claim, v.paper, v.ours, f"**{v.word}**", v.reason] for name, v in verdicts]
    return markdown(["", "claim", "paper", "ours", "verdict", "why"], lines) + "\n"


def _cost(shown: Mapping[str, list[Row]], versions: Mapping[str, Sequence[Stamp]]) -> str:
    lines, total = [], 0.0
    for name, rows in shown.items():
        cells = {tuple(str(row[key]) for key in module(name).KEYS): row["cell_seconds"] for row in rows}
        total += sum(cells.values())
        n_present = sum(stamp.n_cells for stamp in versions[name] if stamp.is_present)
        lines.append([name, str(len(cells)), str(n_present), f"{sum(cells.values()) / 60:.1f}"])
    lines.append(["all", "", "", f"{total / 60:.1f}"])
    text = "Minutes are those of one core, summed over the cells; a run uses two by default."
    return f"## Cost\n\n{text}\n\n" + markdown(["study", "cells", "by the present code", "minutes"], lines) + "\n"
