"""Contents of the sections of a report as plain values for the template, from the model and the results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from transduce.cli.evidence_options import SUSPICION
from transduce.cli.messages import (
    NO_CLASS,
    answered_note,
    few_labels_note,
    setting_text,
)
from transduce.cli.queue.selection import choose_rows
from transduce.cli.report import plots
from transduce.cli.report.data import ReportData, Section
from transduce.cli.report.document_map import document_map
from transduce.cli.report.svg import truncate
from transduce.cli.size_sentences import SizeComparison, compare_class

MAX_UNFOLDED = 30
"""Tables with more classes than this are folded."""
N_UNCERTAIN, N_SUSPICIOUS, N_EXAMPLES, EXAMPLES_PER_CLASS, N_CONFUSED, N_OFF = 30, 100, 12, 2, 12, 12
BINS, _TEXT_WIDTH, _MAX_DEPTH = 20, 240, 30


def _documents(rows: pl.DataFrame) -> list[Section]:
    return [row | {"text": truncate(row["text"], _TEXT_WIDTH)} for row in rows.iter_rows(named=True)]


def summary(data: ReportData) -> Section:
    """Key figures and settings."""
    sizes = [*data.sizes, *data.model.about.get("branches", [])]
    return {
        "n_rows": data.results.height,
        "n_new": data.new_labels.height if data.file is not None else data.n_with_class,
        "n_none": data.new_rows.height - data.new_labels.height,
        "is_bounded": any(size["is_bounded"] for size in data.sizes) or len(sizes) > len(data.sizes),
        "n_unmet": sum(not size["asked_low"] <= size["assigned"] <= size["asked_high"] for size in sizes),
        "n_classes": len(data.model.classes),
        "n_overruled": int(data.new_labels["overruled"].sum()),
        "n_empty": int(data.model.about.get("n_empty", 0)) if data.file is None else 0,
        "median": float(np.median(data.confidences)) if data.confidences.size else None,
        "accuracy": data.model.about.get("accuracy") if data.file is None else None,
        "answered_note": answered_note(data.model.about.get("accuracy", {})),
        "few_labels_note": few_labels_note(data.model.about.get("accuracy", {}), data.model.about["sizes"]),
        "is_contradicted": bool(data.model.about.get("contradicted")) and data.file is None,
        "settings": sorted(_flat(data.model.about["settings"])),
    }


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} ")
        else:
            yield f"{prefix}{key}", setting_text(value)


def sizes(data: ReportData) -> Section:
    """Class counts: labelled, requested, assigned, predicted; for another file, the predicted counts."""
    if data.file is not None:
        counts, n_rows = data.new_counts, max(1, data.new_rows.height)
        chart = plots.counts_chart(counts, "Documents per class")
        return {"rows": [(name, count, count / n_rows) for name, count in counts.items()], "chart": chart}
    branches = [
        {**row, "class": row["branch"], "is_bounded": "rough" not in row, "estimate": None}
        for row in data.model.about.get("branches", [])
    ]
    is_estimated = any(size["estimate"] is not None for size in data.sizes)
    chart = plots.sizes_chart(data.sizes)
    return {"rows": data.sizes, "chart": chart, "branches": branches, "is_estimated": is_estimated}


def no_class(data: ReportData) -> Section | None:
    """Documents that fit no class, the surest ones first: those whose best class is least probable."""
    if not data.none:
        return None
    rows = data.new_rows.filter(pl.col("label") == "")
    surest = rows.sort("confidence", "row", nulls_last=True).head(N_UNCERTAIN)
    asked = (data.none["asked_low"], data.none["asked_high"]) if data.file is None else None
    fraction = rows.height / max(1, data.new_rows.height)
    return {"n": rows.height, "fraction": fraction, "asked": asked, "examples": _documents(surest)}


def progress(data: ReportData) -> Section:
    """The restarts, and the one that was kept."""
    rows_of: dict[int, list[Mapping[str, Any]]] = {}
    for row in data.model.about["history"]:
        rows_of.setdefault(int(row["restart"]), []).append(row)
    if not rows_of:
        return {"restarts": [], "chart": None}
    kept = _kept_restart({restart: rows[-1] for restart, rows in rows_of.items()}, data.model.about.get("objective"))
    restarts = [
        {
            "name": "with hidden labels" if restart < 0 else restart + 1,
            "rounds": len(rows),
            "stages": len({row["stage"] for row in rows}),
            "objective": rows[-1]["objective"],
            "kept": restart == kept,
            "dash": plots.DASHES[restart % len(plots.DASHES)],
        }
        for restart, rows in sorted(rows_of.items())
    ]
    lowest = min(restarts, key=lambda restart: float(restart["objective"]))
    chart = plots.progress_chart(rows_of, kept)
    return {"restarts": restarts, "chart": chart, "kept": kept + 1, "is_lowest": bool(lowest["kept"])}


def _kept_restart(ends: Mapping[int, Mapping[str, Any]], objective: float | None) -> int:
    """Return the restart that ends with the objective of the fit; otherwise the lowest of those that finished."""
    same = [restart for restart, end in ends.items() if end["objective"] == objective]
    final_weight = max(end["weight"] for end in ends.values())

    def rank(restart: int) -> tuple[bool, float, float]:
        end = ends[restart]
        return end["weight"] < final_weight, end["temperature"], end["objective"]

    return min(same or ends, key=rank)


def confidence(data: ReportData) -> Section:
    """Distribution of the confidences."""
    values = data.confidences
    if not values.size:
        return {"chart": None}
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), BINS, (0.0, 1.0))
    above = [(bar, float(np.mean(values >= bar))) for bar in (0.5, 0.9)]
    return {"chart": plots.confidence_chart(counts.tolist()), "above": above, "median": float(np.median(values))}


def overruled(data: ReportData) -> Section:
    """Labels that the class sizes decided, with examples."""
    rows = data.new_labels.filter("overruled")
    if rows.is_empty():
        return {"n": 0, "classes": [], "chart": None, "examples": []}
    by_class = rows.group_by("label", maintain_order=True)
    counts = dict(by_class.len().sort("len", descending=True, maintain_order=True).iter_rows())
    chart = plots.counts_chart(counts, "Labels that the class sizes decided, by class")
    order = {name: place for place, name in enumerate(counts)}
    few = by_class.head(EXAMPLES_PER_CLASS).sort(pl.col("label").replace_strict(order), "row").head(N_EXAMPLES)
    return {"n": rows.height, "classes": list(counts), "chart": chart, "examples": _documents(few)}


def stated(data: ReportData) -> Section:
    """Stated class sizes beside what the texts suggest; those that disagree most come first."""
    found: dict[str, list[SizeComparison]] = {kind: [] for kind in ("high", "low", "right", "unstated", "unknown")}
    for size in data.sizes:
        is_stated = bool(size.get("stated", size["is_bounded"]))  # models of version 0.1 do not say what was stated
        one = compare_class(size, data.n_with_class, is_stated=is_stated)
        found[one.verdict].append(one)
    off = sorted(found["high"] + found["low"], key=lambda one: -one.distance)
    return {
        "n_rows": data.model.about["n_unlabelled"],
        "counts": [(verdict, len(found[verdict])) for verdict in ("high", "low", "right") if found[verdict]],
        "off": [(one.name, one.sentence) for one in off],
        "n_first": N_OFF,
        "others": [(one.name, one.sentence) for one in found["right"] + found["unknown"]],
        "all_right": bool(found["right"]) and not off and not data.model.about.get("contradicted"),
        "is_stated": len(found["unstated"]) < len(data.sizes),
        "unstated": [(one.name, one.suggestion) for one in found["unstated"]],
    }


def words(data: ReportData) -> Section:
    """Strongest words of each class, with their weights."""
    return {"rows": list(zip(data.model.classes, data.words, strict=True)), "known": any(data.words)}


def tree(data: ReportData) -> Section | None:
    """The classes as nested nodes with their counts, if they form a tree."""
    if not data.model.tree:
        return None
    top: Section = {"children": {}}
    for size in data.model.about["sizes"]:
        node = top
        for name in size["class"].split("/", _MAX_DEPTH):  # browsers fail at a nesting of a few hundred
            node = node["children"].setdefault(name, {"name": name, "labelled": 0, "assigned": 0, "children": {}})
            node["labelled"] += int(size["labelled"])
            node["assigned"] += int(size["assigned"]) if data.file is None else data.new_counts[size["class"]]
    return {"nodes": list(top["children"].values())}


def uncertain(data: ReportData) -> Section:
    """Documents that `queue` would ask about; without their features, the labels with the lowest confidence."""
    rows = data.new_labels.filter(pl.col("confidence").is_not_nan())
    if data.X is None or not rows.height:
        least = rows.sort("confidence", "row", nulls_last=True).head(N_UNCERTAIN)
        return {"rows": _documents(least), "is_queue": False}
    places, known = rows["row"].to_numpy() - 1, data.rows.filter(pl.col("given"))["row"].to_numpy() - 1
    probabilities = data.model.probabilities(data.model.scores(data.X[places]))
    chosen = choose_rows(probabilities, data.X[places], N_UNCERTAIN, labeled=data.X[known])
    return {"rows": _documents(rows[chosen]), "is_queue": True}


def guesses(data: ReportData) -> Section | None:
    """Guesses that text and class sizes contradict, the clearest first."""
    column, added = data.model.about.get("guess"), str(data.model.about.get("suspicion"))
    if column is None or data.file is not None or not {column, added} <= {*data.results.columns}:
        return None
    guessed = data.results.select(
        pl.col(column).cast(pl.String).alias("guess"), pl.col(added).cast(pl.Float64).alias(SUSPICION)
    )
    rows = pl.concat((data.rows, guessed), how="horizontal").filter(pl.col(SUSPICION) > 0)
    shown = rows.sort(SUSPICION, "row", descending=[True, False]).head(N_SUSPICIOUS)
    return {"n": rows.height, "column": column, "rows": _documents(shown)}


def confusion(data: ReportData) -> Section | None:
    """Accuracy of the new labels where the truth is known."""
    if data.truth is None:
        return None
    if len(data.truth) != data.results.height:
        raise ValueError(f"truth must have {data.results.height} labels, but has {len(data.truth)}.")
    whole = pl.Series("truth", list(data.truth), dtype=pl.String)
    rows = data.new_rows.with_columns(whole.gather(data.new_rows["row"] - 1)).drop_nulls("truth")
    if rows.is_empty():
        return {"n": 0}
    truth, label = rows["truth"].to_list(), rows["label"].to_list()
    names = {*truth, *label} - {""}
    classes = [name for name in data.model.classes if name in names] + sorted(names.difference(data.model.classes))
    precision, recall, f, support = precision_recall_fscore_support(truth, label, labels=classes, zero_division=0)
    columns = [*classes, ""] if "" in label else classes
    counts, shown = np.asarray(confusion_matrix(truth, label, labels=columns), dtype=np.int64), [*classes]
    shown += [NO_CLASS] * (len(columns) - len(classes))
    return {
        "n": len(truth),
        "n_none": label.count(""),
        "macro": float(np.mean(f)),
        "micro": float(accuracy_score(truth, label)),
        "classes": list(zip(classes, support.tolist(), precision.tolist(), recall.tolist(), f.tolist(), strict=True)),
        "confused": _most_confused(shown, counts),
        "chart": plots.confusion_chart(shown, counts),
    }


def _most_confused(classes: Sequence[str], counts: Any) -> list[tuple[str, str, int]]:
    wrong = counts - np.diag(counts.diagonal())
    pairs = np.argsort(-wrong, axis=None, kind="stable")[:N_CONFUSED]
    found = ((classes[k // len(classes)], classes[k % len(classes)], int(wrong.flat[k])) for k in pairs)
    return [pair for pair in found if pair[2]]


SECTIONS = (
    summary, sizes, no_class, confidence, document_map, overruled, stated, words, tree, guesses, uncertain, confusion,
    progress,
)  # fmt: skip
