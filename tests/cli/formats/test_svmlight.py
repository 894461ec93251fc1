"""svmlight files."""

import numpy as np
import pytest
from helpers.growth import QUADRATIC, growth
from helpers.tables import assert_refused, read
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from transduce.cli.formats import labels_of, read_table
from transduce.cli.formats.svmlight import read_svmlight


@pytest.mark.parametrize("zero_based", [False, True])
def test_agrees_with_scikit_learn(tmp_path, zero_based):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)) * (rng.random((200, 30)) < 0.2)
    X[0, 0] = 1.0
    y = rng.integers(-1, 4, 200)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment="héllo", query_id=np.arange(200))
    table = read_table(str(path))
    expected, targets = load_svmlight_file(str(path), zero_based=True)
    assert table.vectors.shape == expected.shape
    np.testing.assert_array_equal(table.vectors.toarray(), expected.toarray())
    assert labels_of(table, "label").to_list() == [None if t == 0 else str(int(t)) for t in targets]
    assert table.frame["row"].to_list() == list(range(1, 201))


def test_columns_do_not_depend_on_the_smallest_index(tmp_path):
    both = [read(tmp_path, name, text) for name, text in (("a.svm", "1 0:1 2:3\n"), ("b.svm", "1 2:3\n"))]
    assert [table.vectors.toarray()[0, 2] for table in both] == [3, 3]


def test_targets_and_rows_without_features(tmp_path):
    table = read(
        tmp_path, "a.libsvm", "# head\r\n+1 1:1e-3\r\n-1\r\n\r\n3.0 2:.5 #c\r\n0.5 3:5.\r\n-0 1:0\r\n1e300 qid:4 1:1"
    )
    assert table.frame["label"].to_list() == ["1", "-1", "3", "0.5", None, "1e+300"]
    np.testing.assert_array_equal(table.vectors.toarray()[:4], [[0, 1e-3, 0, 0], [0] * 4, [0, 0, 0.5, 0], [0, 0, 0, 5]])


def test_work_is_linear_in_the_rows():
    line = b"1 " + b" ".join(b"%d:0.%d" % (i, i) for i in range(1, 31)) + b"\n"
    assert read_svmlight(line * 40, "a.svm").vectors.nnz == 1200
    ratio = growth(lambda data: read_svmlight(data, "a.svm"), line * 500, line * 2000)
    assert ratio < 0.4 * QUADRATIC


BAD = {
    "no svmlight rows": ("a.svm", "# nothing\n", "the file has no rows"),
    "no features": ("a.svm", "\n1\n2\n", "line 2: no row has a feature"),
    "a word as target": ("a.svm", "1 1:1\nx 1:1\n", 'line 2: expected a number as the target, but found "x"'),
    "several targets": ("a.svm", "1,2 1:1\n", 'line 1: .*found "1,2". Keep one label per row'),
    "NaN target": ("a.svm", "nan 1:1\n", "line 1: expected a number as the target"),
    "infinite target": ("a.svm", "# c\n1e999 1:1\n", "line 2: the target is too large"),
    "NaN value": (
        "a.svm",
        "1 1:1\n1 1:nan\n",
        'line 2: expected index:value with two finite .* found "1:nan"',
    ),
    "infinite value": ("a.svm", "1 1:inf\n", 'line 1: .*found "1:inf"'),
    "overflowing value": ("a.svm", "1 1:1\n\n1 1:1 2:1e999\n", "line 3: a value is too large"),
    "no colon": ("a.svm", "1 1:1 2\n", 'line 1: expected index:value.*found "2"'),
    "two colons": ("a.svm", "1 1:2:3 4\n", 'line 1: expected index:value.*found "1:2:3"'),
    "underscores": ("a.svm", "1 1_0:1\n", 'line 1: expected index:value.*found "1_0:1"'),
    "negative index": ("a.svm", "1 -1:1\n", 'line 1: expected index:value.*found "-1:1"'),
    "late qid": ("a.svm", "1 1:1 qid:1\n", 'line 1: expected index:value.*found "qid:1"'),
    "falling indices": ("a.svm", "1 1:1\n1 2:1 1:1\n", "line 2: expected increasing indices"),
    "an index twice": ("a.svm", "1 1:1\n1 2:1 2:1\n", "line 2: expected increasing indices"),
    "large index": ("a.svm", "1 1:1\n1 2147483648:1\n", "line 2: expected feature indices up to 2147483647"),
    "huge index": ("a.svm", "1 99999999999999999999:1\n", "line 1: expected feature indices up to 2147483647"),
    "digits without end": ("a.svm", "1 1:" + "1" * 50_000 + "x\n", "line 1: expected index:value"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_position(tmp_path, case):
    assert_refused(tmp_path, *BAD[case])
