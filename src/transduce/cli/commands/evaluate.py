"""transduce evaluate: compare a model's predictions with the labels of a file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages
from transduce.cli.errors import InputError
from transduce.cli.options import ENCODER_OPTIONS, MESSAGE_OPTIONS, MODEL_INPUT_OPTIONS

if TYPE_CHECKING:
    from transduce.cli.columns import Say
    from transduce.cli.formats import Table
    from transduce.cli.progress import Progress
    from transduce.model_file import Model

CLASS_SCORES = ("name", "precision", "recall", "f", "rows")
MAX_CONFUSIONS = 15


@click.command(short_help="Compare the predictions of a model with true labels.")
@click.argument("model")
@click.argument("file")
@click.option("--label", metavar="COL", help="Column of the true labels.")
@MODEL_INPUT_OPTIONS
@ENCODER_OPTIONS
@MESSAGE_OPTIONS
def evaluate(model: str, file: str, label: str | None, **options: Any) -> None:
    """Compare the predictions of MODEL with the labels in FILE: F-scores, confusions, levels of a tree.

    With a MODEL that `transduce tag` wrote, FILE holds sequences, which are compared by token and by block.
    """
    from transduce.cli.predictions import read_model_and_table
    from transduce.cli.progress import Progress
    from transduce.cli.tagging import evaluation
    from transduce.sequences.tagger_file import is_tagger, load_tagger

    if is_tagger(model):
        scores = evaluation.evaluate_tagger(*load_tagger(model), file, {**options, "label": label})
        messages.print_json(scores) if options["as_json"] else messages.print_text(evaluation.as_text(scores))
        return
    with Progress.from_options(options) as progress:
        found = _evaluate(*read_model_and_table(model, file, options), label, options, progress)
    if options["as_json"]:
        messages.print_json(found)
    else:
        messages.print_text(as_text(found))


def _evaluate(
    model: "Model", table: "Table", label: str | None, options: Mapping[str, Any], progress: "Progress"
) -> dict[str, Any]:
    """Score the model on labels that people gave, and that it was not fitted with."""
    from transduce.cli.columns import choose_label
    from transduce.cli.predictions import feature_rows, predict_rows

    say = progress.say
    X, text = feature_rows(model, table, options, progress)
    label = choose_label(table, label, text, say)
    where = f"column {label!r} of {table.name}"
    truth, n_given = _true_labels(table, label, say)
    answered = _answered(table, n_given)
    if not _knows_training_rows(model) and (
        Path(table.name).name == model.about["source"] or n_given == model.about["n_labelled"]
    ):
        say("Note: the model was trained on these rows and their labels, so the scores are too optimistic.")
    truth, n_trained = _without_training_rows(model, table, text, X, truth, where)
    n_answered = sum(one and right is not None for one, right in zip(answered, truth, strict=True))
    if n_answered:
        clause = messages.answered_clause(n_answered, len(truth) - truth.count(None))
        say(f"Note: {clause}, so the scores are probably too low.")
    predicted = ["" if k < 0 else model.classes[k] for k in predict_rows(model, model.scores(X)).label]
    found = score_labels(truth, predicted, where, tree=model.tree, n_trained=n_trained)
    unknown = [one for one in found["classes"] if one["rows"] and one["name"] not in model.classes]
    if unknown:
        n_rows = sum(one["rows"] for one in unknown)
        some = f"{n_rows} of {found['rows']} true labels are not"
        which = "none of the true labels is" if n_rows == found["rows"] else some
        say(
            f"Note: {which} a class of the model ({unknown[0]['name']!r}, for example), and these count as wrong. If "
            "this is not the column of true labels, name it with --label."
        )
    return found


def _answered(table: "Table", n_given: int | None) -> list[bool]:
    """Which labels people gave to rows that a queue or a review chose, if `label` or `export` wrote the column."""
    from transduce.cli.results import ANSWERED, origins_of, predict_columns

    if n_given is None:
        return [False] * table.frame.height
    names = [name for group in predict_columns(table.frame) for name in group]
    return [bool(one) for one in origins_of(table.frame.drop(names)) == ANSWERED]


def _knows_training_rows(model: "Model") -> bool:
    """Whether the model recognises all rows that it was fitted with; models of 0.1 recognise none."""
    from transduce.features.training_rows import MAX_DIGESTS

    return bool(model.about.get("labelled_rows")) and bool(model.about["n_labelled"] <= MAX_DIGESTS)


def _without_training_rows(
    model: "Model", table: "Table", text: Sequence[str], X: Any, truth: Sequence[str | None], where: str
) -> tuple[list[str | None], int]:
    """True labels without those that the model was fitted with, and how many those are."""
    from transduce.cli.formats import texts_of
    from transduce.features.training_rows import find_training_rows, row_contents

    stored = model.about.get("labelled_rows")
    if not stored:
        return list(truth), 0
    texts = texts_of(table, text) if text else ()
    contents = row_contents(texts, X, model.vectorizer.features.kind)
    trained = find_training_rows(stored, contents, truth)
    left = [None if known else label for label, known in zip(truth, trained, strict=True)]
    if trained.any() and not any(left):
        estimate, known = model.about.get("accuracy"), ""
        if estimate is not None:
            lines = messages.accuracy_lines(estimate, model.about["sizes"], table.name)
            known = f" The estimate of `transduce label`: {' '.join(lines)}"
        raise InputError(
            f"the model was trained with every label in {where}, so its scores would be meaningless. Pass other "
            f"labelled rows.{known}"
        )
    return left, int(trained.sum())


def _true_labels(table: "Table", column: str, say: "Say") -> tuple[list[str | None], int | None]:
    """Labels that people gave, and how many, if the file says which ones those are."""
    import polars as pl

    from transduce.cli.formats import labels_of
    from transduce.cli.results import given_rows, predict_columns, without_guard

    predicted = predict_columns(table.frame)
    if any(column == names[0] for names in predicted):
        raise InputError(
            f"column {column!r} of {table.name} holds the labels that `transduce predict` wrote. Name the column of "
            "true labels with --label. If a person has checked every row, rename the column first."
        )
    own_frame = table.frame.drop(name for names in predicted for name in names)
    labels, given = labels_of(table, column), given_rows(own_frame, column)
    if given is None:
        return labels.to_list(), None
    n_given = int(given.sum())
    if not n_given:
        raise InputError(
            f"column {column!r} of {table.name} holds only the model's own labels (given is false in every row). "
            "Name the column of true labels with --label."
        )
    say(f"Using only the {n_given} rows with given = true; the others hold the model's own labels.")
    if table.format in ("csv", "tsv"):
        labels = labels.to_frame().select(without_guard(pl.col(labels.name))).to_series()
    return [label if known else None for label, known in zip(labels, given, strict=True)], n_given


def score_labels(
    truth: Sequence[str | None], predicted: Sequence[str], where: str, *, tree: bool = False, n_trained: int = 0
) -> dict[str, Any]:
    """Score predictions against true labels; rows without one are left out, of which n_trained were in training.

    A prediction of "" is no class, which is never right. The result is what --json prints: confusion[i][j] counts rows
    of class names[i] that are predicted as names[j], none[i] those that are predicted as no class, and levels are the
    scores of paths that are cut off at a depth.
    """
    from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

    pairs = [(right, guess) for right, guess in zip(truth, predicted, strict=True) if right is not None]
    if not pairs:
        raise InputError(f"{where} has no label to compare with. Name the column of true labels with --label.")
    names = sorted({name for pair in pairs for name in pair if name})
    sides, counts = tuple(map(list, zip(*pairs, strict=True))), Counter(pairs)
    by_class = precision_recall_fscore_support(*sides, labels=names, zero_division=0)
    columns = [names, *(values.tolist() for values in by_class)]
    levels = []
    for depth in range(1, max(name.count("/") for name in names) + 1) if tree else ():
        cut = [["/".join(name.split("/")[:depth]) for name in side] for side in sides]
        nodes = sorted({name for side in cut for name in side if name})
        macro, micro = f1_score(*cut, labels=nodes, average="macro", zero_division=0), accuracy_score(*cut)
        levels.append({"depth": depth, "macro_f": float(macro), "micro_f": float(micro)})
    return {
        "rows": len(pairs),
        "left_out": len(truth) - len(pairs) - n_trained,
        "trained": n_trained,
        "macro_f": float(by_class[2].mean()),
        "micro_f": float(accuracy_score(*sides)),
        "classes": [dict(zip(CLASS_SCORES, values, strict=True)) for values in zip(*columns, strict=True)],
        "levels": levels,
        "names": names,
        "confusion": [[counts[truth, guess] for guess in names] for truth in names],
        **({"none": [counts[name, ""] for name in names]} if "" in predicted else {}),
    }


def as_text(found: Mapping[str, Any], rows: str = "rows") -> str:
    """Format scores for a terminal; `rows` is what was scored."""
    left_out = f", {found['left_out']} without" if found["left_out"] else ""
    lines = [f"{found['rows']} {rows} with a known label{left_out}"]
    if found["trained"]:
        lines.append(f"{found['trained']} {rows} left out, because the model was trained with their labels")
    if sum(found.get("none", ())):
        lines.append(f"{sum(found['none'])} rows left without a label, because they fit no class")
    lines.append(f"macro F {found['macro_f']:.4f}   micro F {found['micro_f']:.4f}")
    lines += ["  level {depth}: macro F {macro_f:.4f}, micro F {micro_f:.4f}".format(**one) for one in found["levels"]]
    width = max(5, *map(len, found["names"]))
    lines.append(f"\n{'class':<{width}}  precision  recall      F  {rows:>6}")
    row = f"{{name:<{width}}}  {{precision:9.3f}}  {{recall:6.3f}}  {{f:5.3f}}  {{rows:6}}"
    lines += [row.format(**one) for one in found["classes"]]
    wrong = [
        (-count, truth, guess)
        for truth, counts in zip(found["names"], found["confusion"], strict=True)
        for guess, count in zip(found["names"], counts, strict=True)
        if truth != guess and count
    ]
    missed = zip(found["names"], found.get("none", [0] * len(found["names"])), strict=True)
    wrong += [(-count, truth, messages.NO_CLASS) for truth, count in missed if count]
    lines += ["\nmost frequent confusions (true -> predicted):"] if wrong else []
    lines += [f"  {-negative:6}  {truth} -> {guess}" for negative, truth, guess in sorted(wrong)[:MAX_CONFUSIONS]]
    return "\n".join(lines)
