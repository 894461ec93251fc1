"""The demo: the main job on the built-in corpus, by the same command that a person would type.

Eighty requests of 22 500 keep their label, ten domains are told apart, and the truth, which the job does not see, says
what was gained over the supervised classifier of the eighty.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from transduce.cli.commands.evaluate import evaluate
from transduce.cli.errors import InputError
from transduce.cli.features import Features, fit_vectorizer
from transduce.cli.formats import read_table, write_table
from transduce.cli.invocation import command
from transduce.datasets import load_clinc150
from transduce.estimators import TransductiveClassifier

N_LABELED = 80
NEW_REQUESTS = (
    "my card was swallowed by the machine, what now",
    "is there a direct train to the airport tomorrow morning",
    "how long do I have to roast a chicken",
    "set an alarm for a quarter past six",
    "how many vacation days do I still have this year",
    "the engine light came on, when is the next service due",
)
"""Requests that the corpus does not have, for the model to label."""


def run_demo(folder: Path, run: Callable[[list[str]], int], seed: int = 0, *, quiet: bool = False) -> int:
    """Write the corpus with eighty labels, run `transduce label` on it, print what it gained, and give its exit code.

    `run` takes the arguments of the command line and gives its exit code.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made ({error.strerror}); name another by -o.") from None
    frame = demo_frame(seed)
    source, out, model, page, new = (
        str(folder / name) for name in ("requests.csv", "labelled.csv", "model.safetensors", "report.html", "new.csv")
    )
    write_table(frame, source)
    write_table(pl.DataFrame({"text": NEW_REQUESTS}), new)
    sizes = frame.filter(pl.col("label").is_null())["truth"].value_counts().sort("truth").rows()
    prior = [word for name, count in sizes for word in ("--prior", f"{name}={count}")]
    arguments = [
        "label",
        source,
        "-o",
        out,
        "--model",
        model,
        "--report",
        page,
        "--truth",
        "truth",
        "--seed",
        str(seed),
    ]
    if not quiet:
        print(f"$ {command(*arguments)} --prior ...")
    status = run([*arguments, *prior, *(["--quiet"] if quiet else [])])
    if not status and not quiet:
        _print_gain(frame, out, seed)
        print(f"\nOpen {page} in a browser. Then label a file of new requests with the model:")
        print(command("predict", model, new, "-o", str(folder / "new-labelled.csv")))
    return status


def demo_frame(seed: int) -> pl.DataFrame:
    """The built-in corpus: text, label (eighty of them, every domain at least once), truth."""
    texts, paths, _ = load_clinc150()
    truth = np.array([path.split("/")[0] for path in paths])
    rng = np.random.default_rng(seed)
    while True:
        labeled = np.zeros(len(texts), bool)
        labeled[rng.choice(len(texts), N_LABELED, replace=False)] = True
        if np.unique(truth[labeled]).size == np.unique(truth).size:
            break
    label = [name if known else None for name, known in zip(truth.tolist(), labeled, strict=True)]
    return pl.DataFrame({"text": texts.tolist(), "label": label, "truth": truth.tolist()})


def _print_gain(frame: pl.DataFrame, out: str, seed: int) -> None:
    """Macro F on the rows that had no label, supervised and by the job; a few of the labels."""
    _, X = fit_vectorizer(frame["text"].to_list(), Features())
    known = frame["label"].is_not_null().to_numpy()
    clf = TransductiveClassifier(random_state=seed).fit(X[known], frame["label"].drop_nulls().to_numpy())
    done = read_table(out).frame.filter(~pl.Series(known))
    truth, labels = done["truth"].to_list(), done["label"].to_list()
    before = evaluate(truth, clf.predict(X[~known]).tolist(), out).macro_f
    after = evaluate(truth, labels, out).macro_f
    print(f"\nMacro F on the {len(truth)} requests without a label: supervised {before:.3f}, transduce {after:.3f}")
    for row in done.sample(8, seed=seed).rows(named=True):
        wrong = "" if row["label"] == row["truth"] else f"   (was {row['truth']})"
        print(f"  {row['label']:<20}{float(row['confidence']):5.2f}  {row['text'][:60]}{wrong}")
