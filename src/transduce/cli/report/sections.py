"""What each section of a report shows, as plain values for the template; numbers come from the model and the results.

Every function takes the whole `Material` and gives a dict; none writes HTML, and none changes what it is given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from transduce.cli.formats import Table, texts_of
from transduce.cli.report import plots
from transduce.cli.report.prices import Share, judge, price_sentence, unstated_sentence
from transduce.cli.report.svg import cut

if TYPE_CHECKING:
    from transduce.cli.model_file import Model
    from transduce.cli.results import ResultNames

FOLD = 30
"""Tables with more classes than this are folded."""
N_UNCERTAIN, N_EXAMPLES, EXAMPLES_A_CLASS, N_CONFUSED, N_OFF = 30, 12, 2, 12, 12
BINS = 20
_TEXT_COLUMNS = 240
_DEEPEST = 30

Section = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Material:
    """What a report is made of; `file` is named if its rows are others than those that the model was made from."""

    model: "Model"
    results: pl.DataFrame
    names: "ResultNames"
    truth: Sequence[str | None] | None
    words: Sequence[Sequence[tuple[str, float]]]
    file: str | None = None

    @property
    def about(self) -> Mapping[str, Any]:
        """What the model file says of the fit."""
        return self.model.about

    @cached_property
    def sizes(self) -> list[Mapping[str, Any]]:
        """The classes, largest first."""
        return sorted(self.about["sizes"], key=lambda size: -int(size["assigned"]))

    @cached_property
    def labelled_here(self) -> pl.DataFrame:
        """The rows whose label was not given, under names of our own, with their number in the file."""
        names = self.names
        given = pl.lit(False) if names.given is None else pl.col(names.given).fill_null(False)
        return self.results.select(
            given.alias("given"),
            pl.int_range(1, self.results.height + 1).alias("row"),
            self._texts().alias("text"),
            pl.col(names.label).cast(pl.String).fill_null("").alias("label"),
            pl.col(names.confidence).cast(pl.Float64).alias("confidence"),
            pl.col(names.runner_up).cast(pl.String).fill_null("").alias("runner_up"),
            pl.col(names.overruled).fill_null(False).alias("overruled"),
        ).filter(~pl.col("given"))

    @cached_property
    def counts_here(self) -> dict[str, int]:
        """Rows of each class among those labelled here, the largest class first."""
        counts = dict(self.labelled_here["label"].value_counts().iter_rows())
        return dict(sorted(((name, counts.get(name, 0)) for name in self.model.classes), key=lambda one: -one[1]))

    def _texts(self) -> pl.Series:
        if not self.names.text:
            return pl.Series([""] * self.results.height, dtype=pl.String)
        return texts_of(Table("the results", self.results, ""), self.names.text)


def documents(rows: pl.DataFrame) -> list[Section]:
    """Rows to show, their texts shortened."""
    return [row | {"text": cut(row["text"], _TEXT_COLUMNS)} for row in rows.iter_rows(named=True)]


def summary(material: Material) -> Section:
    """What was asked and what came."""
    about, rows = material.about, material.labelled_here
    asked = [*material.sizes, *about.get("branches", [])]
    unmet = [size for size in asked if not size["asked_low"] <= size["assigned"] <= size["asked_high"]]
    confidence = rows["confidence"].drop_nulls().drop_nans()
    return {
        "n_rows": material.results.height,
        "n_unmet": len(unmet),
        "n_classes": len(material.model.classes),
        "n_overruled": int(rows["overruled"].sum()),
        "median": confidence.median() if len(confidence) else None,
        "settings": sorted(_flat(about["settings"])),
    }


def _flat(settings: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    found = []
    for key, value in settings.items():
        inner = _flat(value, f"{above}{key} ") if isinstance(value, Mapping) else [(f"{above}{key}", str(value))]
        found.extend(inner)
    return found


def sizes(material: Material) -> Section:
    """Class counts: asked, labelled, assigned, own; of another file, what its rows were labelled as."""
    if material.file is not None:
        return _sizes_here(material)
    rows = [{**row, "is_bounded": is_bounded(row, material.about)} for row in material.sizes]
    chart = plots.sizes_chart(
        [row["class"] for row in rows],
        [int(row["assigned"]) for row in rows],
        [int(row["own"]) for row in rows],
        [(int(row["asked_low"]), int(row["asked_high"])) if row["is_bounded"] else None for row in rows],
    )
    return {
        "rows": rows,
        "chart": chart,
        "branches": [{**row, "is_bounded": True} for row in material.about.get("branches", [])],
    }


def _sizes_here(material: Material) -> Section:
    counts = material.counts_here
    n_rows = max(1, material.labelled_here.height)
    chart = plots.counts_chart(list(counts), list(counts.values()), "sizes", "Documents of each class")
    return {"rows": [(name, count, count / n_rows) for name, count in counts.items()], "chart": chart}


def is_stated(size: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    """Whether somebody gave the class a size; a model that does not say so is taken at its bounds."""
    return bool(size.get("stated", is_bounded(size, about)))


def is_bounded(size: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    """Whether the class could not have had any number of rows."""
    return bool(size["asked_low"] > 0 or size["asked_high"] < about["n_unlabelled"])


def progress(material: Material) -> Section:
    """Each way to the labels, and which of them was kept."""
    history = material.about["history"]
    if not history:
        return {"ways": [], "chart": None}
    ends = {int(row["restart"]): row for row in history}
    kept = _kept_restart(ends, material.about.get("objective"))
    restarts = [
        {
            "number": restart + 1,
            "rounds": sum(int(row["restart"]) == restart for row in history),
            "stages": len({row["stage"] for row in history if int(row["restart"]) == restart}),
            "objective": end["objective"],
            "kept": restart == kept,
            "dash": plots.dash_of(restart),
        }
        for restart, end in sorted(ends.items())
    ]
    lowest = min(restarts, key=lambda restart: float(restart["objective"]))
    chart = plots.progress_chart(history, kept)
    return {"ways": restarts, "chart": chart, "kept": kept + 1, "is_lowest": bool(lowest["kept"])}


def _kept_restart(ends: Mapping[int, Mapping[str, Any]], objective: float | None) -> int:
    """The way that ends where the fit did; if none does, the lowest of those that went to the end."""
    same = [restart for restart, end in ends.items() if end["objective"] == objective]
    heaviest = max(end["weight"] for end in ends.values())
    return min(
        same or ends,
        key=lambda restart: (
            ends[restart]["weight"] < heaviest,
            ends[restart]["temperature"],
            ends[restart]["objective"],
        ),
    )


def confidence(material: Material) -> Section:
    """How sure the labels are."""
    values = material.labelled_here["confidence"].drop_nulls().drop_nans().to_numpy()
    if not values.size:
        return {"chart": None}
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), BINS, (0.0, 1.0))
    chart = plots.confidence_chart(counts.tolist())
    above = [(bar, float(np.mean(values >= bar))) for bar in (0.5, 0.9)]
    return {"chart": chart, "above": above, "median": float(np.median(values))}


def overruled(material: Material) -> Section:
    """Where the class sizes decided, and examples of it."""
    rows = material.labelled_here.filter("overruled")
    if rows.is_empty():
        return {"n": 0, "classes": [], "chart": None, "examples": []}
    found = rows.group_by("label", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    by_class: list[tuple[str, int]] = list(found.iter_rows())
    chart = plots.counts_chart(
        [name for name, _ in by_class],
        [count for _, count in by_class],
        "overruled",
        "Labels that the class sizes decided, by the class they went to",
    )
    order = {name: place for place, (name, _) in enumerate(by_class)}
    few = rows.group_by("label", maintain_order=True).head(EXAMPLES_A_CLASS)
    few = few.sort(pl.col("label").replace_strict(order), "row").head(N_EXAMPLES)
    return {"n": rows.height, "classes": by_class, "chart": chart, "examples": documents(few)}


def prices(material: Material) -> Section:
    """Whether the sizes asked for look right: those that do not, most documents off first, and the others."""
    n_rows = max(int(material.about["n_unlabelled"]), 1)
    found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in ("high", "low", "right", "unstated", "unknown")}
    off: list[tuple[float, str, str]] = []
    for size in material.sizes:
        asked: Share = (size["asked_low"] / n_rows, size["asked_high"] / n_rows)
        texts: Share = (size["texts_low"], size["texts_high"])
        if not is_stated(size, material.about):
            found["unstated"].append((size["class"], unstated_sentence(texts)))
            continue
        verdict, sentence = judge(asked, texts), price_sentence(asked, texts)
        found[verdict].append((size["class"], sentence))
        if verdict in ("high", "low"):
            off.append((max(asked[0] - texts[1], texts[0] - asked[1]), size["class"], sentence))
    off.sort(key=lambda entry: -entry[0])
    return {
        "n_rows": material.about["n_unlabelled"],
        "counts": [(verdict, len(found[verdict])) for verdict in ("high", "low", "right") if found[verdict]],
        "first": [entry[1:] for entry in off[:N_OFF]],
        "more": [entry[1:] for entry in off[N_OFF:]],
        "others": found["right"] + found["unstated"] + found["unknown"],
        "all_right": bool(found["right"]) and not off,
        "n_unstated": len(found["unstated"]),
    }


def words(material: Material) -> Section:
    """Strongest words of each class, each with how strong it is beside the first, in thirds."""
    rows = []
    for name, found in zip(material.model.classes, material.words, strict=True):
        first = found[0][1] if found else 1.0
        rows.append(
            (name, [(word, 1 + int(weight > 0.4 * first) + int(weight > 0.7 * first)) for word, weight in found])
        )
    return {"rows": rows, "known": any(found for _, found in rows)}


def tree(material: Material) -> Section:
    """The classes as nested nodes with their counts."""
    top: Section = {"children": {}}
    for size in material.about["sizes"]:
        node = top
        for name in size["class"].split("/", _DEEPEST):  # a browser gives up on nests of a few hundred
            node = node["children"].setdefault(name, {"name": name, "labelled": 0, "assigned": 0, "children": {}})
            node["labelled"] += int(size["labelled"])
            node["assigned"] += int(size["assigned"]) if material.file is None else material.counts_here[size["class"]]
    return {"nodes": list(top["children"].values())}


def uncertain(material: Material) -> Section:
    """The labels that a person should look at first."""
    rows = material.labelled_here.filter(pl.col("confidence").is_not_nan())
    return {"rows": documents(rows.sort("confidence", "row", nulls_last=True).head(N_UNCERTAIN))}


def confusion(material: Material) -> Section:
    """How right the labels are, where the truth is known and the label was not given."""
    assert material.truth is not None
    if len(material.truth) != material.results.height:
        raise ValueError(f"truth must have {material.results.height} labels, but has {len(material.truth)}.")
    rows = material.labelled_here
    whole = pl.Series("truth", list(material.truth), dtype=pl.String)
    rows = rows.with_columns(whole.gather(rows["row"] - 1)).filter(pl.col("truth").is_not_null())
    if rows.is_empty():
        return {"n": 0}
    truth, label = rows["truth"].to_list(), rows["label"].to_list()
    classes = _in_order({*truth, *label}, material.model.classes)
    precision, recall, f, support = precision_recall_fscore_support(truth, label, labels=classes, zero_division=0)
    counts = np.asarray(confusion_matrix(truth, label, labels=classes), dtype=np.int64)
    return {
        "n": len(truth),
        "macro": float(np.mean(f)),
        "micro": float(accuracy_score(truth, label)),
        "classes": list(zip(classes, support.tolist(), precision.tolist(), recall.tolist(), f.tolist(), strict=True)),
        "confused": _most_confused(classes, counts),
        "chart": plots.confusion_chart(classes, counts),
    }


def _in_order(names: set[str], classes: Sequence[str]) -> list[str]:
    """The model's classes in their order, then names that only the truth has."""
    return [name for name in classes if name in names] + sorted(names.difference(classes))


def _most_confused(classes: Sequence[str], counts: Any) -> list[tuple[str, str, int]]:
    wrong = counts - np.diag(counts.diagonal())
    pairs = np.argsort(-wrong, axis=None, kind="stable")[:N_CONFUSED]
    found = ((classes[k // len(classes)], classes[k % len(classes)], int(wrong.flat[k])) for k in pairs)
    return [pair for pair in found if pair[2]]
