"""How right a model is on rows whose labels are known: F for all and for each class, confusions, levels of a tree."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from transduce.cli.errors import InputError

SHOWN_CONFUSIONS = 15


@dataclass(frozen=True)
class ClassScore:
    """One class: precision, recall, F and rows that are truly of it."""

    name: str
    precision: float
    recall: float
    f: float
    rows: int


@dataclass(frozen=True)
class Level:
    """F when paths are cut after so many parts."""

    depth: int
    macro_f: float
    micro_f: float


@dataclass(frozen=True)
class Evaluation:
    """Figures over the rows with a known label; confusion[i][j] counts rows of class i that were given class j."""

    rows: int
    left_out: int
    macro_f: float
    micro_f: float
    classes: tuple[ClassScore, ...]
    levels: tuple[Level, ...]
    names: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.rows} rows with a known label{f', {self.left_out} without' if self.left_out else ''}"]
        lines.append(f"macro F {self.macro_f:.4f}   micro F {self.micro_f:.4f}")
        lines += [
            f"  level {each.depth}: macro F {each.macro_f:.4f}, micro F {each.micro_f:.4f}" for each in self.levels
        ]
        width = max(5, *(len(each.name) for each in self.classes))
        lines.append(f"\n{'class':<{width}}  precision  recall      F    rows")
        lines += [
            f"{c.name:<{width}}  {c.precision:9.3f}  {c.recall:6.3f}  {c.f:5.3f}  {c.rows:6}" for c in self.classes
        ]
        confusions = [f"  {count:6}  {truth} -> {guess}" for truth, guess, count in self.confusions()]
        lines += ["\nmost frequent confusions (truth -> model):", *confusions] if confusions else []
        return "\n".join(lines)

    def strangers(self, classes: Sequence[str]) -> list[str]:
        """A sentence on true labels that the model cannot give, if there are any."""
        known = set(classes)
        strange = [each for each in self.classes if each.rows and each.name not in known]
        if not strange:
            return []
        n_rows = sum(each.rows for each in strange)
        which = "none of the true labels is" if n_rows == self.rows else f"{n_rows} of {self.rows} true labels are not"
        return [
            f"{which} a class of the model ({strange[0].name!r}, for one), and these count as wrong; if this is not "
            "the column of the truth, name it by --label."
        ]

    def confusions(self) -> list[tuple[str, str, int]]:
        """The most frequent wrong pairs (truth, given, rows)."""
        pairs = [
            (self.names[i], self.names[j], count)
            for i, row in enumerate(self.confusion)
            for j, count in enumerate(row)
            if i != j and count
        ]
        return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))[:SHOWN_CONFUSIONS]


def evaluate(truth: Sequence[str | None], guesses: Sequence[str], where: str, *, tree: bool = False) -> Evaluation:
    """Compare; rows without a known label are left out.

    >>> found = evaluate(["tea", "tea", "coffee", None], ["tea", "coffee", "coffee", "tea"], "here")
    >>> round(found.macro_f, 3), found.rows, found.left_out
    (0.667, 3, 1)
    """
    pairs = [(right, guess) for right, guess in zip(truth, guesses, strict=True) if right is not None]
    if not pairs:
        raise InputError(f"{where} has no label to compare with; name the column of the truth by --label.")
    right, given = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    names = sorted(set(right) | set(given))
    precision, recall, f, rows = precision_recall_fscore_support(right, given, labels=names, zero_division=0)
    micro = float(np.mean([a == b for a, b in pairs]))
    scores = tuple(
        ClassScore(name, float(precision[k]), float(recall[k]), float(f[k]), int(rows[k]))
        for k, name in enumerate(names)
    )
    counts, index = Counter(pairs), {name: k for k, name in enumerate(names)}
    confusion = np.zeros((len(names), len(names)), int)
    for (a, b), count in counts.items():
        confusion[index[a], index[b]] = count
    table = tuple(tuple(int(count) for count in row) for row in confusion)
    levels = _levels(right, given) if tree else ()
    return Evaluation(
        len(pairs), len(truth) - len(pairs), float(np.mean(f)), micro, scores, levels, tuple(names), table
    )


def _levels(right: Sequence[str], given: Sequence[str]) -> tuple[Level, ...]:
    """F at every depth above the leaves."""
    depth = max(name.count("/") for name in (*right, *given))
    found = []
    for level in range(1, depth + 1):
        a = ["/".join(name.split("/")[:level]) for name in right]
        b = ["/".join(name.split("/")[:level]) for name in given]
        _, _, f, _ = precision_recall_fscore_support(a, b, labels=sorted(set(a) | set(b)), zero_division=0)
        found.append(Level(level, float(np.mean(f)), float(np.mean([x == y for x, y in zip(a, b, strict=True)]))))
    return tuple(found)
