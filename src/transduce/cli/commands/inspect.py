"""What is in a model file, for a person and as plain data."""

from typing import Any

from transduce.cli.model_file import Model
from transduce.cli.report import strongest_words

NO_WORDS = {
    "hashing": "(no words: hashing keeps none)",
    "vectors": "(no words: the rows came as vectors)",
}
"""Why a model of these features has no words to show."""


def inspection(model: Model, n_words: int) -> dict[str, Any]:
    """Classes with their counts and words, settings and provenance."""
    words = strongest_words(model, n_words) if n_words else [[] for _ in model.classes]
    sizes = {size["class"]: size for size in model.about.get("sizes", [])}
    classes = [
        {**sizes.get(name, {"class": name}), "words": [word for word, _ in words[k]]}
        for k, name in enumerate(model.classes)
    ]
    about = {key: value for key, value in model.about.items() if key not in ("sizes", "history")}
    features = dict(model.vectorizer.features.__dict__)
    return {**about, "tree": model.tree, "features": features, "n_features": model.coef.shape[1], "classes": classes}


def as_text(found: dict[str, Any]) -> str:
    """The same for a terminal."""
    settings = found.get("settings", {})
    lines = [
        f"transduce {found.get('transduce', '?')}, {found.get('created', '?')}, from {found.get('source', '?')}",
        f"{found.get('n_labelled', '?')} labelled and {found.get('n_unlabelled', '?')} unlabelled rows, "
        f"{len(found['classes'])} classes{' in a tree' if found['tree'] else ''}, {found['n_features']} features "
        f"({found['features']['kind']}), seed {found.get('seed', '?')}",
        "settings: " + ", ".join(f"{key} {value}" for key, value in settings.items()),
        str(found.get("prior", "")),
        str(found.get("ending", "")),
        "",
        f"{'class':<28}{'labelled':>9}{'assigned':>9}  {NO_WORDS.get(found['features']['kind'], 'strongest words')}",
    ]
    for each in found["classes"]:
        counts = f"{each.get('labelled', '?'):>9}{each.get('assigned', '?'):>9}"
        lines.append(f"{each['class']:<28}{counts}  {' '.join(each['words'])}")
    lines += [
        f"{each['branch'] + ' in all':<28}{each['labelled']:>9}{each['assigned']:>9}"
        for each in found.get("branches", ())
    ]
    return "\n".join(lines)
