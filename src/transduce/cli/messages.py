"""What commands print when they are done: results on standard output, summaries, and commands to run next."""

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from transduce.cli.errors import output_list
from transduce.suggest import name_list, number_of

NAME = "transduce"
MAX_CLASSES = 20
_MANY = 4
"""If one class in so many has a single label, the estimate of the accuracy is rough."""
MAX_WIDTH = 40
NO_CLASS = "(no class)"
"""What stands for the missing label of rows that fit no class."""


def print_text(text: str) -> None:
    """Print lines, with control characters of the input escaped."""
    from transduce.cli.formats.errors import printable

    click.echo("\n".join(map(printable, text.split("\n"))))


def print_json(values: Mapping[str, Any]) -> None:
    """Print values as JSON."""
    click.echo(json.dumps(values, ensure_ascii=False, indent=2))


def accuracy_lines(
    accuracy: Mapping[str, Any], sizes: Sequence[Mapping[str, Any]], file: str | None = None
) -> list[str]:
    """How many of the new labels are right, with 90 % intervals, and how far that can be trusted; `sizes` by class.

    `file` is the one to review.

    >>> figures = {"mean": 0.78, "low": 0.7, "high": 0.86, "macro_f": 0.71, "macro_f_low": 0.6, "macro_f_high": 0.8}
    >>> figures["n_labels"] = 80
    >>> accuracy_lines(figures, [{"labelled": 50}, {"labelled": 30}])
    ['About 78 % of the new labels are right (90 % interval 70-86 %), macro F (each class counts equally) about 0.71 \
(0.60-0.80), measured by hiding your 80 labels in turn.']
    >>> accuracy_lines(figures, [{"labelled": 1}, *[{"labelled": 16}] * 5])[0]
    'About 78 % of the new labels are right (90 % interval 70-86 %), measured by hiding 80 of your 81 labels in turn.'
    >>> accuracy_lines({**figures, "n_answered": 30}, [{"labelled": 50}, {"labelled": 30}])
    ['The new labels are probably better than this estimate, because 30 of the 80 labels are of rows that were chosen \
because they are difficult: about 78 % are right (90 % interval 70-86 %), macro F (each class counts equally) about \
0.71 (0.60-0.80), measured by hiding your 80 labels in turn.']
    """
    f, f_low, f_high = (f"{accuracy[key]:.2f}" for key in ("macro_f", "macro_f_low", "macro_f_high"))
    n_hidden, n_labels = accuracy["n_labels"], sum(size["labelled"] for size in sizes)
    hidden = number_of(n_labels, "label") if n_hidden == n_labels else f"{n_hidden} of your {n_labels} labels"
    by = f"measured by hiding {'your ' if n_hidden == n_labels else ''}{hidden} in turn"
    macro_f = f", macro F (each class counts equally) about {f} ({f_low}-{f_high})"
    few = few_labels_note(accuracy, sizes, file)
    notes = [] if _has_many_answers(accuracy) else answered_note(accuracy)
    return [f"{_right_clause(accuracy)}{'' if few else macro_f}, {by}.", *few, *notes]


def _right_clause(accuracy: Mapping[str, Any]) -> str:
    """How many of the new labels are right; if many hidden labels are answers, it begins with what that means."""
    mean, low, high = (round(100 * accuracy[key]) for key in ("mean", "low", "high"))
    right = f"right (90 % interval {low}-{high} %)"
    if not _has_many_answers(accuracy):
        return f"About {mean} % of the new labels are {right}"
    because = answered_clause(accuracy["n_answered"], accuracy["n_labels"])
    return f"The new labels are probably better than this estimate, because {because}: about {mean} % are {right}"


def few_labels_note(
    accuracy: Mapping[str, Any], sizes: Sequence[Mapping[str, Any]], file: str | None = None
) -> list[str]:
    """Say what cannot be estimated if some classes have fewer than two labels; `file` is the one to review.

    >>> few_labels_note({"n_single": 1}, [{"labelled": 1}, *[{"labelled": 9}] * 9])
    ['1 of 10 classes has fewer than two labels, so macro F cannot be estimated and there may be other classes without \
any label. `transduce review FILE` estimates the accuracy from a random sample.']
    >>> few_labels_note({"n_single": 0}, [{"labelled": 1}, {"labelled": 1}, {"labelled": 5}])
    ['2 of 3 classes have fewer than two labels, so macro F cannot be estimated and this estimate is rough.']
    >>> few_labels_note({"n_single": 0}, [{"labelled": 2}])
    []
    """
    n_classes, n_few = len(sizes), sum(size["labelled"] < 2 for size in sizes)
    if not n_few:
        return []
    n_single, may_be_more = sum(size["labelled"] == 1 for size in sizes), accuracy.get("n_single", 0) > 0
    so = ["macro F cannot be estimated"]
    so += ["this estimate is rough"] if _MANY * n_single >= n_classes else []
    so += ["there may be other classes without any label"] if may_be_more else []
    command = command_line("review", "FILE" if file in (None, "-") else str(file))
    review = f" `{command}` estimates the accuracy from a random sample." if may_be_more else ""
    have = "has" if n_few == 1 else "have"
    return [f"{n_few} of {n_classes} classes {have} fewer than two labels, so {name_list(so, quote=False)}.{review}"]


def answered_note(accuracy: Mapping[str, Any]) -> list[str]:
    """Say that answers among the hidden labels make the estimate of the accuracy too low, if there are any.

    >>> answered_note({"n_labels": 200, "n_answered": 130})
    ['This estimate is probably too low: 130 of the 200 labels are of rows that were chosen because they are \
difficult.']
    """
    n = accuracy.get("n_answered", 0)
    return [f"This estimate is probably too low: {answered_clause(n, accuracy['n_labels'])}."] if n else []


def _has_many_answers(accuracy: Mapping[str, Any]) -> bool:
    """Whether a quarter of the hidden labels or more are answers, so that the estimate is far too low."""
    n = accuracy.get("n_answered", 0)
    return bool(n and 4 * n >= accuracy["n_labels"])


def answered_clause(n: int, n_labels: int) -> str:
    """How many labels a queue or a review asked for.

    >>> answered_clause(1, 9)
    '1 of the 9 labels is of a row that was chosen because it is difficult'
    """
    chosen = "is of a row that was chosen because it is" if n == 1 else "are of rows that were chosen because they are"
    return f"{n} of the {n_labels} labels {chosen} difficult"


def size_table(
    sizes: Sequence[Mapping[str, Any]],
    branches: Sequence[Mapping[str, Any]] = (),
    none: Mapping[str, Any] | None = None,
    header: tuple[str, str] = ("class", "new labels"),
) -> list[str]:
    """Lines with the rows of each class, the largest first, of branches with a stated size, and of no class.

    >>> print("\\n".join(size_table([{"class": "tea", "assigned": 30}, {"class": "coffee", "assigned": 70}])))
      class   new labels  share
      coffee          70   70 %
      tea             30   30 %
    """
    by_size = sorted(sizes, key=lambda size: -int(size["assigned"]))[:MAX_CLASSES]
    rows = [(_short(size["class"]), size["assigned"]) for size in by_size]
    rows += [(f"{_short(one['branch'])}, total", one["assigned"]) for one in branches[:MAX_CLASSES]]
    rows += [] if none is None else [(NO_CLASS, none["assigned"])]
    n_rows = max(1, sum(size["assigned"] for size in sizes) + (0 if none is None else none["assigned"]))
    table = [(*header, "share"), *((name, str(count), f"{100 * count / n_rows:.0f} %") for name, count in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    lines = [f"  {name:<{widths[0]}}  {count:>{widths[1]}}  {share:>{widths[2]}}" for name, count, share in table]
    if len(sizes) > MAX_CLASSES:
        lines.insert(1 + MAX_CLASSES, f"  and {len(sizes) - MAX_CLASSES} more")
    return lines


def _short(name: str) -> str:
    from transduce.cli.formats.errors import printable

    name = printable(name)
    return name if len(name) <= MAX_WIDTH else f"{name[: MAX_WIDTH - 1]}…"


def labeled_sentence(n_rows: int, n_none: int) -> str:
    """How many rows were labelled, and how many fit no class.

    >>> labeled_sentence(1, 0), labeled_sentence(100, 1)
    ('Labelled 1 row', 'Labelled 99 rows and left 1 that fits no class without a label')
    """
    left = f" and left {n_none} that {'fits' if n_none == 1 else 'fit'} no class without a label" if n_none else ""
    return f"Labelled {number_of(n_rows - n_none, 'row')}{left}"


def misspelling_warnings(sizes: Sequence[Mapping[str, Any]], misspelled: Mapping[str, str]) -> list[str]:
    """How many rows got labels that are probably misspelled; `misspelled` has the labels that are probably meant.

    >>> misspelling_warnings([{"class": "travle", "assigned": 142}], {"travle": "travel"})
    ["Warning: 142 rows got the label 'travle', which is probably a misspelling of 'travel'."]
    """
    counts = {size["class"]: size["assigned"] for size in sizes}
    found = {name: number_of(counts[name], "row") for name in misspelled if counts.get(name)}
    probably = "which is probably a misspelling of"
    return [f"Warning: {rows} got the label {name!r}, {probably} {misspelled[name]!r}." for name, rows in found.items()]


def size_warnings(about: Mapping[str, Any]) -> list[str]:
    """Stated sizes that look far off, the worst first, and what a rough one became."""
    from transduce.cli.size_sentences import compare_class

    n_rows = about["n_unlabelled"] - about.get("none", {}).get("assigned", 0)
    sizes = {size["class"]: size for size in about["sizes"] if size["stated"]}
    compared = [compare_class(size, n_rows, is_stated=True) for size in sizes.values()]
    far = sorted((one for one in compared if one.is_far), key=lambda one: -one.distance)
    lines = [
        f"Warning: for {one.name!r}, {one.sentence}.{_rough_note(sizes[one.name], n_rows)}" for one in far[:MAX_CLASSES]
    ]
    more = len(far) - MAX_CLASSES
    return [*lines, f"Warning: {more} more sizes look high or low; the report lists them."] if more > 0 else lines


def _rough_note(size: Mapping[str, Any], n_rows: int) -> str:
    """Why a class did not get its rough size, if it did not."""
    from transduce.cli.size_sentences import percent_text

    if "rough" not in size:
        return ""
    asked, got = (percent_text(size[key] / n_rows) for key in ("rough", "assigned"))
    return "" if asked == got else f" A size without == is rough: together with the labels and texts, it became {got}."


def overruled_clause(n_overruled: int) -> str:
    """In how many rows class sizes changed the choice of the classifier; they act in training, too, so 0 says little.

    >>> overruled_clause(0), overruled_clause(1), overruled_clause(20)
    ('', '; 1 label was changed to meet the class sizes', '; 20 labels were changed to meet the class sizes')
    """
    changed = number_of(n_overruled, "label was", "labels were")
    return f"; {changed} changed to meet the class sizes" if n_overruled else ""


def setting_text(value: Any) -> str:
    """A setting of a model as people write it.

    >>> [setting_text(value) for value in (False, None, ["title", "body"], 0.5, 0.0009959999993381643)]
    ['no', 'none', 'title and body', '0.5', '0.000996']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return name_list(map(setting_text, value), len(value), quote=False)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def wrote(written: Sequence[str]) -> str:
    """Where the results are."""
    return f"{'Results are in' if '-' in written else 'Wrote'} {output_list(written)}."


def column_note(column: str, label: str | None) -> list[str]:
    """Say which column holds the labels of all rows, if it is not the label column of the input.

    >>> column_note("label", "topic"), column_note("label", "label")
    (["New labels are in column 'label'."], [])
    """
    return [] if column == label else [f"New labels are in column {column!r}."]


def command_line(*arguments: str) -> str:
    """A command line that calls this program again as it was called, to be typed as it is."""
    program, called = NAME, Path(sys.argv[0])
    if called.stem == NAME and shutil.which(NAME) != sys.argv[0]:
        program = shlex.quote(sys.argv[0])
    elif called.name == "__main__.py" and called.parent.name == NAME:
        program = f"{shlex.quote(sys.executable)} -m {NAME}"
    return " ".join([program, *map(shlex.quote, arguments)])
