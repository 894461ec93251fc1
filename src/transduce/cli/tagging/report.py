"""The HTML report of a tagging: sequences in colour, label counts, broken constraints, the most doubtful sequences."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from transduce.cli.report.page import load_template
from transduce.cli.tagging.results import Tagging
from transduce.sequences import blocks
from transduce.sequences.schemes import split_label

N_DOUBTFUL, N_BROKEN, N_SHOWN, MAX_TOKENS, N_COLORS = 30, 30, 100, 300, 36


def build_report(tagging: Tagging, about: Mapping[str, Any]) -> str:
    """Build the page; `about` is what the model file says about the fit."""
    n_sequences, scheme = len(tagging.labels), tagging.tagger.scheme
    n_broken = Counter(text for _, text in tagging.broken)
    n_blocks = Counter(block.label for labels in tagging.labels for block in blocks(labels, scheme))
    errors = tagging.expected_errors
    doubtful = [i for i in np.argsort(-errors, kind="stable")[:N_DOUBTFUL] if errors[i] > 0]
    spread = np.unique(np.linspace(0, n_sequences - 1, min(n_sequences, N_SHOWN)).round().astype(int))
    colors = _colors(tagging)
    counts = [{**row, "color": colors[row["label"]]} for row in about["counts"]]
    return load_template("sequences.html").render(
        file=Path(tagging.corpus.name).name,
        about=about,
        n_colors=N_COLORS,
        n_sequences=n_sequences,
        n_new=tagging.counts[1].total(),
        n_wrong=float(errors.sum()),
        constraints=[(str(one), n_broken[str(one)]) for one in tagging.tagger.constraints],
        counts=sorted(counts, key=lambda row: -int(row["assigned"])),
        blocks=[(name, colors[name], n) for name, n in n_blocks.most_common()],
        broken=_sequences(tagging, list(dict.fromkeys(i for i, _ in tagging.broken))[:N_BROKEN]),
        doubtful=_sequences(tagging, doubtful),
        shown=_sequences(tagging, spread),
    )


def _colors(tagging: Tagging) -> dict[str, int]:
    """The number of the colour of each label, and of each type of block."""
    types = {name: split_label(name, tagging.tagger.scheme)[1] for name in tagging.tagger.classes_}
    numbers = {name: k % N_COLORS for k, name in enumerate(sorted({*types.values()}))}
    return numbers | {label: numbers[name] for label, name in types.items()}


def _sequences(tagging: Tagging, chosen: Iterable[int]) -> list[dict[str, Any]]:
    """Sequences as parts with a label and a colour; long ones are cut off."""
    colors, found = _colors(tagging), []
    for i in chosen:
        tokens, n_wrong = tagging.corpus.tokens[i], tagging.expected_errors[i]
        pairs = list(zip(tokens, (tagging.confidence[i] < 0.5).tolist(), strict=True))[:MAX_TOKENS]
        named = {block.start: block for block in blocks(tagging.labels[i][:MAX_TOKENS], tagging.tagger.scheme)}
        borders = sorted({*named, *(block.end for block in named.values()), 0, len(pairs)})
        parts = [(named[start].label if start in named else "", pairs[start:end]) for start, end in pairwise(borders)]
        doubt = f", about {n_wrong:.1f} of {len(tokens)} labels wrong" if n_wrong >= 0.05 else ""
        more = f", the first {MAX_TOKENS} tokens" if len(tokens) > MAX_TOKENS else ""
        where = f"Line {tagging.corpus.lines[i]}{doubt}{more}"
        found.append({"where": where, "parts": [(label, colors.get(label), some) for label, some in parts]})
    return found
