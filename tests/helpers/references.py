"""References that are made up: tokens with labels, and files of them of which some are tagged."""

import json
import random
from pathlib import Path

Reference = list[tuple[str, str]]

NAMES = ("Orwil", "Elisken", "Torwil", "Fenmar", "Rosel", "Stenves", "Holgar", "Nisor")
WORDS = ("fast", "sparse", "hidden", "models", "trees", "search", "noise", "maps", "learning", "paths")
JOURNALS = ("Journal of Logic,", "Annals of Physics,", "Robotics Review,", "Computing Letters,")


def reference(rng: random.Random) -> Reference:
    """One reference: authors, title, journal, volume or pages, and date."""
    parts = [("author", f"{rng.choice('ABCDE')}. {rng.choice(NAMES)}{rng.choice(['.', ':'])}")]
    if rng.random() < 0.5:
        parts.insert(0, ("author", f"{rng.choice('FGHJK')}. {rng.choice(NAMES)} and"))
    parts.append(("title", f"{' '.join(rng.sample(WORDS, rng.randint(2, 5))).capitalize()}."))
    parts.append(("journal", rng.choice(JOURNALS)))
    if rng.random() < 0.7:
        parts.append(
            ("volume", rng.choice([f"{rng.randint(1, 60)}({rng.randint(1, 12)}),", f"vol. {rng.randint(1, 60)},"]))
        )
    parts.append(("date", f"{rng.randint(1965, 2004)}."))
    return [(token, label) for label, text in parts for token in text.split()]


def references(n: int, seed: int = 0) -> list[Reference]:
    """So many references."""
    rng = random.Random(seed)
    return [reference(rng) for _ in range(n)]


def tokens_of(some: list[Reference]) -> list[list[str]]:
    """Tokens of each reference."""
    return [[token for token, _ in one] for one in some]


def labels_of(some: list[Reference]) -> list[list[str]]:
    """Labels of each reference."""
    return [[label for _, label in one] for one in some]


def conll(some: list[Reference], n_tagged: int) -> str:
    """References as columns; the label is left open after the first ones."""
    rows = ([f"{token}\tx\t{label if i < n_tagged else '_'}\n" for token, label in one] for i, one in enumerate(some))
    return "\n".join("".join(lines) for lines in rows)


def json_lines(some: list[Reference], n_tagged: int) -> str:
    """References as objects; labels are left out after the first ones."""
    objects = (
        {"id": i, "tokens": tokens, **({"labels": labels} if i < n_tagged else {})}
        for i, (tokens, labels) in enumerate(zip(tokens_of(some), labels_of(some), strict=True))
    )
    return "".join(f"{json.dumps(one)}\n" for one in objects)


def xml(some: list[Reference], n_tagged: int) -> str:
    """References as tagged text."""
    parts = []
    for i, one in enumerate(some):
        words = (f"<{label}>{token}</{label}>" if i < n_tagged else token for token, label in one)
        parts.append(f"  <sequence>{' '.join(words)}</sequence>\n")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<dataset>\n{"".join(parts)}</dataset>\n'


WRITERS = {"conll": conll, "jsonl": json_lines, "xml": xml}


def write_references(folder: Path, format: str, some: list[Reference], n_tagged: int, name: str = "refs") -> Path:
    """Write references to a file of a format, the first ones tagged."""
    path = folder / f"{name}.{format}"
    path.write_text(WRITERS[format](some, n_tagged), encoding="utf-8")
    return path
