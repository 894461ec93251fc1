"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from transduce.cli.config import use_config

Command = TypeVar("Command", bound=Callable[..., Any])

READ_FORMATS = ("csv", "tsv", "jsonl", "parquet", "svmlight", "folder", "label-studio")


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class _FiniteRange(click.FloatRange):
    """A range of numbers that refuses NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert and check a number."""
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{number} is not in the range.", param, ctx)


INPUT_OPTIONS = with_options(
    click.option("--text", multiple=True, metavar="COL", help="Text column; repeat it to join several."),
    click.option("--vectors", metavar="FILE|COL", help="Vectors in place of text: .npy, .npz or a list column."),
    click.option("--format", "format_", type=click.Choice(READ_FORMATS), help="Format of FILE; else by its name."),
    click.option(
        "--max-size",
        type=click.IntRange(min=1),
        metavar="MB",
        callback=lambda context, option, value: None if value is None else value * 1_000_000,
        help="Megabytes that FILE may become in memory, where a small one expands to more than 100 times its size.",
    ),
    click.option("--jobs", type=click.IntRange(min=1), help="Number of cores; all by default."),
)
FEATURES_OPTION = click.option(
    "--features",
    type=click.Choice(("auto", "tfidf", "hashing", "embeddings", "mix")),
    help="Words, hashed words, vectors of an encoder, or words and vectors; auto, the default, chooses.",
)
ENCODER_OPTIONS = with_options(
    click.option("--encoder", metavar="NAME|FOLDER", help="Encoder: a published model, or a folder."),
    click.option("--cache", metavar="DIR|none", help="Where vectors of texts are stored, to encode each text once."),
)
MESSAGE_OPTIONS = with_options(
    click.option("--quiet", is_flag=True, help="Print errors only."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--config", metavar="FILE", is_eager=True, callback=use_config, help="Read options from a TOML file."),
)
FIT_OPTIONS = with_options(
    click.option("--label", metavar="COL", help="Label column; rows with an empty cell are labelled."),
    click.option(
        "--classes", metavar="NAMES|FILE", help="Class names, to start without labels: 'billing, outage'; or a file."
    ),
    click.option("--guess", metavar="COL", help="Column of labels of which some are wrong, such as a model's."),
    click.option(
        "--prior",
        multiple=True,
        metavar="NAME=SIZE|FILE",
        help="Size that you know: sport=0.2 (others are estimated); rec=10%:30%; a file; equal.",
    ),
    click.option(
        "--labels-are", type=click.Choice(("random", "chosen")), help="Whether labels are a random sample of the rows."
    ),
    click.option(
        "--none", metavar="SIZE", help="Rows that fit no class and stay without a label: 5%; at most 5%: 0%:5%; 120."
    ),
    click.option(
        "--no-accuracy", is_flag=True, help="If all class sizes are exact: do not estimate how many labels are right."
    ),
    click.option("--flat", is_flag=True, help="Treat 'a/b' labels as plain names, not as paths in a tree."),
    FEATURES_OPTION,
    click.option("--words-share", type=_FiniteRange(0, 1, min_open=True, max_open=True), hidden=True),
    click.option("--ngrams", type=click.IntRange(1, 2), default=1, show_default=True, help="2 adds pairs of words."),
    click.option("--loss", type=click.Choice(("hinge", "squared_hinge", "maxent")), default="hinge", show_default=True),
    click.option("--alpha", type=_FiniteRange(1e-12, 1e6), help="Regularisation; the default depends on the loss."),
    click.option(
        "--annealing",
        type=click.Choice(("auto", "soft", "paper", "none")),
        default="auto",
        show_default=True,
        help="soft is better for words and slower; auto is soft for words and paper for vectors.",
    ),
    click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Random seed."),
    click.option(
        "--answers",
        multiple=True,
        metavar="FILE",
        help="Labels that a person gave, in a file from `queue` or `export`; repeat it: the last word counts.",
    ),
    click.option("--new-class", multiple=True, metavar="NAME", help="An answer that is a new class, not a slip."),
)
OUTPUT_OPTIONS = with_options(
    click.option("-o", "--out", required=True, metavar="OUT", help="File to write: csv, tsv, jsonl or parquet."),
    click.option("--keep-formulas", is_flag=True, help="Do not guard CSV cells that begin with = + - @."),
)
