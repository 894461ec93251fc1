"""Vectors provided by the user."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from transduce.cli.errors import InputError
from transduce.cli.features import read_vectors
from transduce.features import CenteredNormalizer
from transduce.features.embeddings import fit_vectors


def table(**columns):
    return SimpleNamespace(name="teas.csv", frame=pl.DataFrame(columns or {"text": ["a", "b", "c"]}))


DENSE = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -1e300]])


UNIT = [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]]


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_files_become_unit_rows(form, tmp_path):
    vectors = form(DENSE)
    path = str(tmp_path / ("v.npz" if sparse.issparse(vectors) else "v.npy"))
    (sparse.save_npz if sparse.issparse(vectors) else np.save)(path, vectors)
    X = read_vectors(path, table())
    assert X.dtype == np.float32
    assert sparse.issparse(X) == sparse.issparse(vectors)
    assert dense(X).tolist() == np.array(UNIT, np.float32).tolist()


def test_integers_in_an_archive_become_unit_rows(tmp_path):
    np.savez(tmp_path / "v.npz", np.array([[3, 4], [0, 0], [0, -7]], np.int8))
    assert read_vectors(str(tmp_path / "v.npz"), table()).tolist() == np.array(UNIT, np.float32).tolist()


@pytest.mark.parametrize("dtype", [pl.List(pl.Float64), pl.Array(pl.Float64, 2)])
def test_columns_become_unit_rows(dtype):
    frame = pl.DataFrame({"v": pl.Series(DENSE.tolist(), dtype=dtype)})
    X = read_vectors("v", SimpleNamespace(name="teas", frame=frame))
    assert X.tolist() == np.array(UNIT, np.float32).tolist()


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
def test_result_does_not_depend_on_the_block_size(name, tmp_path, monkeypatch):
    V = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    np.save(tmp_path / "v.npy", V)
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix(V))
    many = table(text=["a"] * 50)
    X = read_vectors(str(tmp_path / name), many)
    monkeypatch.setattr("transduce.cli.features.vectors.BLOCK_SIZE", 21)
    assert np.array_equal(dense(read_vectors(str(tmp_path / name), many)), dense(X))
    assert np.allclose(dense(X), V / np.linalg.norm(V, axis=1, keepdims=True), atol=1e-6)


def test_dense_rows_are_centred_and_sparse_rows_are_not():
    X = np.random.default_rng(0).normal(1, 1, size=(50, 7)).astype(np.float32)
    X[3] = 0
    expected = CenteredNormalizer().fit_transform(X)
    vectorizer, rows = fit_vectors(X.copy())
    assert np.array_equal(rows, expected)
    assert np.allclose(vectorizer.center, X[np.arange(50) != 3].mean(axis=0), atol=1e-6)
    vectorizer, rows = fit_vectors(sparse.csr_matrix(X))
    assert (rows != sparse.csr_matrix(X)).nnz == 0
    assert vectorizer.center.size == 0


def bad_files():
    finite = np.ones((3, 2))
    yield "one-d.npy", lambda p: np.save(p, np.ones(3)), "must contain a matrix"
    yield "no-columns.npy", lambda p: np.save(p, np.ones((3, 0))), "must contain a matrix"
    yield "rows.npy", lambda p: np.save(p, np.ones((4, 2))), "has 4 rows, but teas.csv has 3"
    yield "nan.npy", lambda p: np.save(p, np.where(np.eye(3)[:, :2] > 0, np.nan, finite)), "row 1 .* nan"
    yield "inf.npz", lambda p: sparse.save_npz(p, sparse.csr_matrix([[0.0], [1], [np.inf]])), "row 3 .* inf"
    yield "objects.npy", lambda p: np.save(p, np.array([[{}]] * 3, dtype=object)), "cannot be read as vectors"
    yield "objects.npz", lambda p: np.savez(p, np.array([[{}]] * 3, dtype=object)), "cannot be read as vectors"
    yield "words.npy", lambda p: np.save(p, np.array([["a"]] * 3)), "must contain numbers"
    yield "complex.npy", lambda p: np.save(p, finite * 1j), "must contain numbers"
    yield "two.npz", lambda p: np.savez(p, a=finite, b=finite), "contains 2 arrays"
    yield "text.npy", lambda p: p.write_text("0.1,0.2\n"), "cannot be read as vectors"
    yield "text.npz", lambda p: p.write_text("0.1,0.2\n"), "cannot be read as vectors"
    yield "empty.npy", lambda p: p.write_bytes(b""), "cannot be read as vectors"
    yield "folder.npy", lambda p: p.mkdir(), "cannot be read as vectors"
    yield "absent.npy", lambda p: None, "does not exist"
    yield "dia.npz", lambda p: sparse.save_npz(p, sparse.eye_array(3, format="dia")), "not csr, csc or coo"
    yield "wild.npz", wild_indices, "cannot be read as vectors"
    yield "lying.npy", lying_header, "cannot be read as vectors"


def wild_indices(path):
    np.savez(path, format=b"csr", shape=[3, 2], data=[1.0], indices=[10**6], indptr=[0, 1, 1, 1])


def lying_header(path):
    np.save(path, np.ones((3, 2)))
    path.write_bytes(path.read_bytes().replace(b"(3, 2)", b"(3,9" + b"9" * 9 + b")")[:128])


@pytest.mark.parametrize(("name", "write", "message"), list(bad_files()), ids=lambda v: v if isinstance(v, str) else "")
def test_bad_files_are_refused(name, write, message, tmp_path):
    write(tmp_path / name)
    with pytest.raises(InputError, match=message) as caught:
        read_vectors(str(tmp_path / name), table())
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0, 2.0], [1.0], [1.0, 2.0]], "row 2 has length 1 instead of 2"),
        ([[1.0, 2.0], [1.0, 2.0], None], "row 3 has length 0 instead of 2"),
        ([[1.0, 2.0], [1.0, None], [1.0, 2.0]], "row 2 .* nan"),
        ([[1.0], [2.0], [float("inf")]], "row 3 .* inf"),
        (pl.Series([[], [], []], dtype=pl.List(pl.Float32)), "contains only empty lists"),
        (["[1, 2]", "[1, 2]", "[1, 2]"], "must contain lists of numbers"),
        ([["a"], ["b"], ["c"]], "must contain lists of numbers"),
        ([1.0, 2.0, 3.0], "must contain lists of numbers"),
    ],
)
def test_bad_columns_are_refused(column, message):
    with pytest.raises(InputError, match=message):
        read_vectors("v", table(v=column))


def test_an_unknown_source_is_refused_with_the_columns():
    with pytest.raises(InputError, match=r"'vector' is neither. The columns are text"):
        read_vectors("vector", table())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans(), st.sampled_from(["npy", "npz", "sparse"]))
def test_damaged_files_are_refused_or_give_finite_rows(tmp_path_factory, place, change, cut, kind):
    path = tmp_path_factory.getbasetemp() / ("damaged.npy" if kind == "npy" else "damaged.npz")
    write = {"npy": np.save, "npz": np.savez, "sparse": lambda p, a: sparse.save_npz(p, sparse.csr_matrix(a))}[kind]
    write(path, np.arange(6.0).reshape(3, 2))
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= change
    path.write_bytes(content[: place % len(content)] if cut else content)
    try:
        X = read_vectors(str(path), table())
    except InputError:
        return
    assert X.shape[0] == 3
    assert np.isfinite(dense(X)).all()
