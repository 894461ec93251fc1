"""Results read back from a file are those that were written last."""

import numpy as np
import polars as pl
import pytest

from transduce.cli.formats import read_table, write_table
from transduce.cli.predictions import Predictions, make_predictions
from transduce.cli.results import add_results, read_results, without_guard

CLASSES = ("@tea", "coffee")


def predictions(label: list[int], confidence: list[float]) -> Predictions:
    codes = np.array(label)
    return Predictions(codes, np.array(confidence), 1 - codes, 1 - codes)


@pytest.mark.parametrize("in_place", ["label", None])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_of_a_file_labelled_twice_the_last_results_are_read(tmp_path, in_place, suffix):
    frame = pl.DataFrame({"text": ["a", "b"], "label": ["@tea", ""]})
    once, _ = add_results(frame, ["text"], CLASSES, predictions([0, 0], [1.0, 0.6]), ["@tea", None], in_place)
    twice, names = add_results(once, ["text"], CLASSES, predictions([0, 1], [1.0, 0.9]), ["@tea", None])
    write_table(twice, str(tmp_path / f"out.{suffix}"))
    found = read_results(read_table(str(tmp_path / f"out.{suffix}")).frame, ("text",), CLASSES)
    assert found is not None
    assert found[1] == names
    assert found[0].select(names.label, names.confidence, names.overruled, names.given).rows() == [
        ("@tea", 1.0, False, True),
        ("coffee", 0.9, True, False),
    ]


def test_labels_filled_in_are_read_from_their_column():
    frame = pl.DataFrame({"text": ["a"], "label": [""], "label_2": ["another thing"]})
    done, names = add_results(frame, ["text"], CLASSES, predictions([1], [0.7]), [None], "label")
    assert read_results(done, ("text",), CLASSES) is None
    found = read_results(done, ("text",), CLASSES, in_place=True)
    assert found is not None
    assert found[1] == names


def test_the_runner_up_is_the_most_probable_other_class():
    made = make_predictions(np.array([1]), np.array([[0.5, 0.3, 0.2]]), np.array([0]))
    assert (made.confidence.tolist(), made.runner_up.tolist()) == ([0.3], [0])


@pytest.mark.parametrize("label", ["-x", "'-x", "''=x", "'x", "'", "=1+1", "-3", "it's", "x-"])
def test_the_guard_of_formulas_can_be_undone_for_every_label(label, tmp_path):
    path = str(tmp_path / "out.csv")
    write_table(pl.DataFrame({"label": [label]}), path, class_columns=("label",))
    read = read_table(path).frame
    assert read["label"][0] == label or read["label"][0] == f"'{label}"
    assert read.select(without_guard(pl.col("label"))).item() == label
