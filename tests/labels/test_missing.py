"""Missing labels: every common marker of unlabelled rows, and labels that only look like one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning

from transduce.errors import LabelWarning
from transduce.labels.missing import find_labeled

YES_NO_NO_YES = [True, False, False, True]


@pytest.mark.parametrize(
    "y",
    [
        [1, -1, -1, 0],
        (1, -1, -1, 0),
        np.array([1, -1, -1, 0], dtype=np.int8),
        np.array([1.0, np.nan, -1.0, 0.0]),
        np.array([1.0, -1.0, np.nan, 0.0], dtype=np.float32),
        ["tea", "", "  \t", "coffee"],
        ["tea", None, np.nan, "coffee"],
        ["tea", -1, -1.0, "coffee"],
        ["tea", pd.NA, pd.NaT, "coffee"],
        np.array(["tea", "", " ", "coffee"]),
        np.array(["tea", None, "", "coffee"], dtype=object),
        [("a", "x"), None, "", ("b", "y")],
        [["a", "x"], None, -1, ["b"]],
        pd.Series(["tea", None, " ", "coffee"]),
        pd.Series(["tea", None, "", "coffee"], dtype="string"),
        pd.Series(["tea", None, np.nan, "coffee"], dtype="category"),
        pd.Series([1, None, -1, 0], dtype="Int64"),
        pd.Series([1.0, np.nan, -1.0, 0.0], index=[9, 9, 3, 1]),
        pd.Categorical(["tea", None, "", "coffee"]),
        pl.Series(["tea", None, "", "coffee"]),
        pl.Series([1, None, -1, 0]),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}-{getattr(y, 'dtype', 'list')}",
)
def test_every_common_marker_means_unlabeled(y):
    values, labeled = find_labeled(y)
    assert values.shape == (4,)
    assert labeled.dtype == bool
    assert labeled.tolist() == YES_NO_NO_YES


@pytest.mark.parametrize(
    "y", [[True, False], np.array([0, 255], dtype=np.uint8), ["-1", "nan"], ["None", "NA"], [("a",), ("b",)]]
)
def test_labels_that_only_look_like_markers_stay(y):
    assert find_labeled(y)[1].all()


def test_values_are_unchanged():
    assert find_labeled(["tea", "", "coffee"])[0].tolist() == ["tea", "", "coffee"]
    assert find_labeled([3, -1])[0].dtype.kind == "i"
    assert find_labeled([("a", "x"), ("b", "y")])[0].tolist() == [("a", "x"), ("b", "y")]


def test_y_is_not_modified():
    for y in (np.array([1, -1, 0]), np.array(["a", None], dtype=object)):
        copy = y.copy()
        find_labeled(y)
        assert y.tolist() == copy.tolist()


def test_a_custom_marker_replaces_the_common_ones_except_missing_values():
    assert find_labeled(["?", "", None, "tea"], unlabeled="?")[1].tolist() == [False, True, False, True]
    assert find_labeled([9, -1, 0], unlabeled=9)[1].tolist() == [False, True, True]
    assert find_labeled([9.0, -1.0, np.nan], unlabeled=9)[1].tolist() == [False, True, False]
    assert find_labeled([("a", "x"), ("b", "y")], unlabeled=("a", "x"))[1].tolist() == [False, True]


def test_without_a_marker_only_missing_values_are_unlabeled():
    assert find_labeled([1, -1], unlabeled=None)[1].all()
    assert find_labeled(["", "tea", None], unlabeled=None)[1].tolist() == [True, True, False]


def test_labels_of_only_minus_one_and_one_cause_a_warning():
    for y in ([1, -1, 1], np.array([-1.0, 1.0, np.nan])):
        with pytest.warns(LabelWarning, match="y holds only -1 and 1, and -1 means unlabelled"):
            find_labeled(y)
        find_labeled(y, unlabeled=None)
        find_labeled(y, unlabeled=-1)
    find_labeled([0, 1, -1])


def test_a_column_is_flattened_with_a_warning():
    for y in (np.array([[1], [-1], [0]]), pl.DataFrame({"y": [1, -1, 0]})):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            values, labeled = find_labeled(y)
        assert values.tolist() == [1, -1, 0]
        assert labeled.tolist() == [True, False, True]


def test_a_data_frame_of_one_column_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert find_labeled(pd.DataFrame({"y": [1, -1, 0]}))[1].tolist() == [True, False, True]


def test_missing_dates_mean_unlabeled():
    y = pd.Series(pd.to_datetime(["2020-01-01", None]))
    assert find_labeled(y)[1].tolist() == [True, False]


@pytest.mark.parametrize("y", [np.zeros((3, 2)), np.zeros((2, 1, 1)), np.array(1.0)])
def test_more_than_one_dimension_is_refused(y):
    with pytest.raises(ValueError, match="y should be a 1d array with one label for each row, but has shape"):
        find_labeled(y)


def test_no_rows_have_no_labels():
    values, labeled = find_labeled([])
    assert values.size == labeled.size == 0
