"""Rows on disk are the same rows."""

import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.stores import npz_parts, open_rows, pack_rows


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
