"""Options that several commands share."""

from collections.abc import Callable, Sequence
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


class WholeNumber(click.IntRange):
    """A range of whole numbers, called so in `--help` and in errors."""

    name = "whole number"


class _FiniteRange(click.FloatRange):
    """A range of numbers that refuses NaN."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert and check a number."""
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{number} is not in the range.", param, ctx)


def _input_options(formats: Sequence[str]) -> Callable[[Command], Command]:
    return with_options(
        click.option("--text", multiple=True, metavar="COL", help="Text column; repeat it to join several."),
        click.option("--vectors", metavar="FILE|COL", help="Vectors in place of text: .npy, .npz or a list column."),
        click.option(
            "--format", "format_", type=click.Choice(formats), help="Format of FILE (default: from its name)."
        ),
        click.option(
            "--max-size",
            type=WholeNumber(min=1),
            metavar="MB",
            callback=lambda context, option, value: None if value is None else value * 1_000_000,
            help="Allow a compressed FILE to expand to this many megabytes, if that is more than 100 times its size.",
        ),
        click.option("--jobs", type=WholeNumber(min=1), help="Number of cores; all by default."),
    )


INPUT_OPTIONS = _input_options(READ_FORMATS)
MODEL_INPUT_OPTIONS = _input_options((*READ_FORMATS, "conll", "xml"))
"""Options of commands whose model may be a tagger."""
ALPHA_OPTION = click.option(
    "--alpha", type=_FiniteRange(1e-12, 1e6), help="Regularisation; the default depends on the loss."
)
SEED_OPTION = click.option("--seed", type=WholeNumber(0, 2**31 - 1), default=0, show_default=True, help="Random seed.")
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
    click.option(
        "--classes", metavar="NAMES|FILE", help="Class names, to start without labels: 'billing, outage'; or a file."
    ),
    click.option("--guess", metavar="COL", help="Column of labels of which some are wrong, such as a model's."),
    click.option(
        "--prior",
        multiple=True,
        metavar="NAME=SIZE|FILE",
        help="Size that you know: sport=0.2 (others are estimated); rec=10%:30%; a file; equal; labeled.",
    ),
    click.option(
        "--labels-are", type=click.Choice(("random", "chosen")), help="Whether labels are a random sample of the rows."
    ),
    click.option(
        "--none", metavar="SIZE", help="Rows that fit no class and stay without a label: 5%; at most 5%: 0%:5%; 120."
    ),
    click.option("--flat", is_flag=True, help="Treat 'a/b' labels as plain names, not as paths in a tree."),
    FEATURES_OPTION,
    click.option("--words-share", type=_FiniteRange(0, 1, min_open=True, max_open=True), hidden=True),
    click.option("--ngrams", type=WholeNumber(1, 2), default=1, show_default=True, help="2 adds pairs of words."),
    click.option(
        "--loss",
        type=click.Choice(("hinge", "squared_hinge", "maxent")),
        default="hinge",
        show_default=True,
        help="Loss of the classifier.",
    ),
    ALPHA_OPTION,
    click.option(
        "--annealing",
        type=click.Choice(("auto", "soft", "paper", "none")),
        default="auto",
        show_default=True,
        help="soft is better for words and slower; auto is soft for words and paper for vectors.",
    ),
    SEED_OPTION,
    click.option(
        "--answers",
        multiple=True,
        metavar="FILE",
        help="Labels that a person gave, in a file from `queue` or `export`; may be repeated; the last file that "
        "answers a row decides.",
    ),
    click.option("--new-class", multiple=True, metavar="NAME", help="Accept this answer as a new class."),
)


def output_options(formats: str = "csv, tsv, jsonl or parquet") -> Callable[[Command], Command]:
    """The file that a command writes, in one of these formats."""
    return with_options(
        click.option("-o", "--out", required=True, metavar="OUT", help=f"File to write: {formats}."),
        click.option("--keep-formulas", is_flag=True, help="Do not guard CSV cells that begin with = + - @."),
    )
