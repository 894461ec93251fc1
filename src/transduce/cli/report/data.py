"""Input of a report: a model, the rows that it labelled, and views of them that several sections share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from transduce.cli.formats import Table, texts_of
from transduce.cli.results import ResultNames
from transduce.model_file import Model

Section = dict[str, Any]
"""Contents of a section as plain values for the template."""


@dataclass(frozen=True, eq=False)
class ReportData:
    """Input of a report; `file` is named if its rows are not those of training, `X` has their features if known."""

    model: Model
    results: pl.DataFrame
    names: ResultNames
    truth: Sequence[str | None] | None
    words: Sequence[Sequence[tuple[str, float]]]
    file: str | None = None
    X: Any = None

    @cached_property
    def sizes(self) -> list[Section]:
        """Sizes of the classes, largest first, and whether each was restricted at all."""
        ordered = sorted(self.model.about["sizes"], key=lambda size: -int(size["assigned"]))
        most = self.model.about["n_unlabelled"] - self.none.get("asked_low", 0)
        rows = [{**size, "is_bounded": size["asked_low"] > 0 or size["asked_high"] < most} for size in ordered]
        return [row | _estimate(row, self.n_with_class) for row in rows]

    @property
    def none(self) -> Mapping[str, Any]:
        """What the model says of rows that fit no class; nothing if every row gets one."""
        found: Mapping[str, Any] = self.model.about.get("none", {})
        return found

    @property
    def n_with_class(self) -> int:
        """Number of unlabelled rows that got a class when the model was trained."""
        return int(self.model.about["n_unlabelled"]) - int(self.none.get("assigned", 0))

    @cached_property
    def rows(self) -> pl.DataFrame:
        """All rows, with their row number, under fixed column names; no class is ""."""
        names = self.names
        texts = texts_of(Table("the results", self.results, ""), names.text) if names.text else pl.lit("")
        given = pl.lit(False) if names.given is None else pl.col(names.given).fill_null(False)
        return self.results.select(
            given.alias("given"),
            pl.int_range(1, self.results.height + 1).alias("row"),
            texts.alias("text"),
            pl.col(names.label).cast(pl.String).fill_null("").alias("label"),
            pl.col(names.confidence).cast(pl.Float64).alias("confidence"),
            pl.col(names.runner_up).cast(pl.String).fill_null("").alias("runner_up"),
            pl.col(names.overruled).fill_null(False).alias("overruled"),
        )

    @cached_property
    def new_rows(self) -> pl.DataFrame:
        """Rows whose label was not given."""
        return self.rows.filter(~pl.col("given"))

    @cached_property
    def new_labels(self) -> pl.DataFrame:
        """Those of the new rows that got a class."""
        return self.new_rows.filter(pl.col("label") != "")

    @cached_property
    def new_counts(self) -> dict[str, int]:
        """Number of new labels of each class, largest first."""
        counts = dict(self.new_labels["label"].value_counts().iter_rows())
        return dict(sorted(((name, counts.get(name, 0)) for name in self.model.classes), key=lambda one: -one[1]))

    @cached_property
    def confidences(self) -> Any:
        """Known confidences of the new labels."""
        return self.new_labels["confidence"].drop_nulls().drop_nans().to_numpy()


def _estimate(size: Section, n_rows: int) -> Section:
    """The estimated size and its interval, in rows; models of version 0.1 and exact sizes have none."""
    keys = ("estimated", "estimated_low", "estimated_high")
    return {"estimate": [round(n_rows * size[key]) for key in keys] if all(key in size for key in keys) else None}
