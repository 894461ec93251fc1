"""transduce inspect: show what is in a model file."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages
from transduce.cli.options import WholeNumber

if TYPE_CHECKING:
    from transduce.model_file import Model
    from transduce.sequences import TransductiveTagger

NO_WORDS = {
    "hashing": "(no words: hashing does not store them)",
    **dict.fromkeys(("vectors", "embeddings"), "(no words: trained on vectors)"),
}
"""Why a model of these features has no words to show."""

NOT_SHOWN = ("sizes", "history", "labelled_rows")
"""Parts of the provenance that are shown in another form, or not at all."""


TAGGER_LINES = (
    "transduce {transduce}, {created}, from {source}",
    "{n_labelled} labelled sequences and {n_unlabelled} others, {n_tokens} tokens",
    "{ending}",
)
"""What `transduce tag` says of a fit."""


@click.command(short_help="Show what is in a model file.")
@click.argument("model")
@click.option("--words", type=WholeNumber(0, 1000), default=10, show_default=True, help="Words for each class.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="Print errors only; the exit code says whether MODEL can be read.")
def inspect(model: str, words: int, as_json: bool, quiet: bool) -> None:
    """Show the classes, counts, strongest words, settings and provenance of MODEL.

    Of a MODEL that `transduce tag` wrote, show the labels, constraints, settings and provenance.
    """
    from transduce.model_file import load_model
    from transduce.sequences.tagger_file import is_tagger, load_tagger

    if is_tagger(model):
        found = _tagger_inspection(*load_tagger(model))
        text = _tagger_text(found)
    else:
        found = _inspection(load_model(model), words)
        text = _as_text(found)
    if as_json:
        messages.print_json(found)
    elif not quiet:
        messages.print_text(text)


def _inspection(model: "Model", n_words: int) -> dict[str, Any]:
    """Classes with their counts and words, settings and provenance."""
    from transduce.cli.report import strongest_words

    words = strongest_words(model, n_words) if n_words else [[] for _ in model.classes]
    sizes = {size["class"]: size for size in model.about["sizes"]}
    classes = [
        {**sizes.get(name, {"class": name}), "words": [word for word, _ in strongest]}
        for name, strongest in zip(model.classes, words, strict=True)
    ]
    about = {key: value for key, value in model.about.items() if key not in NOT_SHOWN}
    features = asdict(model.vectorizer.features)
    encoder, share = features.pop("encoder"), features.pop("words_share")
    if encoder is not None:
        features["encoder"] = {"name": encoder["name"], "revision": encoder["revision"]}
    features |= {} if share is None else {"words_share": share}
    return {**about, "tree": model.tree, "features": features, "n_features": model.coef.shape[1], "classes": classes}


def _none_sentence(none: dict[str, Any]) -> str:
    """What the model does with rows that fit no class."""
    asked = " to ".join(dict.fromkeys(str(none[key]) for key in ("asked_low", "asked_high")))
    rows = f"{none['assigned']} unlabelled rows fit no class ({asked} asked for)"
    if "score" not in none:
        return f"{rows}; predict gives every row a class."
    return f"{rows}; predict leaves rows with a best score below {none['score']:.4g} without a label."


def _accuracy_lines(found: dict[str, Any]) -> list[str]:
    """How good the labels are, as `label` said it."""
    return messages.accuracy_lines(found["accuracy"], [one for one in found["classes"] if "labelled" in one])


def _tagger_inspection(tagger: "TransductiveTagger", about: Mapping[str, Any]) -> dict[str, Any]:
    """Format, labels, constraints, settings and provenance of a tagger."""
    from transduce.sequences.tagger_file import FORMAT

    shown = {key: value for key, value in about.items() if key not in NOT_SHOWN}
    return {
        **shown,
        "format": FORMAT,
        "loss": tagger.loss,
        "scheme": tagger.scheme,
        "constraints": list(tagger.constraints),
        "n_features": tagger.n_features_in_,
        "labels": tagger.classes_.tolist(),
    }


def _tagger_text(found: Mapping[str, Any]) -> str:
    """Format the inspection of a tagger for a terminal; one that was saved in Python may not say how it was fitted."""
    scheme = "" if found["scheme"] is None else f" in the {found['scheme']} scheme"
    lines = [f"tagger of sequences, {len(found['labels'])} labels{scheme}, {found['n_features']} features"]
    for line in TAGGER_LINES:
        with suppress(KeyError):
            lines.append(line.format_map(found))
    lines += [_settings_text(found["settings"])] if found.get("settings") else []
    lines += [f"labels: {', '.join(found['labels'])}"]
    return "\n".join([*lines, *(f"constraint: {one}" for one in found["constraints"])])


def _settings_text(settings: Mapping[str, Any]) -> str:
    return "settings: " + ", ".join(f"{key}: {messages.setting_text(value)}" for key, value in settings.items())


def _as_text(found: dict[str, Any]) -> str:
    """Format an inspection for a terminal."""
    kind, encoder = found["features"]["kind"], found["features"].get("encoder")
    lines = [
        f"transduce {found['transduce']}, {found['created']}, from {found['source']}",
        f"{found['n_labelled']} labelled and {found['n_unlabelled']} unlabelled rows, "
        f"{len(found['classes'])} classes{' in a tree' if found['tree'] else ''}, {found['n_features']} features "
        f"({kind}), seed {found['seed']}",
        *(["encoder {name}, revision {revision}".format_map(encoder)] if encoder else []),
        *([found["choice"]] if "choice" in found else []),
        _settings_text(found["settings"]),
        f"{found['prior']}\n{found['ending']}",
        *(_accuracy_lines(found) if "accuracy" in found else []),
        *([_none_sentence(found["none"])] if "none" in found else []),
        "",
        f"{'class':<28}{'labelled':>9}{'assigned':>9}  {NO_WORDS.get(kind, 'strongest words')}",
    ]
    for each in (*found["classes"], *found.get("branches", ())):
        name = each["class"] if "class" in each else f"{each['branch']}, total"
        counts = f"{each.get('labelled', '?'):>9}{each.get('assigned', '?'):>9}"
        lines.append(f"{name:<28}{counts}  {' '.join(each.get('words', ()))}".rstrip())
    return "\n".join(lines)
