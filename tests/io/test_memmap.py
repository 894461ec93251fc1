"""Rows on disk are the same rows."""

import json
import weakref

import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.io import memmap
from transduce.io.memmap import npz_parts, open_rows, pack_rows


def parts(n_parts=4, dtype=np.float64):
    for seed in range(n_parts):
        yield sparse.random(60, 40, 0.2, format="csr", random_state=seed, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_come_back_as_they_went(dtype, tmp_path):
    X = pack_rows(parts(dtype=dtype), tmp_path / "rows")
    expected = sparse.vstack(list(parts(dtype=dtype)), format="csr")
    assert X.dtype == dtype
    assert X.shape == expected.shape
    assert (expected != X).nnz == 0
    assert (open_rows(tmp_path / "rows") != expected).nnz == 0


def test_a_fit_on_mapped_rows_is_that_on_rows_in_memory(tmp_path):
    X = pack_rows(parts(), tmp_path / "rows")
    y = np.full(X.shape[0], -1)
    y[np.random.default_rng(0).choice(X.shape[0], 30, replace=False)] = np.arange(30) % 3
    for parameters in ({"annealing": "paper"}, {"loss": "maxent"}, {"loss": "squared_hinge", "annealing": None}):
        one, other = (
            TransductiveClassifier(random_state=0, **parameters).fit(rows, y)
            for rows in (X, sparse.csr_matrix(X.copy()))
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.transduction_, other.transduction_)
    assert (one.predict(X) == other.predict(X)).all()


def test_a_fit_does_not_move_the_rows(tmp_path):
    X = pack_rows(parts(), tmp_path / "rows")
    y = np.full(X.shape[0], -1)
    y[[5, 100, 200]] = 0, 1, 2
    model = TransductiveClassifier(random_state=0, annealing="paper")
    seen = []
    own = model._problem

    def look(*arguments):
        problem = own(*arguments)
        seen.append(problem.design.data)
        return problem

    model._problem = look
    model.fit(X, y)
    assert np.shares_memory(seen[0], X.data)


def test_parts_of_scipy_are_packed_in_the_order_of_their_names(tmp_path):
    for number, part in enumerate(parts()):
        sparse.save_npz(tmp_path / f"part-{number}.npz", part)
    X = pack_rows(npz_parts(tmp_path), tmp_path / "rows")
    assert (sparse.vstack(list(parts()), format="csr") != X).nnz == 0


def test_columns_out_of_order_and_twice_are_put_right(tmp_path):
    twice = sparse.csr_matrix((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    assert pack_rows([twice], tmp_path / "rows").toarray().tolist() == [[1.0, 0.0, 2.0]]


def test_whole_numbers_become_floats(tmp_path):
    assert pack_rows([sparse.csr_matrix(np.eye(3, dtype=int))], tmp_path / "rows").dtype == np.float64


def test_mapped_rows_cannot_be_changed(tmp_path):
    X = pack_rows(parts(), tmp_path / "rows")
    with pytest.raises(ValueError, match="read-only"):
        X.data[0] = 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda place: (place / "rows.json").unlink(), "has no rows.json"),
        (lambda place: (place / "data.bin").write_bytes(b"1234"), "must have .* bytes, but has 4"),
        (lambda place: (place / "indptr.bin").unlink(), "but has 0"),
        (lambda place: (place / "rows.json").write_text('{"format": 9}'), "in format 1, but has 9"),
        (lambda place: (place / "rows.json").write_text('{"format": 1, "n_ro'), "rows.json must say .* but is damaged"),
        (lambda place: (place / "rows.json").write_text('{"format": 1}'), "rows.json must say .* but is damaged"),
        (lambda place: (place / "rows.json").write_text("[]"), "rows.json must say .* but is damaged"),
    ],
)
def test_a_store_that_is_not_whole_is_refused(damage, message, tmp_path):
    pack_rows(parts(), tmp_path / "rows")
    damage(tmp_path / "rows")
    with pytest.raises(ValueError, match=message):
        open_rows(tmp_path / "rows")


def test_places_and_parts_that_do_not_fit_are_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="new or empty folder"):
        pack_rows(parts(), tmp_path)
    with pytest.raises(ValueError, match="must have 40 columns as the first has, but part 1 has 3"):
        pack_rows([*list(parts(1)), sparse.csr_matrix((2, 3))], tmp_path / "a")
    with pytest.raises(ValueError, match="no part holds any"):
        pack_rows([], tmp_path / "b")
    with pytest.raises(ValueError, match="but there are none"):
        pack_rows(npz_parts(tmp_path), tmp_path / "c")


def test_more_columns_than_their_numbers_can_tell_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"fewer than 2\*\*31 columns, but part 0 has 2147483648; drop some"):
        pack_rows([sparse.csr_matrix((1, 2**31))], tmp_path / "rows")
    X = pack_rows([sparse.csr_matrix(([1.0], [2**31 - 2], [0, 1]), (1, 2**31 - 1))], tmp_path / "rows")
    assert X.indices.tolist() == [2**31 - 2]


def test_values_are_not_rounded_to_the_type_of_the_first_part(tmp_path):
    small, large = (sparse.csr_matrix(np.array([[0.1, 0.0]], dtype)) for dtype in (np.float32, np.float64))
    for wide in (large, large.astype(np.int64)):
        with pytest.raises(ValueError, match=f"must be float32 as the first is, but part 1 is {wide.dtype}; convert"):
            pack_rows([small, wide], tmp_path / "rows")
    assert pack_rows([large, small], tmp_path / "rows").data.tolist() == [0.1, np.float32(0.1)]


def test_row_ends_are_short_where_they_can_be(tmp_path, monkeypatch):
    X = pack_rows(parts(), tmp_path / "short")
    assert X.indptr.dtype == X.indices.dtype == np.int32
    monkeypatch.setattr(memmap, "INT32_LIMIT", X.nnz)
    long = pack_rows(parts(), tmp_path / "long")
    assert long.indptr.dtype == np.int64
    assert (long != X).nnz == 0
    about = json.loads((tmp_path / "long" / "rows.json").read_text())
    del about["indptr"]  # as stores were before
    (tmp_path / "long" / "rows.json").write_text(json.dumps(about))
    assert (open_rows(tmp_path / "long") != X).nnz == 0


def test_a_part_is_gone_before_the_next_is_made(tmp_path):
    made = []

    def one_by_one():
        for part in range(4):
            assert all(each() is None for each in made)
            rows = sparse.random(60, 40, 0.2, format="csr", random_state=part)
            made.append(weakref.ref(rows.data))
            yield rows
            del rows

    assert pack_rows(one_by_one(), tmp_path / "rows").shape == (240, 40)


@pytest.mark.parametrize("made", [False, True])
def test_what_fails_leaves_nothing(made, tmp_path):
    def broken():
        yield from parts(2)
        raise OSError("the source is gone")

    place = tmp_path / "rows"
    if not made:
        place.mkdir()
    with pytest.raises(OSError, match="the source is gone"):
        pack_rows(broken(), place)
    assert list(tmp_path.iterdir()) == ([] if made else [place])
    assert pack_rows(parts(), place).shape == (240, 40)
    assert {path.name for path in place.iterdir()} == {"data.bin", "indices.bin", "indptr.bin", "rows.json"}
