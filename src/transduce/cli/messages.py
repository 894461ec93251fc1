"""What is said at the end of a job: what came, how many rows each class got, and what was left when it was stopped."""

from collections.abc import Mapping, Sequence
from typing import Any

from transduce.cli.commands.label import Labelled
from transduce.cli.formats.errors import shown
from transduce.cli.queue.table import Queue

MOST_CLASSES = 20
_WIDEST = 40


def of_labels(done: Labelled, written: Sequence[str]) -> str:
    """How many rows were labelled, how it ended, and where it is."""
    about, overruled = done.model.about, int(done.frame[done.names.overruled].sum())
    return (
        f"Labelled {about['n_unlabelled']} rows in {about['seconds']:.1f} s; the class sizes overruled the classifier "
        f"in {overruled}. {about['ending']} {wrote(written)}"
    )


def of_sizes(sizes: Sequence[Mapping[str, Any]], branches: Sequence[Mapping[str, Any]] = ()) -> str:
    """A short table of the rows that each class got, the largest first; and the totals of branches with a size.

    >>> print(of_sizes([{"class": "tea", "assigned": 30}, {"class": "coffee", "assigned": 120}]))
      coffee  120   80 %
      tea      30   20 %
    >>> sizes = [{"class": "hot/tea", "assigned": 30}, {"class": "milk", "assigned": 70}]
    >>> print(of_sizes(sizes, [{"branch": "hot", "assigned": 30}]))
      milk        70   70 %
      hot/tea     30   30 %
      hot in all  30   30 %
    """
    by_size = sorted(sizes, key=lambda size: -int(size["assigned"]))
    total = max(1, sum(int(size["assigned"]) for size in sizes))
    rows = [(_short(size["class"]), int(size["assigned"])) for size in by_size[:MOST_CLASSES]]
    totals = [(f"{_short(one['branch'])} in all", int(one["assigned"])) for one in branches[:MOST_CLASSES]]
    wide, high = max(len(name) for name, _ in rows + totals), max(len(str(count)) for _, count in rows + totals)
    lines = [f"  {name:<{wide}}  {count:>{high}}  {100 * count / total:3.0f} %" for name, count in rows + totals]
    if len(sizes) > MOST_CLASSES:
        lines.insert(len(rows), f"  and {len(sizes) - MOST_CLASSES} more")
    return "\n".join(lines)


def _short(name: str) -> str:
    name = shown(name)
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


def of_queue(chosen: Queue, asked: int) -> str:
    """How many rows were chosen, and why they are fewer than asked for, if they are."""
    n = chosen.frame.height
    said = f"Chose {n} row{'' if n == 1 else 's'}"
    if n < min(asked, chosen.n_open):
        return f"{said}, not {asked}: texts repeat, and no text is asked for twice."
    return f"{said}, not {asked}: no more are without a label." if n < asked else f"{said}."


def of_interruption(written: Sequence[str]) -> str:
    """What an interrupted fit has left.

    >>> of_interruption(["-"]), of_interruption(["a.csv", "m.safetensors"])
    ('interrupted; standard output holds what there was.', 'interrupted; a.csv and m.safetensors hold what there was.')
    """
    verb = "holds" if len(written) == 1 else "hold"
    return (
        f"interrupted; {' and '.join(filter(None, [named(written[:-1]), named(written[-1:])]))} {verb} what there was."
    )


def wrote(written: Sequence[str]) -> str:
    """Where the results are.

    >>> wrote(["-", "m.safetensors"])
    'Results are in standard output, m.safetensors.'
    """
    return f"{'Results are in' if '-' in written else 'Wrote'} {named(written)}."


def named(written: Sequence[str]) -> str:
    """Names of outputs, as a person calls them."""
    return ", ".join("standard output" if name == "-" else name for name in written)
