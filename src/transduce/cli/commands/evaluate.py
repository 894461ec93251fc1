"""transduce evaluate: compare a model's predictions with the labels of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages
from transduce.cli.errors import InputError
from transduce.cli.options import INPUT_OPTIONS, MESSAGE_OPTIONS

if TYPE_CHECKING:
    from transduce.cli.columns import Say
    from transduce.cli.formats import Table
    from transduce.cli.model_file import Model

MAX_CONFUSIONS = 15


@click.command()
@click.argument("model")
@click.argument("file")
@click.option("--label", metavar="COL", help="Column of the true labels.")
@INPUT_OPTIONS
@MESSAGE_OPTIONS
def evaluate(model: str, file: str, label: str | None, **options: Any) -> None:
    """Compare the predictions of MODEL with the labels in FILE: F-scores, confusions, levels of a tree."""
    from transduce.cli.predictions import read_model_and_table
    from transduce.cli.progress import Progress

    with Progress.from_options(options) as progress:
        found = _evaluate(*read_model_and_table(model, file, options), label, options, progress.say)
    if options["as_json"]:
        messages.print_json(asdict(found))
    else:
        messages.print_text(str(found))


def _evaluate(
    model: "Model", table: "Table", label: str | None, options: Mapping[str, Any], say: "Say"
) -> "Evaluation":
    """Score the model on the labels that people gave; labels that `label` itself wrote are left out."""
    from transduce.cli.columns import choose_label
    from transduce.cli.predictions import feature_rows, predict_rows

    X, text = feature_rows(model, table, options, say)
    label = choose_label(table, label, text, say)
    truth, n_given = _true_labels(table, label, say)
    if Path(table.name).name == model.about["source"] or n_given == model.about["n_labelled"]:
        say("Note: the model was trained on these rows and their labels, so the scores are too optimistic.")
    predicted = [model.classes[k] for k in predict_rows(model, model.scores(X)).label]
    found = score_labels(truth, predicted, f"column {label!r} of {table.name}", tree=model.tree)
    unknown = [each for each in found.classes if each.rows and each.name not in model.classes]
    if unknown:
        n_rows = sum(each.rows for each in unknown)
        some = f"{n_rows} of {found.rows} true labels are not"
        say(
            f"Note: {'none of the true labels is' if n_rows == found.rows else some} a class of the model "
            f"({unknown[0].name!r}, for example), and these count as wrong. If this is not the column of true labels, "
            "name it with --label."
        )
    return found


def _true_labels(table: "Table", column: str, say: "Say") -> tuple[list[str | None], int | None]:
    """Labels that people gave, and how many, if the file says which ones those are."""
    import polars as pl

    from transduce.cli.formats import labels_of
    from transduce.cli.results import given_rows, without_guard

    labels, given = labels_of(table, column), given_rows(table.frame, column)
    if given is None:
        return labels.to_list(), None
    n_given = int(given.sum())
    if not n_given:
        raise InputError(
            f"column {column!r} of {table.name} holds only the model's own labels (given is false in every row). "
            "Name the column of true labels with --label."
        )
    say(f"Using only the {n_given} rows with given = true; the others hold the model's own labels.")
    labels = labels.to_frame().select(without_guard(pl.col(labels.name))).to_series()
    return [label if known else None for label, known in zip(labels, given, strict=True)], n_given


@dataclass(frozen=True)
class ClassScore:
    """Precision, recall and F of one class, and its number of rows."""

    name: str
    precision: float
    recall: float
    f: float
    rows: int


@dataclass(frozen=True)
class Level:
    """F-scores when paths are cut off at this depth."""

    depth: int
    macro_f: float
    micro_f: float


@dataclass(frozen=True)
class Evaluation:
    """Scores over the rows with a known label; confusion[i][j] counts rows of class i that are predicted as class j."""

    rows: int
    left_out: int
    macro_f: float
    micro_f: float
    classes: tuple[ClassScore, ...]
    levels: tuple[Level, ...]
    names: tuple[str, ...]
    confusion: list[list[int]]

    def __str__(self) -> str:
        lines = [f"{self.rows} rows with a known label{f', {self.left_out} without' if self.left_out else ''}"]
        lines.append(f"macro F {self.macro_f:.4f}   micro F {self.micro_f:.4f}")
        lines += [f"  level {one.depth}: macro F {one.macro_f:.4f}, micro F {one.micro_f:.4f}" for one in self.levels]
        width = max(5, *map(len, self.names))
        lines.append(f"\n{'class':<{width}}  precision  recall      F    rows")
        lines += [
            f"{c.name:<{width}}  {c.precision:9.3f}  {c.recall:6.3f}  {c.f:5.3f}  {c.rows:6}" for c in self.classes
        ]
        confusions = [f"  {count:6}  {truth} -> {guess}" for truth, guess, count in self.confusions()]
        lines += ["\nmost frequent confusions (true -> predicted):", *confusions] if confusions else []
        return "\n".join(lines)

    def confusions(self) -> list[tuple[str, str, int]]:
        """The most frequent wrong pairs: true class, predicted class, rows."""
        pairs = [
            (truth, guess, count)
            for truth, row in zip(self.names, self.confusion, strict=True)
            for guess, count in zip(self.names, row, strict=True)
            if truth != guess and count
        ]
        return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))[:MAX_CONFUSIONS]


def score_labels(
    truth: Sequence[str | None], predicted: Sequence[str], where: str, *, tree: bool = False
) -> Evaluation:
    """Score predictions against true labels; rows without one are left out.

    >>> found = score_labels(["tea", "tea", "coffee", None], ["tea", "coffee", "coffee", "tea"], "here")
    >>> round(found.macro_f, 3), found.rows, found.left_out
    (0.667, 3, 1)
    """
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

    pairs = [(right, guess) for right, guess in zip(truth, predicted, strict=True) if right is not None]
    if not pairs:
        raise InputError(f"{where} has no label to compare with. Name the column of true labels with --label.")
    names = sorted({name for pair in pairs for name in pair})
    sides = tuple(map(list, zip(*pairs, strict=True)))
    by_class = precision_recall_fscore_support(*sides, labels=names, zero_division=0)
    classes = zip(names, *(values.tolist() for values in by_class), strict=True)
    levels = []
    for depth in range(1, max(name.count("/") for name in names) + 1) if tree else ():
        cut = [["/".join(name.split("/")[:depth]) for name in side] for side in sides]
        macro = f1_score(*cut, average="macro", zero_division=0)
        levels.append(Level(depth, float(macro), float(accuracy_score(*cut))))
    return Evaluation(
        rows=len(pairs),
        left_out=len(truth) - len(pairs),
        macro_f=float(by_class[2].mean()),
        micro_f=float(accuracy_score(*sides)),
        classes=tuple(ClassScore(*values) for values in classes),
        levels=tuple(levels),
        names=tuple(names),
        confusion=confusion_matrix(*sides, labels=names).tolist(),
    )
