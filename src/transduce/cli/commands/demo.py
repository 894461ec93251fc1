"""transduce demo: label the built-in corpus, of which eighty rows keep their label, and show what that gains."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transduce.cli.commands.evaluate import score_labels
from transduce.cli.errors import InputError
from transduce.cli.messages import command_line
from transduce.cli.options import ENCODER_OPTIONS, FEATURES_OPTION, WholeNumber

if TYPE_CHECKING:
    import polars as pl

N_LABELED = 80
NEW_REQUESTS = (
    "my card was swallowed by the machine, what now",
    "is there a direct train to the airport tomorrow morning",
    "how long do I have to roast a chicken",
    "set an alarm for a quarter past six",
    "how many vacation days do I still have this year",
    "the engine light came on, when is the next service due",
)
"""Requests that are not in the corpus, for `transduce predict`."""


@click.command(short_help="Try it on the built-in corpus.")
@click.option("-o", "--out", default="transduce-demo", show_default=True, metavar="FOLDER", help="Folder to write to.")
@click.option("--seed", type=WholeNumber(0, 2**31 - 1), default=0, show_default=True, help="Random seed.")
@FEATURES_OPTION
@ENCODER_OPTIONS
@click.option("--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def demo(context: click.Context, /, out: str, seed: int, quiet: bool, **options: str | None) -> None:
    """Run `transduce label` on the built-in corpus: labelled CSV, model and report."""
    import polars as pl

    from transduce.cli.formats import write_table

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made ({error.strerror}). Name another with -o.") from None
    files = ("requests.csv", "labelled.csv", "model.safetensors", "report.html", "new.csv", "new-labelled.csv")
    source, labeled, model, page, new, new_labeled = (str(folder / name) for name in files)
    frame = demo_frame(seed)
    write_table(frame, source)
    write_table(pl.DataFrame({"text": NEW_REQUESTS}), new)
    outputs = ["-o", labeled, "--model", model, "--report", page]
    given = [(f"--{name}", value) for name, value in options.items() if value is not None]
    encoding = [str(word) for option in given for word in option]
    arguments = ["label", source, *outputs, "--truth", "truth", "--seed", str(seed), *encoding]
    sizes = frame.filter(pl.col("label").is_null())["truth"].value_counts().sort("truth").rows()
    n_rows = sum(count for _, count in sizes)
    prior = [word for name, count in sizes for word in ("--prior", f"{name}={count / n_rows:.1%}")]
    if not quiet:
        print(f"$ {command_line(*arguments)} --prior ...")
    group = context.find_root().command
    group.main([*arguments, *prior, *(["--quiet"] if quiet else [])], prog_name="transduce", standalone_mode=False)
    if not quiet:
        _print_gain(frame, labeled, model, seed, options)
        print(f"\nOpen {page} in a browser. Then label a file of new requests with the model:")
        print(command_line("predict", model, new, "-o", new_labeled))


def demo_frame(seed: int) -> "pl.DataFrame":
    """The built-in corpus: text, label (of eighty rows, at least one in each domain), truth."""
    import numpy as np
    import polars as pl

    from transduce.datasets import load_clinc150

    texts, paths, _ = load_clinc150()
    truth = np.array([path.split("/")[0] for path in paths])
    rng = np.random.default_rng(seed)
    labeled = rng.choice(len(texts), N_LABELED, replace=False)
    while np.unique(truth[labeled]).size < np.unique(truth).size:
        labeled = rng.choice(len(texts), N_LABELED, replace=False)
    is_labeled = np.isin(np.arange(len(texts)), labeled)
    label = [name if known else None for name, known in zip(truth.tolist(), is_labeled, strict=True)]
    return pl.DataFrame({"text": texts.tolist(), "label": label, "truth": truth.tolist()})


def _print_gain(frame: "pl.DataFrame", out: str, model: str, seed: int, options: Mapping[str, str | None]) -> None:
    """Print macro F on the rows without a label, supervised and transductive, and a few of the labels."""
    from transduce.cli.formats import Table, read_table
    from transduce.cli.predictions import feature_rows
    from transduce.cli.progress import Progress
    from transduce.estimators import TransductiveClassifier
    from transduce.model_file import load_model

    reading = {"text": ("text",), "vectors": None, "jobs": None, "quiet": True, **options}
    X, _ = feature_rows(load_model(model), Table(out, frame, "csv"), reading, Progress(quiet=True))
    known = frame["label"].is_not_null()
    rows = known.to_numpy()
    clf = TransductiveClassifier(random_state=seed).fit(X[rows], frame["label"].drop_nulls().to_numpy())
    result = read_table(out).frame.filter(~known)
    truth, guesses = result["truth"].to_list(), (clf.predict(X[~rows]).tolist(), result["label"].to_list())
    before, after = (score_labels(truth, guess, out)["macro_f"] for guess in guesses)
    print(f"\nMacro F on the {len(truth)} requests without a label: supervised {before:.3f}, transduce {after:.3f}")
    for row in result.sample(8, seed=seed).rows(named=True):
        wrong = "" if row["label"] == row["truth"] else f"   (should be {row['truth']})"
        print(f"  {row['label']:<20}{float(row['confidence']):5.2f}  {row['text'][:60]}{wrong}")
